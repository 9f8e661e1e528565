//go:build rocksdb

package grocks

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/cockroachdb/pebble/record"
)

// Tags of version edits, as far as declarations of column families hold them.
const (
	tagComparator      = 1
	tagColumnFamily    = 200
	tagColumnFamilyAdd = 201
	tagMaxColumnFamily = 203
)

var errShort = errors.New("a field ends early")

// comparatorNames reads the comparators of the column families from the MANIFEST: RocksDB's API only verifies a guess.
// An edit that declares a column family starts with the comparator.
func comparatorNames(dir string) (names map[string]string, err error) {
	current, err := os.ReadFile(filepath.Join(dir, "CURRENT"))
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, filepath.Base(strings.TrimSpace(string(current))))
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names = map[string]string{}
	r := record.NewReader(f, 0)
	for {
		rec, err := r.Next()
		if err == io.EOF || record.IsInvalidRecord(err) { // RocksDB ends there too
			return names, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		edit, err := io.ReadAll(rec)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		family, comparator, err := declaration(edit)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if comparator != "" {
			names[family] = comparator
		}
	}
}

// declaration decodes an edit that declares a column family; comparator is "" when it is another.
func declaration(edit []byte) (family, comparator string, err error) {
	family = "default"
	next := func() uint64 {
		v, n := binary.Uvarint(edit)
		if n <= 0 {
			err = errShort
			edit = nil
			return 0
		}
		edit = edit[n:]
		return v
	}
	text := func() string {
		n := next()
		if n > uint64(len(edit)) {
			err = errShort
			return ""
		}
		s := string(edit[:n])
		edit = edit[n:]
		return s
	}
	for len(edit) > 0 && err == nil {
		switch tag := next(); {
		case tag == tagComparator:
			comparator = text()
		case comparator == "":
			return "", "", nil
		case tag == tagColumnFamilyAdd:
			family = text()
		case tag == 2, tag == 3, tag == 4, tag == 9, tag == 10, tag == tagColumnFamily, tag == tagMaxColumnFamily:
			next()
		default:
			return family, comparator, err
		}
	}
	return family, comparator, err
}
