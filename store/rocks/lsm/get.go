package lsm

import (
	"bytes"

	"kvferry/store/rocks/base"
	"kvferry/store/rocks/blocks"
)

// finder is a Source that finds a block without a walk.
type finder interface {
	// Find returns the block that may hold a user key; nil if no block does. ok is false if only a walk can tell.
	Find(key []byte) (b *blocks.Kept, ok bool)
}

// maxCopied is the size up to which Get copies the value of a log.
const maxCopied = 64 << 10

// Get implements store.Getter. Of all runs the newest entry counts. What takes more than reading it is left to an iterator:
// range tombstones, merge operands, values in blob files, large values in logs, other orders, and anything damaged.
func (ks *Keyspace) Get(key []byte) (value []byte, found, ok bool) {
	if ks.Prepare() != nil || len(ks.frags) > 0 || !ks.cmp.IsBytewise() {
		return nil, false, false
	}
	var newest uint64
	for _, r := range ks.All {
		v, tr, ok := ks.getFrom(r, key)
		if !ok {
			return nil, false, false
		}
		if tr > newest {
			value, newest = v, tr
		}
	}
	switch kind := byte(newest); {
	case newest == 0 || kind == base.KindDelete || kind == base.KindSingleDelete:
		return nil, false, true
	default:
		return value, true, kind == base.KindPut
	}
}

// getFrom returns the newest entry of a key in a run: its trailer is 0 if there is none.
func (ks *Keyspace) getFrom(r *Run, key []byte) (value []byte, tr uint64, ok bool) {
	tables := r.Between(ks.cmp, key, nil)
	if len(tables) == 0 || bytes.Compare(key, tables[0].First) < 0 {
		return nil, 0, true
	}
	if len(tables) > 1 && bytes.Equal(tables[1].First, key) { // its versions are in two tables
		return nil, 0, false
	}
	t := tables[0]
	info, err := t.Load()
	if err != nil || info.TombErr != nil {
		return nil, 0, false
	}
	f, isFinder := t.Source.(finder)
	if !isFinder {
		return ks.getWalking(r, key)
	}
	b, ok := f.Find(key)
	if b == nil || !ok {
		return nil, 0, ok
	}
	value, tr, found := b.Get(key)
	if found && info.UseFixed {
		tr = base.Trailer(info.FixedSeq, byte(tr))
	}
	return value, tr, true
}

// getWalking is getFrom for what logs hold, by a cursor. It copies the value.
func (ks *Keyspace) getWalking(r *Run, key []byte) (value []byte, tr uint64, ok bool) {
	c := NewCursor(ks, r.Tables, nil)
	defer c.Close()
	if !c.Seek(key) || !c.At(key) {
		return nil, 0, c.Err == nil
	}
	if len(c.Val) > maxCopied {
		return nil, 0, false
	}
	return append([]byte{}, c.Val...), c.Tr, true
}
