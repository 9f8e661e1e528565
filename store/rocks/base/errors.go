package base

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"kvferry/record"
	"kvferry/store"
)

// Errors of this package that callers may test for.
var (
	// ErrUnsupported means that a directory uses a feature that this reader refuses; the message names it. RocksDB
	// itself may still read it.
	ErrUnsupported error = unsupported{}

	ErrVarint   = errors.New("varint too long")
	ErrChecksum = errors.New("checksum mismatch")
	// ErrShrank means that a file lost its end after it was opened.
	ErrShrank = errors.New("the file shrank")
)

// unsupported is also a record.ErrUnknown, because a refused feature is unknown to this build; see record.FindNewer.
type unsupported struct{}

func (unsupported) Error() string        { return "not supported by the native reader" }
func (unsupported) Is(target error) bool { return target == record.ErrUnknown }

// Unsupported returns an error that names the refused feature.
func Unsupported(format string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), ErrUnsupported)
}

// Corrupt returns the error of damaged bytes at an offset of a file. An error of access is returned unchanged.
func Corrupt(file string, off int64, field string, err error) error {
	if store.IsAccess(err) {
		return err
	}
	return &record.CorruptError{File: file, Off: off, Field: field, Err: err}
}

// IsDamage reports whether an error means that bytes of a table are damaged, of an unknown form or unreadable from the
// disk: the next attempt will fail in the same way.
func IsDamage(err error) bool {
	var path *fs.PathError
	var c *record.CorruptError
	var missing *store.MissingError
	switch {
	case errors.Is(err, ErrShrank), errors.Is(err, fs.ErrClosed):
		return false
	case errors.As(err, &path):
		return errors.Is(err, syscall.EIO)
	}
	return errors.As(err, &c) || errors.As(err, &missing)
}

// BlockError marks an error that a salvage skips.
func BlockError(err error) error {
	if !IsDamage(err) {
		return err
	}
	return &store.BlockError{Err: err}
}
