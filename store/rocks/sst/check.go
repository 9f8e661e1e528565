package sst

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"kvferry/internal/sys/disk"
	"kvferry/record"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/blocks"
)

// A table also has blocks that the metaindex names. Reading rows needs those that change the set of rows: properties,
// compression dictionary and range tombstones. The others only speed up lookups: filters, which exclude keys, and the
// hash of an index.
//
//	filter.NAME             the filters of all data blocks, in one block
//	fullfilter.NAME         one filter for the table
//	partitionedfilter.NAME  a block as of an index, whose values are the handles of filters
const partitionedFilter = "partitionedfilter."

// isFilter reports whether name is the metaindex entry of a filter.
func isFilter(name string) bool {
	kind, _, _ := strings.Cut(name, ".")
	return kind == "filter" || kind == "fullfilter" || kind == "partitionedfilter"
}

// CheckBlocks verifies the checksums of the blocks that reading rows does not need, and calls damaged for each unusable
// one. The row reader reports damaged metadata. CheckBlocks returns only errors of access. room is the read buffer; the
// possibly grown buffer is returned for the next table.
func (r *Reader) CheckBlocks(room []byte, damaged func(off uint64, err error)) ([]byte, error) {
	if _, err := r.Open(); err != nil {
		return room, nil
	}
	c := blockCheck{r: r, buf: room, damaged: damaged}
	err := c.table()
	if disk.IsAccess(err) {
		return c.buf, err
	}
	return c.buf, nil
}

// blockCheck verifies blocks of a table.
type blockCheck struct {
	r       *Reader
	buf     []byte
	damaged func(off uint64, err error)
}

// table checks every entry of the metaindex.
func (c *blockCheck) table() error {
	var corrupt *record.CorruptError
	if errors.As(c.r.metaErr, &corrupt) {
		c.damaged(uint64(corrupt.Off), fmt.Errorf("%s: %w", corrupt.Field, corrupt.Err))
	}
	return c.r.eachMeta(func(name string, value []byte) error {
		if isRowMeta(name) {
			return nil
		}
		f := &base.Fields{Buf: value}
		h := blocks.ReadHandle(f, name)
		switch {
		case f.Err != nil || f.Left() > 0 || h.Check(c.r.file.Size) != nil:
			if isFilter(name) { // other entries may have values of unknown kinds
				c.damaged(c.r.info.Metaindex.Off, fmt.Errorf("%s: the metaindex names no block of the file", name))
			}
		case strings.HasPrefix(name, partitionedFilter):
			return c.partitioned(name, h)
		default:
			return c.filter(name, h)
		}
		return nil
	})
}

// block checks one block. It returns only errors of access.
func (c *blockCheck) block(name string, h blocks.Handle) error {
	n := int(h.Size) + blocks.TrailerLen
	c.buf = slices.Grow(c.buf[:0], n)
	b := c.buf[:n]
	err := c.r.file.ReadFull(b, int64(h.Off))
	if err == nil {
		err = c.r.verify(b, h, checkBlock)
	}
	return c.useless(h, fmt.Errorf("%s: %w", name, err), err)
}

// useless calls damaged if err is not nil; it returns err if that is an error of access.
func (c *blockCheck) useless(h blocks.Handle, placed, err error) error {
	if disk.IsAccess(err) {
		return err
	}
	if err != nil {
		c.damaged(h.Off, placed)
	}
	return nil
}
