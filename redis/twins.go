package redis

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/maphash"
	"io"
	"math"
	"slices"

	"kvferry/internal/sys/disk"
	"kvferry/internal/sys/dupes"
	"kvferry/internal/sys/extsort"
	"kvferry/redis/rdb"
)

// seed makes hashes of keys that no file can be made for.
var seed = maphash.MakeSeed()

// hashOf is a hash of what must be there once: a key in its database, or a library.
func hashOf(it *rdb.Item) uint64 { return maphash.Bytes(seed, KeyOf(it)) + dbOf(it)<<32 }

// dbOf is the database that an item must be alone in; libraries belong to none.
func dbOf(it *rdb.Item) uint64 {
	if it.Op == rdb.OpFunction {
		return math.MaxUint64
	}
	return it.DB
}

// isRepeated reports whether an earlier item has the key of the one at an offset.
func (x *index) isRepeated(off int64) bool {
	_, found := slices.BinarySearch(x.repeated, off)
	return found
}

// Twins finds keys and libraries of functions that occur more than once in a file; servers do not load it.
type Twins struct {
	f       *disk.File
	memory  int64
	tempDir string
	keys    *dupes.Finder[[1]uint64]
}

// NewTwins starts with no keys of a file.
func NewTwins(f *disk.File, memory int64, tempDir string) *Twins {
	return &Twins{f, memory, tempDir, dupes.New[[1]uint64](memory, tempDir)}
}

// Add notes the key of an item, or the name of a library.
func (t *Twins) Add(it *rdb.Item) error { return t.keys.Add([1]uint64{hashOf(it)}) }

// Close lets go of what was noted.
func (t *Twins) Close() error { return t.keys.Close() }

// Repeated closes the twins and returns the offsets of items whose key an earlier one has, ascending. All that were added lie
// before end in a file of some size.
func (t *Twins) Repeated(ctx context.Context, h rdb.Header, end, size int64) ([]int64, error) {
	var twice []uint64
	err := t.keys.Each(func(h [1]uint64, _ int64) error {
		twice = append(twice, h[0])
		return nil
	})
	if err != nil || len(twice) == 0 {
		return nil, err
	}
	x := &twins{ctx: ctx, f: t.f, header: h, end: end, sorter: extsort.New(extsort.Options{Memory: t.memory, TempDir: t.tempDir})}
	var out []int64
	if err = x.gather(twice, size); err == nil {
		out, err = x.repeated()
	}
	return out, errors.Join(err, x.sorter.Close())
}

// twins compares keys whose hashes are the same.
type twins struct {
	ctx    context.Context
	f      *disk.File
	header rdb.Header
	end    int64
	sorter *extsort.Sorter // of places, by hash
}

// place is where an item is, and its key once that was looked at. In the sorter it has
//
//	offset of the item 8B | number of its database 8B
type place struct {
	off int64
	db  uint64
	key []byte
}

// gather reads the file again, for the keys with some hashes.
func (t *twins) gather(some []uint64, size int64) error {
	s, err := rdb.NewScanner(t.f, 0, size)
	if err != nil {
		return err
	}
	var row []byte
	for n := 1; s.Offset() < t.end; n++ {
		if n%checkEvery == 0 && t.ctx.Err() != nil {
			return context.Cause(t.ctx)
		}
		it, err := s.Next()
		if err != nil {
			return err
		}
		if it.Op != rdb.OpKey && it.Op != rdb.OpFunction {
			continue
		}
		hash := hashOf(it)
		if _, found := slices.BinarySearch(some, hash); !found {
			continue
		}
		row = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(row[:0], uint64(it.Off)), dbOf(it))
		if err := t.sorter.Add(hash, row, nil); err != nil {
			return err
		}
	}
	return nil
}

// repeated returns the offsets of items whose key an earlier one has, ascending.
func (t *twins) repeated() (out []int64, err error) {
	rows, err := t.sorter.Sort()
	if err != nil {
		return nil, err
	}
	var alike []place // with the hash of the last row, but for repeated keys
	var last uint64
	for {
		hash, row, _, err := rows.Next()
		if err == io.EOF {
			slices.Sort(out)
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		p := place{off: int64(binary.BigEndian.Uint64(row)), db: binary.BigEndian.Uint64(row[8:])}
		if hash != last {
			alike, last = alike[:0], hash
		}
		twin, err := t.among(alike, &p)
		if err != nil {
			return nil, err
		}
		if twin {
			out = append(out, p.off)
		} else {
			alike = append(alike, p)
		}
	}
}

// among reports whether an item has the key of one of others.
func (t *twins) among(others []place, p *place) (bool, error) {
	for i := range others {
		if err := errors.Join(t.look(p), t.look(&others[i])); err != nil {
			return false, err
		}
		if others[i].db == p.db && bytes.Equal(others[i].key, p.key) {
			return true, nil
		}
	}
	return false, nil
}

// look reads the key of an item, unless that was done.
func (t *twins) look(p *place) error {
	if p.key != nil {
		return nil
	}
	if t.ctx.Err() != nil {
		return context.Cause(t.ctx)
	}
	it, err := rdb.Section(t.f, t.header, p.db, p.off, t.end).Next()
	if err == nil {
		p.key = append([]byte{}, KeyOf(it)...)
	}
	return err
}
