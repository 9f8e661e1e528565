package rocksfile

import (
	"errors"
	"sync"

	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/blocks"
)

// source is the way to the blocks of a table: a file, or a spool of our own.
type source interface {
	// Open finds out what stands around the rows, once.
	Open() (*sourceInfo, error)
	// Walk starts before the first block, in the room of a walk that is over when there is one. pass is asked whether the
	// walk goes on after a part of the index, whose keys end at sep, that cannot be read; nil: it does not.
	Walk(reuse blocks.Walk, pass func(h blocks.Handle, sep []byte, err error) bool) (blocks.Walk, error)
	// KeyBefore returns the last separator of the index that is before sep, as far as it can be read; nil when there is
	// none.
	KeyBefore(sep []byte) []byte
}

// sourceInfo is what stands around the rows of a table.
type sourceInfo struct {
	index    blocks.Handle
	rangeDel blocks.Handle // where the range tombstones are
	// tombstones delete ranges. tombErr says that they cannot be read; the other rows can.
	tombstones []tombstone
	tombErr    error
	// fixedSeq is the sequence number of every key of an ingested table; useFixed says it counts.
	fixedSeq uint64
	useFixed bool
}

// tableMeta is what is known of a table without opening it. Its bounds are internal keys.
type tableMeta struct {
	name, path        string // relative to the store, and whole
	level             int    // -1: logs
	number            uint64
	size              int64
	smallest, largest []byte
	minSeq, maxSeq    uint64
}

// table is one sorted table of a keyspace.
type table struct {
	tableMeta
	first, last []byte // the bounds as user keys, inclusive
	src         source
	keyspace    string
	cmp         *store.Comparer
	origins     []string // of a spool: the files its entries came from; see originLen
	levels      []int    // of origins, when they are not all of the table's

	once sync.Once
	info *sourceInfo
	err  error

	skips skips
}

// newTable makes a table of a keyspace; nothing of it is read yet.
func newTable(ks *keyspace, meta tableMeta, src source) *table {
	t := &table{tableMeta: meta, src: src, keyspace: ks.name, cmp: ks.cmp}
	t.first, _ = base.SplitKey(meta.smallest)
	t.last, _ = base.SplitKey(meta.largest)
	return t
}

// newBrokenTable makes a table that cannot be opened.
func newBrokenTable(ks *keyspace, meta tableMeta, err error) *table {
	t := newTable(ks, meta, nil)
	t.once.Do(func() { t.err = err })
	return t
}

// newUnboundedTable makes a table of which no bounds are known: it can be scanned.
func newUnboundedTable(ks *keyspace, meta tableMeta, src source) *table {
	t := &table{tableMeta: meta, src: src, keyspace: ks.name, cmp: ks.cmp}
	t.once.Do(func() { t.info, t.err = src.Open() })
	return t
}

// load opens the table, once. Range tombstones are limited to its bounds; those that cannot be read are none.
func (t *table) load() (*sourceInfo, error) {
	t.once.Do(func() {
		if t.info, t.err = t.src.Open(); t.err != nil {
			return
		}
		for i := range t.info.tombstones {
			d := &t.info.tombstones[i]
			d.place = t.place(t.info.rangeDel.Off)
			d.place.Seq = d.seq
			t.clip(d)
		}
	})
	return t.info, t.err
}

// walk starts before the first block of the table, in the room of the walk before.
func (t *table) walk(w *blocks.Walk, pass func(h blocks.Handle, sep []byte, err error) bool) error {
	if _, err := t.load(); err != nil {
		return err
	}
	var err error
	*w, err = t.src.Walk(*w, pass)
	return err
}

// indexHandle says where the index is, as far as that is known.
func (t *table) indexHandle() blocks.Handle {
	if t.info == nil {
		return blocks.Handle{}
	}
	return t.info.index
}

// fail places an error in the table's file.
func (t *table) fail(off int64, field string, err error) error {
	return &record.CorruptError{Keyspace: t.keyspace, File: t.path, Off: off, Field: field, Err: err}
}

// place says where a block of the table is.
func (t *table) place(off uint64) record.Place {
	return record.Place{File: t.name, Off: int64(off), Level: t.level}
}

// missing reports whether the table's file is not there.
func (t *table) missing() bool {
	var missing *store.MissingError
	_, err := t.load()
	return errors.As(err, &missing)
}

// tombstone is a range delete: keys in [start, end) older than seq do not exist.
type tombstone struct {
	start, end []byte
	seq        uint64
	// from and to are what it covers within the bounds of its table.
	from, to bound
	place    record.Place
}

// clip limits a tombstone to the table's bounds. Compactions may keep a wider tombstone than the
// part of it that the table stands for. A largest key that is a range-delete sentinel is exclusive.
func (t *table) clip(d *tombstone) {
	low := bound{key: t.first}
	high := bound{key: t.last, after: true}
	if _, tr := base.SplitKey(t.largest); tr == base.Trailer(base.MaxSequence, base.KindRangeDelete) {
		high.after = false
	}
	d.from, d.to = bound{key: d.start}, bound{key: d.end}
	d.from = minBound(t.cmp.Compare, maxBound(t.cmp.Compare, d.from, low), high)
	d.to = maxBound(t.cmp.Compare, minBound(t.cmp.Compare, d.to, high), d.from)
}
