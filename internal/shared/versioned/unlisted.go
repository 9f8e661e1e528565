package versioned

import (
	"bytes"
	"context"
	"io"

	"kvferry/format"
	"kvferry/internal/shared/dataset"
	"kvferry/internal/shared/keylanes"
	"kvferry/record"
	"kvferry/store"
)

// next judges the next meta row, or starts a record from data rows before it that have no meta row.
func (r *Reader) next() (alive bool, err error) {
	if err := r.ahead(); err != nil {
		return false, err
	}
	if r.store.Layout.Unlisted {
		if found, err := r.unlisted(); found || err != nil {
			return found, err
		}
	}
	row := r.listed
	if row == nil {
		return false, r.end()
	}
	r.listed = nil
	return r.decodeMeta(row.Key, row.Value)
}

// ahead loads the next meta row.
func (r *Reader) ahead() error {
	for r.listed == nil && !r.metasEnd {
		if r.listed = r.metas.Pop(); r.listed != nil {
			return nil
		}
		err := r.ctx.Err()
		if err == nil {
			err = r.metas.Fill()
		}
		r.metasEnd = err == io.EOF
		if err != nil && err != io.EOF {
			return err
		}
	}
	return nil
}

// unlisted begins a record from data rows before the next meta row, if any exist.
func (r *Reader) unlisted() (bool, error) {
	m := &r.m
	var first []byte
	found := false
	for _, set := range r.sets {
		if set == nil {
			continue
		}
		key, ok, err := set.(*keylanes.Set).First()
		if err != nil {
			return false, err
		}
		if ok && (!found || bytes.Compare(key, first) < 0) {
			first, found = key, true
		}
	}
	if !found {
		return false, nil
	}
	if r.listed != nil {
		// A damaged key is left to decodeMeta.
		if err := r.store.Layout.DecodeMetaKey(m, r.listed.Key); err != nil || bytes.Compare(first, m.Key) >= 0 {
			return false, nil
		}
	}
	r.loose = record.KeepKey(r.loose, first)
	*m = Meta{Key: r.loose, Count: -1, Arena: m.Arena}
	r.unplaced = true
	r.h.Type = r.store.Layout.Codecs[0].Type
	r.use(r.store.codecs[r.h.Type])
	if err := r.seek(m.Key); err != nil {
		return false, err
	}
	out, err := r.refused()
	return !out, err
}

// looseRecords yields the deleted rows of names without live rows, in a format that deletes rows one by one: they are
// all rows ever deleted and still on disk.
func (s *Store) looseRecords(ctx context.Context, c *Codec, span format.Span, e *format.Env, memory int64,
	tell func(key []byte, t record.Type, what string)) (record.Reader, error) {

	l, own := *s.Layout, *c
	l.Codecs, l.Rest = []*Codec{&own}, nil
	if own.Loosen != nil {
		own.Loosen(&own)
	}
	d := dataset.Dead{Type: record.String, Metas: s.Metas.Keyspace,
		Open: func(rows store.Keyspace, e *format.Env) (record.Reader, error) {
			return NewStore(&l, s.DB, s.Dir, func(string) store.Keyspace { return rows }, nil).Records(ctx, record.Of(c.Type),
				span, e, memory)
		}}
	r, err := d.Records(ctx, e, tell)
	if err != nil {
		return nil, err
	}
	return &dataset.Gone{Reader: r, Alive: s.hasRows, Tell: func(key []byte, t record.Type) { tell(key, t, s.Layout.DeadNote) }},
		nil
}

// hasRows reports whether a name has data rows. Deleted strings have no live row.
func (s *Store) hasRows(key []byte) (bool, error) {
	if len(s.data) == 0 {
		return false, nil
	}
	lo, hi := s.data[0].Range(key)
	return dataset.HasRows(s.data[0].Keyspace.Keyspace, lo, hi)
}
