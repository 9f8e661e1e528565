package versioned

import (
	"bytes"

	"kvferry/internal/sys/bufpool"
	"kvferry/record"
	"kvferry/store"
)

// outcome is what the rows of a key in a store tell.
type outcome uint8

const (
	unclear   outcome = iota // only a pass can tell
	noKey                    // there is no meta row
	noElement                // the record has no such element
	found
)

// Get implements format.Getter. The stores are in dump order: the first that has the key decides.
func (s *Source) Get(l *record.Lookup) bool {
	db := s.Database(l.DB)
	if db == nil {
		return false
	}
	m, _ := l.Room.(*Meta)
	if m == nil {
		m = new(Meta)
		l.Room = m
	}
	var home *Store
	if s.Home != nil {
		if home = s.Home(l.DB, l.Key); home == nil {
			return false
		}
	}
	l.Exists, l.Found = false, false
	for _, st := range db.Stores {
		if home != nil && st != home {
			continue
		}
		if got := st.get(l, m, home == nil); got != noKey {
			l.Exists, l.Found = true, got == found
			return got != unclear
		}
	}
	return home == nil || len(db.Stores) == 1
}

// get reads the meta row of a key and the row of the element. all is true if the records of all stores count, so a Judge could
// reject one.
func (s *Store) get(l *record.Lookup, m *Meta, all bool) outcome {
	metas, ok := s.Metas.Keyspace.(store.Getter)
	layout := s.Layout
	if !ok || layout.Unlisted || s.wrap != nil || s.judge != nil && all ||
		layout.OwnRecord != nil && layout.OwnRecord(l.Key) {

		return unclear
	}
	l.Raw = layout.AppendMetaKey(l.Raw[:0], l.Key)
	value, there, ok := metas.Get(l.Raw)
	if ok && !there && layout.AppendMetaPrefix == nil { // otherwise its key may have another form
		return noKey
	}
	if !ok || !there {
		return unclear
	}
	*m = Meta{Arena: bufpool.Reset(m.Arena)}
	if layout.DecodeMetaKey(m, l.Raw) != nil || m.Tail > 0 || m.Ambiguous || !bytes.Equal(m.Key, l.Key) {
		return unclear
	}
	if layout.Own != nil {
		if own, err := layout.Own(l.Raw, value); own || err != nil {
			return unclear
		}
	}
	t, err := layout.Codecs[0].Type, error(nil)
	if layout.TypeOf != nil {
		t, err = s.typeOf(value)
	}
	if err != nil || t != l.Type {
		return unclear
	}
	c := s.codecs[t]
	m.Key = l.Key
	if c.DecodeMeta(m, value) != nil || m.Gone || m.BadExpiry != 0 || m.ExpireMS != 0 && m.ExpireMS < l.Now {
		return unclear
	}
	if t == record.String {
		l.Elem = record.Element{Value: m.Value}
		if c.Elements != nil && !m.Bare {
			return unclear
		}
		return found
	}
	return s.getElement(l, m, c)
}

// getElement reads the row of an element.
func (s *Store) getElement(l *record.Lookup, m *Meta, c *typeRows) outcome {
	if c.Elements != nil || c.data < 0 || c.AppendRow == nil || c.Start != nil || c.Taken != nil || c.Lone || m.Bare ||
		!record.Of(record.Hash, record.Set, record.ZSet).Has(l.Type) {
		return unclear
	}
	sp := s.data[c.data]
	rows, ok := sp.Keyspace.Keyspace.(store.Getter)
	if !ok || !sp.holds(l.Key) {
		return unclear
	}
	skip := len(sp.prefix(l.Raw[:0], l.Key))
	raw := c.AppendRow(l.Raw[:0], l.Key, m.Version)
	if c.AppendName == nil {
		raw = append(raw, l.Name...)
	} else {
		var err error
		if raw, err = c.AppendName(raw, m, l.Name); err != nil {
			return unclear
		}
	}
	l.Raw = append(raw, c.Tail...)
	value, there, ok := rows.Get(l.Raw)
	if ok && !there && len(c.Tail) == 0 { // otherwise a row of the element may be damaged
		return noElement
	}
	if !ok || !there {
		return unclear
	}
	l.Elem = record.Element{}
	version, ok := c.Element(m, &l.Elem, l.Raw[skip:], value)
	if !ok || version != m.Version || !bytes.Equal(l.Elem.Name, l.Name) || l.Elem.Score != l.Elem.Score ||
		l.Elem.ExpireMS != 0 && l.Elem.ExpireMS < l.Now {
		return unclear
	}
	return found
}
