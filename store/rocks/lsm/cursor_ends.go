package lsm

import (
	"bytes"
	"fmt"

	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/blocks"
)

// belowSeparator checks that no key of the block that ends here is above its separator.
func (c *Cursor) belowSeparator() bool {
	if !c.have || c.data == nil {
		return true
	}
	sep := c.walk.Separator()
	if c.ks.cmp.Compare(c.User(), sep) > 0 {
		return c.disorderAt("index", sep)
	}
	return true
}

// keepSeparator saves the separator of the block that ends here. Separators of other orders than bytewise may be wrong.
func (c *Cursor) keepSeparator() {
	if c.chained = c.bytewise && c.suffix == 0 && c.data != nil; c.chained {
		c.sep = append(c.sep[:0], c.walk.Separator()...)
	}
}

// behindSeparator checks that the previous block's separator is not above this block's first key; otherwise lookups of
// the keys between them go to the wrong block.
func (c *Cursor) behindSeparator() bool {
	if !c.chained || bytes.Compare(c.sep, c.User()) <= 0 {
		return true
	}
	err := c.T.failBlock(c.handle, blocks.ErrSeparator)
	return c.passes(c.handle, nil, err) || c.stop(base.BlockError(err))
}

// atEnd checks the table's upper bound. whole is true if the table ends here.
func (c *Cursor) atEnd(whole bool) bool {
	if !c.have || c.data == nil {
		return true
	}
	switch o := c.ks.cmp.Compare(c.User(), c.T.Last); {
	case o > 0:
		return c.disorderAt("largest key of the MANIFEST", c.T.Last)
	case o < 0 && whole && c.T.info.Exact:
		return c.otherEnd("largest", c.T.Last)
	}
	return true
}

// aboveSmallest checks a block's first key against the table's lower bound.
func (c *Cursor) aboveSmallest() bool {
	switch o := c.ks.cmp.Compare(c.User(), c.T.First); {
	case o < 0:
		return c.disorderAt("smallest key of the MANIFEST", c.T.First)
	case o > 0 && c.handle.Off == 0 && c.T.info.Exact:
		return c.otherEnd("smallest", c.T.First)
	}
	return true
}

// otherEnd ends the walk because the current key should be a bound of the table, but is not. A salvage reports this,
// unless a part of the table is missing, and continues, because rows were returned already.
func (c *Cursor) otherEnd(what string, bound []byte) bool {
	err := c.T.Fail(record.NoOffset, FieldIdentity,
		fmt.Errorf("the %s key is %s by the MANIFEST, but %s in the table", what, record.Quote(bound), record.Quote(c.User())))
	if !c.salvages() {
		return c.stop(base.BlockError(err))
	}
	if c.T.skips.skippedNone() && c.T.skips.First(WholeTable) {
		c.ks.Env.Report(record.Finding{Kind: record.FindForeignTable, Severity: record.Error, Keyspace: c.ks.name,
			Place: record.Place{File: c.T.Name, Off: record.NoOffset, Level: c.T.Level}, Detail: Reason(err) + "; kvferry reads its rows nevertheless"})
	}
	return true
}

// disorderAt ends the walk because the current key violates a recorded bound.
func (c *Cursor) disorderAt(what string, promised []byte) bool {
	return c.stop(c.T.Fail(int64(c.handle.Off), what,
		&store.OrderError{File: c.T.Path, Off: int64(c.handle.Off), Keyspace: c.ks.name, Comparer: c.ks.cmp.Name,
			Prev: bytes.Clone(c.User()), Next: bytes.Clone(promised)}))
}
