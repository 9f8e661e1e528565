package versioned

import (
	"fmt"

	"kvferry/internal/shared/dataset"
	"kvferry/record"
)

// NewShard returns a shard of a target without writers.
func NewShard(t *dataset.Target, o ShardOptions) (*Shard, error) {
	db, err := t.DB(o.DB)
	if err != nil {
		return nil, err
	}
	o.Parts, o.Builder, o.TempDir = t.Parts(), db.Builder, t.Options.TempDir
	if o.PartOf == nil {
		o.PartOf = func(typ record.Type, _ []byte) int { return t.PartOf(typ) }
	}
	return ShardOf(o), nil
}

// ShardOf returns a shard without writers.
func ShardOf(o ShardOptions) *Shard {
	if o.Memory <= 0 {
		o.Memory = record.DefaultMemory
	}
	o.Memory /= int64(max(o.Writers, 1))
	return &Shard{o: o, writers: make([]*Writer, o.Parts), strings: make([][]*record.Record, o.Parts)}
}

// route returns the part that a record belongs to.
func (s *Shard) route(t record.Type, key []byte) (part int, err error) {
	if part = s.o.PartOf(t, key); part < 0 {
		return part, fmt.Errorf("%s %s: %s has no such type", t, record.Quote(key), s.o.Layout(0).Format)
	}
	return part, nil
}

// Write writes records.
func (s *Shard) Write(b *record.Batch) error { return s.feed.Feed(b, s, s.Strings) }

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
		s.writers[part] = NewWriter(s.o.Layout(part), WriterOptions{Builder: s.o.Builder(part), Shard: s.o.N, Memory: s.o.Memory,
			TempDir: s.o.TempDir, Version: s.o.Version, NowMS: s.o.NowMS, Suffix: s.o.Suffix})
	}
	return s.writers[part]
}

// Elements appends elements of the record.
func (s *Shard) Elements(elems []record.Element) error { return s.cur.Elements(elems) }

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

// Strings writes n whole strings of a batch, in order within each part.
func (s *Shard) Strings(b *record.Batch, from, n int) error {
	for i := from; i < from+n; i++ {
		r := &b.Records[i]
		part, err := s.route(record.String, r.Key)
		if err != nil {
			return err
		}
		s.strings[part] = append(s.strings[part], r)
	}
	for part, some := range s.strings {
		if len(some) == 0 {
			continue
		}
		if err := s.writer(part).writeStrings(some, b.Elems); err != nil {
			return err
		}
		s.strings[part] = some[:0]
	}
	return nil
}
