package kvrocks

import (
	"fmt"
	"strings"
	"testing"

	"kvferry/internal/shared/versioned"
	"kvferry/internal/testkit/formattest"
	"kvferry/record"
)

// TestShortRows: rows of every length around the lengths of elements are accepted or rejected with an error, as listed
// in testdata/rows.txt.
func TestShortRows(t *testing.T) {
	var got strings.Builder
	bytes := func(n int) (b []byte) {
		for i := range n {
			b = append(b, byte(i+1))
		}
		return b
	}
	rows := map[string]func(*versioned.Meta, *record.Element, []byte, []byte) (int64, bool){"named": named, "item": item,
		"member": member, "scored": scored,
		"by score": func(m *versioned.Meta, e *record.Element, rest, value []byte) (v int64, ok bool) {
			var bits uint64
			v, e.Name, bits, ok = byScore(m, rest, value)
			e.Value = fmt.Appendf(nil, "%x", bits)
			return v, ok
		}}
	for _, name := range []string{"named", "item", "member", "scored", "by score"} {
		for _, unsorted := range []bool{false, true} { // a sortedint
			for rest := range 19 {
				for _, value := range []int{0, 1, 7, 8, 9} {
					e := record.Element{Name: []byte("old"), Value: []byte("old"), Score: 1, ExpireMS: 7, Kind: record.Pending}
					v, ok := rows[name](&versioned.Meta{Unsorted: unsorted}, &e, bytes(rest), bytes(value))
					if ok { // what is not taken says nothing
						fmt.Fprintf(&got, "%s, %t, %d and %d bytes: version %x, %q, %x, %x, %d %d\n", name, unsorted, rest, value,
							v, e.Name, e.Value, e.Score, e.ExpireMS, e.Kind)
					}
				}
			}
		}
		got.WriteString("\n")
	}
	formattest.CheckOutcomes(t, "testdata/rows.txt", got.String())
}
