package convert

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"kvferry/format"
	"kvferry/internal/progress"
	"kvferry/record"
)

// ProofError means that the target differs from the source. It was not published.
type ProofError struct {
	Parts    []Mismatch
	Findings []FindingKind // errors in the target
	Err      error         // the target could not be read
	Loaded   bool          // the data is on a server, where it stays
}

// Mismatch is a part in which source and target differ.
type Mismatch struct {
	DB, Type       string
	Source, Target record.Digest
}

// Error lists the parts that differ.
func (e *ProofError) Error() string {
	var parts []string
	for _, m := range e.Parts {
		parts = append(parts, fmt.Sprintf("database %s %s: %s", m.DB, m.Type, m.difference()))
	}
	for _, f := range e.Findings {
		parts = append(parts, fmt.Sprintf("%d × %s, such as %s", f.Count, f.Kind, f.Samples[0]))
	}
	if e.Err != nil {
		parts = append(parts, e.Err.Error())
	}
	outcome := "nothing is published"
	if e.Loaded {
		outcome = "what was written stays on the server"
	}
	return "the proof failed; " + outcome + ": " + strings.Join(parts, "; ")
}

func (m *Mismatch) difference() string {
	if m.Source.Records != m.Target.Records || m.Source.Elements != m.Target.Elements {
		return fmt.Sprintf("%d records and %d elements were written, %d and %d read back",
			m.Source.Records, m.Source.Elements, m.Target.Records, m.Target.Elements)
	}
	return fmt.Sprintf("fingerprint %s was written, %s read back", m.Source.Millis, m.Target.Millis)
}

