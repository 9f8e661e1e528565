package nemo

import (
	"errors"
	"fmt"
	"io"

	"kvferry/internal/dataset"
	"kvferry/internal/findings"
	"kvferry/internal/lane"
	"kvferry/record"
	"kvferry/store"
)

// collection walks the meta rows of a store and keeps its lanes of data rows in step with them.
type collection struct {
	*pass
	h       record.Header
	meta    ListMeta // of the current record; only lists have more than Count and the suffix
	metas   store.Iterator
	rows    *lane.Set
	index   *lane.Set // nil but for zsets whose index is wanted
	lost    [2]orphans
	drained bool // the current record's rows were all read
	ended   bool
}

func openCollection(p *pass) (*collection, error) {
	c := &collection{pass: p, drained: true, h: record.Header{DB: p.db, Type: p.ts.family.typ}}
	var err error
	from, to := p.metaRange()
	if c.metas, err = p.ts.keyspace.Rows(from, to); err != nil {
		return nil, err
	}
	f := p.ts.family
	c.rows, err = p.ts.data.Open(p.span.Lo, p.span.Hi, p.lookAhead(), p.stray(&c.lost[0], f.data))
	if err == nil && f.index != 0 && !p.env.RecordsOnly {
		c.index, err = p.ts.index.Open(p.span.Lo, p.span.Hi, p.lookAhead(), p.stray(&c.lost[1], f.index))
	}
	if err != nil {
		return nil, errors.Join(err, c.release())
	}
	return c, nil
}

// metaRange returns the raw range of the meta rows of the span.
func (p *pass) metaRange() (from, to []byte) {
	kind := p.ts.family.meta
	from, to = []byte{kind}, []byte{kind + 1}
	if p.span.Lo != nil {
		from = AppendMetaKey(nil, kind, p.span.Lo)
	}
	if p.span.Hi != nil {
		to = AppendMetaKey(nil, kind, p.span.Hi)
	}
	return from, to
}

// next moves to the next meta row that makes a record; the rows of others are classified on the way.
func (c *collection) next() error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	for {
		raw, value, err := c.metas.Next()
		if err == io.EOF {
			return c.end()
		}
		if err != nil {
			return err
		}
		key, err := DecodeMetaKey(c.ts.family.meta, raw)
		if err != nil {
			c.malformed(keyKind(err), raw, c.metas.Place(), err)
			continue
		}
		if err := c.seek(key); err != nil {
			return err
		}
		if err := c.decodeMeta(value); err != nil {
			c.malformed(findings.ValueKind(err), raw, c.metas.Place(), err)
			if _, err := c.buryAll(0, record.Orphan); err != nil {
				return err
			}
			continue
		}
		if c.meta.Count > 0 {
			c.start(key)
			return nil
		}
		if err := c.deleted(key); err != nil {
			return err
		}
	}
}

func (c *collection) decodeMeta(value []byte) (err error) {
	if c.ts.family.typ == record.List {
		c.meta, err = DecodeListMeta(value)
		return err
	}
	m, err := DecodeMeta(value)
	c.meta = ListMeta{Count: m.Count, Suffix: m.Suffix}
	return err
}

// seek moves the lanes to the rows of a key.
func (c *collection) seek(key []byte) error {
	if err := c.rows.Seek(key); err != nil || c.index == nil {
		return err
	}
	return c.index.Seek(key)
}

func (c *collection) start(key []byte) {
	c.begin(key)
	c.place = c.metas.Place()
	c.drained = false
	c.h.Key, c.h.Len = key, c.meta.Count
	c.h.ExpireMS = int64(c.meta.Expiry) * 1000
	c.h.Expired = c.expired(c.meta.Expiry)
	c.gone = c.h.Expired
}

// deleted classifies a meta row without a count and what hangs on it.
func (c *collection) deleted(key []byte) error {
	c.tally.Rows[record.Deleted]++
	n, err := c.buryAll(c.meta.Version, record.Deleted)
	if err != nil {
		return err
	}
	f := record.Finding{Key: key, Place: c.metas.Place()}
	switch {
	case c.meta.Count < 0:
		f.Kind, f.Severity = FindCountMismatch, record.Error
		f.Detail = fmt.Sprintf("count %d, which makes the engine hide %d rows", c.meta.Count, n)
	case n > 0:
		f.Kind, f.Severity = FindDeletedRows, record.Warning
		f.Detail = fmt.Sprintf("count 0, yet %d rows of its version are there", n)
	default:
		return nil
	}
	c.report(f)
	return nil
}

func (c *collection) buryAll(v Version, class record.Class) (int64, error) {
	n, err := c.bury(c.rows, c.ts.family.data, v, class)
	if err != nil || c.index == nil {
		return n, err
	}
	m, err := c.bury(c.index, c.ts.family.index, v, class)
	return n + m, err
}

// end classifies what is left after the last meta row, once.
func (c *collection) end() error {
	if c.ended {
		return io.EOF
	}
	c.ended = true
	if err := c.rows.Finish(); err != nil {
		return err
	}
	if c.index != nil {
		if err := c.index.Finish(); err != nil {
			return err
		}
	}
	for i := range c.lost {
		c.flush(&c.lost[i])
	}
	if c.span.Lo == nil {
		if err := c.unknown(); err != nil {
			return err
		}
	}
	return io.EOF
}

// checkCount compares the meta row with the rows that are alive.
func (c *collection) checkCount(rows int64) {
	if rows != c.meta.Count {
		c.damage(FindCountMismatch, c.place, "count is %d, rows there: %d", c.meta.Count, rows)
	}
}

// release takes the counts of all iterators and closes them.
func (c *collection) release() error {
	err := dataset.Drop(c.metas, &c.tally)
	for _, s := range []*lane.Set{c.rows, c.index} {
		if s != nil {
			s.Tally(&c.tally)
			err = errors.Join(err, s.Close())
		}
	}
	return err
}

// Close publishes the counts.
func (c *collection) Close() error {
	err := c.release()
	c.Publish()
	return err
}
