package lsm

import (
	"cmp"
	"slices"
	"sort"

	"kvferry/store/rocks/base"
	"kvferry/store/rocks/blocks"
)

// Seek moves forward to the first entry at or after key.
func (c *Cursor) Seek(key []byte) bool {
	if c.Done {
		return false
	}
	if c.data != nil && c.ks.cmp.Compare(key, c.walk.Separator()) <= 0 {
		return c.seekBlock(key)
	}
	if err := c.leave(); err != nil {
		return c.stop(err)
	}
	compare := c.ks.cmp.Compare
	if c.T == nil || compare(key, c.T.Last) > 0 {
		from := c.ti + 1
		n, _ := slices.BinarySearchFunc(c.tables[from:], key, func(t *Table, k []byte) int { return compare(t.Last, k) })
		c.ti = from + n
		if !c.openTable() {
			return false
		}
	}
	ok, err := c.walk.Seek(key)
	if err != nil {
		return c.stop(err)
	}
	if !ok {
		c.data, c.pos = nil, 0
		return c.nextTable() && c.nextBlock() && c.scanTo(key)
	}
	if !c.loadBlock() || len(c.data) == 0 {
		return c.nextBlock() && c.scanTo(key)
	}
	return c.seekBlock(key)
}

// seekBlock moves to the first entry at or after key, in this block or the next. A salvage must not jump over an
// invalid entry, because readers from the block's start stop at it.
func (c *Cursor) seekBlock(key []byte) bool {
	p := 0
	if !c.salvages() {
		err := c.leave()
		if err != nil {
			return c.stop(err)
		}
		if p, err = c.restartBefore(key); err != nil {
			return c.damage(err)
		}
	}
	if p >= c.pos || c.pos == 0 {
		if !c.first(p) {
			return c.nextBlock() && c.scanTo(key)
		}
	}
	return c.scanTo(key)
}

// restartBefore returns the last restart whose key is before key, or the start of the block.
func (c *Cursor) restartBefore(key []byte) (p int, err error) {
	n := sort.Search(c.block.NumRestarts(), func(i int) bool {
		k, e := c.keyAt(i)
		err = cmp.Or(err, e)
		return e != nil || c.ks.cmp.Compare(k, key) >= 0
	})
	if n > 0 {
		p = c.block.Restart(n - 1)
	}
	return p, err
}

// keyAt returns the user key at a restart of the block.
func (c *Cursor) keyAt(i int) ([]byte, error) {
	p := c.block.Restart(i)
	if p < 0 {
		return nil, blocks.ErrRestart
	}
	shared, unshared, _, q := blocks.EntryHeader(c.data, p)
	if q < 0 || shared != 0 || unshared < base.TrailerLen || unshared > len(c.data)-q {
		return nil, blocks.ErrEntry
	}
	return c.data[q : q+unshared-base.TrailerLen], nil
}

// scanTo moves forward from the current entry until key is reached.
func (c *Cursor) scanTo(key []byte) bool {
	for c.ks.cmp.Compare(c.User(), key) < 0 {
		if !c.Next() {
			return false
		}
	}
	return true
}
