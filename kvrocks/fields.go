package kvrocks

import (
	"encoding/binary"
	"fmt"

	"kvferry/internal/shared/versioned"
	"kvferry/kvrocks/codec"
	"kvferry/record"
)

// decodeHash decodes the value of a hash's metadata row.
func decodeHash(m *versioned.Meta, value []byte) error {
	m.Fields = versioned.FieldSums{}
	return decodeMeta(m, value)
}

// field reads a row of a hash. If fields may expire, its value starts with the expiry.
func field(m *versioned.Meta, e *record.Element, rest, value []byte) (v int64, ok bool) {
	if len(m.Value) == 0 {
		return named(m, e, rest, value)
	}
	expiry, value, err := codec.DecodeField(value)
	v, ok = named(m, e, rest, value)
	if err != nil {
		return v, false
	}
	e.ExpireMS = int64(expiry)
	if ok && v == m.Version {
		m.Fields.Add(e.ExpireMS)
	}
	return v, ok
}

// wrongField returns the error of a row that field rejects.
func wrongField(m *versioned.Meta, value []byte) error {
	if len(m.Value) == 0 {
		return nil
	}
	_, _, err := codec.DecodeField(value)
	return err
}

// countFields compares a hash with its metadata after all its rows were read. Fewer expiring fields than counted are
// fine: compaction drops expired fields.
func countFields(r *versioned.Reader, rows int64) {
	m := r.Meta()
	s, err := codec.DecodeHashState(m.Value)
	if err != nil { // fields of this hash do not expire
		r.CheckCount(rows)
		return
	}
	f := &m.Fields
	if f.Persist != int64(s.Persist) || rows > m.Count {
		r.DamageAt(nil, FindCountMismatch, "count is %s, %s of them never expire; rows found: %s, %s of them never expire",
			record.Number(m.Count), record.Number(s.Persist), record.Number(rows), record.Number(f.Persist))
	}
	none := m.Count == int64(s.Persist) && (s.Lower != 0 || s.Upper != 0)
	if !r.Header().Expired && (none || f.Expiring > 0 && (f.Lower < int64(s.Lower) || f.Upper > int64(s.Upper))) {
		r.Remark(FindFieldBounds, record.Warning, fmt.Sprintf("%s from %d to %d, but from %d to %d in the metadata",
			record.Count(f.Expiring, "field")+" expiring", f.Lower, f.Upper, s.Lower, s.Upper))
	}
}

// hashWriter writes hashes, in the form with field expiries if any field expires. So it buffers all fields first.
type hashWriter struct {
	w    *versioned.TypeWriter
	sums versioned.FieldSums
}

// Begin starts a hash.
func (x *hashWriter) Begin() { x.sums, x.w.Meta().Value = versioned.FieldSums{}, nil }

// Write buffers fields.
func (x *hashWriter) Write(elems []record.Element) error {
	for i := range elems {
		e := &elems[i]
		x.sums.Add(e.ExpireMS)
		room, err := x.w.SortRoom(0, e.Name, codec.FieldExpiryLen+len(e.Value))
		if err != nil {
			return err
		}
		binary.BigEndian.PutUint64(room, uint64(e.ExpireMS))
		copy(room[codec.FieldExpiryLen:], e.Value)
	}
	return nil
}

// End writes the rows.
func (x *hashWriter) End() error {
	s, skip := &x.sums, codec.FieldExpiryLen
	if s.Expiring > 0 {
		skip = 0
		x.w.Meta().Value = codec.AppendHashState(nil,
			codec.HashState{Persist: uint64(s.Persist), Lower: codec.UnixMillis(s.Lower), Upper: codec.UnixMillis(s.Upper)})
	}
	return x.w.Sorted(func(_ uint64, name, value []byte) error { return x.w.Put(name, value[skip:]) })
}
