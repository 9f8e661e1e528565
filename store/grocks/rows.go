//go:build rocksdb

package grocks

// #include <stdlib.h>
// #include "compare.h"
import "C"

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"unsafe"

	"github.com/linxGnu/grocksdb"

	"kvferry/record"
	"kvferry/store"
)

const (
	readahead   = 2 << 20
	batchBuffer = 64 << 10 // bytes of rows per cgo call; the call pays off from some KiB on
)

// keyspace is a column family.
type keyspace struct {
	d      *database
	name   string
	cmp    *store.Comparer
	handle *grocksdb.ColumnFamilyHandle
}

var errVisibleOnly = fmt.Errorf("RocksDB shows visible rows only; physical entries need the native store: %w",
	errors.ErrUnsupported)

func (k *keyspace) Name() string              { return k.name }
func (k *keyspace) Comparer() *store.Comparer { return k.cmp }

// Entries fails: RocksDB's interface hides superseded entries.
func (k *keyspace) Entries(_, _ []byte) (store.EntryIterator, error) { return nil, errVisibleOnly }

// Unordered fails: RocksDB's interface hides superseded entries.
func (k *keyspace) Unordered(func(*store.Entry) error) error { return errVisibleOnly }

// Sample returns the bounds of the tables, each for half of its size.
func (k *keyspace) Sample(int) ([]store.Weighted, error) {
	var out []store.Weighted
	for _, f := range k.d.Files() {
		if f.Kind == "table" && f.Keyspace == k.name {
			out = append(out, store.Weighted{Key: f.Smallest, Bytes: f.Size / 2},
				store.Weighted{Key: f.Largest, Bytes: f.Size - f.Size/2})
		}
	}
	return out, nil
}

// Size adds up the tables and an equal share of the logs.
func (k *keyspace) Size() (size int64) {
	for _, f := range k.d.Files() {
		switch {
		case f.Kind == "table" && f.Keyspace == k.name:
			size += f.Size
		case f.Kind == "log":
			size += f.Size / int64(len(k.d.spaces))
		}
	}
	return size
}

// Rows walks the visible rows in [lo, hi).
func (k *keyspace) Rows(lo, hi []byte) (store.Iterator, error) {
	r := &rows{k: k, hi: hi, opts: grocksdb.NewDefaultReadOptions(), buf: make([]byte, batchBuffer)}
	r.opts.SetPinData(false)
	r.opts.SetFillCache(false)
	r.opts.SetReadaheadSize(readahead)
	if len(hi) > 0 {
		r.bound = C.CBytes(hi) // RocksDB keeps the pointer: the bound lives in memory that Go does not manage
		r.opts.SetIterateUpperBound(unsafe.Slice((*byte)(r.bound), len(hi)))
	}
	r.it = k.d.db.NewIteratorCF(r.opts, k.handle)
	if lo == nil {
		r.it.SeekToFirst()
	} else {
		r.it.Seek(lo)
	}
	return r, nil
}

// rows reads rows from RocksDB a buffer at a time.
type rows struct {
	k     *keyspace
	opts  *grocksdb.ReadOptions
	it    *grocksdb.Iterator
	hi    []byte
	bound unsafe.Pointer
	buf   []byte
	rest  []byte // of buf: rows not yet returned
	count int64
	err   error
}

// handle is RocksDB's iterator. grocksdb does not give it out; its Iterator is that pointer alone,
// which the constant below holds at compile time.
func (r *rows) handle() unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(r.it)) }

const _ = -(unsafe.Sizeof(grocksdb.Iterator{}) ^ unsafe.Sizeof(uintptr(0)))

// Next returns the next row.
func (r *rows) Next() (key, value []byte, err error) {
	for {
		if len(r.rest) == 0 {
			if err := r.fill(); err != nil {
				return nil, nil, err
			}
		}
		kn := binary.NativeEndian.Uint32(r.rest)
		vn := binary.NativeEndian.Uint32(r.rest[4:])
		key = r.rest[8 : 8+kn : 8+kn]
		value = r.rest[8+kn : 8+kn+vn : 8+kn+vn]
		r.rest = r.rest[8+kn+vn:]
		if r.beyond(key) {
			r.rest, r.err = nil, io.EOF
			return nil, nil, io.EOF
		}
		if string(value) != nothing {
			r.count++
			return key, value, nil
		}
	}
}

// beyond reports whether key is at or after the upper bound where that is the empty key, which
// RocksDB's interface takes for no bound. The empty key is not the first in every order.
func (r *rows) beyond(key []byte) bool {
	return r.hi != nil && len(r.hi) == 0 && r.k.cmp.Compare(key, r.hi) >= 0
}

// fill reads the next rows into the buffer.
func (r *rows) fill() error {
	if r.err != nil {
		return r.err
	}
	for {
		var need C.size_t
		n := C.kvf_rows(r.handle(), (*C.char)(unsafe.Pointer(&r.buf[0])), C.size_t(len(r.buf)), &need)
		if n > 0 {
			r.rest = r.buf[:n]
			return nil
		}
		if need == 0 {
			break
		}
		r.buf = make([]byte, need)
	}
	r.err = io.EOF
	if err := r.it.Err(); err != nil {
		r.err = fmt.Errorf("%s: column family %q: %w", r.k.d.dir, r.k.name, err)
		if m := r.k.d.merger; m != nil && m.failed() != nil {
			r.err = errors.Join(r.err, m.failed())
		}
	}
	return r.err
}

// SeekGE skips rows below key.
func (r *rows) SeekGE(key []byte) error {
	for len(r.rest) > 0 {
		kn := binary.NativeEndian.Uint32(r.rest)
		if r.k.cmp.Compare(r.rest[8:8+kn], key) >= 0 {
			return nil
		}
		r.rest = r.rest[8+kn+binary.NativeEndian.Uint32(r.rest[4:]):]
	}
	if r.err != nil && r.err != io.EOF {
		return r.err
	}
	if r.err == nil && !r.reached(key) {
		r.it.Seek(key)
	}
	return nil
}

// reached reports whether RocksDB's iterator, which is ahead of the buffer, is at or after key.
func (r *rows) reached(key []byte) bool {
	if !r.it.Valid() {
		return true
	}
	at := r.it.Key()
	defer at.Free()
	return r.k.cmp.Compare(at.Data(), key) >= 0
}

// Place returns an empty place: RocksDB hides the origin of a row.
func (r *rows) Place() record.Place { return record.Place{Level: -1} }

// Tally counts rows as entries: RocksDB hides older versions and tombstones.
func (r *rows) Tally(t *record.Tally) {
	t.Entries += r.count
	t.Visible += r.count
	r.count = 0
}

// Close frees the iterator.
func (r *rows) Close() error {
	if r.it != nil {
		r.it.Close()
		r.opts.Destroy()
		C.free(r.bound)
		r.it, r.bound = nil, nil
		r.err = errors.New("the iterator is closed")
		r.rest = nil
	}
	return nil
}
