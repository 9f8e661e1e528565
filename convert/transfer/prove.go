package transfer

import (
	"context"
	"errors"

	"kvferry/format"
	"kvferry/internal/pass"
	"kvferry/internal/pass/progress"
	"kvferry/record"
)

// Prove takes the fingerprint of one task's part of the target.
func Prove(ctx context.Context, t *pass.Task, r *Rules, memory int64, back format.Source,
	report func(record.Finding)) (*record.Fingerprint, *record.Ledger, error) {

	ledger := new(record.Ledger)
	env := &format.Env{Now: r.Now, Memory: memory, TempDir: r.TempDir, Ledger: ledger, Report: report, AnyOrder: true,
		ExactScores: r.ExactScores}
	reader, err := back.Records(ctx, t.DB, t.Types, t.Span, env)
	if err != nil {
		return nil, nil, err
	}
	reader = record.Booked(t.Shared(ctx, reader), ledger)
	p := prover{Rules: r, hasher: record.Hasher{PlainZero: r.PlainZero, ExactScores: r.ExactScores},
		gauge: r.Meter.Gauge(t.Bytes)}
	pause := func() error { p.gauge.Flush(); return ctx.Err() }
	err = errors.Join(each(reader, pause, p.batch), reader.Close())
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
	hasher  record.Hasher
	digests [record.NumTypes]record.Digest
	gauge   progress.Gauge
}

// batch hashes the records of a batch that have not expired meanwhile.
func (p *prover) batch(b *record.Batch) error {
	p.gauge.Batch(b)
	if p.Lapse == nil {
		p.hasher.Batch(&p.digests, b)
		return nil
	}
	for i := range b.Records {
		r := &b.Records[i]
		if r.Type == record.Hash {
			r.N = len(p.lasting(b.Of(i)))
		}
		if until := p.Lapse.until(r.ExpireMS); p.hasher.Piece(b, i) && (until == 0 || until > p.Gone) {
			p.digests[r.Type].Add(p.hasher.End(&r.Header))
		}
	}
	return nil
}
