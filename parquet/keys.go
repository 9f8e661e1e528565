package parquet

import (
	"bytes"

	"kvferry/internal/shared/keyslot"
	"kvferry/parquet/columns"
	"kvferry/record"
)

// Estimator estimates the memory in Redis of one record after the other: Begin, Elements for each batch, then
// Bytes.
type Estimator interface {
	Begin(h *record.Header)
	Elements(elems []record.Element)
	Bytes() int64
}

// The columns after kind in a dataset with a row for each record.
const (
	colElements = colKind + 1 + iota
	colBytes
	colRedis
	colSlot
	colPrefix // of the first level

	prefixLevels = 3
	// maxPrefix is the length of the longest prefix that is shown: prefixes are in a dictionary.
	maxPrefix = 256
	delimiter = ':'
)

// auditColumns returns the columns of a file with a row for each record.
func auditColumns(c []columns.Column) []columns.Column {
	data := c[colKey].Kind
	c = c[:colElements:colElements]
	for _, name := range []string{"elements", "bytes", "redis_bytes", "slot"} {
		c = append(c, columns.Column{Name: name, Kind: columns.Integer})
	}
	for _, name := range []string{"prefix1", "prefix2", "prefix3"} {
		c = append(c, columns.Column{Name: name, Kind: data, Coding: columns.Repeats, Optional: true})
	}
	return c
}

// keysPart writes a row for each record of a part.
type keysPart struct {
	*part
	memory          Estimator
	elements, bytes int64
}

// Begin starts a record.
func (p *keysPart) Begin(h *record.Header) error {
	p.elements, p.bytes = 0, int64(len(h.Key))
	p.memory.Begin(h)
	return p.part.Begin(h)
}

// Write writes the records of a batch.
func (p *keysPart) Write(b *record.Batch) error { return p.feed.Feed(b, p, nil) }

// Elements counts elements.
func (p *keysPart) Elements(elems []record.Element) error {
	p.memory.Elements(elems)
	n, size := record.Measure(p.h.Type, elems)
	p.elements, p.bytes = p.elements+n, p.bytes+size
	return nil
}

// End writes the row. A record without elements is not written.
func (p *keysPart) End() error {
	if p.elements == 0 && p.h.Type != record.Stream {
		return nil
	}
	if err := p.begin(); err != nil {
		return err
	}
	r := &p.current.rows
	r.common(1, r.kind)
	r.w.Int(colElements, p.elements, 1)
	r.w.Int(colBytes, p.bytes, 1)
	r.w.Int(colRedis, p.memory.Bytes(), 1)
	r.w.Int(colSlot, int64(keyslot.Of(p.h.Key)), 1)
	r.prefixes()
	if err := p.current.wrote(1); err != nil {
		return err
	}
	return p.ended()
}

// prefixes writes the prefixes of the key.
func (r *rows) prefixes() {
	end := 0
	for i := range prefixLevels {
		if n := bytes.IndexByte(r.h.Key[end:], delimiter); n >= 0 && end+n < maxPrefix {
			end += n + 1
			r.w.Bytes(colPrefix+i, r.h.Key[:end], 1)
			continue
		}
		for ; i < prefixLevels; i++ {
			r.w.Null(colPrefix+i, 1)
		}
		return
	}
}
