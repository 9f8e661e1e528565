package lsm

import "kvferry/store/rocks/base"

// note counts the current entry, which starts at pos, and moves past it.
func (c *Cursor) note(key, value, end int) {
	n := &c.count
	if c.pos == n.Restart {
		n.AtRestart(&c.block)
	}
	n.Entries++
	n.KeyBytes += int64(key)
	n.ValueBytes += int64(value)
	if byte(c.Tr) != base.KindPut {
		n.Kind(byte(c.Tr))
	}
	c.pos = end
}

// leave reports the block's counts before the cursor leaves the block or jumps within it.
func (c *Cursor) leave() (err error) {
	if !c.counting || c.data == nil {
		return nil
	}
	c.counting = false
	if c.pos < len(c.data) || len(c.data) == 0 {
		err = c.walk.Count(nil, nil)
	} else {
		err = c.walk.Count(&c.count.Counts, c.count.End(&c.block))
	}
	if err != nil {
		err = base.BlockError(c.T.failBlock(c.handle, err))
	}
	return err
}
