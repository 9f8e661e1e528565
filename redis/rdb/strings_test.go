package rdb_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"kvferry/record"
	"kvferry/redis/rdb"
)

// keysOf lists the keys of a file, with the values of strings and the final error. It reads up to most strings per
// batch, and returns the number read in batches.
func keysOf(b []byte, atOnce int) (told string, taken int) {
	s, err := rdb.NewScanner(bytes.NewReader(b), 0, int64(len(b)))
	if err != nil {
		return err.Error(), 0
	}
	var out strings.Builder
	var d rdb.Decoder
	batch, values := make([]record.Record, atOnce), make([]record.Element, atOnce)
	for {
		n := s.Strings(batch, values)
		for i, x := range batch[:n] {
			fmt.Fprintf(&out, "%q %q expires %d\n", x.Key, values[i].Value, x.ExpireMS)
		}
		taken += n
		if n > 0 {
			continue
		}
		it, err := s.Next()
		if err != nil {
			fmt.Fprintf(&out, "%v\n", err)
			return out.String(), taken
		}
		if it.Op != rdb.OpKey || it.Type != rdb.TypeString {
			fmt.Fprintf(&out, "op %d %q expires %d\n", it.Op, it.Key, it.ExpireMS)
			continue
		}
		var h record.Header
		var e [1]record.Element
		if it.Value == nil {
			err = d.BeginAt(it.Type, s.Header, bytes.NewReader(b), it.From, it.To, &h)
		} else {
			err = d.Begin(it.Type, s.Header, it.Value, it.From, &h)
		}
		if err == nil {
			_, err = d.Read(e[:])
		}
		fmt.Fprintf(&out, "%q %q expires %d\n", it.Key, e[0].Value, it.ExpireMS)
		if err != nil {
			fmt.Fprintf(&out, "%v\n", err)
		}
	}
}

// checkStrings checks that strings are equal in batches and one by one.
func checkStrings(t *testing.T, b []byte, atOnce ...int) (taken int) {
	t.Helper()
	want, _ := keysOf(b, 0)
	for _, n := range atOnce {
		got, k := keysOf(b, n)
		taken = k
		if got != want {
			t.Fatalf("%d at once\n%s\none by one\n%s\nof %.200q", n, got, want, b)
		}
	}
	return taken
}

// TestStrings: batches include some forms of strings and prefixes, and never misread the others.
func TestStrings(t *testing.T) {
	key := func(before string, key, value []byte) []byte {
		return append(append(append([]byte(before), 0), key...), value...)
	}
	short, long := rdb.AppendString(nil, []byte("key")), rdb.AppendString(nil, bytes.Repeat([]byte("long "), 3000))
	wide := append(rdb.AppendWideLen(nil, 5), "value"...)
	ms, never := "\xfc\x01\x02\x03\x04\x05\x06\x07\x08", "\xfc\xff\xff\xff\xff\xff\xff\xff\xff"
	for _, tt := range []struct {
		name  string
		item  []byte
		taken bool
	}{
		{"a string", key("", short, short), true},
		{"an empty one", key("", []byte{0}, []byte{0}), true},
		{"a long value", key("", short, long), true},
		{"a long key", key("", long, short), true},
		{"an expiry in ms", key(ms, short, short), true},
		{"one that is never", key(never, short, short), true},
		{"one that is past", key("\xfc\x00\x00\x00\x00\x00\x00\x00\x00", short, short), true},
		{"two", key(ms+never, short, short), false},
		{"one in seconds", key("\xfd\x01\x02\x03\x04", short, short), false},
		{"an idle time", key("\xf8\x05", short, short), false},
		{"a frequency", key(ms+"\xf9\x05", short, short), false},
		{"an integer", key("", short, []byte("\xc0\x7b")), false},
		{"a key that is one", key("", []byte("\xc1\x39\x30"), short), false},
		{"a value that is compressed", key("", short, []byte("\xc3\x04\x0a\x00a\xe0\x00\x00")), false},
		{"a wide length", key("", short, wide), false},
		{"a wide length of a key", key("", wide, short), false},
		{"a list", []byte("\x01\x03key\x01\x01a"), false},
		{"another database", append([]byte("\xfe\x03"), key("", short, short)...), true},
	} {
		file := append([]byte("REDIS0011"), tt.item...)
		file = append(file, "\xff\x00\x01a\x01b\x00\x01\x00"...) // a checksum that looks like a string
		if taken := checkStrings(t, file, 1, 3, 64); taken > 0 != tt.taken {
			t.Errorf("%s: %d are read at once", tt.name, taken)
		}
		for n := range min(len(file), 100) {
			checkStrings(t, file[:n], 2)
			checkStrings(t, file[:len(file)-n], 64)
		}
	}
}

// TestStringsOfFiles: strings in batches equal strings one by one, in all files of servers, after any damage, and at
// any end of a window.
func TestStringsOfFiles(t *testing.T) {
	for _, b := range small(t) {
		for i := range b {
			c := bytes.Clone(b)
			c[i] ^= 0x81
			checkStrings(t, c, 1, 64)
		}
	}
	file := []byte("REDIS0011")
	for i := range 2000 {
		file = rdb.AppendKey(file, rdb.TypeString, fmt.Appendf(nil, "key %d", i), int64(i%3))
		file = rdb.AppendString(file, bytes.Repeat([]byte{'v'}, 1+i*i%700))
	}
	if taken := checkStrings(t, rdb.AppendEOF(file), 3, 5000, 64); taken < 1950 {
		t.Errorf("%d of 2000 are read at once", taken)
	}
	if told, _ := keysOf(rdb.AppendEOF(file), 64); strings.Count(told, "\n") != 2002 || !strings.HasSuffix(told, "\nEOF\n") {
		t.Errorf("%d lines, at the end %q", strings.Count(told, "\n"), told[len(told)-100:])
	}
}
