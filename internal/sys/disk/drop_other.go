//go:build !linux && !darwin

package disk

import (
	"os"
	"runtime"
)

// dropCached says that this system cannot be told to drop pages of a file.
func dropCached(*os.File) (why string) { return runtime.GOOS + " has no call for it" }
