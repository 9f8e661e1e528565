//go:build !linux && !darwin

package disk

import (
	"os"
	"runtime"
)

// dropCached reports that this system has no call to drop the pages of a file.
func dropCached(*os.File) (why string) { return runtime.GOOS + " has no call for it" }
