package transfer

import (
	"context"
	"errors"

	"kvferry/convert/workers"
	"kvferry/format"
	"kvferry/internal/pass/filter"
	"kvferry/internal/pass/sorted"
	"kvferry/record"
)

// read returns the reader of the task. If several types of the source may compete for a name in the target, it reads
// them separately and merges them by preference.
func (x *task) read(ctx context.Context, src format.Source) (record.Reader, error) {
	types := x.Types.Types()
	if x.SameName || len(types) == 1 || !src.Format().Limits().SameName {
		return x.readTypes(ctx, src, x.Types, 1)
	}
	if x.Renames != nil {
		return x.readRenamed(ctx, src)
	}
	return x.readRivals(ctx, src)
}

// readRivals reads the types separately and merges them, in order of preference within a key.
func (x *task) readRivals(ctx context.Context, src format.Source) (record.Reader, error) {
	types := x.Types.Types()
	var readers []record.Reader
	merged := func() record.Reader { return record.MergeBy(byPreference(x.Prefer), readers...) }
	for _, t := range types {
		r, err := x.readTypes(ctx, src, record.Of(t), int64(len(types)))
		if err != nil {
			return nil, errors.Join(err, merged().Close())
		}
		readers = append(readers, r)
	}
	return merged(), nil
}

// readRenamed merges the renamed records into the reader at their new names.
func (x *task) readRenamed(ctx context.Context, src format.Source) (record.Reader, error) {
	r, err := x.readRivals(ctx, src)
	if err != nil {
		return nil, err
	}
	env := format.Env{Now: x.Now, Memory: workers.LeastShare, TempDir: x.TempDir, RedisStrings: x.RedisStrings}
	return record.Merge(r, record.Gather(&renamed{ctx: ctx, src: src, env: env, list: renamedIn(x.Renames, x.Task)}, nil)), nil
}

// readTypes returns a sorted reader of the selected records of some types. It gets 1/part of the task's memory.
func (x *task) readTypes(ctx context.Context, src format.Source, types record.TypeSet, part int64) (record.Reader, error) {
	memory := x.Memory.Of(x.Task) / part
	if x.Selection.Holds() {
		memory /= 2 // the other half is for records that the filter holds back
	}
	env := &format.Env{Now: x.Now, Memory: memory, TempDir: x.TempDir, Ledger: &x.ledger, Report: x.findings.Report,
		RedisStrings: x.RedisStrings, Wanted: x.Selection.Wanted(x.Now)}
	r, err := src.Records(ctx, x.DB, types, x.Span, env)
	if err != nil {
		return nil, err
	}
	r = x.Selection.Apply(ctx, r, filter.ApplyOptions{Now: x.Now, Memory: memory, TempDir: x.TempDir})
	switch o := (sorted.Options{Memory: memory, TempDir: x.TempDir}); {
	case !src.Sorted():
		o.Ledger = &x.ledger
		r = sorted.Records(r, o)
	case x.SortSections && x.Span.IsSection(): // a sample, which needs no ledger
		r = sorted.Records(r, o)
	}
	return r, nil
}
