package floyd

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	"kvferry/format"
	"kvferry/internal/shared/dataset"
	"kvferry/internal/shared/hll"
	"kvferry/internal/shared/versioned"
	"kvferry/record"
)

// defaultVersion is the version of new rows unless the options set one.
const defaultVersion = 1

// maxInstances bounds the directories of a database.
const maxInstances = 1024

// target is a dataset being written.
type target struct {
	*dataset.Target
	*dataset.Adapter
	instances, slots int
	version          Version
	now              Time
}

// create starts a target with all instances of each database, since the engine requires them.
func create(_ context.Context, f floydFormat, dir string, o *format.CreateOptions) (format.Target, error) {
	t := &target{instances: o.Instances, slots: o.Slots, version: Version(max(o.Version, 0))}
	t.instances = cmp.Or(t.instances, defaultInstances)
	if t.slots == 0 {
		t.slots = defaultSlots
	}
	t.version = cmp.Or(t.version, defaultVersion)
	if t.instances < 1 || t.instances > maxInstances || t.slots < 1 {
		return nil, fmt.Errorf("%s: %d instances and %d slots: want 1 to %d instances and 1 slot or more", dir, t.instances,
			t.slots, maxInstances)
	}
	if !o.Now.IsZero() {
		t.now = TimeOf(o.Now.UnixMilli())
	}
	parts := make([]dataset.Part, t.instances)
	for i := range parts {
		parts[i] = dataset.Part{Types: allTypes, Dir: strconv.Itoa(i)}
		for _, cf := range layout.Spaces() {
			parts[i].Keyspaces = append(parts[i].Keyspaces, dataset.Keyspace{Name: cf, Order: *orders[cf]})
		}
	}
	var err error
	f.slots = t.slots // the proof reads the dataset with the slots it was written with, without guessing
	t.Target, err = dataset.Create(f, dir, o, parts)
	if err != nil {
		return nil, err
	}
	t.Adapter = &dataset.Adapter{Limits: f.Limits(), Engine: "Pika 4.0", Counts: hll.Marked}
	return t, nil
}

// Shard returns the writer of one span.
func (t *target) Shard(n int, db string, _ record.TypeSet, memory int64) (record.Writer, error) {
	p := &placer{slots: t.slots, instances: t.instances}
	return versioned.NewShard(t.Target, versioned.ShardOptions{N: n, DB: db, Writers: t.instances, Memory: memory,
		Version: int64(t.version), NowMS: t.now.UnixMilli(), Suffix: appendSuffix(nil, t.now),
		Layout: func(int) *versioned.Layout { return layout },
		PartOf: func(_ record.Type, key []byte) int { return p.instance(key) }, ByKey: true,
	})
}
