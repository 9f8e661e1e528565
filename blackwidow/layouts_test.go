package blackwidow

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"
	"time"

	"kvferry/internal/shared/versioned"
	"kvferry/internal/testkit/formattest"
	"kvferry/record"
)

// layoutFor returns the layout of a type's store and its codec.
func layoutFor(typ record.Type) (*versioned.Layout, *versioned.Codec) {
	i := slices.IndexFunc(families[:], func(f family) bool { return f.typ == typ })
	return families[i].layout, families[i].layout.Codecs[0]
}

// TestRowsAreTakenWhole changes, removes and adds bytes of element rows: exactly the rows that decode as
// elements are taken as elements.
func TestRowsAreTakenWhole(t *testing.T) {
	const score = "\x00\x00\x00\x00\x00\x00\xf0\x3f"
	for _, row := range []struct {
		typ         record.Type
		index       bool
		name, value string
	}{
		{record.Hash, false, "f", "value"}, {record.Hash, false, "", ""}, {record.List, false, "\x00\x00\x00\x00\x00\x00\x00\x80", "v"},
		{record.Set, false, "m", ""}, {record.Set, false, "", ""}, {record.ZSet, false, "m", score}, {record.ZSet, true, score, ""}, {record.ZSet, true, score + "m", ""},
		{record.Stream, false, "\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x02", "\x01\x00\x00\x00f\x00\x00\x00\x00"},
	} {
		_, c := layoutFor(row.typ)
		rows := c.DataRows
		if row.index {
			rows = c.IndexRows
		}
		skip := func(raw []byte) (int, bool) {
			if rows.Order != nil {
				if _, ok := rows.Order.Compare(raw, raw); !ok {
					return 0, false
				}
				return klenLen + int(binary.LittleEndian.Uint32(raw)), true
			}
			if len(raw) < rows.Lanes.PrefixLen {
				return 0, false
			}
			klen, ok := rows.Lanes.Parse(raw)
			return klenLen + klen, ok && klen <= len(raw)-klenLen-rows.Lanes.MinRest
		}
		taken := func(raw, value []byte) (version int64, ok bool) {
			n, ok := skip(raw)
			switch {
			case !ok:
			case row.index:
				version, _, _, ok = c.Entry(&versioned.Meta{}, raw[n:], value)
			default:
				version, ok = c.Element(&versioned.Meta{}, &record.Element{}, raw[n:], value)
			}
			return version, ok
		}
		check := func(raw, value []byte) {
			_, keyErr, valueErr := c.Check(row.index, raw, value)
			if _, ok := taken(raw, value); ok != (keyErr == nil && valueErr == nil) {
				t.Errorf("%s row %x = %x is taken: %v; %v, %v", row.typ, raw, value, ok, keyErr, valueErr)
			}
		}
		key, value := append(appendPrefix(nil, []byte("key"), 7), row.name...), []byte(row.value)
		formattest.EachDamage(key, func(b []byte) { check(b, value) })
		formattest.EachDamage(value, func(b []byte) { check(key, b) })
		if version, ok := taken(key, value); !ok || version != 7 {
			t.Errorf("%s row %x: version %d, %v", row.typ, key, version, ok)
		}
	}
	lanes := lanes(0).Lanes
	for n, want := range map[uint32]bool{0: true, 5: true, math.MaxInt32: true, math.MaxInt32 + 1: false, math.MaxUint32: false} {
		if klen, ok := lanes.Parse(binary.LittleEndian.AppendUint32(nil, n)); ok != want || ok && klen != int(n) {
			t.Errorf("a user key of %d bytes: %d, %v", n, klen, ok)
		}
	}
}

// TestSampledKeys: of a key truncated by a table's index, the remainder of the user key is taken.
func TestSampledKeys(t *testing.T) {
	raw := appendPrefix(nil, []byte("key"), 7)
	for n := range len(raw) + 1 {
		if got, want := string(sampledKey(raw[:n])), "key"[:min(3, max(0, n-klenLen))]; got != want {
			t.Errorf("%d bytes: %q, want %q", n, got, want)
		}
	}
}

// TestMetaRows: seconds become milliseconds, and a count of 0 means a deleted record, except for a stream with
// a last id.
func TestMetaRows(t *testing.T) {
	for _, expiry := range []UnixSeconds{0, 1, 1700000000, math.MaxInt32} {
		value := AppendStringValue(nil, StringValue{[]byte("v"), expiry})
		var m versioned.Meta
		v, ms, ok := plainString(value)
		if err := decodeString(&m, value); err != nil || m.ExpireMS != int64(expiry)*1000 || !ok || ms != m.ExpireMS ||
			string(v) != "v" || string(m.Value) != "v" {
			t.Errorf("expiry %d: %+v, %v; %d", expiry, m, err, ms)
		}
		for count := range int32(3) {
			var set, list versioned.Meta
			err := decodeMeta(&set, AppendMeta(nil, Meta{count, 7, expiry}))
			if err != nil || set.Gone != (count == 0) || set.Count != int64(count) || set.Version != 7 ||
				set.ExpireMS != int64(expiry)*1000 {
				t.Errorf("a set of %d: %+v, %v", count, set, err)
			}
			err = decodeListMeta(&list, AppendListMeta(nil, ListMeta{uint64(count), 7, expiry, 3, 9}))
			if err != nil || list.Gone != (count == 0) || list.Left != 3 || list.Right != 9 ||
				list.ExpireMS != int64(expiry)*1000 {
				t.Errorf("a list of %d: %+v, %v", count, list, err)
			}
		}
	}
	for _, c := range []struct {
		length int32
		last   versioned.ID
		gone   bool
	}{{0, versioned.ID{}, true}, {1, versioned.ID{}, false}, {0, versioned.ID{15: 1}, false}, {1, versioned.ID{15: 1}, false}} {
		var m versioned.Meta
		err := decodeStreamMeta(&m, AppendStreamMeta(nil, StreamMeta{versioned.StreamMeta{Last: c.last}, c.length, 7}))
		if err != nil || m.Gone != c.gone {
			t.Errorf("a stream of %d, last id %x: %+v, %v", c.length, c.last, m, err)
		}
	}
	for ms, want := range map[int64]int64{0: 0, 1: 1000, 1000: 1000, 1001: 2000, -1: -1000, -999: -1000, -1000: -1000,
		-1999: -1000} {
		if got, err := expiryOf(&record.Header{Type: record.Set, ExpireMS: ms}); err != nil || got != want {
			t.Errorf("%d ms are written as %d, %v, want %d", ms, got, err, want)
		}
	}
}

// TestNewCollections: the first element of a list is where RPUSH puts it, a stream without entries and last id
// is deleted, and the engine's clock counts whole seconds.
func TestNewCollections(t *testing.T) {
	for i := range families {
		l, c := layoutFor(families[i].typ)
		if c.NoBlank != (c.Type == record.Stream) || c.Type == record.List && c.First != 1<<63 {
			t.Errorf("%s: blank ones refused %v, the first element at %d", c.Type, c.NoBlank, c.First)
		}
		if now := l.Clock(time.UnixMilli(1700000000999)); now != 1700000000000 {
			t.Errorf("%s: it is %d", c.Type, now)
		}
	}
}
