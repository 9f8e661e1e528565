package dataset

import (
	"bytes"
	"context"

	"kvferry/format"
	"kvferry/internal/shared/deleted"
	"kvferry/record"
	"kvferry/store"
)

// Dead reads the deleted records of one type whose rows still exist.
type Dead struct {
	Type   record.Type
	Metas  store.Keyspace // holds the meta rows, or whole strings
	Family deleted.Family // not used for strings
	Kind   string         // of the finding about a row without a meta row

	// Open opens the usual reader of the type, over metas instead of Metas.
	Open func(metas store.Keyspace, e *format.Env) (record.Reader, error)
}

// Records opens the usual reader over restored meta rows. It counts no rows and reports no findings.
func (d *Dead) Records(ctx context.Context, e *format.Env,
	tell func(key []byte, t record.Type, what string)) (record.Reader, error) {
	quiet := *e
	quiet.Ledger, quiet.Report = nil, nil
	if d.Type == record.String {
		return d.Open(deleted.Strings(ctx, d.Metas), &quiet)
	}
	orphans := &deleted.Orphans{Kind: d.Kind, Memory: e.Memory / 4, TempDir: e.TempDir}
	orphans.Open = func(report func(record.Finding)) (record.Reader, error) {
		loud := quiet
		loud.Report, loud.Deep, loud.Memory = report, false, e.Memory/2
		return d.Open(d.Metas, &loud)
	}
	return d.Open(deleted.Collections(ctx, d.Metas, d.Family, orphans, deleted.Teller(tell, d.Type)), &quiet)
}

// Gone leaves out the records of a reader of deleted rows whose names exist again.
type Gone struct {
	record.Reader
	Alive func(key []byte) (bool, error)
	Tell  func(key []byte, t record.Type) // is called for each record with a copy of its key
}

// Next returns the next records. Those whose names exist are out.
func (g *Gone) Next() (*record.Batch, error) {
	b, err := g.Reader.Next()
	if err != nil || b.Cont {
		return b, err
	}
	for i := range b.Records {
		r := &b.Records[i]
		alive, err := g.Alive(r.Key)
		if err != nil {
			return nil, err
		}
		if alive {
			r.Class = record.Stale
			continue
		}
		g.Tell(bytes.Clone(r.Key), r.Type)
	}
	return b, nil
}
