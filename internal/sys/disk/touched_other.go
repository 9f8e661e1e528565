//go:build !linux && !darwin

package disk

import "io/fs"

// touched returns false: this system has no ctime, so only size and modification time are compared.
func touched(was, is fs.FileInfo) bool { return false }
