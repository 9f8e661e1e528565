package transfer

import (
	"context"
	"errors"

	"kvferry/format"
	"kvferry/internal/pass"
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
	env := format.Env{Now: x.Now, Memory: pass.LeastShare, TempDir: x.TempDir, RedisStrings: x.RedisStrings,
		ExactScores: x.ExactScores}
	return record.Merge(r, record.Gather(&renamed{ctx: ctx, src: src, env: env, list: renamedIn(x.Renames, x.Task)}, nil)), nil
}

// readTypes returns a sorted reader of the selected records of some types. It gets 1/part of the task's memory.
func (x *task) readTypes(ctx context.Context, src format.Source, types record.TypeSet, part int64) (record.Reader, error) {
	memory := x.Memory.Of(x.Task) / part
	if x.Selection.Holds() {
		memory /= 2 // the other half is for records that the filter holds back
	}
	o := pass.Opening{Source: src, Selection: x.Selection, Hold: memory,
		Env: format.Env{Now: x.Now, Memory: memory, TempDir: x.TempDir, Ledger: &x.ledger, Report: x.findings.Report,
			RedisStrings: x.RedisStrings, ExactScores: x.ExactScores, Wanted: x.Selection.Wanted(x.Now)}}
	if x.Deep {
		o.Env.Deep, o.Env.Wanted = true, nil
	}
	if !src.Sorted() || x.SortSections && x.Span.IsSection() {
		o.Sort = memory
	}
	t := *x.Task
	t.Types = types
	return o.Open(ctx, &t)
}
