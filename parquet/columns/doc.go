// Package columns reads and writes Parquet files column by column, with github.com/parquet-go/parquet-go, and their
// values as text.
//
// The library encodes and decodes pages and footers. It trusts the numbers in a file, and panics on some. This package compares
// them with the size of the file first, and turns a panic into an error (guard).
package columns

import (
	"errors"
	"fmt"

	"github.com/parquet-go/parquet-go/encoding/thrift"

	"kvferry/record"
)

// guard calls the library, whose panics on odd bytes are errors of the file. It is the only place that recovers.
func guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("cannot be decoded: %v", p)
		}
	}()
	return f()
}

// corrupt makes an error damage at an offset, unless it is already.
func corrupt(off int64, field string, err error) error {
	if c := (*record.CorruptError)(nil); errors.As(err, &c) {
		return err
	}
	return &record.CorruptError{Off: off, Field: field, Err: err}
}

// unmarshal decodes the structure at the beginning of b, and returns its length. The library allocates by counts; checkStruct
// compares them with the bytes first.
func unmarshal(b []byte, to any) (int, error) {
	n, err := checkStruct(b)
	if err == nil {
		err = guard(func() error { return thrift.Unmarshal(new(thrift.CompactProtocol), b[:n], to) })
	}
	return n, err
}
