package pass

import (
	"context"

	"kvferry/format"
	"kvferry/internal/pass/filter"
	"kvferry/internal/pass/progress"
	"kvferry/internal/pass/sorted"
	"kvferry/record"
)

// Opening is how a task is opened.
type Opening struct {
	Source    format.Source
	Selection *filter.Selection
	Env       format.Env
	// Meter counts the records read; nil if the user of the reader counts them.
	Meter *progress.Meter
	// Skipped is called for each record that is not selected; it may be nil.
	Skipped func(*record.Header, record.Class)
	// Hold is the memory for records that the filter holds back.
	Hold int64
	// Sort is the memory for sorting the records of a source without order; 0 leaves them in the order of the source.
	Sort int64
}

// Open returns a reader of the selected records of a task: of its spans, under its share of the memory, counted,
// filtered and sorted. Records that are not selected have their class, or are in the ledger if they were sorted.
func (o *Opening) Open(ctx context.Context, t *Task) (record.Reader, error) {
	r, err := o.records(ctx, t)
	if err != nil {
		return nil, err
	}
	r = o.Select(ctx, t.Shared(ctx, o.Meter.Reader(r, t.Bytes, o.marks(t))))
	if o.Sort > 0 {
		r = sorted.Records(r, sorted.Options{Memory: o.Sort, TempDir: o.Env.TempDir, Ledger: o.Env.Ledger})
	}
	return r, nil
}

// A task of markedBytes or more without bounds is measured by marksPerTask keys.
const (
	markedBytes  = 16 << 20
	marksPerTask = 256
)

// marks returns keys that measure the progress of a large task without bounds. An error only makes progress less exact.
func (o *Opening) marks(t *Task) []progress.Mark {
	w, ok := format.As[format.Weighed](o.Source)
	if !ok || o.Meter == nil || o.Env.AnyOrder || !o.Source.Sorted() || t.Bytes < markedBytes ||
		t.Spans != nil || t.Span.Lo != nil || t.Span.Hi != nil {
		return nil
	}
	keys, _ := w.Weigh(t.DB, t.Types, marksPerTask)
	out := make([]progress.Mark, len(keys))
	for i, k := range keys {
		out[i] = progress.Mark(k)
	}
	return out
}

// Select returns a reader of r in which the records that are not selected have their class.
func (o *Opening) Select(ctx context.Context, r record.Reader) record.Reader {
	return o.Selection.Apply(ctx, r, filter.ApplyOptions{Now: o.Env.Now, Memory: o.Hold, TempDir: o.Env.TempDir,
		Skipped: o.Skipped})
}

// records returns the records of a task's spans, which it opens one after the other.
func (o *Opening) records(ctx context.Context, t *Task) (record.Reader, error) {
	if t.Spans == nil {
		return o.Source.Records(ctx, t.DB, t.Types, t.Span, &o.Env)
	}
	readers := make([]func() (record.Reader, error), len(t.Spans))
	for i, span := range t.Spans {
		readers[i] = func() (record.Reader, error) { return o.Source.Records(ctx, t.DB, t.Types, span, &o.Env) }
	}
	return record.Concat(readers...), nil
}
