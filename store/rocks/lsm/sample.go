package lsm

import (
	"bytes"

	"kvferry/internal/sys/disk"
	"kvferry/store"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/blocks"
)

// Sample returns about n keys: first keys of blocks, evenly spaced by bytes over each run.
func (ks *Keyspace) Sample(n int) ([]store.Weighted, error) {
	if err := ks.Prepare(); err != nil {
		return nil, err
	}
	var total int64
	for _, r := range ks.All {
		for _, t := range r.Tables {
			total += t.Size
		}
	}
	step := max(total/int64(max(n, 1)), 1)
	ks.ahead(step)
	return ks.sampleRuns(step, (*Table).firstKey)
}

// sampleRuns appends the samples of all runs; key returns the key of a walk's current block.
func (ks *Keyspace) sampleRuns(step int64, key sampleKey) (out []store.Weighted, err error) {
	for _, r := range ks.All {
		if out, err = ks.sampleRun(out, r, step, key); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// ahead starts to fetch the blocks of a sample of tables in an object store, after their indexes: one after the other,
// each would take a round trip.
func (ks *Keyspace) ahead(step int64) {
	if !disk.IsMounted(ks.Env.Dir) {
		return
	}
	disk.Together(ks.Env.Dir, len(ks.Tables), func(i int) {
		var w blocks.Walk
		if ks.Tables[i].walk(&w, nil) == nil {
			_, _ = w.SkipTo(0)
			w.Close()
		}
	})
	_, _ = ks.sampleRuns(step, func(t *Table, w blocks.Walk) ([]byte, error) {
		disk.Ahead(t.Path, int64(w.Handle().Off), int64(w.Handle().Size))
		return nil, nil
	})
}

// sampleKey returns the key of a walk's current block.
type sampleKey func(t *Table, w blocks.Walk) ([]byte, error)

// sampleRun appends one key of the run per step bytes of blocks, and one for the remainder.
func (ks *Keyspace) sampleRun(out []store.Weighted, r *Run, step int64, key sampleKey) ([]store.Weighted, error) {
	var have int64
	for _, t := range r.Tables {
		var err error
		if out, have, err = t.sample(out, have, step, ks.Env.Salvage, key); err != nil {
			return nil, err
		}
	}
	if have > 0 {
		out = append(out, store.Weighted{Key: bytes.Clone(r.Tables[len(r.Tables)-1].Last), Bytes: have})
	}
	return out, nil
}

// sample appends the keys of one table; have is the number of bytes since the last key. For a spool it uses the index
// keys, the last of each block, instead of reading a block that may be one large value. A salvage leaves reports of
// damage to the row reader.
func (t *Table) sample(out []store.Weighted, have, step int64, salvage bool, keyOf sampleKey) ([]store.Weighted, int64, error) {
	pass := func(_ blocks.Handle, _ []byte, err error) bool { return salvage && base.IsDamage(err) }
	var w blocks.Walk
	if err := t.walk(&w, pass); err != nil {
		if pass(blocks.Handle{}, nil, err) {
			return out, have, nil
		}
		return nil, 0, base.BlockError(err)
	}
	defer w.Close()
	var passed int64 // of the table
	for {
		ok, err := w.SkipTo(uint64(passed + step - have))
		end := max(passed, int64(w.Handle().Off+w.Handle().Size))
		have, passed = have+end-passed, end
		if !ok || err != nil {
			return out, have, err
		}
		key := bytes.Clone(w.Separator())
		if t.origins == nil {
			first, err := keyOf(t, w)
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

// firstKey returns the first user key of the walk's current block.
func (t *Table) firstKey(w blocks.Walk) ([]byte, error) {
	h := w.Handle()
	bl, err := w.Load()
	if err != nil {
		return nil, t.failBlock(h, err)
	}
	e := blocks.Entries{Data: bl.Entries}
	ok, err := e.Next()
	if err == nil && (!ok || len(e.Key) < base.TrailerLen) {
		err = blocks.ErrEntry
	}
	if err != nil {
		return nil, t.Fail(int64(h.Off), FieldBlock, err)
	}
	user, _ := base.SplitKey(e.Key)
	return bytes.Clone(user), nil
}
