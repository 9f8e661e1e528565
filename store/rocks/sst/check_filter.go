package sst

import (
	"errors"
	"fmt"

	"kvferry/record"
	"kvferry/store/rocks/blocks"
)

// Metaindex entries of filters that are compared with the keys. What a filter of another name holds is not known.
const (
	levelFilterName = "filter.leveldb.BuiltinBloomFilter2"
	rocksFilterName = "rocksdb.BuiltinBloomFilter" // behind "filter." and the like
)

// ErrMissed means that a filter excludes an existing key: the engine's lookups miss its row.
var ErrMissed = errors.New("the filter does not have key")

// filter checks a block, and compares it with the keys if it is a filter.
func (c *blockCheck) filter(name string, h blocks.Handle) error {
	block := name == levelFilterName && c.r.opts.LevelDB || name == "filter."+rocksFilterName && !c.r.opts.LevelDB
	if !block && name != "fullfilter."+rocksFilterName {
		return c.block(name, h)
	}
	b, err := c.r.readBlock(h, name, checkBlock)
	var f blocks.Filter
	if err == nil && block {
		f, err = blocks.OpenBlockFilters(b, c.r.opts.LevelDB)
	} else if err == nil {
		f = blocks.OpenFullFilter(b)
	}
	if err != nil || f == nil {
		return c.useless(h, err, err)
	}
	return c.keys(name, f, func() blocks.Handle { return h })
}

// fullyLooked is the size of data blocks whose keys are looked up in a filter of RocksDB. Looking up takes longer than
// reading the rows: of a larger table, only blocks spread evenly over it are looked at.
const fullyLooked = 128 << 10

// Whole reports whether CheckBlocks looks up all keys of a table in its filter.
func (r *Reader) Whole() bool { return r.opts.LevelDB || r.file.Size <= fullyLooked }

// keys looks up the keys of data blocks in a filter; at returns the block of the filter that was asked last. The row
// reader reports unreadable data blocks.
func (c *blockCheck) keys(name string, f blocks.Filter, at func() blocks.Handle) error {
	if c.r.info.PrefixFilter {
		return nil
	}
	w, err := c.r.Walk(nil, func(blocks.Handle, []byte, error) bool { return true })
	if err != nil {
		return ignoreDamage(err)
	}
	defer w.Close()
	step := int64(1)
	if !c.r.Whole() {
		step += c.r.file.Size / fullyLooked
	}
	for n := int64(0); ; n++ {
		if ok, err := w.Next(); !ok || err != nil {
			return ignoreDamage(err)
		}
		if n%step != 0 {
			continue
		}
		b, err := c.data(w, step)
		if err := ignoreDamage(err); err != nil {
			return err
		}
		if missed := b.Denied(f, w.Handle().Off); missed != nil {
			c.damaged(at().Off, fmt.Errorf("%s: %w %s of the block at %d", name, ErrMissed, record.Quote(missed), w.Handle().Off))
			return nil
		}
	}
}

// data returns the current data block of a walk. The walk itself reads far ahead.
func (c *blockCheck) data(w blocks.Walk, step int64) (blocks.Block, error) {
	if step == 1 {
		return w.Load()
	}
	b, err := c.r.dataBlock(w.Handle())
	if err != nil {
		return blocks.Block{}, err
	}
	return blocks.Parse(b)
}

// partitioned checks the index of a partitioned filter and the filters it points to.
func (c *blockCheck) partitioned(name string, h blocks.Handle) error {
	top, err := c.r.readBlock(h, name, checkBlock)
	if err != nil {
		return c.useless(h, err, err)
	}
	props := c.r.info.Properties
	props.IndexType = indexBinary // these entries have no first keys
	var x indexBlock
	p, whole, ok := blocks.Partitions{Compare: c.r.opts.Comparer.Compare}, true, false
	for err = x.open(top, &props); err == nil; {
		if ok, err = x.next(); ok {
			err = x.handle.Check(c.r.file.Size)
		}
		if !ok || err != nil {
			break
		}
		b, err := c.r.readBlock(x.handle, name, checkBlock)
		if err := c.useless(x.handle, err, err); err != nil {
			return err
		}
		whole = whole && err == nil
		p.Add(x.sep(), x.handle, b)
	}
	if err != nil || !whole || p.Empty() || name != partitionedFilter+rocksFilterName {
		return c.useless(h, fmt.Errorf("%s: %w", name, err), err)
	}
	return c.keys(name, &p, p.Handle)
}
