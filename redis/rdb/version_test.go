package rdb

import (
	"testing"

	"kvferry/record"
)

// TestVersions: what each version that is written holds.
func TestVersions(t *testing.T) {
	for _, c := range []struct {
		name                                string
		streams, other                      bool
		functions, entriesRead, fieldExpiry bool
		packing                             packing
		stream                              Type
	}{
		{"6", false, false, false, false, false, ziplist, TypeStream},
		{"7", false, false, false, false, false, ziplist, TypeStream},
		{"8", false, true, false, false, false, ziplist, TypeStream},
		{"9", true, true, false, false, false, ziplist, TypeStream},
		{"10", true, true, true, true, false, listpack, TypeStream2},
		{"11", true, true, true, true, false, listpack, TypeStream3},
		{"12", true, true, true, true, true, listpack, TypeStream3},
		{"valkey80", true, true, true, true, true, listpack, TypeStream3},
	} {
		v, err := ParseVersion(c.name)
		if err != nil {
			t.Fatal(err)
		}
		types := v.Types()
		if types.Has(record.Stream) != c.streams || types.Has(record.Other) != c.other || !types.Has(record.ZSet) || v.Functions() != c.functions ||
			v.EntriesRead() != c.entriesRead || v.FieldExpiry() != c.fieldExpiry || v.packing() != c.packing || v.streamType() != c.stream {
			t.Errorf("%s: types %v, functions %v, entries read %v, expiries of fields %v, packing %v, streams %v", c.name, types, v.Functions(),
				v.EntriesRead(), v.FieldExpiry(), v.packing(), v.streamType())
		}
		if v.String() != c.name || v.Servers() == "" {
			t.Errorf("%s is named %s, of %s", c.name, v, v.Servers())
		}
	}
	if len(Versions()) != 8 || Versions()[0] != DefaultVersion.String() {
		t.Errorf("versions %v", Versions())
	}
}

// TestBacklenSize: the bounds are those of Redis' listpack.c, where the largest size that would fit takes a byte more.
func TestBacklenSize(t *testing.T) {
	for size, want := range map[int]int{0: 1, 127: 1, 128: 2, 16382: 2, 16383: 3, 2097150: 3, 2097151: 4, 268435454: 4, 268435455: 5} {
		if got := backlenSize(size); got != want {
			t.Errorf("an entry of %d bytes: %d, want %d", size, got, want)
		}
	}
}
