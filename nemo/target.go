package nemo

import (
	"cmp"
	"context"
	"errors"

	"kvferry/format"
	"kvferry/internal/shared/dataset"
	"kvferry/internal/shared/hll"
	"kvferry/internal/shared/versioned"
	"kvferry/record"
	"kvferry/store"
)

// separatorShard is the number of the runs that hold separators. Shards count from 0.
const separatorShard = -1

// target is a dataset being written.
type target struct {
	*dataset.Target
	*dataset.Adapter
	version Version
}

// create starts a target with all five stores of each database.
func create(_ context.Context, f nemoFormat, dir string, o *format.CreateOptions) (format.Target, error) {
	parts := make([]dataset.Part, len(families))
	for i := range families {
		parts[i] = dataset.Part{Types: record.Of(families[i].typ), Dir: families[i].dir,
			Keyspaces: []dataset.Keyspace{{Name: keyspace, Order: store.Bytewise}}}
	}
	t, err := dataset.Create(f, dir, o, parts)
	if err != nil {
		return nil, err
	}
	t.Last = separateAll
	v := Version(o.Version)
	v = cmp.Or(v, 1)
	adapter := &dataset.Adapter{Limits: f.Limits(), Engine: f.Name(), Counts: hll.Raw}
	return &target{Target: t, Adapter: adapter, version: v}, nil
}

// Shard returns the writer of one span.
func (t *target) Shard(n int, db string, types record.TypeSet, memory int64) (record.Writer, error) {
	return versioned.NewShard(t.Target, versioned.ShardOptions{N: n, DB: db, Writers: len(types.Types()), Memory: memory,
		Version: int64(t.version), Suffix: AppendSuffix(nil, Suffix{Version: t.version}),
		Layout: func(part int) *versioned.Layout { return families[part].layout }})
}

// separateAll writes the separators of a store.
func separateAll(part int, b store.Builder) error {
	f := &families[part]
	return errors.Join(separate(b, f.data), separate(b, f.index))
}

// separate writes the separator row of a kind, unless kind is 0.
func separate(b store.Builder, kind byte) error {
	if kind == 0 {
		return nil
	}
	run, err := b.Run(keyspace, separatorShard, laneOf(kind, 0))
	if err != nil {
		return err
	}
	if err := run.Append([]byte{kind}, AppendPlain(nil, Plain{})); err != nil {
		run.Abort()
		return err
	}
	return run.Close()
}
