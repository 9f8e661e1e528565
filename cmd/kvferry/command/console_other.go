//go:build !windows

package command

import "os"

// canColor reports whether a terminal understands escape sequences.
func canColor(*os.File) bool { return true }
