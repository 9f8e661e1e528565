package redis

import (
	"context"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/internal/testkit/formattest"
	"kvferry/record"
)

// readSections returns the records of some types in sections, with their classes: it rejects expired records and every
// third string. It also returns the number of strings read in batches.
func readSections(t *testing.T, src format.Source, types record.TypeSet, now time.Time, several bool) (told string, n int) {
	t.Helper()
	var out strings.Builder
	var l record.Ledger
	for _, db := range src.Databases() {
		spans, err := format.SplitAny(src, db, types, 3)
		if err != nil {
			t.Fatal(err)
		}
		for _, span := range spans {
			r, err := src.Records(context.Background(), db, types, span, &format.Env{Now: now, TempDir: t.TempDir(), Ledger: &l})
			if err != nil {
				t.Fatal(err)
			}
			n += readAll(t, record.Booked(r, &l), &out, several)
		}
	}
	formattest.CheckLedger(t, &l)
	rows := l.Snapshot()
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		fmt.Fprintf(&out, "%s: %s; %d entries, %d visible\n", name, formattest.Classes(&l, name), rows[name].Entries,
			rows[name].Visible)
	}
	return out.String(), n
}

func readAll(t *testing.T, r record.Reader, out *strings.Builder, several bool) (n int) {
	t.Helper()
	seen := 0
	class := func(expired bool) record.Class {
		seen++
		if expired {
			return record.Expired
		}
		if seen%3 == 0 {
			return record.Filtered
		}
		return record.Copied
	}
	w := record.Walk(r)
	var e [5]record.Element
	for several {
		b, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if whole := b.Strings(0); whole > 1 {
			n += whole
		}
		for i := range b.Records {
			readPiece(out, b, i, class)
		}
	}
	for !several {
		h, err := w.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(out, "%q in %q expires %d %t: ", h.Key, h.DB, h.ExpireMS, h.Expired)
		for err == nil && h.Type == record.String {
			var k int
			if k, err = w.Read(e[:]); k > 0 {
				fmt.Fprintf(out, "%q\n", e[0].Value)
			}
		}
		if h.Type != record.String {
			fmt.Fprintf(out, "%s\n", h.Type)
			continue
		}
		w.Settle(class(h.Expired))
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return n
}

// readPiece prints record i of a batch.
func readPiece(out *strings.Builder, b *record.Batch, i int, class func(expired bool) record.Class) {
	r := &b.Records[i]
	if b.Begins(i) {
		fmt.Fprintf(out, "%q in %q expires %d %t: ", r.Key, r.DB, r.ExpireMS, r.Expired)
		if r.Type != record.String {
			fmt.Fprintf(out, "%s\n", r.Type)
			r.Skip = true
			return
		}
	}
	for _, e := range b.Of(i) {
		fmt.Fprintf(out, "%q\n", e.Value)
	}
	if b.Ends(i) && r.Type == record.String {
		r.Settle(class(r.Expired))
	}
}

// TestStringsAtOnce: strings read in batches equal strings read one by one, and are counted equally.
func TestStringsAtOnce(t *testing.T) {
	sources := map[string]format.Source{}
	for name, path := range goldens(t) {
		sources[name] = openPath(t, path)
	}
	sources["random"], _ = write(t, filepath.Join(t.TempDir(), "a.rdb"), formatOf(t, "12"), 400, fixtures.Clock)
	total := 0
	for name, src := range sources {
		for _, types := range []record.TypeSet{record.AllTypes, record.Of(record.String), record.Of(record.Hash)} {
			for _, now := range []time.Time{fixtures.Clock, time.UnixMilli(1 << 42)} {
				want, _ := readSections(t, src, types, now, false)
				got, n := readSections(t, src, types, now, true)
				if got != want {
					t.Errorf("%s, %s: %d bytes are told, not %d", name, types, len(got), len(want))
				}
				total += n
				if n > 0 && !types.Has(record.String) {
					t.Errorf("%s: %d strings among %s", name, n, types)
				}
			}
		}
	}
	if total < 1000 {
		t.Errorf("only %d strings came several at a time", total)
	}
}
