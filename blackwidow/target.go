package blackwidow

import (
	"cmp"
	"context"
	"fmt"

	"kvferry/format"
	"kvferry/internal/shared/dataset"
	"kvferry/internal/shared/hll"
	"kvferry/internal/shared/versioned"
	"kvferry/record"
)

// defaultVersion is the version of new rows unless the options set one.
const defaultVersion = 1

// target is a dataset being written.
type target struct {
	*dataset.Target
	*dataset.Adapter
	version Version
}

// create starts a target with all five stores of each database, since the engine requires them.
func create(_ context.Context, f blackwidowFormat, dir string, o *format.CreateOptions) (format.Target, error) {
	version := Version(o.Version)
	version = cmp.Or(version, defaultVersion)
	if version < 0 || version&0xff == 0xff {
		return nil, fmt.Errorf("version %d: the engine lists collections whose version is below 0 or ends in the byte 0xff as empty; "+
			"use the number before or after it", version)
	}
	parts := make([]dataset.Part, len(f.families()))
	for i := range parts {
		parts[i] = families[i].part()
	}
	t, err := dataset.Create(f, dir, o, parts)
	if err != nil {
		return nil, err
	}
	return &target{t, &dataset.Adapter{Limits: f.Limits(), Engine: f.Name(), Counts: hll.Raw,
		NoStreams: "blackwidow has no streams before Pika 3.5.3", Avoid: "a target named pika3.5: keeps streams"}, version}, nil
}

// part returns the family's store with all its column families.
func (f *family) part() dataset.Part {
	p := dataset.Part{Types: record.Of(f.typ), Dir: f.dir}
	for _, cf := range f.layout.Spaces() {
		p.Keyspaces = append(p.Keyspaces, dataset.Keyspace{Name: cf, Order: *f.orderOf(cf)})
	}
	return p
}

// Shard returns the writer of one span.
func (t *target) Shard(n int, db string, types record.TypeSet, memory int64) (record.Writer, error) {
	return versioned.NewShard(t.Target, versioned.ShardOptions{N: n, DB: db, Writers: len(types.Types()), Memory: memory,
		Version: int64(t.version), Layout: func(part int) *versioned.Layout { return families[part].layout }})
}
