package lsm_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"kvferry/internal/testkit/testsst"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/lsm"
)

// elsewhere holds values outside of tables, by index; a value under an unknown name is lost.
type elsewhere struct {
	values    map[string]string
	readers   int
	givenBack int
}

func (e *elsewhere) NewReader() lsm.ValueReader { e.readers++; return e }

func (e *elsewhere) Size() int64 { return 1000 }

func (e *elsewhere) GiveBack() { e.givenBack++ }

func (e *elsewhere) At(index []byte) record.Place { return record.Place{File: string(index)} }

func (e *elsewhere) Value(_, index []byte, _ record.Place) ([]byte, error) {
	switch v, ok := e.values[string(index)]; {
	case ok:
		return []byte(v), nil
	case string(index) == "broken":
		return nil, io.ErrUnexpectedEOF
	}
	return nil, lsm.ErrLostValue
}

// TestValuesElsewhere reads rows with values outside of tables: sequentially, singly, in batches whose large values are
// released and reloaded, and as entries. A lost value loses its row, an unreadable one the rest of the rows.
func TestValuesElsewhere(t *testing.T) {
	large := strings.Repeat("L", 3*rocks.LargeValue)
	index := func(key string, seq uint64, to string) testsst.Entry {
		return testsst.NewEntry(key, seq, base.KindBlobIndex, to)
	}
	d := testsst.NewDB(t)
	d.Table(0, 1, testsst.Spec{}, testsst.Put("a", 9, "1"), index("b", 8, "small"), index("c", 7, "large"), index("d", 6, "lost"),
		testsst.Put("e", 5, "5"), index("f", 4, "small"))
	all := &elsewhere{values: map[string]string{"small": "s", "large": large}}
	db := openTest(t, d.Finish(), store.Options{Memory: 1 << 20})
	ks := db.spaces[0]
	ks.Values = nil
	if _, err := lastError(ks); !errors.Is(err, base.ErrUnsupported) {
		t.Errorf("nobody has the values: %v", err)
	}
	if n := ks.IteratorSize(); n != 16<<10 {
		t.Errorf("an iterator of %d bytes", n)
	}
	ks.Values = all
	if n := ks.IteratorSize(); n != 16<<10+1000 {
		t.Errorf("an iterator and a reader of %d bytes", n)
	}
	all.readers = 0
	rows, n := testsst.ReadRows(t, db.Keyspaces()[0], nil, nil)
	if got := fmt.Sprintf("%.9q", rows); got != fmt.Sprintf("%.9q",
		[]testsst.Row{{Key: []byte("a"), Value: []byte("1")}, {Key: []byte("b"), Value: []byte("s")},
			{Key: []byte("c"), Value: []byte(large)}, {Key: []byte("e"), Value: []byte("5")}, {Key: []byte("f"), Value: []byte("s")}}) || n.Entries != 5 || all.readers != 1 {
		t.Errorf("%s, %+v, %d readers", got, n, all.readers)
	}
	it, err := ks.Rows(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	b := store.Batched(it).(store.Releaser)
	got := ""
	for {
		var room [4]store.Row
		n, err := b.NextBatch(room[:])
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		batch := room[:n]
		here := b.Release(batch)
		for i := range batch {
			if (batch[i].Value == nil) != (i >= here) || here < n && len(batch[i].Key) != 1 {
				t.Errorf("%s: %d of %d are here", batch[i].Key, here, n)
			}
		}
		if err := b.Reload(batch); err != nil {
			t.Fatal(err)
		}
		for _, r := range batch {
			got += fmt.Sprintf("%s%d:%d ", r.Key, len(r.Value), n-here)
		}
	}
	if want := fmt.Sprintf("a1:0 b1:0 c%d:1 e1:0 f1:0 ", len(large)); got != want || all.givenBack == 0 {
		t.Errorf("batches %s, want %s; given back %d times", got, want, all.givenBack)
	}
	entries, err := lastError(ks)
	if want := fmt.Sprintf("a:put1@ b:put1@small c:put%d@large d:lost0@lost e:put1@ f:put1@small ",
		len(large)); entries != want || err != io.EOF {
		t.Errorf("entries %s, %v, want %s", entries, err, want)
	}
	delete(all.values, "small")
	d2 := testsst.NewDB(t)
	d2.Table(0, 1, testsst.Spec{}, testsst.Put("a", 9, "1"), index("b", 8, "broken"), testsst.Put("e", 5, "5"))
	ks = openTest(t, d2.Finish(), store.Options{}).spaces[0]
	ks.Values = all
	if entries, err := lastError(ks); entries != "a:put1@ " || err != io.ErrUnexpectedEOF {
		t.Errorf("entries %s before a value that cannot be read, %v", entries, err)
	}
	if it, err = ks.Rows(nil, nil); err != nil {
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

// lastError reads all entries and returns the error after them.
func lastError(ks *lsm.Keyspace) (s string, err error) {
	it, err := ks.Entries(nil, nil)
	if err != nil {
		return "", err
	}
	defer it.Close()
	for {
		e, err := it.Next()
		if err != nil {
			return s, err
		}
		kind := "put"
		if e.Kind == store.Lost {
			kind = "lost"
		}
		s += fmt.Sprintf("%s:%s%d@%s ", e.Key, kind, len(e.Value), e.ValueAt.File)
	}
}
