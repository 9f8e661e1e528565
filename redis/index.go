package redis

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"kvferry/internal/sys/disk"
	"kvferry/record"
	"kvferry/redis/rdb"
	"kvferry/store"
)

const (
	// sectionBytes is the approximate size of a section.
	sectionBytes = 4 << 20
	// maxSamples limits the sample keys per database that split it into spans.
	maxSamples = 1 << 13
	// maxOldName limits the stored name of an unread library.
	maxOldName = 64
)

// scan indexes a file. If the scan stops early, the index has the error and the items before it. Parts are the offsets
// where the data of each server begins: after an item of unknown type, the scan resumes at the next part. sort gets all
// items and may be nil.
func scan(ctx context.Context, f *disk.File, parts []int64, o *store.Options, sort *sorting) (*index, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	sum := newSummer(f, st.Size())
	x := &index{size: st.Size(), sums: sum}
	s, err := rdb.NewScanner(sum, 0, x.size)
	if err != nil {
		return nil, cutOff(err, nil)
	}
	x.header, x.end = s.Header, s.Offset()
	keys := NewTwins(f, o.Memory, o.TempDir) // no other reader needs the memory now
	var failed error
	n := 0
	for again := true; again; {
		err = x.items(ctx, s, func(db *database, it *rdb.Item) error {
			if n++; n%record.CheckEvery == 0 && o.Copied != nil {
				o.Copied(it.Off, x.size, 0, 0)
			}
			if it.Op != rdb.OpModuleAux {
				failed = keys.Add(it)
			}
			if failed == nil && sort != nil {
				failed = sort.add(db, it)
			}
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

// resume moves the scanner to the next part after an item of unknown type, and reports whether there is a part.
func (x *index) resume(s *rdb.Scanner, parts []int64, err error) bool {
	i := slices.IndexFunc(parts, func(from int64) bool { return from > x.end })
	if i < 0 || !errors.Is(err, rdb.ErrNewer) {
		return false
	}
	x.unread = append(x.unread, unreadPart{err, x.end, parts[i]})
	x.open, x.end = nil, parts[i]
	s.Resume(x.end)
	return true
}

// cut records that decompression stopped early, which explains any error at the end of the data. err is the error of a
// failed scan (x is nil).
func (x *index) cut(packed, err error) error {
	switch {
	case x == nil && errors.Is(err, record.ErrShort):
		return cutOff(packed, nil)
	case x == nil:
		return err
	case x.err != nil:
		x.err = cutOff(packed, x.failed)
	default:
		x.damage = cutOff(packed, nil) // complete except for the end of the compressed data
	}
	return nil
}

// items indexes all items and calls f for keys, libraries and module data.
func (x *index) items(ctx context.Context, s *rdb.Scanner, f func(*database, *rdb.Item) error) error {
	var db *database
	for n := 1; ; n++ {
		if err := record.Stopped(ctx, n); err != nil {
			return err
		}
		it, err := s.Next()
		if err != nil {
			x.failed = bytes.Clone(s.Key())
			return cutOff(err, x.failed)
		}
		switch it.Op {
		case rdb.OpEOF:
			x.end = s.Offset()
			sum, _, err := s.Checksum()
			x.sum, x.rest = sum, s.Offset()
			return cutOff(err, nil)
		case rdb.OpAux, rdb.OpOther:
			x.header = s.Header
		case rdb.OpOldFunction:
			x.old = append(x.old, place{off: it.Off, key: bytes.Clone(it.Key[:min(len(it.Key), maxOldName)])})
		case rdb.OpSlotImport:
			x.importing = append(x.importing, it.Slots...)
		case rdb.OpSelectDB:
			db = nil
		case rdb.OpResizeDB:
			if x.announced == nil {
				x.announced = map[uint64]uint64{}
			}
			x.announced[it.DB] = it.Keys
		case rdb.OpKey, rdb.OpFunction, rdb.OpModuleAux:
			if db == nil || db.n != it.DB {
				db = x.database(it.DB)
				x.openSection(db, it.Off, it.Carried)
			}
			x.add(db, it, s.Offset())
			if err := f(db, it); err != nil {
				return err
			}
		}
		x.end = s.Offset()
	}
}

// absent returns the number of keys that the file announces for its databases, and how many of them were not read.
func (x *index) absent() (absent, all int64) {
	for n, keys := range x.announced {
		if keys > math.MaxInt32 { // not a number that a file has: damage
			return 0, 0
		}
		have := int64(0)
		for _, db := range x.dbs {
			if db.n == n {
				have = db.items
			}
		}
		absent, all = absent+max(int64(keys)-have, 0), all+int64(keys)
	}
	return absent, all
}

// unreadBytes returns the size of the end of the file that was not read.
func (x *index) unreadBytes() int64 {
	if x.err == nil {
		return 0
	}
	return max(x.size-x.end, 0)
}

// lost says what a file lacks whose end was not read, and how sure that is.
func (x *index) lost() (lost, sure string) {
	if x.err == nil { // the checksum alone
		return "no part of the file, but any key or value may be wrong: the file has a single checksum",
			"the file was read to its end; a changed byte leaves no trace"
	}
	unread := x.unreadBytes()
	lost = fmt.Sprintf("everything from offset %s on", record.Number(x.end))
	if unread > 0 && !rdb.EndsEarly(x.err) {
		lost += fmt.Sprintf(", %s of %s (%s)", record.Bytes(unread), record.Bytes(x.size), record.Percent(unread, x.size))
	}
	switch absent, all := x.absent(); {
	case all > 0 && absent == 0:
		return lost + ", but no key that the file announces up to there", "later databases leave no trace"
	case absent > 0:
		return fmt.Sprintf("%s: %s of the %s that the file announces (%s)", lost, record.Number(absent), record.Count(all, "key"),
				record.Percent(absent, all)),
			"the file records the number of keys of the databases up to there; later databases leave no trace"
	}
	return lost, "the file does not record how many keys follow"
}

// cutOff explains an error at the end of a file, the usual one of an interrupted copy. key is that of the item, or nil.
func cutOff(err error, key []byte) error {
	var c *record.CorruptError
	if !rdb.EndsEarly(err) || !errors.As(err, &c) {
		return err
	}
	in := ""
	if key != nil {
		in = " in the key " + record.Quote(key)
	}
	c.Err = fmt.Errorf("the file is cut off%s: %w; if the original is longer, copy it again; if not, bytes are damaged here", in,
		c.Err)
	return err
}

// database returns a database, and adds it if necessary.
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

// add indexes an item that ends at offset end.
func (x *index) add(db *database, it *rdb.Item, end int64) {
	t := record.Other
	if it.Op == rdb.OpKey {
		t = it.Type.RecordType(x.header)
	}
	if it.Meta {
		x.skips++
	}
	if x.isHalf(it) {
		x.half++
	}
	size := end - it.Off
	db.items++
	db.sizes[t] += size
	db.types |= record.Of(t)
	// Only opcodes lie between the last item and this one; a section reader skips them.
	last := &db.sections[len(db.sections)-1]
	if last.to-last.from >= sectionBytes {
		x.openSection(db, it.Off, it.Carried)
	}
	x.open.to = end
	if db.since += size; db.since >= db.step && it.Op == rdb.OpKey {
		db.sample(it.Key)
	}
}

// isHalf reports whether a key is in a slot that the server was importing: it deletes the key when it loads the file.
func (x *index) isHalf(it *rdb.Item) bool {
	return it.Op == rdb.OpKey && x.importing.Have(it.Key)
}

// HalfDetail is the detail of a finding about n keys of slots that the server was importing.
func HalfDetail(n int64, kept bool) string {
	what := "they are no records"
	if kept {
		what = "they are read"
	}
	return fmt.Sprintf("%s of slots that the server was importing, and deletes when it loads the file: %s",
		record.Count(n, "key"), what)
}

// openSection starts a section at the offset of an item.
func (x *index) openSection(db *database, off int64, carried rdb.Attributes) {
	x.closeSection()
	db.sections = append(db.sections, section{from: off, to: off, carried: carried, start: x.sums.mark(off)})
	x.open = &db.sections[len(db.sections)-1]
}

// closeSection records the checksum at the end of the section.
func (x *index) closeSection() {
	if x.open != nil {
		x.open.end = x.sums.mark(x.open.to)
	}
}

// sample adds a key that represents all bytes since the last sample. At maxSamples it drops every second sample.
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
