package transfer

import (
	"context"
	"slices"
	"sync"

	"kvferry/convert/plan"
	"kvferry/format"
	"kvferry/record"
)

// Back collects the kinds of losses of the way back: of the records that a conversion makes, in the format of its source.
type Back struct {
	Target   format.Target
	RenameDB []string // A=B for the databases that only so have the names of the source again
	mu       sync.Mutex
	kinds    []string
}

// NewBack returns a Back for a source. from and to are the names of its databases in source and target; limits are the
// target's. It returns nil if the format of the source cannot be written.
func NewBack(ctx context.Context, src format.Source, from, to []string, limits format.Limits, dir string,
	o format.CreateOptions) (b *Back, err error) {
	own := src.Format().Limits()
	if own.NoTarget != "" || own.Place == format.OnServer {
		return nil, nil
	}
	b = new(Back)
	for i, name := range plan.TargetNames(to, limits, own, false, "") {
		if !own.Numbered && name != from[i] {
			b.RenameDB = append(b.RenameDB, to[i]+"="+from[i])
		}
	}
	shape := format.ShapeOf(src)
	o.DBs, o.Layout, o.Version, o.Cluster, o.Instances, o.Slots = from, shape.Layout, 1, shape.Cluster, shape.Instances,
		shape.Slots
	b.Target, err = src.Format().Create(ctx, dir, &o)
	return b, err
}

// Kinds lists the kinds of losses that need permission.
func (b *Back) Kinds() []string {
	slices.Sort(b.kinds)
	return b.kinds
}

func (b *Back) lose(l record.Loss) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !l.Note && !slices.Contains(b.kinds, l.Kind) {
		b.kinds = append(b.kinds, l.Kind)
	}
}

// batch adds the losses of the adapted records of a batch, which it does not change.
func (b *Back) batch(batch *record.Batch) {
	for i := range batch.Records {
		r := &batch.Records[i]
		if r.Out() || r.Type == record.Other {
			continue
		}
		h, dropped := r.Header, false
		for _, l := range b.Target.Losses(&h) {
			dropped = dropped || l.Drops
			b.lose(l)
		}
		if !dropped {
			b.Target.ElementLosses(&h, slices.Clone(batch.Of(i)), b.lose)
		}
	}
}
