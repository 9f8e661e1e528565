package lsm

import (
	"errors"
	"math"
	"sync"

	"kvferry/internal/sys/disk"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/blocks"
)

// Source provides the blocks of a table: a file, or a spool of our own.
type Source interface {
	// Open reads the table's metadata, once.
	Open() (*Info, error)
	// Walk starts before the first block. It reuses a finished walk, if given. pass reports whether the walk continues
	// after an unreadable part of the index, whose keys end at sep; nil ends the walk.
	Walk(reuse blocks.Walk, pass func(h blocks.Handle, sep []byte, err error) bool) (blocks.Walk, error)
	// KeyBefore returns the last readable separator of the index before sep, or nil.
	KeyBefore(sep []byte) []byte
}

// Info is the metadata of a table.
type Info struct {
	Index    blocks.Handle
	RangeDel blocks.Handle // block of range tombstones
	// Tombstones are the range tombstones. If TombErr is set, they are unreadable, but the rows are not.
	Tombstones []Tombstone
	TombErr    error
	// FixedSeq is the sequence number of every key of an ingested table; valid if UseFixed is set.
	FixedSeq uint64
	UseFixed bool
	// Exact is true if the last row of the table is its upper bound: no range tombstone extends beyond it.
	Exact bool
}

// Meta describes a table that was not opened yet. Its bounds are internal keys.
type Meta struct {
	Name, Path        string // relative to the store; full path
	Level             int    // -1: logs
	Number            uint64
	Size, Lacks       int64 // of the file; what the MANIFEST lists beyond its end
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
	origins     []string // of a spool: source files of its entries; see originLen
	Levels      []int    // levels of origins, if they differ from the table's

	once sync.Once
	info *Info
	err  error

	skips Skips
}

// NewTable returns a table of a keyspace without reading from it.
func NewTable(ks *Keyspace, meta Meta, src Source) *Table {
	t := &Table{Meta: meta, Source: src, Keyspace: ks.name, Cmp: ks.cmp}
	t.First, _ = base.SplitKey(meta.Smallest)
	t.Last, _ = base.SplitKey(meta.Largest)
	return t
}

// NewBrokenTable returns a table that cannot be opened.
func NewBrokenTable(ks *Keyspace, meta Meta, err error) *Table {
	t := NewTable(ks, meta, nil)
	t.once.Do(func() { t.err = err })
	return t
}

// NewUnboundedTable returns a table without known bounds, for scans.
func NewUnboundedTable(ks *Keyspace, meta Meta, src Source) *Table {
	t := &Table{Meta: meta, Source: src, Keyspace: ks.name, Cmp: ks.cmp}
	t.once.Do(func() { t.info, t.err = src.Open() })
	return t
}

// Load opens the table, once. Range tombstones are clipped to its bounds; unreadable ones are ignored.
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

// walk starts before the first block of the table and reuses the walk in *w.
func (t *Table) walk(w *blocks.Walk, pass func(h blocks.Handle, sep []byte, err error) bool) error {
	if _, err := t.Load(); err != nil {
		return err
	}
	var err error
	*w, err = t.Source.Walk(*w, pass)
	return err
}

// indexHandle returns the handle of the index, if known.
func (t *Table) indexHandle() blocks.Handle {
	if t.info == nil {
		return blocks.Handle{}
	}
	return t.info.Index
}

// Fail places an error in the table's file. Errors of access stay unchanged.
func (t *Table) Fail(off int64, field string, err error) error {
	if disk.IsAccess(err) {
		return err
	}
	return &record.CorruptError{Keyspace: t.Keyspace, File: t.Path, Off: off, Field: field, Err: err}
}

// failBlock places an error in a block, unless it is about the whole table and has its place already.
func (t *Table) failBlock(h blocks.Handle, err error) error {
	var n *blocks.CountError
	if errors.As(err, &n) {
		return err
	}
	return t.Fail(int64(h.Off), FieldBlock, err)
}

// Place returns the place of a block of the table.
func (t *Table) Place(off uint64) record.Place {
	return record.Place{File: t.Name, Off: int64(off), Level: t.Level}
}

// Missing reports whether the table's file is missing.
func (t *Table) Missing() bool {
	var missing *store.MissingError
	_, err := t.Load()
	return errors.As(err, &missing)
}

// clip limits a tombstone to the table's bounds. Compactions may keep a tombstone wider than the table's own part of
// it. A largest key that is a range-delete sentinel is exclusive.
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

// Skips records the reported parts of a table.
type Skips struct{ off sync.Map }

// First records an offset and reports whether it is new.
func (s *Skips) First(off uint64) bool {
	_, known := s.off.LoadOrStore(off, true)
	return !known
}

// skippedNone reports whether no part of the table was skipped so far.
func (s *Skips) skippedNone() (none bool) {
	none = true
	s.off.Range(func(any, any) bool {
		none = false
		return false
	})
	return none
}

// WholeTable is the offset in Skips for a table that cannot be opened.
const WholeTable = math.MaxUint64

// Names of table parts in errors and findings.
const (
	FieldBlock    = "block"
	FieldFileSize = "file size"
	FieldIdentity = "identity" // not the table that the MANIFEST names
)
