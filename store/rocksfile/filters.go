package rocksfile

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/blocks"
)

// Beside its rows a table has blocks that the metaindex names. Reading rows takes those that change what rows there
// are: properties, compression dictionary and range tombstones. The others only make lookups fast: filters, which say
// what keys a table cannot have, and the hash of an index.
//
//	filter.NAME             the filters of all data blocks, in one block
//	fullfilter.NAME         one filter for the table
//	partitionedfilter.NAME  a block as of an index, whose values are the handles of filters
const partitionedFilter = "partitionedfilter."

// isFilter reports whether the metaindex names a filter so.
func isFilter(name string) bool {
	kind, _, _ := strings.Cut(name, ".")
	return kind == "filter" || kind == "fullfilter" || kind == "partitionedfilter"
}

var _ store.BlockChecker = (*database)(nil)

// CheckBlocks verifies the checksums of the blocks that reading rows does not touch, or does without. What is damaged
// there costs no rows: RocksDB and LevelDB look up keys without a filter that they cannot read.
func (db *database) CheckBlocks(ctx context.Context) error {
	var c blockCheck
	for _, ks := range db.spaces {
		for _, t := range ks.tables {
			if err := ctx.Err(); err != nil {
				return err
			}
			c.ks, c.t = ks, t
			c.table()
		}
	}
	return nil
}

// blockCheck verifies blocks of a table.
type blockCheck struct {
	ks  *keyspace
	t   *table
	buf []byte
}

// table checks the blocks of one table. When what stands around its rows cannot be read, whoever reads them says so.
func (c *blockCheck) table() {
	if _, err := c.t.load(); err != nil {
		return
	}
	var corrupt *record.CorruptError
	if errors.As(c.t.metaErr, &corrupt) {
		c.damaged(uint64(corrupt.Off), fmt.Errorf("%s: %w", corrupt.Field, corrupt.Err))
	}
	c.t.eachMeta(func(name string, value []byte) error {
		if isRowMeta(name) {
			return nil
		}
		f := &base.Fields{Buf: value}
		h := blocks.ReadHandle(f, name)
		switch {
		case f.Err != nil || f.Left() > 0 || h.Check(c.t.file.Size) != nil:
			if isFilter(name) { // else it is a value of a kind that is not known
				c.damaged(c.t.info.metaindex.Off, fmt.Errorf("%s: the metaindex names no block of the file", name))
			}
		case strings.HasPrefix(name, partitionedFilter):
			c.partitions(name, h)
		default:
			c.block(name, h)
		}
		return nil
	})
}

// block checks one block.
func (c *blockCheck) block(name string, h blocks.Handle) {
	n := int(h.Size) + blocks.TrailerLen
	if cap(c.buf) < n {
		c.buf = make([]byte, n)
	}
	b := c.buf[:n]
	err := c.t.file.ReadFull(b, int64(h.Off))
	if err == nil {
		err = checkBlock(c.t.info.checksum, b[:h.Size+1], binary.LittleEndian.Uint32(b[h.Size+1:]))
	}
	if err != nil {
		c.damaged(h.Off, fmt.Errorf("%s: %w", name, err))
	}
}

// partitions checks the index of a partitioned filter and the filters that it leads to.
func (c *blockCheck) partitions(name string, h blocks.Handle) {
	top, err := c.t.readBlock(h, name, checkBlock)
	if err != nil {
		c.damaged(h.Off, err)
		return
	}
	p := c.t.info.properties
	p.indexType = indexBinary // these entries have no first keys
	var x indexBlock
	err = x.open(top, &p)
	for ok := err == nil; ok; {
		if ok, err = x.next(); ok {
			if err = x.handle.Check(c.t.file.Size); err != nil {
				break
			}
			c.block(name, x.handle)
		}
	}
	if err != nil {
		c.damaged(h.Off, fmt.Errorf("%s: %w", name, err))
	}
}

// damaged reports a block that is of no use.
func (c *blockCheck) damaged(off uint64, err error) {
	c.ks.st.report(record.Finding{Kind: record.FindDamagedBlock, Severity: record.Warning, Keyspace: c.ks.name, Place: c.t.place(off),
		Detail: err.Error() + "; it holds no rows, and reading them does without it"})
}
