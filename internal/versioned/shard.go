package versioned

import (
	"fmt"
	"slices"

	"kvferry/internal/dataset"
	"kvferry/record"
)

// ShardOptions says what a shard writes and how.
type ShardOptions struct {
	N       int    // of the shard
	DB      string // to write to
	Version int64  // of all new rows
	NowMS   int64  // when it is written
	Suffix  []byte // ends the values of data and index rows
	Memory  int64  // that may be buffered; 0 means dataset.DefaultMemory
	Writers int    // how many stores share it
	// Layout is that of a part of the target.
	Layout func(part int) *Layout
	// PartOf returns the part that a key belongs to; nil where each part holds one type, TypeOf.
	PartOf func(key []byte) int
	TypeOf func(part int) record.Type
}

// Shard writes one span of a database into its stores.
type Shard struct {
	o       ShardOptions
	types   []record.Type // of the parts, where they hold one each
	temp    string
	db      *dataset.TargetDB
	writers []*Writer // of the parts; nil until a record comes
	cur     *Writer
	strings [][]record.StringRecord // of the parts, while they are written
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
	s := &Shard{o: o, db: db, temp: t.Options.TempDir, writers: make([]*Writer, t.Parts()), strings: make([][]record.StringRecord, t.Parts())}
	for part := 0; part < t.Parts() && o.PartOf == nil; part++ {
		s.types = append(s.types, o.TypeOf(part))
	}
	return s, nil
}

// route returns the part that a record belongs to; -1 for none.
func (s *Shard) route(h *record.Header) int {
	if s.o.PartOf != nil {
		return s.o.PartOf(h.Key)
	}
	return slices.Index(s.types, h.Type)
}

// Begin starts a record.
func (s *Shard) Begin(h *record.Header) error {
	part := s.route(h)
	if part < 0 {
		return s.noType(h)
	}
	s.cur = s.writer(part)
	return s.cur.Begin(h)
}

func (s *Shard) noType(h *record.Header) error {
	return fmt.Errorf("%s %s: %s has no such type", h.Type, record.Quote(h.Key), s.o.Layout(0).Format)
}

// writer returns that of a part.
func (s *Shard) writer(part int) *Writer {
	if s.writers[part] == nil {
		s.writers[part] = NewWriter(s.o.Layout(part), WriterOptions{Builder: s.db.Builder(part), Shard: s.o.N, Memory: s.o.Memory,
			TempDir: s.temp, Version: s.o.Version, NowMS: s.o.NowMS, Suffix: s.o.Suffix})
	}
	return s.writers[part]
}

// Write appends elements of the record.
func (s *Shard) Write(elems []record.Element) error { return s.cur.Write(elems) }

// End finishes the record.
func (s *Shard) End() error { return s.cur.End() }

// Close finishes all runs. After an error they are aborted.
func (s *Shard) Close() error {
	for _, w := range s.writers {
		if w == nil {
			continue
		}
		if err := w.Close(); err != nil {
			s.Abort()
			return err
		}
	}
	return nil
}

// Abort drops all runs.
func (s *Shard) Abort() {
	for _, w := range s.writers {
		if w != nil {
			w.Abort()
		}
	}
}
