package rdb

import (
	"errors"
	"testing"

	"kvferry/record"
)

// TestOpenDump: a payload has a value, optional metadata before its type, optional KeyDB fields after it, and no other
// data. Its version identifies the server; all versions are accepted.
func TestOpenDump(t *testing.T) {
	for _, c := range []struct {
		body    string
		version uint16
		value   string
		meta    bool
		err     error
	}{
		{"\x00\x01v", 9, "\x01v", false, nil},
		{"\x00\x01v", 9999, "\x01v", false, nil},
		{"\xf3\x01abcd\x00\x00\x01v", 13, "\x01v", true, nil},
		{"\x00\x01v\xfa\x0bmvcc-tstamp\x011", 9, "\x01v", false, nil},
		{"\x00\x01vx", 9, "", false, ErrNewer},
		{"\x00\x01v\xfa\x01", 9, "", false, record.ErrShort},
		{"", 9, "", false, record.ErrShort},
		{"\x1f\x01\x01\x01f\x01v", 15, "\x01\x01\x01f\x01v", false, nil},
		{"\x1f\x01\x01f\x01v\xc0\xff", 9, "\x01\x01f\x01v\xc0\xff", false, nil}, // Dragonfly
		{"\x1e\x09\x09\x00\x00\x00\x01\x00\x00\x01\xff", 15, "\x09\x09\x00\x00\x00\x01\x00\x00\x01\xff", false, nil},
		{"\x3f\x01v", 15, "", false, ErrNewer},
		{"\x17\x01v", 81, "", false, ErrNewer},
	} {
		d, err := OpenDump([]byte(c.body), c.version)
		if !errors.Is(err, c.err) || err == nil && (string(d.Value) != c.value || d.Meta != c.meta ||
			string(c.body[d.Off:][:len(c.value)]) != c.value) {
			t.Errorf("%q, version %d: %+v, %v, want %v", c.body, c.version, d, err, c.err)
		}
	}
}
