//go:build !windows

package cli

import "os"

// CanColor reports whether a terminal understands escape sequences.
func CanColor(*os.File) bool { return true }