// prove reads the target back and compares it with what was written.
func (a *attempt) prove(ctx context.Context, back format.Source, want *record.Fingerprint) error {
	tasks := proofTasks(back, a.id.Plan)
	var total int64
	for _, t := range tasks {
		total += t.Bytes
	}
	a.meter.Begin("prove", total, 0, len(tasks))
	memory := newShares(a.o.Memory/2, tasks, a.o.Workers) // nothing is written meanwhile
	var got record.Fingerprint
	var findings findingSet
	var ledger record.Ledger
	var mu sync.Mutex
	err := runSharing(ctx, tasks, &a.cores, a.o.Memory, func(ctx context.Context, t *Task, sh *share) error {
		var own findingSet
		f, l, err := proveTask(ctx, t, a.rules, memory.of(t), sh, back, own.report)
		if err != nil {
			return err
		}
		findings.merge(own.list())
		mu.Lock()
		defer mu.Unlock()
		got.Merge(f)
		ledger.Merge(l)
		return nil
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil {
		err = ledger.Check()
	}
	err = compare(want, &got, a.o.seconds(), findings.list(), err)
	if wrong := (*ProofError)(nil); errors.As(err, &wrong) {
		wrong.Loaded = a.o.Target.Address != ""
	}
	return err
}

// compare returns a ProofError unless everything is equal and nothing is wrong.
func compare(want, got *record.Fingerprint, seconds bool, findings []FindingKind, err error) error {
	e := &ProofError{}
	if err != nil {
		e.Err = fmt.Errorf("reading the target back: %v", err)
	} else {
		w, g := want.Parts(), got.Parts()
		for _, p := range want.Diff(got, seconds) {
			e.Parts = append(e.Parts, Mismatch{p.DB, p.Type.String(), w[p], g[p]})
		}
		slices.SortFunc(e.Parts, func(a, b Mismatch) int {
			return cmp.Or(cmp.Compare(a.DB, b.DB), cmp.Compare(a.Type, b.Type))
		})
	}
	for _, f := range findings {
		if f.Severity == record.Error.String() {
			e.Findings = append(e.Findings, f)
		}
	}
	if e.Err == nil && len(e.Parts) == 0 && len(e.Findings) == 0 {
		return nil
	}
	return e
}

// sectionTasks lists the sections of a database of a target that has no order of keys. One that cannot be cut is read as
// a whole.
func sectionTasks(back format.Source, s format.Sectioned, db, planned string) (out []*Task) {
	types := back.Types(db)
	size := back.Size(db, types)
	spans, err := s.Sections(db, types, int(min(size/pieceBytes+1, maxSpans)))
	if err != nil {
		spans = []format.Span{{}}
	}
	for i, span := range spans {
		out = append(out, &Task{N: i, DB: db, TargetDB: planned, Types: types, Span: span, Bytes: size / int64(len(spans))})
	}
	return out
}

// proofTasks lists what to read of the target: everything in it, over the spans it was written in.
// Their TargetDB is the name in the plan. A target with one database may call it as it likes.
func proofTasks(back format.Source, p *Plan) []*Task {
	var out []*Task
	dbs := back.Databases()
	for _, db := range dbs {
		planned := db
		if len(dbs) == 1 && len(p.TargetDBs) == 1 {
			planned = p.TargetDBs[0]
		}
		rest := back.Types(db)
		if s, ok := back.(format.Sectioned); ok {
			out = append(out, sectionTasks(back, s, db, planned)...)
			continue
		}
		for i := range p.Tasks {
			t := &p.Tasks[i]
			// Spans that are sections of the source's file mean nothing to the target.
			if t.TargetDB != planned || t.Group == 0 || t.Span.IsSection() {
				continue
			}
			for _, g := range p.Groups {
				if g &= t.Group; g == 0 {
					continue
				}
				bytes := back.Size(db, g) / int64(max(p.spans(t), 1))
				out = append(out, &Task{N: t.N, DB: db, TargetDB: planned, Types: g, Span: t.Span, Bytes: bytes})
				rest &^= g
			}
		}
		if rest != 0 {
			out = append(out, &Task{DB: db, TargetDB: planned, Types: rest, Bytes: back.Size(db, rest)})
		}
	}
	return out
}

// proveTask takes the fingerprint of one task's part of the target.
func proveTask(ctx context.Context, t *Task, r *rules, memory int64, sh *share, back format.Source,
	report func(record.Finding)) (*record.Fingerprint, *record.Ledger, error) {

	ledger := new(record.Ledger)
	env := &format.Env{Now: r.now, Memory: memory, TempDir: r.tempDir, Ledger: ledger, Report: report, AnyOrder: true}
	reader, err := back.Records(ctx, t.DB, t.Types, t.Span, env)
	if err != nil {
		return nil, nil, err
	}
	p := prover{rules: r, hasher: record.Hasher{PlainZero: r.plainZero}, reader: reader, share: sh, gauge: r.meter.Gauge(t.Bytes)}
	err = errors.Join(p.all(ctx), reader.Close())
	if err != nil {
		p.gauge.Undo()
		return nil, nil, err
	}
	p.gauge.Finish()
	f := new(record.Fingerprint)
	for typ, d := range p.digests {
		f.Add(record.Part{DB: t.TargetDB, Type: record.Type(typ)}, d)
	}
	return f, ledger, nil
}

// prover hashes records.
type prover struct {
	*rules
	reader  record.Reader
	share   *share
	hasher  record.Hasher
	batch   [batchLen]record.Element
	digests [record.NumTypes]record.Digest
	gauge   progress.Gauge
}

// all hashes all records.
func (p *prover) all(ctx context.Context) error {
	l := loop{share: p.share, pause: func() error { p.gauge.Flush(); return ctx.Err() }}
	return l.run(p.reader, p.lapse == nil, p.strings, func(h *record.Header) error { return p.record(ctx, h) })
}

// strings hashes strings that come at once.
func (p *prover) strings(batch []record.StringRecord) error {
	p.hasher.Strings(&p.digests[record.String], batch)
	p.gauge.Strings(batch)
	return nil
}

func (p *prover) record(ctx context.Context, h *record.Header) error {
	p.hasher.Begin(h)
	for n := 1; ; n++ {
		got, err := p.reader.Read(p.batch[:])
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if n%checkEvery == 0 {
			p.gauge.Flush()
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		if err := p.share.take(p.batch[:got]); err != nil {
			return err
		}
		p.gauge.Elements(p.batch[:got])
		if elems := p.batch[:got]; h.Type == record.Hash {
			p.hasher.Elements(p.lasting(elems))
		} else {
			p.hasher.Elements(elems)
		}
		if h.Type == record.String { // it has one
			break
		}
	}
	if until := p.lapse.until(h.ExpireMS); until == 0 || until > p.gone {
		p.digests[h.Type].Add(p.hasher.End(h))
	}
	p.gauge.Record(nil)
	return nil
}
