package hll

import (
	"strings"
	"testing"

	"kvferry/record"
)

func TestDialects(t *testing.T) {
	header := "HYLL\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80"
	for _, tc := range []struct {
		name, s string
		want    Dialect
	}{
		{"empty", "", NoDialect},
		{"text", "HYLLO", NoDialect},
		{"dense", header + strings.Repeat("\x00", DenseSize-HeaderSize), HYLL},
		{"dense, too short", header + "\x00", NoDialect},
		{"sparse", "HYLL\x01" + header[5:] + "\x7f\xff", HYLL},
		{"sparse, empty", "HYLL\x01" + header[5:], HYLL},
		{"cut header", "HYLL\x01" + header[5:15], NoDialect},
		{"unknown encoding", "HYLL\x02" + header[5:], NoDialect},
		{"raw", strings.Repeat("\x01", RawSize), Raw},
		{"nearly raw", strings.Repeat("\x01", RawSize-1), NoDialect},
	} {
		if got := DialectOf([]byte(tc.s)); got != tc.want {
			t.Errorf("%s: dialect %d, want %d", tc.name, got, tc.want)
		}
	}
}

func TestNotes(t *testing.T) {
	raw, hyll := []byte(strings.Repeat("\x01", RawSize)), []byte("HYLL\x01"+strings.Repeat("\x00", 11))
	for _, tc := range []struct {
		s      []byte
		native Dialect
		want   string
	}{
		{raw, Raw, "may count twice"}, {raw, Marked, "does not mark it as one; X keeps"}, {raw, HYLL, "of Pika; X keeps it as a string"}, {raw, NoDialect, "of Pika; X keeps"},
		{hyll, Raw, "as in Redis; X keeps"}, {hyll, Marked, "as in Redis; X keeps"}, {hyll, NoDialect, "as in Redis; X keeps"}, {hyll, HYLL, ""}, {[]byte("x"), Raw, ""}, {[]byte("x"), NoDialect, ""},
	} {
		var got []record.Loss
		Note("X", tc.native, "", tc.s, func(l record.Loss) { got = append(got, l) })
		if (len(got) == 1) != (tc.want != "") {
			t.Errorf("%.8q for %d: %+v, want %q", tc.s, tc.native, got, tc.want)
			continue
		}
		for _, l := range got {
			if !strings.Contains(l.Detail, tc.want) || !l.Note || l.Drops || l.Kind != record.LossHyperLogLog {
				t.Errorf("%.8q for %d: %+v, want %q", tc.s, tc.native, l, tc.want)
			}
		}
	}
}

// TestDense: a sparse HyperLogLog becomes a dense one whose cached count is stale, and other strings stay.
func TestDense(t *testing.T) {
	sparse := append([]byte("HYLL\x01\x00\x00\x00"), make([]byte, 8)...)
	sparse = append(sparse, 0x7f, 0xff) // 16,384 registers of 0
	dense, ok := Dense([]byte("before"), sparse)
	if !ok || !strings.HasPrefix(string(dense), "before") || !IsStale(dense[6:]) || DialectOf(dense[6:]) != HYLL {
		t.Errorf("%t: %d bytes, %.20q", ok, len(dense), dense)
	}
	if again, ok := Dense(nil, dense[6:]); !ok || string(again) != string(dense[6:]) {
		t.Errorf("a dense one: %t, %d bytes", ok, len(again))
	}
	for _, s := range []string{"", "text", string(sparse[:HeaderSize]) + "\x7f"} {
		if out, ok := Dense(nil, []byte(s)); ok {
			t.Errorf("%q: %d bytes", s, len(out))
		}
	}
	if IsStale(sparse) || IsStale(dense[5:]) {
		t.Error("only a dense one without a cached count is stale")
	}
}
