package blackwidow

import (
	"context"
	"fmt"

	"kvferry/format"
	"kvferry/internal/dataset"
	"kvferry/internal/extsort"
	"kvferry/internal/lane"
	"kvferry/record"
	"kvferry/store"
)

// defaultVersion is that of new rows when none is asked for.
const defaultVersion = 1

// target is a dataset being written.
type target struct {
	*dataset.Target
	version Version
}

// create starts a target with all five stores of each database, which the engine expects to be there.
func create(_ context.Context, f blackwidowFormat, dir string, o *format.CreateOptions) (format.Target, error) {
	version := Version(o.Version)
	if version == 0 {
		version = defaultVersion
	}
	if version < 0 || version&0xff == 0xff {
		return nil, fmt.Errorf("version %d: the engine lists collections whose version is below 0 or ends in the byte 0xff as empty; "+
			"use the number before or after it", version)
	}
	parts := make([]dataset.Part, len(families))
	for i := range families {
		parts[i] = families[i].part()
	}
	t, err := dataset.Create(f, dir, o, parts)
	if err != nil {
		return nil, err
	}
	return &target{Target: t, version: version}, nil
}

// part returns the family's store with all of its column families.
func (f *family) part() dataset.Part {
	p := dataset.Part{Type: f.typ, Dir: f.dir}
	for _, cf := range []string{cfDefault, f.data, f.score} {
		if cf != "" {
			p.Keyspaces = append(p.Keyspaces, dataset.Keyspace{Name: cf, Order: *f.orderOf(cf)})
		}
	}
	return p
}

// Shard returns the writer of one span.
func (t *target) Shard(n int, db string, types record.TypeSet, memory int64) (record.Writer, error) {
	s, err := dataset.NewShard[*typeWriter](t.Target, n, db, types, memory)
	if err != nil {
		return nil, err
	}
	return &shard{Shard: s, target: t}, nil
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
	b := s.DB.Builder(t)
	if b == nil {
		return fmt.Errorf("%s %s: blackwidow has no such type", t, record.Quote(h.Key))
	}
	if s.Writers[t] == nil {
		s.Writers[t] = s.newWriter(t, b)
	}
	s.cur = s.Writers[t]
	return s.cur.begin(h)
}

// newWriter returns the writer of the rows of a type.
func (s *shard) newWriter(t record.Type, b store.Builder) *typeWriter {
	sorting := extsort.Options{Memory: s.Memory / 4, TempDir: s.target.Options.TempDir}
	w := &typeWriter{family: familyFor(t), version: s.target.version, sorted: extsort.New(sorting), byScore: extsort.New(sorting)}
	w.metas = s.runs(b, cfDefault)
	if w.family.data != "" {
		w.data = s.runs(b, w.family.data)
	}
	if w.family.score != "" {
		w.scores = s.runs(b, w.family.score)
	}
	return w
}

// runs returns the writer of a column family. Within a lane rows come in order, so its spool need not know
// what that order is: it keeps rows of a lane as they came.
func (s *shard) runs(b store.Builder, cf string) *lane.Runs {
	return lane.NewRuns(lane.RunsOptions{
		Open:    func(id uint64) (store.Run, error) { return b.Run(cf, s.N, id) },
		Compare: func(_, _ []byte) int { return 0 },
		Memory:  s.Memory / 4,
		TempDir: s.target.Options.TempDir,
	})
}

// Write appends elements of the record.
func (s *shard) Write(elems []record.Element) error { return s.cur.write(elems) }

// End finishes the record.
func (s *shard) End() error { return s.cur.end() }
