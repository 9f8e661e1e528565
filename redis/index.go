package redis

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strconv"

	"kvferry/internal/sys/disk"
	"kvferry/record"
	"kvferry/redis/rdb"
	"kvferry/store"
)

const (
	// sectionBytes is about how much of a file a section has.
	sectionBytes = 4 << 20
	// maxSamples bounds the keys that are kept of a database to cut it by.
	maxSamples = 1 << 13
	// maxOldName is how much is kept of the name of a library that is not read.
	maxOldName = 64
	// checkEvery is how many items pass between looks at the context.
	checkEvery = 1 << 12
)

// index is what is known of a file once it was skipped.
type index struct {
	header rdb.Header
	dbs    []*database // ascending
	end    int64       // of the last whole item
	rest   int64       // where the file ends, its checksum included; what follows is something else
	tail   tail        // what follows
	sum    uint64      // checksum in the file; 0 is none
	size   int64       // of the file
	fields bool        // there may be fields of hashes that expire
	skips  int64       // things that are not read: metadata of modules
	err    error       // why it could not be read to its end
	damage error       // why the checksum is not that of the bytes

	unread []unreadPart

	old  []place  // libraries of candidates of Redis 7.0
	sums *summer  // of the first reading; nil afterwards
	open *section // to which items are added

	repeated []int64 // offsets of items whose key an earlier one has, ascending
}

// unreadPart is what is not read of a part, from an offset on, and why.
type unreadPart struct {
	err  error
	from int64
}

// database is what a file has of one.
type database struct {
	n        uint64
	name     string
	items    int64
	sizes    [record.NumTypes]int64
	types    record.TypeSet
	sections []section
	samples  []store.Weighted
	step     int64 // bytes between samples
	since    int64 // bytes after the last sample
}

// section is a part of the file, of one database. Attributes of its first key may stand before it.
type section struct {
	from, to   int64
	carried    rdb.Attributes
	start, end mark // the checksum when the file was first read
}

