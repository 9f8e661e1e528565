//go:build !windows

package disk

import (
	"errors"
	"syscall"
)

// IsFull reports whether err means that a disk has no space left.
func IsFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}
