package lzf

import (
	"bytes"
	"testing"
)

func FuzzLZF(f *testing.F) {
	f.Add([]byte("\x02abc\x20\x02"), uint16(6))
	f.Add([]byte("\x00a\xe0\xff\x00"), uint16(265))
	f.Fuzz(func(t *testing.T, b []byte, n uint16) {
		out, err := Append([]byte("before"), b, uint64(n))
		if err == nil && len(out) != 6+int(n) || !bytes.HasPrefix(out, []byte("before")) {
			t.Errorf("%q, %d: %q", b, n, out)
		}
	})
}

// TestAppend: literals, overlapping copies, and errors.
func TestAppend(t *testing.T) {
	for _, c := range []struct {
		src  string
		n    uint64
		want string
		err  error
	}{
		{"", 0, "", nil},
		{"\x02abc", 3, "abc", nil},
		{"\x02abc\x20\x02", 6, "abcabc", nil},         // 3 bytes from 3 back
		{"\x00a\x60\x00", 6, "aaaaaa", nil},           // 5 bytes from 1 back
		{"\x00a\xe0\x01\x00", 11, "aaaaaaaaaaa", nil}, // 10 of them, the length in a byte of its own
		{"\x02abc\x20\x03", 6, "", errReach},          // before the start
		{"\x03abc", 4, "", errReach},                  // missing literals
		{"\x02abc\x20", 6, "", errReach},              // no offset
		{"\x02abc\xe0", 20, "", errReach},             // no length
		{"\x02abc\x20\x02", 5, "", errReach},          // beyond the end
		{"\x02abc", 2, "", errReach},                  // more literals than n
		{"\x02abc", 4, "", errSize},                   // fewer bytes than n
		{"\x02abc", 88*4 + 1, "", errSize},            // beyond maxRatio
	} {
		got, err := Append([]byte("before"), []byte(c.src), c.n)
		if err != c.err || err == nil && string(got) != "before"+c.want {
			t.Errorf("%q: %q, %v, want %q, %v", c.src, got, err, c.want, c.err)
		}
	}
}
