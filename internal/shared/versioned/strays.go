package versioned

import (
	"errors"
	"fmt"

	"kvferry/internal/shared/dataset"
	"kvferry/internal/shared/keylanes"
	"kvferry/record"
)

// stray returns the function that receives data rows without a record.
func (r *Reader) stray(i int) keylanes.Stray {
	return func(class record.Class, key, value []byte, place record.Place) {
		if class == record.Malformed && r.ownRow(i, key, value, place) {
			return
		}
		user, ok := r.owner(i, key, value, place)
		switch {
		case !ok:
		case class == record.Malformed: // in an invalid lane
			r.malformed(i, FindBadKeyLength, nil, key, place,
				fmt.Errorf("%s is not that of the rows around it", r.store.Layout.LenField))
		default:
			r.orphan(i, &r.lost[i], user, place)
		}
	}
}

// owner returns the user key of a row of any type that belongs to no record. A row without one is counted and reported.
func (r *Reader) owner(i int, key, value []byte, place record.Place) (user []byte, ok bool) {
	of := r.store.data[i].User
	if of == nil {
		return r.check(i, key, value, place)
	}
	user, err := of(key)
	if err != nil {
		r.malformed(i, r.keyKind(err), user, key, place, err)
	}
	return user, err == nil
}

// ownRow counts a row of the engine's own, as housekeeping or malformed.
func (r *Reader) ownRow(i int, key, value []byte, place record.Place) bool {
	if r.store.Layout.Own == nil {
		return false
	}
	own, err := r.store.Layout.Own(key, value)
	switch {
	case err != nil:
		r.malformed(i, dataset.ValueKind(err), nil, key, place, err)
	case own:
		r.tallies[i].Rows[record.Housekeeping]++
	}
	return own || err != nil
}

// check validates a data row. A malformed row is counted and reported. In a shared keyspace the current type's Check
// decides, or the first type's.
func (r *Reader) check(i int, raw, value []byte, place record.Place) (user []byte, ok bool) {
	sp := r.store.data[i]
	c := r.cur
	if c == nil || !sp.types.Has(c.Type) {
		c = r.store.codecs[sp.types.Types()[0]]
	}
	user, keyErr, valueErr := c.Check(sp.index, raw, value)
	switch {
	case keyErr != nil:
		r.malformed(i, r.keyKind(keyErr), user, raw, place, keyErr)
	case valueErr != nil:
		r.malformed(i, dataset.ValueKind(valueErr), user, raw, place, valueErr)
	}
	return user, keyErr == nil && valueErr == nil
}

// spoils reports whether err makes the record of the meta row unreadable. If so, it counts the row as malformed.
func (r *Reader) spoils(err error) bool {
	var unreadable *dataset.KindError
	if !errors.As(err, &unreadable) {
		return false
	}
	r.begun, r.drained = nil, true
	r.Malformed(unreadable.Kind, r.m.Key, r.m.Key, r.metas.Place(), unreadable)
	r.Spoil()
	return true
}
