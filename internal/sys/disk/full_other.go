//go:build !windows

package disk

import (
	"errors"
	"syscall"
)

// IsFull reports whether an error is that a disk has no room.
func IsFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}
