package versioned

import (
	"bytes"
	"io"

	"kvferry/internal/shared/keylanes"
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
	return r.judge(row.Key, row.Value)
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
		if r.metasEnd = err == io.EOF; err != nil && err != io.EOF {
			return err
		}
	}
	return nil
}

// unlisted begins a record from data rows before the next meta row, if any exist.
func (r *Reader) unlisted() (bool, error) {
	m := &r.m
	var first []byte
	for _, set := range r.sets {
		if set == nil {
			continue
		}
		key, ok, err := set.(*keylanes.Set).First()
		if err != nil {
			return false, err
		}
		if ok && (first == nil || bytes.Compare(key, first) < 0) {
			first = key
		}
	}
	if first == nil {
		return false, nil
	}
	if r.listed != nil {
		// A damaged key is left to judge.
		if err := r.store.Layout.DecodeMetaKey(m, r.listed.Key); err != nil || bytes.Compare(first, m.Key) >= 0 {
			return false, nil
		}
	}
	r.loose = append(r.loose[:0], first...)
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
