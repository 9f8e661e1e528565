package floyd

import (
	"fmt"
	"strings"
	"testing"

	"kvferry/internal/shared/versioned"
	"kvferry/internal/testkit/formattest"
	"kvferry/record"
)

// TestShortRows: rows with lengths around the valid ones are either taken or left to the decoder, which
// reports the error in testdata/rows.txt.
func TestShortRows(t *testing.T) {
	var got strings.Builder
	bytes := func(n, from int) (b []byte) { // with zeros, reserved and of a time, from there on
		for i := range n {
			b = append(b, byte(i+1))
		}
		if from = max(from, 0); from < n {
			clear(b[from:min(from+suffixLen, n)])
		}
		return b
	}
	rows := map[string]func(*versioned.Meta, *record.Element, []byte, []byte) (int64, bool){"field": field, "member": member,
		"item": item, "scored": scored,
		"entry": func(m *versioned.Meta, e *record.Element, rest, value []byte) (v int64, ok bool) {
			var score uint64
			v, e.Name, score, ok = entry(m, rest, value)
			e.Value = fmt.Appendf(nil, "%x", score)
			return v, ok
		}}
	for _, name := range []string{"field", "member", "item", "scored", "entry"} {
		for _, tail := range []int{0, 3} {
			for _, rest := range []int{23, 24, 25, 26, 27, 28, 31, 32, 33, 34, 35, 36} {
				for _, value := range []int{0, 23, 24, 25, 31, 32, 33} {
					var e record.Element
					v, ok := rows[name](&versioned.Meta{Tail: tail}, &e, bytes(rest, rest-tail-tailLen),
						bytes(value, value-suffixLen))
					if ok { // rows not taken have no result to compare
						fmt.Fprintf(&got, "%s of a key that lost %d, %d and %d bytes: version %x, %x, %x, %x\n", name, tail, rest,
							value, v, e.Name, e.Value, e.Score)
					}
				}
			}
		}
		got.WriteString("\n")
	}
	formattest.CheckOutcomes(t, "testdata/rows.txt", got.String())
}

// TestSampledKey: of a key truncated by a table's index, the remainder of the user key is taken.
func TestSampledKey(t *testing.T) {
	user := "a\x00bc\x00"
	raw := AppendDataKey(nil, DataKey{Key: []byte(user), Version: 5, Name: []byte("f")})
	for n := range len(raw) + 1 {
		want := user
		switch {
		case n < headLen:
			want = ""
		case n < headLen+len("a\x00\x01bc\x00\x01\x00\x00"):
			cut := strings.TrimRight(strings.ReplaceAll("a\x00\x01bc\x00\x01\x00\x00"[:n-headLen], "\x00\x01", "\x00"), "\x00")
			want = cut
		}
		if got := sampledKey(raw[:n]); string(got) != want {
			t.Errorf("%d bytes: %q, want %q", n, got, want)
		}
	}
}
