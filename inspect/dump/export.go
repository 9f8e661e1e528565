package dump

import (
	"context"
	"errors"
	"io"
	"sync/atomic"

	"kvferry/inspect"
	"kvferry/record"
)

// Parts receives the records of a dataset in parts.
type Parts interface {
	// Part returns the writer of a part, whose records come in (key, type) order. Parts are numbered in key order.
	Part(n int, types record.TypeSet) (record.Writer, error)
}

// partBytes is the approximate size on disk of a part, of which a source has leastParts unless they were below
// leastBytes.
const (
	partBytes  = 256 << 20
	leastParts = 8
	leastBytes = 16 << 20
	// workerBytes is the memory that a writer needs at the least.
	workerBytes = 8 << 20
)

// Export writes all selected records, several parts at a time, and returns their number. The parts depend on the source
// alone.
func Export(ctx context.Context, s *inspect.Scan, to Parts) (records int64, err error) {
	parts, err := Plan(s)
	if err != nil {
		return 0, err
	}
	return ExportParts(ctx, s, parts, to)
}

// Plan cuts a source into the parts of an export.
func Plan(s *inspect.Scan) ([]inspect.Part, error) { return s.Pieces(sizeOfParts(s)) }

// ExportParts is Export for some parts of a plan.
func ExportParts(ctx context.Context, s *inspect.Scan, parts []inspect.Part, to Parts) (records int64, err error) {
	if s.Memory > 0 {
		few := *s
		few.Workers = int(min(max(s.Memory/workerBytes, 1), int64(s.Workers)))
		s = &few
	}
	var n atomic.Int64
	err = s.RunParts(ctx, parts, func(ctx context.Context, p inspect.Part) (func(), error) {
		w, err := to.Part(p.N, p.Types)
		if err != nil {
			return nil, err
		}
		if err = export(ctx, s, p, w, &n); err != nil {
			w.Abort()
			return nil, err
		}
		return func() {}, w.Close()
	})
	return n.Load(), err
}

func sizeOfParts(s *inspect.Scan) int64 {
	var total int64
	for _, db := range s.Source.Databases() {
		total += s.Source.Size(db, s.Types(db))
	}
	return min(partBytes, max(leastBytes, total/leastParts))
}

// export writes the records of a part.
func export(ctx context.Context, s *inspect.Scan, p inspect.Part, w record.Writer, records *atomic.Int64) (err error) {
	r, err := s.OpenShared(ctx, p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	for {
		b, err := r.Next()
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = w.Write(b)
		}
		if err == nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		for i := range b.Records {
			if b.Ends(i) && !b.Records[i].Out() {
				records.Add(1)
			}
		}
	}
}
