package rocksfile

import (
	"errors"
	"fmt"

	"kvferry/record"
)

// Errors of this package that callers may test for.
var (
	// ErrUnsupported says that a directory uses something that this reader refuses; the message
	// names it. RocksDB itself may still read it.
	ErrUnsupported = errors.New("not supported by the native reader")

	errVarint   = errors.New("varint too long")
	errChecksum = errors.New("checksum mismatch")
)

// unsupported makes an error that names what is refused.
func unsupported(format string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), ErrUnsupported)
}

// corrupt makes the error of damaged bytes at an offset of a file.
func corrupt(file string, off int64, field string, err error) error {
	return &record.CorruptError{File: file, Off: off, Field: field, Err: err}
}
