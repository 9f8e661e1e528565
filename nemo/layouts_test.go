package nemo

import (
	"bytes"
	"slices"
	"testing"

	"kvferry/internal/shared/versioned"
	"kvferry/internal/testkit/formattest"
	"kvferry/record"
)

// dataRows are a row of each kind of data row.
var dataRows = []struct {
	typ        record.Type
	index      bool
	key, value []byte
}{
	{record.Hash, false, AppendHashKey(nil, HashKey{[]byte("key"), []byte("f=")}), AppendPlain(nil, Plain{[]byte("value"), Suffix{7, 9}})},
	{record.Hash, false, AppendHashKey(nil, HashKey{[]byte("k"), nil}), AppendPlain(nil, Plain{nil, Suffix{7, 0}})},
	{record.List, false, AppendListKey(nil, ListKey{[]byte("key"), 1}), AppendNode(nil, Node{Prev: 0, Next: 2, Element: []byte("v"), Suffix: Suffix{7, 0}})},
	{record.List, false, AppendListKey(nil, ListKey{[]byte("key"), 5}), AppendNode(nil, Node{Prev: 3, Suffix: Suffix{7, 0}})},
	{record.Set, false, AppendSetKey(nil, SetKey{[]byte("key"), nil}), AppendSuffix(nil, Suffix{7, 0})},
	{record.Set, false, AppendSetKey(nil, SetKey{[]byte("key"), []byte("m")}), AppendSuffix(nil, Suffix{7, 0})},
	{record.ZSet, false, AppendScoreKey(nil, ScoreKey{[]byte("key"), []byte("m")}), AppendScore(nil, Score{1.5, Suffix{7, 0}})},
	{record.ZSet, true, AppendIndexKey(nil, IndexKey{[]byte("key"), RoundScore(1.5), nil}), AppendSuffix(nil, Suffix{7, 0})},
}

// codecOf returns the codec of a type.
func codecOf(typ record.Type) *versioned.Codec {
	i := slices.IndexFunc(families[:], func(f family) bool { return f.typ == typ })
	return families[i].layout.Codecs[0]
}

// TestRowsAreTakenWhole changes, removes and adds bytes of element rows: exactly the rows that decode as
// elements are taken as elements.
func TestRowsAreTakenWhole(t *testing.T) {
	for _, row := range dataRows {
		c := codecOf(row.typ)
		taken := func(raw, value []byte) (version int64, ok bool) {
			rows := c.DataRows
			if row.index {
				rows = c.IndexRows
			}
			if len(raw) < prefixLen {
				return 0, false
			}
			klen, ok := rows.Lanes.Parse(raw)
			if !ok || len(raw) < prefixLen+klen+rows.Lanes.MinRest {
				return 0, false
			}
			if row.index {
				version, _, _, ok = c.Entry(&versioned.Meta{}, raw[prefixLen+klen:], value)
			} else {
				version, ok = c.Element(&versioned.Meta{}, &record.Element{}, raw[prefixLen+klen:], value)
			}
			return version, ok
		}
		check := func(raw, value []byte) {
			_, keyErr, valueErr := c.Check(row.index, raw, value)
			if _, ok := taken(raw, value); ok != (keyErr == nil && valueErr == nil) {
				t.Errorf("%s row %q = %q is taken: %v; %v, %v", row.typ, raw, value, ok, keyErr, valueErr)
			}
		}
		formattest.EachDamage(row.key, func(b []byte) { check(b, row.value) })
		formattest.EachDamage(row.value, func(b []byte) { check(row.key, b) })
		if version, ok := taken(row.key, row.value); !ok || version != 7 {
			t.Errorf("%s row %q: version %d, %v", row.typ, row.key, version, ok)
		}
	}
}

// TestUserKeys checks the user keys found in truncated keys; an empty one counts as missing.
func TestUserKeys(t *testing.T) {
	for raw, want := range map[string]string{"": "", "H": "", "Hkey": "key", "h": "", "h\x03": "", "h\x03k": "k",
		"h\x03key=f": "key", "h\x00k": ""} {
		if got := hashKinds.userKey([]byte(raw)); string(got) != want {
			t.Errorf("%q: %q, want %q", raw, got, want)
		}
		if got := hashKinds.owner([]byte(raw)); string(got) != want || (got == nil) != (want == "") {
			t.Errorf("%q belongs to %q, want %q", raw, got, want)
		}
	}
	if all := append(hashKinds.all(), zsetKinds.all()...); string(all) != "HhZzy" {
		t.Errorf("kinds %q", all)
	}
}

// TestMetaRows: a string's expiry below 0 means never and is reported; a collection without elements is gone.
func TestMetaRows(t *testing.T) {
	for _, expiry := range []UnixSeconds{-1 << 31, -2, -1, 0, 1, 2, 1<<31 - 1} {
		value := AppendPlain(nil, Plain{[]byte("v"), Suffix{0, expiry}})
		var m versioned.Meta
		err := decodeString(&m, value)
		if err != nil || m.ExpireMS != max(0, int64(expiry)*1000) || m.BadExpiry != min(0, int64(expiry)) {
			t.Errorf("expiry %d: %+v, %v", expiry, m, err)
		}
		if kind, _ := negativeExpiry(&m); (kind == FindNegativeExpiry) != (expiry < 0) {
			t.Errorf("expiry %d: finding %q", expiry, kind)
		}
		v, ms, ok := plainString(value)
		if ok != (expiry >= 0) || ok && (string(v) != "v" || ms != int64(expiry)*1000) {
			t.Errorf("expiry %d: %q, %d, %v", expiry, v, ms, ok)
		}
	}
	for _, count := range []int64{-1, 0, 1} {
		var set, list versioned.Meta
		if err := decodeMeta(&set, AppendMeta(nil, Meta{count, Suffix{7, 5}})); err != nil || set.Gone != (count <= 0) ||
			set.Version != 7 || set.ExpireMS != 5000 {
			t.Errorf("a set of %d: %+v, %v", count, set, err)
		}
		value := AppendListMeta(nil, ListMeta{Count: count, Left: 3, Right: 9, NextSeq: 12, Suffix: Suffix{7, 5}})
		if err := decodeListMeta(&list, value); err != nil || list.Gone != (count <= 0) || list.Left != 2 || list.Right != 10 ||
			list.Next != 12 || list.ExpireMS != 5000 {
			t.Errorf("a list of %d: %+v, %v", count, list, err)
		}
		if !bytes.Equal(appendListMeta(nil, &list), value) {
			t.Errorf("a list of %d is written otherwise", count)
		}
	}
}

// TestShare: the store of lists gets three quarters of the memory, since only one of the other stores needs
// memory at a time.
func TestShare(t *testing.T) {
	lists, sets := &versioned.Store{Layout: families[2].layout}, &versioned.Store{Layout: families[3].layout}
	for n, want := range map[int][2]int64{1: {4000, 4000}, 2: {3000, 1000}, 5: {3000, 1000}} {
		if a, b := share(4000, lists, n), share(4000, sets, n); a != want[0] || b != want[1] {
			t.Errorf("of %d stores lists have %d, sets %d", n, a, b)
		}
	}
}

// TestLiveVersion: rows older than their meta row are leftovers of an earlier collection.
func TestLiveVersion(t *testing.T) {
	for row, want := range map[int64]bool{4: false, 5: true, 6: true} {
		if (&source{}).LiveVersion(5, row) != want {
			t.Errorf("a row of version %d below a meta row of 5 counts: %v", row, !want)
		}
	}
}
