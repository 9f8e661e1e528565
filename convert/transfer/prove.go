package transfer

import (
	"context"
	"errors"
	"io"

	"kvferry/convert/plan"
	"kvferry/convert/workers"
	"kvferry/format"
	"kvferry/internal/pass/progress"
	"kvferry/record"
)

// Prove takes the fingerprint of one task's part of the target.
func Prove(ctx context.Context, t *plan.Task, r *Rules, memory int64, sh *workers.Share, back format.Source,
	report func(record.Finding)) (*record.Fingerprint, *record.Ledger, error) {

	ledger := new(record.Ledger)
	env := &format.Env{Now: r.Now, Memory: memory, TempDir: r.TempDir, Ledger: ledger, Report: report, AnyOrder: true}
	reader, err := back.Records(ctx, t.DB, t.Types, t.Span, env)
	if err != nil {
		return nil, nil, err
	}
	p := prover{Rules: r, hasher: record.Hasher{PlainZero: r.PlainZero}, reader: reader, share: sh, gauge: r.Meter.Gauge(t.Bytes)}
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
	*Rules
	reader  record.Reader
	share   *workers.Share
	hasher  record.Hasher
	batch   [batchLen]record.Element
	digests [record.NumTypes]record.Digest
	gauge   progress.Gauge
}

// all hashes all records.
func (p *prover) all(ctx context.Context) error {
	l := loop{share: p.share, pause: func() error { p.gauge.Flush(); return ctx.Err() }}
	return l.run(p.reader, p.Lapse == nil, p.strings, func(h *record.Header) error { return p.record(ctx, h) })
}

// strings hashes a batch of strings.
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
		if err := p.share.Take(p.batch[:got]); err != nil {
			return err
		}
		p.gauge.Elements(p.batch[:got])
		if elems := p.batch[:got]; h.Type == record.Hash {
			p.hasher.Elements(p.lasting(elems))
		} else {
			p.hasher.Elements(elems)
		}
		if h.Type == record.String { // a string has one element
			break
		}
	}
	if until := p.Lapse.until(h.ExpireMS); until == 0 || until > p.Gone {
		p.digests[h.Type].Add(p.hasher.End(h))
	}
	p.gauge.Record(nil)
	return nil
}
