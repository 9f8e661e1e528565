package versioned

import (
	"fmt"

	"kvferry/internal/shared/dataset"
	"kvferry/record"
)

// ShardOptions configures a shard.
type ShardOptions struct {
	N       int    // of the shard
	DB      string // to write to
	Version int64  // of all new rows
	NowMS   int64  // when it is written
	Suffix  []byte // ends the values of data and index rows
	Memory  int64  // buffer limit; 0 means dataset.DefaultMemory
	Writers int    // number of stores that share Memory
	// Layout returns the layout of a part of the target.
	Layout func(part int) *Layout
	// PartOf returns the part that a key belongs to; nil: the type decides.
	PartOf func(key []byte) int
}

// Shard writes one span of a database into its stores.
type Shard struct {
	o       ShardOptions
	target  *dataset.Target
	db      *dataset.TargetDB
	writers []*Writer // by part; nil until its first record
	cur     *Writer
	strings [][]record.StringRecord // by part, while they are written
}

// NewShard returns a shard without writers.
func NewShard(t *dataset.Target, o ShardOptions) (*Shard, error) {
	db, err := t.DB(o.DB)
	if err != nil {
		return nil, err
	}
	if o.Memory <= 0 {
		o.Memory = dataset.DefaultMemory
	}
	o.Memory /= int64(max(o.Writers, 1))
	return &Shard{o: o, target: t, db: db, writers: make([]*Writer, t.Parts()), strings: make([][]record.StringRecord, t.Parts())}, nil
}

// route returns the part that a record belongs to.
func (s *Shard) route(t record.Type, key []byte) (part int, err error) {
	if s.o.PartOf != nil {
		return s.o.PartOf(key), nil
	}
	if part = s.target.PartOf(t); part < 0 {
		return part, fmt.Errorf("%s %s: %s has no such type", t, record.Quote(key), s.o.Layout(0).Format)
	}
	return part, nil
}

// Begin starts a record.
func (s *Shard) Begin(h *record.Header) error {
	part, err := s.route(h.Type, h.Key)
	if err != nil {
		return err
	}
	s.cur = s.writer(part)
	return s.cur.Begin(h)
}

// writer returns the writer of a part.
func (s *Shard) writer(part int) *Writer {
	if s.writers[part] == nil {
		s.writers[part] = NewWriter(s.o.Layout(part), WriterOptions{Builder: s.db.Builder(part), Shard: s.o.N, Memory: s.o.Memory,
			TempDir: s.target.Options.TempDir, Version: s.o.Version, NowMS: s.o.NowMS, Suffix: s.o.Suffix})
	}
	return s.writers[part]
}

// Write appends elements of the record.
func (s *Shard) Write(elems []record.Element) error { return s.cur.Write(elems) }

// End finishes the record.
func (s *Shard) End() error { return s.cur.End() }

// Close finishes all runs. After an error they are aborted.
func (s *Shard) Close() error {
	err := CloseWriters(s.writers)
	if err != nil {
		s.Abort()
	}
	return err
}

// Abort drops all runs.
func (s *Shard) Abort() { AbortWriters(s.writers) }

// CloseWriters finishes the runs of writers, some of which may be nil, up to the first error.
func CloseWriters(writers []*Writer) error {
	for _, w := range writers {
		if w == nil {
			continue
		}
		if err := w.Close(); err != nil {
			return err
		}
	}
	return nil
}

// AbortWriters drops the runs of writers, some of which may be nil.
func AbortWriters(writers []*Writer) {
	for _, w := range writers {
		if w != nil {
			w.Abort()
		}
	}
}
