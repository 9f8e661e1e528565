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
	// ErrUnsupported says that a directory uses something that this reader refuses; the message
	// names it. RocksDB itself may still read it.
	ErrUnsupported error = unsupported{}

	ErrVarint   = errors.New("varint too long")
	ErrChecksum = errors.New("checksum mismatch")
	// ErrShrank says that a file has lost its end since it was opened.
	ErrShrank = errors.New("the file shrank")
)

// unsupported is record.ErrUnknown as well: what is refused is a form that this build does not know, record.FindNewer.
type unsupported struct{}

func (unsupported) Error() string        { return "not supported by the native reader" }
func (unsupported) Is(target error) bool { return target == record.ErrUnknown }

// Unsupported makes an error that names what is refused.
func Unsupported(format string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), ErrUnsupported)
}

// Corrupt makes the error of damaged bytes at an offset of a file. An error of access is none, and stays what it is.
func Corrupt(file string, off int64, field string, err error) error {
	if store.IsAccess(err) {
		return err
	}
	return &record.CorruptError{File: file, Off: off, Field: field, Err: err}
}

// IsDamage reports whether an error says that bytes of a table are damaged, of a form that is not known, or that the disk
// does not give them back: that the next look at them will end as this one did.
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

// BlockError marks an error that a salvage reads past.
func BlockError(err error) error {
	if !IsDamage(err) {
		return err
	}
	return &store.BlockError{Err: err}
}
