package disk

import (
	"errors"
	"syscall"

	"golang.org/x/sys/windows"
)

// IsFull reports whether err means that a disk has no space left.
func IsFull(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL) ||
		errors.Is(err, windows.ERROR_DISK_QUOTA_EXCEEDED) || errors.Is(err, syscall.ENOSPC)
}
