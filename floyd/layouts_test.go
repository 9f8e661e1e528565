package floyd

import (
	"bytes"
	"slices"
	"testing"

	"kvferry/internal/shared/versioned"
	"kvferry/internal/testkit/formattest"
	"kvferry/record"
)

// codecOf returns the codec of a type.
func codecOf(typ record.Type) *versioned.Codec {
	i := slices.IndexFunc(layout.Codecs, func(c *versioned.Codec) bool { return c.Type == typ })
	return layout.Codecs[i]
}

// TestRowsAreTakenWhole changes, removes and adds bytes of element rows: exactly the rows that decode as
// elements are taken as elements.
func TestRowsAreTakenWhole(t *testing.T) {
	// reserve and ctime
	const suffix = "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
	const score = "\x00\x00\x00\x00\x00\x00\xf0\x3f"
	for _, row := range []struct {
		typ         record.Type
		index       bool
		name, value string
	}{
		{record.Hash, false, "f", "value" + suffix}, {record.Hash, false, "", suffix}, {record.List, false, "\x00\x00\x00\x00\x00\x00\x00\x80", "v" + suffix},
		{record.Set, false, "m", suffix}, {record.Set, false, "", suffix}, {record.ZSet, false, "m", score + suffix}, {record.ZSet, true, score, suffix},
		{record.ZSet, true, score + "m", suffix}, {record.Stream, false, "\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x02", "\x01\x00\x00\x00f\x00\x00\x00\x00"},
	} {
		c := codecOf(row.typ)
		rows := c.DataRows
		if row.index {
			rows = c.IndexRows
		}
		taken := func(raw, value []byte) (version int64, ok bool) {
			n, _ := scanUserKey(raw)
			_, ok = rows.Order.Compare(raw, raw[:n])
			if ok != (n > 0 && len(raw) >= n+rows.Order.MinRest) {
				t.Errorf("%s row %x has a user key: %v", row.typ, raw, ok)
			}
			if !ok {
				return 0, false
			}
			if row.index {
				version, _, _, ok = c.Entry(&versioned.Meta{}, raw[n:], value)
			} else {
				version, ok = c.Element(&versioned.Meta{}, &record.Element{}, raw[n:], value)
			}
			return version, ok
		}
		check := func(raw, value []byte) {
			if bytes.Contains(raw, []byte{0, 1, 0, 0}) {
				return // a user key with NULs; the rows of streams and lists may have lost bytes of it
			}
			_, keyErr, valueErr := c.Check(row.index, raw, value)
			_, ok := taken(raw, value)
			if ok != (keyErr == nil && valueErr == nil) && !(row.typ == record.Hash && valueErr == nil) {
				t.Errorf("%s row %x = %x is taken: %v; %v, %v", row.typ, raw, value, ok, keyErr, valueErr)
			}
		}
		key, value := AppendDataKey(nil, DataKey{[]byte("key"), 7, []byte(row.name)}), []byte(row.value)
		formattest.EachDamage(key, func(b []byte) { check(b, value) })
		formattest.EachDamage(value, func(b []byte) { check(key, b) })
		if version, ok := taken(key, value); !ok || version != 7 {
			t.Errorf("%s row %x: version %d, %v", row.typ, key, version, ok)
		}
	}
}

// TestMetaKeys: the fast decoder of a meta row's key agrees with the full one.
func TestMetaKeys(t *testing.T) {
	for _, key := range []string{"", "k", "key", "a\x00", "\x00", "a\x00b"} {
		formattest.EachDamage(AppendMetaKey(nil, MetaKey{Key: []byte(key)}), func(raw []byte) {
			var m versioned.Meta
			err := decodeMetaKey(&m, raw)
			k, want := DecodeMetaKey(raw)
			if (err == nil) != (want == nil) || !bytes.Equal(m.Key, k.Key) || m.Tail != k.Lost ||
				m.Ambiguous != bytes.Contains(k.Key, []byte{0}) {
				t.Errorf("%x: %+v, %v; want %+v, %v", raw, m, err, k, want)
			}
			if err == nil && cap(m.Key) != len(m.Key) && !m.Ambiguous {
				t.Errorf("%x: what is appended to the user key overwrites the row", raw)
			}
		})
	}
}

// TestRowsOfLostKeys: a key that ends in NUL may have lost bytes, which are at the end of its rows; other keys
// may not.
func TestRowsOfLostKeys(t *testing.T) {
	id := make([]byte, idLen+3)
	for key, lost := range map[string]bool{"a": false, "a\x00": true, "\x00": true} {
		_, err, _ := checkRow(record.List, false, AppendDataKey(nil, DataKey{[]byte(key), 1, id[:indexLen+3]}), nil)
		_, err2, _ := checkRow(record.Stream, false, AppendDataKey(nil, DataKey{[]byte(key), 1, id}), nil)
		_, short, _ := checkRow(record.List, false, AppendDataKey(nil, DataKey{[]byte(key), 1, id[:indexLen-1]}), nil)
		if (err == nil) != lost || (err2 == nil) != lost || short == nil {
			t.Errorf("%q: %v, %v, short %v", key, err, err2, short)
		}
	}
}

// TestGone: a meta row is gone if it is of a deleted record, or if it cannot be decoded.
func TestGone(t *testing.T) {
	for want, values := range map[bool][][]byte{
		false: {AppendStringValue(nil, StringValue{}), AppendMeta(nil, Meta{Type: record.Hash, Count: 1}), AppendMeta(nil, Meta{Type: record.ZSet, Count: -1}),
			AppendListMeta(nil, ListMeta{Count: 1}), AppendStreamMeta(nil, StreamMeta{Length: 1}),
			AppendStreamMeta(nil, StreamMeta{Stream: versioned.StreamMeta{Last: versioned.ID{15: 1}}})},
		true: {nil, {99}, {byte(record.Hash)}, AppendMeta(nil, Meta{Type: record.Set}), AppendListMeta(nil, ListMeta{}), AppendStreamMeta(nil, StreamMeta{})},
	} {
		for _, value := range values {
			if gone(value) != want {
				t.Errorf("%x is gone: %v", value, !want)
			}
		}
	}
}

// TestNewCollections: the first element of a list is where RPUSH puts it, and a stream without entries and
// last id is deleted.
func TestNewCollections(t *testing.T) {
	if first := codecOf(record.List).First; first != 1<<63 {
		t.Errorf("lists begin at %d", first)
	}
	for _, c := range layout.Codecs {
		if c.NoBlank != (c.Type == record.Stream) {
			t.Errorf("%s: blank ones refused %v", c.Type, c.NoBlank)
		}
	}
}
