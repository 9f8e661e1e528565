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
	"kvferry/internal/sys/extsort"
	"kvferry/record"
	"kvferry/redis/rdb"
)

// seed is random, so no file can be crafted to cause hash collisions.
var seed = maphash.MakeSeed()

// hashOf hashes the identity of an item: a key in its database, or a library.
func hashOf(it *rdb.Item) uint64 { return maphash.Bytes(seed, KeyOf(it)) + dbOf(it)<<32 }

// dbOf returns the database in which the item must be unique; libraries belong to no database.
func dbOf(it *rdb.Item) uint64 {
	if it.Op == rdb.OpFunction {
		return math.MaxUint64
	}
	return it.DB
}

// isRepeated reports whether an earlier item has the same key as the item at off.
func (x *index) isRepeated(off int64) bool {
	_, found := slices.BinarySearch(x.repeated, off)
	return found
}

// Twins finds keys and function libraries that occur more than once in a file; servers reject such a file.
type Twins struct {
	f       *disk.File
	memory  int64
	tempDir string
	keys    *extsort.Duplicates[[1]uint64]
}

// NewTwins returns a finder without keys.
func NewTwins(f *disk.File, memory int64, tempDir string) *Twins {
	return &Twins{f, memory, tempDir, extsort.NewDuplicates[[1]uint64](memory, tempDir)}
}

// Add adds the key of an item, or the name of a library.
func (t *Twins) Add(it *rdb.Item) error { return t.keys.Add([1]uint64{hashOf(it)}) }

// Close frees the keys.
func (t *Twins) Close() error { return t.keys.Close() }

// Repeated closes the finder and returns the offsets of items with the key of an earlier item, ascending. All added
// items lie before end.
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

// twins compares keys with equal hashes.
type twins struct {
	ctx    context.Context
	f      *disk.File
	header rdb.Header
	end    int64
	sorter *extsort.Sorter // places by hash
}

// gather rereads the file and collects the items with some hashes.
func (t *twins) gather(some []uint64, size int64) error {
	s, err := rdb.NewScanner(t.f, 0, size)
	if err != nil {
		return err
	}
	var row []byte
	for n := 1; s.Offset() < t.end; n++ {
		if err := record.Stopped(t.ctx, n); err != nil {
			return err
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

// repeated returns the offsets of items with the key of an earlier item, ascending.
func (t *twins) repeated() (out []int64, err error) {
	rows, err := t.sorter.Sort()
	if err != nil {
		return nil, err
	}
	var alike []place // first items of each key with the current hash
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

// among reports whether others contains an item with the same key.
func (t *twins) among(others []place, p *place) (bool, error) {
	for i := range others {
		if err := errors.Join(t.readKey(p), t.readKey(&others[i])); err != nil {
			return false, err
		}
		if others[i].db == p.db && bytes.Equal(others[i].key, p.key) {
			return true, nil
		}
	}
	return false, nil
}

// readKey reads the key of an item if that has not happened yet.
func (t *twins) readKey(p *place) error {
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
