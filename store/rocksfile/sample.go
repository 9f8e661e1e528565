package rocksfile

import (
	"bytes"

	"kvferry/store"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/blocks"
)

// Sample returns about n keys: the first keys of blocks, evenly spaced by bytes over each run.
func (ks *keyspace) Sample(n int) ([]store.Weighted, error) {
	if err := ks.prepare(); err != nil {
		return nil, err
	}
	var total int64
	for _, r := range ks.all {
		for _, t := range r.tables {
			total += t.size
		}
	}
	step := max(total/int64(max(n, 1)), 1)
	var out []store.Weighted
	for _, r := range ks.all {
		var err error
		if out, err = ks.sampleRun(out, r, step); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// sampleRun appends a key of the run for every step bytes of blocks, and one for what is left.
func (ks *keyspace) sampleRun(out []store.Weighted, r *sortedRun, step int64) ([]store.Weighted, error) {
	var have int64
	for _, t := range r.tables {
		var err error
		if out, have, err = t.sample(out, have, step, ks.env.salvage); err != nil {
			return nil, err
		}
	}
	if have > 0 {
		out = append(out, store.Weighted{Key: bytes.Clone(r.tables[len(r.tables)-1].last), Bytes: have})
	}
	return out, nil
}

// sample does so for one table; have is what was passed since the last key. The index of a spool has keys, the last of
// each block, which spares reading a block that may be one large value. What a salvage cannot read is left to those who
// read rows.
func (t *table) sample(out []store.Weighted, have, step int64, salvage bool) ([]store.Weighted, int64, error) {
	pass := func(_ blocks.Handle, _ []byte, err error) bool { return salvage && base.IsDamage(err) }
	var w blocks.Walk
	if err := t.walk(&w, pass); err != nil {
		if pass(blocks.Handle{}, nil, err) {
			return out, have, nil
		}
		return nil, 0, base.BlockError(err)
	}
	defer w.Close()
	for {
		ok, err := w.Next()
		if !ok || err != nil {
			return out, have, err
		}
		if have += int64(w.Handle().Size); have < step {
			continue
		}
		key := bytes.Clone(w.Separator())
		if t.origins == nil {
			first, err := t.firstKey(w)
			if err != nil && !pass(w.Handle(), key, err) {
				return nil, 0, base.BlockError(err)
			}
			if err == nil {
				key = first
			}
		}
		out, have = append(out, store.Weighted{Key: key, Bytes: have}), 0
	}
}

// firstKey returns the first user key of the block that a walk stands at.
func (t *table) firstKey(w blocks.Walk) ([]byte, error) {
	h := w.Handle()
	bl, err := w.Load()
	if err != nil {
		return nil, t.fail(int64(h.Off), fieldBlock, err)
	}
	e := blocks.Entries{Data: bl.Entries}
	ok, err := e.Next()
	if err == nil && (!ok || len(e.Key) < base.TrailerLen) {
		err = blocks.ErrEntry
	}
	if err != nil {
		return nil, t.fail(int64(h.Off), fieldBlock, err)
	}
	user, _ := base.SplitKey(e.Key)
	return bytes.Clone(user), nil
}
