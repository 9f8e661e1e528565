package nemo

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"kvferry/format"
	"kvferry/internal/dataset"
	"kvferry/internal/extsort"
	"kvferry/internal/lane"
	"kvferry/internal/seconds"
	"kvferry/record"
	"kvferry/store"
)

// separatorShard is the number of the runs that hold separators. Shards count from 0.
const separatorShard = -1

// target is a dataset being written.
type target struct{ *dataset.Target }

// create starts a target with all five stores of each database.
func create(_ context.Context, f nemoFormat, dir string, o *format.CreateOptions) (format.Target, error) {
	parts := make([]dataset.Part, len(families))
	for i := range families {
		parts[i] = dataset.Part{Types: record.Of(families[i].typ), Dir: families[i].dir,
			Keyspaces: []dataset.Keyspace{{Name: "default", Order: store.Bytewise}}}
	}
	t, err := dataset.Create(f, dir, o, parts)
	if err != nil {
		return nil, err
	}
	t.Last = separateAll
	return &target{t}, nil
}

// version is that of all rows of collections.
func (t *target) version() Version {
	if t.Options.Version == 0 {
		return 1
	}
	return Version(t.Options.Version)
}

// Shard returns the writer of one span.
func (t *target) Shard(n int, db string, types record.TypeSet, memory int64) (record.Writer, error) {
	s, err := dataset.NewShard[*typeWriter](t.Target, n, db, types, memory)
	if err != nil {
		return nil, err
	}
	return &shard{Shard: s, target: t}, nil
}

// laneOf ranks the data rows of a key length; klen 0 is the separator before them. Meta rows have klen 0
// too.
func laneOf(kind byte, klen int) uint64 { return uint64(kind)<<8 | uint64(klen) }

// separateAll puts the separators of a store.
func separateAll(part int, b store.Builder) error {
	f := &families[part]
	return errors.Join(separate(b, f.data), separate(b, f.index))
}

// separate writes the separator row of a kind, none when kind is 0.
func separate(b store.Builder, kind byte) error {
	if kind == 0 {
		return nil
	}
	run, err := b.Run("default", separatorShard, laneOf(kind, 0))
	if err != nil {
		return err
	}
	if err := run.Append([]byte{kind}, AppendPlain(nil, Plain{})); err != nil {
		run.Abort()
		return err
	}
	return run.Close()
}

// shard writes one span of a database.
type shard struct {
	dataset.Shard[*typeWriter]
	target *target
	cur    *typeWriter
}

// Begin starts a record.
func (s *shard) Begin(h *record.Header) error {
	t := h.Type
	part := slices.IndexFunc(families[:], func(f family) bool { return f.typ == t })
	if part < 0 {
		return fmt.Errorf("%s %s: nemo has no such type", t, record.Quote(h.Key))
	}
	b := s.DB.Builder(part)
	if s.Writers[t] == nil {
		w, err := s.newWriter(t, b)
		if err != nil {
			return err
		}
		s.Writers[t] = w
	}
	s.cur = s.Writers[t]
	return s.cur.begin(h)
}

// newWriter returns the writer of the rows of a type.
func (s *shard) newWriter(t record.Type, b store.Builder) (*typeWriter, error) {
	sorting := extsort.Options{Memory: s.Memory / 3, TempDir: s.target.Options.TempDir}
	w := &typeWriter{family: familyFor(t), version: s.target.version(), sorted: extsort.New(sorting), indexed: extsort.New(sorting)}
	w.runs = lane.NewRuns(lane.RunsOptions{
		Open:    func(id uint64) (store.Run, error) { return b.Run("default", s.N, id) },
		Memory:  s.Memory / 3,
		TempDir: s.target.Options.TempDir,
	})
	var err error
	w.metas, err = w.runs.Lane(laneOf(w.family.meta, 0))
	return w, err
}

// Write appends elements of the record.
func (s *shard) Write(elems []record.Element) error { return s.cur.write(elems) }

// End finishes the record.
func (s *shard) End() error { return s.cur.end() }

// expiryOf returns the expiry as it is written: rounded up. Losses has seen to those that nemo would take
// for never.
func expiryOf(h *record.Header) (UnixSeconds, error) {
	if h.ExpireMS == 0 {
		return 0, nil
	}
	s := record.CeilSeconds(h.ExpireMS)
	if s > seconds.Last || s < math.MinInt32 {
		return 0, fmt.Errorf("%s %s: expiry of %d s does not fit 32 bits", h.Type, record.Quote(h.Key), s)
	}
	if s == 0 || s < 0 && h.Type == record.String {
		s = 1
	}
	return UnixSeconds(s), nil
}
