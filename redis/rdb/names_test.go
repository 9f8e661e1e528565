package rdb

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"kvferry/internal/sys/extsort"
	"kvferry/record"
)

// TestTwins: the first of equal members is returned, with an error at the end; of very many members all are returned,
// with the same error.
func TestTwins(t *testing.T) {
	d := Decoder{TempDir: t.TempDir()}
	defer d.Close()
	for _, n := range []int{0, 1, 16, 17, 40, 1000, extsort.MostNames, extsort.MostNames + 1, extsort.MostNames + 5000} {
		for _, twins := range [][]int{nil, {0}, {0, 0}, {n / 2, n - 1}} {
			if n == 0 && twins != nil {
				continue
			}
			b := AppendLen(nil, uint64(n+len(twins)))
			name := func(i int) []byte {
				if i == 0 {
					return nil // the empty member
				}
				return fmt.Appendf(nil, "m%d", i)
			}
			for i := range n {
				b = AppendString(b, name(i))
			}
			for _, i := range twins {
				b = AppendString(b, name(i))
			}
			var h record.Header
			if err := d.Begin(TypeSet, Header{}, b, 0, &h); err != nil {
				t.Fatal(err)
			}
			got, batch := 0, make([]record.Element, 64)
			var err error
			for err == nil {
				var k int
				k, err = d.Read(batch)
				got += k
			}
			want := n
			if n >= extsort.MostNames {
				want += len(twins)
			}
			if got != want {
				t.Errorf("%d members and %d twins: %d returned", n, len(twins), got)
			}
			if len(twins) == 0 && err != io.EOF || len(twins) > 0 && (!errors.Is(err, ErrTwins) ||
				!strings.Contains(err.Error(), record.Count(int64(len(twins)), "element"))) {
				t.Errorf("%d members and %d twins: %v", n, len(twins), err)
			}
		}
	}
}

// TestTwinsFillBatches: repeated names that fill whole batches are skipped.
func TestTwinsFillBatches(t *testing.T) {
	b := AppendLen(nil, 501)
	for range 500 {
		b = AppendString(b, []byte(strings.Repeat("m", 5000)))
	}
	b = AppendString(b, []byte("last"))
	var d Decoder
	var h record.Header
	if err := d.Begin(TypeSet, Header{}, b, 0, &h); err != nil {
		t.Fatal(err)
	}
	var got []string
	batch := make([]record.Element, 1)
	for {
		n, err := d.Read(batch)
		if err != nil {
			if !errors.Is(err, ErrTwins) {
				t.Error(err)
			}
			break
		}
		for _, e := range batch[:n] {
			got = append(got, fmt.Sprintf("%.5s", e.Name))
		}
	}
	if s := strings.Join(got, " "); s != "mmmmm last" {
		t.Error(s)
	}
}
