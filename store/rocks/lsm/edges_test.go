package lsm_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kvferry/internal/testkit/testsst"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/base"
)

// index is an entry whose value stands outside of tables.
func index(key string, seq uint64, to string) testsst.Entry {
	return testsst.NewEntry(key, seq, base.KindBlobIndex, to)
}

// merge is a merge operand.
func merge(key string, seq uint64, operand string) testsst.Entry {
	return testsst.NewEntry(key, seq, base.KindMerge, operand)
}

// TestMergeOverValueElsewhere: operands fold over a value outside of tables. Where that is lost the row is, and what is
// older stays hidden; an error of it ends the walk.
func TestMergeOverValueElsewhere(t *testing.T) {
	d := testsst.NewDB(t)
	d.Table(0, 1, testsst.Spec{}, merge("a", 9, "y"), merge("a", 8, "x"), index("a", 7, "small"), testsst.Put("a", 2, "old"),
		merge("b", 9, "z"), index("b", 7, "lost"), testsst.Put("b", 2, "old"), testsst.Put("c", 1, "1"))
	db := openTest(t, d.Finish(), store.Options{})
	db.spaces[0].Values = &elsewhere{values: map[string]string{"small": "s"}}
	rows, n := testsst.ReadRows(t, db.Keyspaces()[0], nil, nil)
	if got := testsst.Show(rows); got != "a=s,x,y c=1 " {
		t.Errorf("rows %s", got)
	}
	// The value that is lost counts nowhere.
	if want := (record.Tally{Entries: 7, Visible: 2, Superseded: 2, Folded: 3}); n != want {
		t.Errorf("%+v, want %+v", n, want)
	}
	d = testsst.NewDB(t)
	d.Table(0, 1, testsst.Spec{}, testsst.Put("a", 9, "1"), merge("b", 9, "z"), index("b", 7, "broken"), testsst.Put("c", 1, "1"))
	db = openTest(t, d.Finish(), store.Options{})
	db.spaces[0].Values = &elsewhere{}
	it, err := db.spaces[0].Rows(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	if key, _, err := it.Next(); string(key) != "a" || err != nil {
		t.Errorf("%s, %v", key, err)
	}
	if _, _, err := it.Next(); err != io.ErrUnexpectedEOF {
		t.Errorf("a value that cannot be read: %v", err)
	}
}

// TestSameEntryInLogAndTable: an operand that a log and a table have is folded once, and counts as superseded once.
func TestSameEntryInLogAndTable(t *testing.T) {
	d := testsst.NewDB(t)
	d.Table(0, 1, testsst.Spec{}, merge("m", 6, "y"), merge("m", 5, "x"), testsst.Put("m", 4, "w"), testsst.Put("n", 7, "1"))
	d.Log(6, testsst.Batch(5, testsst.Op(base.KindMerge, "m", "x"), testsst.Op(base.KindMerge, "m", "y"),
		testsst.Op(base.KindPut, "n", "1")))
	ks := openTest(t, d.Finish(), store.Options{}).Keyspaces()[0]
	rows, n := testsst.ReadRows(t, ks, nil, nil)
	if got := testsst.Show(rows); got != "m=w,x,y n=1 " {
		t.Errorf("rows %s", got)
	}
	if want := (record.Tally{Entries: 7, Visible: 2, Superseded: 3, Folded: 2}); n != want {
		t.Errorf("%+v, want %+v", n, want)
	}
	it, err := ks.Rows([]byte("n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	if _, _, err := it.Next(); err != nil || !strings.HasSuffix(it.Place().File, ".log") {
		t.Errorf("of two equal entries that of the newer source is shown: %+v, %v", it.Place(), err)
	}
}

// TestUnorderedValuesElsewhere: the physical walk shows values outside of tables, and says which are lost.
func TestUnorderedValuesElsewhere(t *testing.T) {
	walk := func(to string) (s string, err error) {
		d := testsst.NewDB(t)
		d.Table(0, 1, testsst.Spec{}, index("a", 3, "small"), index("b", 3, to), testsst.Put("c", 3, "1"))
		db := openTest(t, d.Finish(), store.Options{})
		db.spaces[0].Values = &elsewhere{values: map[string]string{"small": "s"}}
		err = db.Keyspaces()[0].Unordered(func(e *store.Entry) error {
			s += fmt.Sprintf("%s:%v=%s ", e.Key, e.Kind == store.Lost, e.Value)
			return nil
		})
		return s, err
	}
	if s, err := walk("lost"); s != "a:false=s b:true= c:false=1 " || err != nil {
		t.Errorf("%s, %v", s, err)
	}
	if s, err := walk("broken"); s != "a:false=s " || err != io.ErrUnexpectedEOF {
		t.Errorf("%s, %v", s, err)
	}
}

// TestEntriesOfASpan: of the range tombstones those that reach into the span are shown.
func TestEntriesOfASpan(t *testing.T) {
	d := testsst.NewDB(t)
	spec := testsst.Spec{Tombstones: []testsst.Entry{testsst.RangeDel("b", 9, "d"), testsst.RangeDel("f", 9, "h")}}
	d.Table(0, 1, spec, testsst.Put("a", 1, ""), testsst.Put("e", 1, ""), testsst.Put("i", 1, ""))
	ks := openTest(t, d.Finish(), store.Options{}).Keyspaces()[0]
	for span, want := range map[string]string{"a c": "a b-d", "a b": "a", "c f": "b-d e", "d f": "e", "d g": "e f-h", "h z": "i"} {
		lo, hi, _ := strings.Cut(span, " ")
		it, err := ks.Entries([]byte(lo), []byte(hi))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for {
			e, err := it.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			s := string(e.Key)
			if e.Kind == store.RangeDelete {
				s += "-" + string(e.Value)
			}
			got = append(got, s)
		}
		it.Close()
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %s", span, got, want)
		}
	}
}

// TestResortDamagedTable: a table is out of order, and a block behind that is damaged: an error, and for a salvage the rows of
// the other blocks, in order.
func TestResortDamagedTable(t *testing.T) {
	d := testsst.NewDB(t)
	entries := []testsst.Entry{testsst.Put("a", 1, "1"), testsst.Put("d", 4, "4"), testsst.Put("c", 3, "3"), testsst.Put("e", 5, "5"),
		testsst.Put("f", 6, "6")}
	data := testsst.MakeTable(t, testsst.Spec{KeepOrder: true, BlockSize: 1}, entries)
	at := strings.Index(string(data), "e\x01\x05")
	if at < 0 {
		t.Fatal("no such row")
	}
	data[at] ^= 0x10
	name := fmt.Sprintf("%06d.sst", 10)
	d.File(name, data)
	d.Name(0, 1, name, testsst.Bounds{Smallest: entries[0].Internal(), Largest: entries[4].Internal()}, 6)
	dir := d.Finish()
	wantCorrupt(t, rowsError(dir, store.Options{Resort: true}), name)
	db, found := openFindings(t, dir, store.Options{Resort: true, Salvage: true})
	wantRows(t, db, 0, "a=1 c=3 d=4 f=6")
	damaged := 0
	for _, f := range *found {
		if f.Kind == record.FindDamagedBlock {
			damaged++
		}
	}
	if damaged == 0 {
		t.Errorf("findings %+v", *found)
	}
}

// TestIteratorSizeOfDamage: what cannot be opened takes nothing.
func TestIteratorSizeOfDamage(t *testing.T) {
	d := testsst.NewDB(t)
	name := d.Table(0, 1, testsst.Spec{}, testsst.Put("a", 1, ""))
	size := len(testsst.MakeTable(t, testsst.Spec{}, []testsst.Entry{testsst.Put("a", 1, "")}))
	dir := d.Finish()
	if err := os.WriteFile(filepath.Join(dir, name), make([]byte, size), 0o644); err != nil {
		t.Fatal(err)
	}
	if n := openTest(t, dir, store.Options{}).spaces[0].IteratorSize(); n != 0 {
		t.Errorf("%d bytes", n)
	}
}

// TestOrderViolationsInBatches: batches refuse a table out of order as rows do, in bytewise and in other orders.
func TestOrderViolationsInBatches(t *testing.T) {
	for _, order := range []string{testsst.BytewiseName, "forwards"} {
		for _, size := range []int{1, 1 << 20} {
			d := testsst.NewDB(t)
			d.Family(1, "one", order)
			d.Table(1, 1, testsst.Spec{Comparator: order, KeepOrder: true, BlockSize: size}, testsst.Put("aa", 1, ""),
				testsst.Put("ac", 1, ""), testsst.Put("ae", 1, ""), testsst.Put("ad", 1, ""), testsst.Put("af", 1, ""))
			it, err := openTest(t, d.Finish(), store.Options{}).Keyspaces()[1].Rows(nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			b, rows := store.Batched(it), 0
			for err == nil {
				var room [10]store.Row
				var n int
				n, err = b.NextBatch(room[:])
				rows += n
			}
			it.Close()
			var o *store.OrderError
			if !errors.As(err, &o) || string(o.Prev) != "ae" || string(o.Next) != "ad" || rows != 3 {
				t.Errorf("%s, blocks of %d: %d rows, %v", order, size, rows, err)
			}
		}
	}
}

// TestLengthsInBatches: keys whose shared and own parts take one and two bytes to count, values of such lengths, older
// versions and tombstones read the same row by row, in batches, and as they were written.
func TestLengthsInBatches(t *testing.T) {
	for _, order := range []string{testsst.BytewiseName, "forwards"} {
		var entries []testsst.Entry
		want := ""
		for i, shared := range []int{0, 1, 7, 8, 125, 126, 127, 128, 129, 255, 256, 300} {
			for j, own := range []int{1, 2, 8, 118, 119, 120, 121, 126, 127, 128, 129, 255, 256, 300} {
				key := strings.Repeat("p", shared) + string(rune('A'+i)) + strings.Repeat(string(rune('a'+j)), own)
				value := strings.Repeat("v", []int{0, 1, 125, 126, 127, 128, 129, 255, 256, 300}[(i+j)%10])
				entries = append(entries, testsst.Put(key, 9, value), testsst.Put(key, 8, "old"))
				if (i+j)%7 == 0 {
					entries = append(entries, testsst.Put(key+"!", 5, "gone"), testsst.Del(key+"!", 6))
				}
			}
		}
		testsst.SortEntries(bytes.Compare, entries)
		for _, e := range entries {
			if e.Kind == base.KindPut && e.Seq == 9 {
				want += e.Key + "=" + e.Value + " "
			}
		}
		for _, size := range []int{200, 1 << 20} {
			for _, restarts := range []int{1, 16, 1000} {
				d := testsst.NewDB(t)
				d.Family(1, "one", order)
				d.Table(1, 1, testsst.Spec{Comparator: order, BlockSize: size, Restarts: restarts}, entries...)
				ks := openTest(t, d.Finish(), store.Options{}).Keyspaces()[1]
				rows, n := testsst.ReadRows(t, ks, nil, nil)
				if testsst.Show(rows) != want || n.Entries != int64(len(entries)) {
					t.Errorf("%s, blocks of %d with restarts at %d: %d rows, %+v", order, size, restarts, len(rows), n)
				}
				it, err := ks.Rows(nil, nil)
				if err != nil {
					t.Fatal(err)
				}
				b, got := store.Batched(it), ""
				for err == nil {
					var room [50]store.Row
					var n int
					n, err = b.NextBatch(room[:])
					for _, r := range room[:n] {
						got += string(r.Key) + "=" + string(r.Value) + " "
					}
				}
				it.Close()
				if got != want || err != io.EOF {
					t.Errorf("%s, blocks of %d with restarts at %d: other rows in batches, %v", order, size, restarts, err)
				}
			}
		}
	}
}