// scan skips a file. What cannot be read is in the index as its error; the items before it are good. Parts are where what one
// server sent begins: when something is unknown, the next part is read.
func scan(ctx context.Context, f *disk.File, parts []int64, o *store.Options) (*index, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	sum := newSummer(f, st.Size())
	x := &index{size: st.Size(), sums: sum}
	s, err := rdb.NewScanner(sum, 0, x.size)
	if err != nil {
		return nil, err
	}
	x.header, x.end = s.Header, s.Offset()
	keys := NewTwins(f, o.Memory, o.TempDir) // nothing else needs any meanwhile
	var failed error
	for again := true; again; {
		err = x.items(ctx, s, func(it *rdb.Item) error {
			failed = keys.Add(it)
			return failed
		})
		x.closeSection()
		again = x.resume(s, parts, err)
	}
	x.sums = nil
	if ctx.Err() != nil {
		failed = context.Cause(ctx)
	}
	if failed != nil {
		return nil, errors.Join(failed, keys.Close())
	}
	x.err = err
	if x.repeated, err = keys.Repeated(ctx, x.header, x.end, x.size); err != nil {
		return nil, err
	}
	if errors.Is(x.err, rdb.ErrNewer) {
		if err := x.lastChecksum(f, sum); err != nil {
			x.err = err
		}
	}
	if x.err == nil {
		x.damage = x.checksum(sum)
		if x.tail, err = readTail(ctx, f, x.rest, x.size); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(x.dbs, func(a, b *database) int { return int(min(max(int64(a.n)-int64(b.n), -1), 1)) })
	if len(x.dbs) == 0 {
		x.dbs = []*database{{name: "0"}}
	}
	return x, nil
}

// resume goes on with the next part behind what is unknown, and reports whether there is one.
func (x *index) resume(s *rdb.Scanner, parts []int64, err error) bool {
	i := slices.IndexFunc(parts, func(from int64) bool { return from > x.end })
	if i < 0 || !errors.Is(err, rdb.ErrNewer) {
		return false
	}
	x.unread = append(x.unread, unreadPart{err, x.end})
	x.open, x.end = nil, parts[i]
	s.Resume(x.end)
	return true
}

// cut says that the file goes on, in compressed bytes that cannot be unpacked: whatever is wrong with its end follows from
// that. err is why there is no index.
func (x *index) cut(packed, err error) error {
	switch {
	case x == nil && errors.Is(err, record.ErrShort):
		return packed
	case x == nil:
		return err
	case x.err != nil:
		x.err = packed
	default:
		x.damage = packed // everything is there, but for the end of the compressed bytes
	}
	return nil
}

// items cuts all items, and calls f with the keys.
func (x *index) items(ctx context.Context, s *rdb.Scanner, f func(*rdb.Item) error) error {
	var db *database
	for n := 1; ; n++ {
		if n%checkEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		it, err := s.Next()
		if err != nil {
			return err
		}
		switch it.Op {
		case rdb.OpEOF:
			x.end = s.Offset()
			sum, _, err := s.Checksum()
			x.sum, x.rest = sum, s.Offset()
			return err
		case rdb.OpAux, rdb.OpOther:
			x.header = s.Header
		case rdb.OpOldFunction:
			x.old = append(x.old, place{off: it.Off, key: bytes.Clone(it.Key[:min(len(it.Key), maxOldName)])})
		case rdb.OpSelectDB:
			db = nil
		case rdb.OpKey, rdb.OpFunction, rdb.OpModuleAux:
			if db == nil || db.n != it.DB {
				db = x.database(it.DB)
				x.openSection(db, it.Off, it.Carried)
			}
			x.add(db, it, s.Offset())
			if it.Op == rdb.OpModuleAux {
				break
			}
			if err := f(it); err != nil {
				return err
			}
		}
		x.end = s.Offset()
	}
}

// database finds a database or makes it.
func (x *index) database(n uint64) *database {
	for _, db := range x.dbs {
		if db.n == n {
			return db
		}
	}
	db := &database{n: n, name: strconv.FormatUint(n, 10), step: 1 << 12}
	x.dbs = append(x.dbs, db)
	return db
}

// add counts an item that ends at an offset.
func (x *index) add(db *database, it *rdb.Item, end int64) {
	t := record.Other
	if it.Op == rdb.OpKey {
		t = it.Type.RecordType(x.header)
	}
	if it.Meta {
		x.skips++
	}
	x.fields = x.fields || t == record.Hash && (it.HasMembers() || it.Type.FieldExpiry(x.header))
	size := end - it.Off
	db.items++
	db.sizes[t] += size
	db.types |= record.Of(t)
	// Between the last item and this one stands nothing but opcodes, which are passed over again.
	last := &db.sections[len(db.sections)-1]
	if last.to-last.from >= sectionBytes {
		x.openSection(db, it.Off, it.Carried)
	}
	x.open.to = end
	if db.since += size; db.since >= db.step && it.Op == rdb.OpKey {
		db.sample(it.Key)
	}
}

// openSection begins a section where an item begins.
func (x *index) openSection(db *database, off int64, carried rdb.Attributes) {
	x.closeSection()
	db.sections = append(db.sections, section{from: off, to: off, carried: carried, start: x.sums.mark(off)})
	x.open = &db.sections[len(db.sections)-1]
}

// closeSection takes the checksum of the section that ends.
func (x *index) closeSection() {
	if x.open != nil {
		x.open.end = x.sums.mark(x.open.to)
	}
}

// sample keeps a key for all bytes since the last one. When there are too many, every second goes.
func (db *database) sample(key []byte) {
	db.samples = append(db.samples, store.Weighted{Key: bytes.Clone(key), Bytes: db.since})
	db.since = 0
	if len(db.samples) < maxSamples {
		return
	}
	kept := db.samples[:0]
	for i := 1; i < len(db.samples); i += 2 {
		w := db.samples[i]
		w.Bytes += db.samples[i-1].Bytes
		kept = append(kept, w)
	}
	db.samples = kept
	db.step *= 2
}
