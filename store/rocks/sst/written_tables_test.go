package sst

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"kvferry/internal/testkit/testsst"
	"kvferry/store"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/blocks"
)

// writtenTable returns a Writer's table of n rows with values that do not compress.
func writtenTable(t *testing.T, o *WriterOptions, n, size int) []byte {
	t.Helper()
	var out bytes.Buffer
	w := NewWriter(&out, o)
	values := noise(n * size)
	for i := range n {
		if err := w.Add(fmt.Appendf(nil, "key%06d", i), values[i*size:][:size]); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestOwnFooter: a table that must be as a Writer wrote it is refused if any bit of its footer differs.
func TestOwnFooter(t *testing.T) {
	for _, format := range []Format{RocksDB2, RocksDB5, LevelDB} {
		table := writtenTable(t, &WriterOptions{Format: format, Comparer: store.Bytewise, Sequence: 1}, 50, 100)
		o := Options{Own: true, LevelDB: format == LevelDB}
		if _, err := memoryReader(table, o).Open(); err != nil {
			t.Errorf("format %d: %v", format, err)
		}
		size := footerLen
		if format == LevelDB {
			size = legacyFooterLen
		}
		for at := len(table) - size; at < len(table); at++ {
			b := bytes.Clone(table)
			b[at] ^= 1 << (at % 8)
			if _, err := memoryReader(b, o).Open(); !base.IsDamage(err) && !errors.Is(err, base.ErrUnsupported) {
				t.Errorf("format %d, byte %d of %d: %v", format, at, len(table), err)
			}
		}
		longer := slices.Concat(table[:len(table)-size], []byte{0}, table[len(table)-size:])
		if _, err := memoryReader(longer, o).Open(); err == nil || !strings.Contains(err.Error(), "it differs from the footer that was written") {
			t.Errorf("format %d, a byte before the footer: %v", format, err)
		}
	}
	other := testsst.MakeTable(t, testsst.Spec{}, testsst.SomeEntries(5)) // the index stands before the metaindex
	if _, err := memoryReader(other, Options{Own: true}).Open(); err == nil || !strings.Contains(err.Error(), "it differs from the footer that was written") {
		t.Errorf("another writer's table: %v", err)
	}
}

// TestExternalTable: a table for ingestion has the properties by which a reader gives its rows the sequence number of the
// MANIFEST; another does not.
func TestExternalTable(t *testing.T) {
	for _, external := range []bool{false, true} {
		table := writtenTable(t, &WriterOptions{Comparer: store.Bytewise, External: external}, 3, 10)
		info, err := memoryReader(table, Options{Sequence: 77}).Open()
		if err != nil || info.External != external || info.UseFixed != external || external && info.FixedSeq != 77 {
			t.Errorf("external %t: %+v, %v", external, info, err)
		}
	}
}

// TestGroupsOfOtherOrders: rows of a group are written in the order of any comparer, and a row out of it is refused.
func TestGroupsOfOtherOrders(t *testing.T) {
	down := store.Comparer{Name: "down", Compare: func(a, b []byte) int { return bytes.Compare(b, a) }}
	for _, format := range []Format{RocksDB2, RocksDB5, LevelDB} {
		o := &WriterOptions{Format: format, Comparer: down, Sequence: 5}
		var want []testsst.Entry
		g := store.Group{Prefix: []byte("p"), Tail: []byte("t")}
		for i := range 2000 {
			key := fmt.Sprintf("%04d", 2000-i)
			g.Rows = append(g.Rows, store.Row{Key: []byte(key), Value: []byte{byte(i)}})
			want = append(want, testsst.Put("p"+key+"t", 5, string([]byte{byte(i)})))
		}
		var out bytes.Buffer
		w := NewWriter(&out, o)
		for rest := g; len(rest.Rows) > 0; {
			n, err := w.AddGroup(&rest)
			if err != nil || n == 0 {
				t.Fatalf("format %d: %d rows, %v", format, n, err)
			}
			rest.Skip(n)
		}
		if _, err := w.Close(); err != nil {
			t.Fatal(err)
		}
		r := memoryReader(out.Bytes(), Options{Comparer: &down, LevelDB: format == LevelDB})
		var got []testsst.Entry
		eachBlock(t, r, func(bw blocks.Walk) {
			bl, err := bw.Load()
			if err != nil {
				t.Fatal(err)
			}
			for e := (blocks.Entries{Data: bl.Entries}); ; {
				ok, err := e.Next()
				if err != nil {
					t.Fatal(err)
				}
				if !ok {
					break
				}
				user, tr := base.SplitKey(e.Key)
				got = append(got, testsst.NewEntry(string(user), tr>>8, byte(tr), string(e.Val)))
			}
			bw.(*Walk).GiveBack() // what follows is read anew
		})
		if !slices.Equal(got, want) {
			t.Errorf("format %d: %d rows are read, want %d", format, len(got), len(want))
		}
		for _, at := range []int{1, 7, 50} {
			wrong := g
			wrong.Rows = slices.Clone(g.Rows[:100])
			wrong.Rows[at].Key = []byte("9999")
			w := NewWriter(new(bytes.Buffer), o)
			if n, err := w.AddGroup(&wrong); n != at || err != ErrOrder {
				t.Errorf("format %d, row %d is out of order: %d rows added, %v", format, at, n, err)
			}
		}
	}
}
