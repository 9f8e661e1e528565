package ardb

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"kvferry/ardb/codec"
	"kvferry/format"
	"kvferry/record"
)

// TestFindingsOfRecordsLeftOut: what is found at the end of a record is reported once, and only if the record is not left
// out, read or not.
func TestFindingsOfRecordsLeftOut(t *testing.T) {
	list := func(key string, size int64) []raw { // of one element
		at := codec.IntData(1)
		return []raw{metaOf(key, codec.Value{Kind: codec.KindList, Size: size, Sequential: true}, at, at),
			row(key, codec.KindElement, elem(codec.KindElement, text("e")), at)}
	}
	for _, c := range []struct{ do, want string }{
		{"read read read read", "size-mismatch a, size-mismatch c"},
		{"leave read read read", "size-mismatch c"},
		{"read read leave read", "size-mismatch a"},
		{"leave read leave read", ""},
		{"read leave lose read", "size-mismatch a"},
	} {
		var rows []raw
		for i, key := range []string{"a", "b", "c", "d"} {
			rows = append(rows, list(key, []int64{3, 1, 2, 1}[i])...)
		}
		var found []string
		env := testEnv(func(f record.Finding) { found = append(found, fmt.Sprintf("%s %s", f.Kind, f.Key)) })
		src, err := openRows(t, rows...).Records(t.Context(), "0", record.AllTypes, format.Span{}, env)
		if err != nil {
			t.Fatal(err)
		}
		w := record.Walk(src)
		for _, do := range strings.Fields(c.do) {
			if _, err := w.Next(); err != nil {
				t.Fatal(err)
			}
			switch do {
			case "leave":
				w.Settle(record.Filtered)
			case "lose":
				w.Settle(record.Lost)
			default:
				for err = nil; err == nil; {
					_, err = w.Read(make([]record.Element, 1))
				}
			}
		}
		if _, err := w.Next(); err != io.EOF || w.Close() != nil {
			t.Fatal(err)
		}
		if got := strings.Join(found, ", "); got != c.want {
			t.Errorf("%s: found %q, want %q", c.do, got, c.want)
		}
	}
}
