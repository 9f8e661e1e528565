package lsm

import (
	"errors"
	"sync"

	"kvferry/internal/sys/disk"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/blocks"
)

// Source is the way to the blocks of a table: a file, or a spool of our own.
type Source interface {
	// Open finds out what stands around the rows, once.
	Open() (*Info, error)
	// Walk starts before the first block, in the room of a walk that is over when there is one. pass is asked whether
	// the walk continues after a part of the index, whose keys end at sep, that cannot be read; nil: it does not.
	Walk(reuse blocks.Walk, pass func(h blocks.Handle, sep []byte, err error) bool) (blocks.Walk, error)
	// KeyBefore returns the last separator of the index that is before sep, as far as it can be read; nil if there is
	// none.
	KeyBefore(sep []byte) []byte
}

// Info is what stands around the rows of a table.
type Info struct {
	Index    blocks.Handle
	RangeDel blocks.Handle // where the range tombstones are
	// Tombstones delete ranges. tombErr says that they cannot be read; the other rows can.
	Tombstones []Tombstone
	TombErr    error
	// FixedSeq is the sequence number of every key of an ingested table; useFixed says it counts.
	FixedSeq uint64
	UseFixed bool
	// Exact says that the last row of the table is its upper bound: no range tombstone reaches beyond it.
	Exact bool
}

// Meta is what is known of a table without opening it. Its bounds are internal keys.
type Meta struct {
	Name, Path        string // relative to the store, and whole
	Level             int    // -1: logs
	Number            uint64
	Size              int64
	Smallest, Largest []byte
	MinSeq, MaxSeq    uint64
}

// Table is one sorted table of a keyspace.
type Table struct {
	Meta
	First, Last []byte // the bounds as user keys, inclusive
	Source      Source
	Keyspace    string
	Cmp         *store.Comparer
	origins     []string // of a spool: the files its entries came from; see originLen
	Levels      []int    // of origins, when they are not all of the table's

	once sync.Once
	info *Info
	err  error

	skips Skips
}

// NewTable makes a table of a keyspace; nothing of it is read yet.
func NewTable(ks *Keyspace, meta Meta, src Source) *Table {
	t := &Table{Meta: meta, Source: src, Keyspace: ks.name, Cmp: ks.cmp}
	t.First, _ = base.SplitKey(meta.Smallest)
	t.Last, _ = base.SplitKey(meta.Largest)
	return t
}

// NewBrokenTable makes a table that cannot be opened.
func NewBrokenTable(ks *Keyspace, meta Meta, err error) *Table {
	t := NewTable(ks, meta, nil)
	t.once.Do(func() { t.err = err })
	return t
}

// NewUnboundedTable makes a table of which no bounds are known: it can be scanned.
func NewUnboundedTable(ks *Keyspace, meta Meta, src Source) *Table {
	t := &Table{Meta: meta, Source: src, Keyspace: ks.name, Cmp: ks.cmp}
	t.once.Do(func() { t.info, t.err = src.Open() })
	return t
}

// Load opens the table, once. Range tombstones are limited to its bounds; those that cannot be read are none.
func (t *Table) Load() (*Info, error) {
	t.once.Do(func() {
		if t.info, t.err = t.Source.Open(); t.err != nil {
			return
		}
		for i := range t.info.Tombstones {
			d := &t.info.Tombstones[i]
			d.place = t.Place(t.info.RangeDel.Off)
			d.place.Seq = d.Seq
			t.clip(d)
		}
	})
	return t.info, t.err
}

// walk starts before the first block of the table, in the room of the walk before.
func (t *Table) walk(w *blocks.Walk, pass func(h blocks.Handle, sep []byte, err error) bool) error {
	if _, err := t.Load(); err != nil {
		return err
	}
	var err error
	*w, err = t.Source.Walk(*w, pass)
	return err
}

// indexHandle says where the index is, as far as that is known.
func (t *Table) indexHandle() blocks.Handle {
	if t.info == nil {
		return blocks.Handle{}
	}
	return t.info.Index
}

// Fail places an error in the table's file. One of access is about all of it.
func (t *Table) Fail(off int64, field string, err error) error {
	if disk.IsAccess(err) {
		return err
	}
	return &record.CorruptError{Keyspace: t.Keyspace, File: t.Path, Off: off, Field: field, Err: err}
}

// failBlock places an error in a block, unless it is about all of the table and has its place.
func (t *Table) failBlock(h blocks.Handle, err error) error {
	var n *blocks.CountError
	if errors.As(err, &n) {
		return err
	}
	return t.Fail(int64(h.Off), FieldBlock, err)
}

// Place says where a block of the table is.
func (t *Table) Place(off uint64) record.Place {
	return record.Place{File: t.Name, Off: int64(off), Level: t.Level}
}

// Missing reports whether the table's file is not there.
func (t *Table) Missing() bool {
	var missing *store.MissingError
	_, err := t.Load()
	return errors.As(err, &missing)
}

// Tombstone is a range delete: keys in [start, end) older than seq do not exist.
type Tombstone struct {
	Start, End []byte
	Seq        uint64
	// from and to are what it covers within the bounds of its table.
	from, to bound
	place    record.Place
}

// clip limits a tombstone to the table's bounds. Compactions may keep a wider tombstone than the
// part of it that the table stands for. A largest key that is a range-delete sentinel is exclusive.
func (t *Table) clip(d *Tombstone) {
	low := bound{key: t.First}
	high := bound{key: t.Last, after: true}
	if _, tr := base.SplitKey(t.Largest); tr == base.Trailer(base.MaxSequence, base.KindRangeDelete) {
		high.after = false
	}
	d.from, d.to = bound{key: d.Start}, bound{key: d.End}
	d.from = minBound(t.Cmp.Compare, maxBound(t.Cmp.Compare, d.from, low), high)
	d.to = maxBound(t.Cmp.Compare, minBound(t.Cmp.Compare, d.to, high), d.from)
}
