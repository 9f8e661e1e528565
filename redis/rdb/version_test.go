package rdb

import (
	"testing"

	"kvferry/record"
)

// TestVersions: the capabilities of each writable version.
func TestVersions(t *testing.T) {
	for _, c := range []struct {
		name                                string
		streams, other                      bool
		functions, entriesRead, fieldExpiry bool
	}{
		{"6", false, false, false, false, false},
		{"7", false, false, false, false, false},
		{"8", false, true, false, false, false},
		{"9", true, true, false, false, false},
		{"10", true, true, true, true, false},
		{"11", true, true, true, true, false},
		{"12", true, true, true, true, true},
		{"valkey80", true, true, true, true, true},
	} {
		v, err := ParseVersion(c.name)
		if err != nil {
			t.Fatal(err)
		}
		types := v.Types()
		if types.Has(record.Stream) != c.streams || types.Has(record.Other) != c.other || !types.Has(record.ZSet) ||
			v.Functions() != c.functions ||
			v.EntriesRead() != c.entriesRead || v.FieldExpiry() != c.fieldExpiry {
			t.Errorf("%s: types %v, functions %v, entries read %v, expiries of fields %v", c.name, types, v.Functions(),
				v.EntriesRead(), v.FieldExpiry())
		}
		if v.String() != c.name || v.Servers() == "" {
			t.Errorf("%s is named %s, of %s", c.name, v, v.Servers())
		}
	}
	if len(Versions()) != 8 || Versions()[0] != DefaultVersion.String() {
		t.Errorf("versions %v", Versions())
	}
}
