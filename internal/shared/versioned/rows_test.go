package versioned

import (
	"bytes"
	"testing"

	"kvferry/format"
	"kvferry/internal/shared/keylanes"
	"kvferry/store"
)

// TestRowsRange: the raw range of a user key holds its rows and no others, in each order of raw keys.
func TestRowsRange(t *testing.T) {
	marked := func(dst, key []byte) []byte { return append(append(dst, key...), 0xff) }
	plain := func(dst, key []byte) []byte { return append(dst, key...) }
	lanes := &keylanes.Layout{PrefixLen: 1, AppendPrefix: func(dst []byte, klen int) []byte { return append(dst, byte(klen)) },
		Parse: func(raw []byte) (int, bool) { return int(raw[0]), true }}
	for name, x := range map[string]struct {
		rows   Rows
		lo, hi string
	}{
		"spans of several ranges": {Rows{Order: &InOrder{AppendPrefix: marked, Open: func(store.Keyspace, format.Span) (store.Iterator, error) { return nil, nil }}}, "k\xff", "l"},
		"spans of one range":      {Rows{Order: &InOrder{AppendPrefix: plain}}, "k", "k\x00"},
		"lanes":                   {Rows{Lanes: lanes}, "\x01k", "\x01l"},
	} {
		lo, hi := x.rows.Range([]byte("k"))
		if !bytes.Equal(lo, []byte(x.lo)) || !bytes.Equal(hi, []byte(x.hi)) {
			t.Errorf("%s: %q to %q", name, lo, hi)
		}
	}
}
