package sst

import (
	"errors"
	"fmt"

	"kvferry/record"
	"kvferry/store/rocks/blocks"
)

// levelFilterName is the metaindex entry of LevelDB's filter.
const levelFilterName = "filter.leveldb.BuiltinBloomFilter2"

// levelFilter compares LevelDB's filter with the keys of all data blocks. The row reader reports unreadable blocks.
func (c *blockCheck) levelFilter(h blocks.Handle) error {
	var f *blocks.LevelFilter
	b, err := c.r.readBlock(h, levelFilterName, checkBlock)
	if err == nil {
		f, err = blocks.OpenLevelFilter(b)
	}
	if err != nil {
		return c.useless(h, err, err)
	}
	w, err := c.r.Walk(nil, func(blocks.Handle, []byte, error) bool { return true })
	if err != nil {
		return ignoreDamage(err)
	}
	defer w.Close()
	for {
		if ok, err := w.Next(); !ok || err != nil {
			return ignoreDamage(err)
		}
		bl, err := w.Load()
		if err := ignoreDamage(err); err != nil {
			return err
		}
		if missed := f.Misses(w.Handle().Off, &bl); missed != nil {
			c.damaged(h.Off, fmt.Errorf("%s: %w %s of the block at %d", levelFilterName, ErrMissed, record.Quote(missed), w.Handle().Off))
			return nil
		}
	}
}

// ErrMissed means that a filter excludes an existing key: LevelDB's lookups miss its row.
var ErrMissed = errors.New("the filter does not have key")
