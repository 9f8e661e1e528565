package deleted

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"kvferry/record"
	"kvferry/store"
)

// fake is a keyspace of entries written as "key kind value", the newest of a key first.
type fake struct {
	store.Keyspace
	entries []store.Entry
	fail    error
	open    int
}

func newFake(lines ...string) *fake {
	f := &fake{}
	for i, l := range lines {
		parts := strings.Split(l, " ")
		e := store.Entry{Key: []byte(parts[0]), Seq: uint64(100 - i), Place: record.Place{File: fmt.Sprint(i)}}
		switch parts[1] {
		case "put":
			e.Value = []byte(parts[2])
		case "del":
			e.Kind = store.Delete
		case "covered":
			e.Covered, e.Value = true, []byte(parts[2])
		case "range":
			e.Kind, e.Value = store.RangeDelete, []byte(parts[2])
		}
		f.entries = append(f.entries, e)
	}
	return f
}

func (f *fake) Entries(lo, hi []byte) (store.EntryIterator, error) {
	it := &fakeEntries{f: f}
	for _, e := range f.entries {
		if bytes.Compare(e.Key, lo) >= 0 && (hi == nil || bytes.Compare(e.Key, hi) < 0) {
			it.left = append(it.left, e)
		}
	}
	f.open++
	return it, nil
}

type fakeEntries struct {
	f    *fake
	left []store.Entry
	e    store.Entry
	key  []byte
}

// Next overwrites what it returned before.
func (it *fakeEntries) Next() (*store.Entry, error) {
	for i := range it.key {
		it.key[i] = '#'
	}
	if len(it.left) == 0 {
		if it.f.fail != nil {
			return nil, it.f.fail
		}
		return nil, io.EOF
	}
	it.e, it.left = it.left[0], it.left[1:]
	it.key = append(append(it.key[:0], it.e.Key...), it.e.Value...)
	n := len(it.e.Key)
	it.e.Key, it.e.Value = it.key[:n:n], it.key[n:]
	return &it.e, nil
}

func (f *fake) Comparer() *store.Comparer { return &store.Bytewise }

func (it *fakeEntries) Close() error { it.f.open--; return nil }

func rowsOf(t *testing.T, ks store.Keyspace, lo, hi []byte) (out []string) {
	t.Helper()
	it, err := ks.Rows(lo, hi)
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	for {
		k, v, err := it.Next()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, fmt.Sprintf("%s=%s@%s", k, v, it.Place().File))
	}
}

func TestDeleted(t *testing.T) {
	f := newFake("a put 1", "b del", "b put 2", "b put 1", "c del", "d range e", "d covered 9", "e put 5", "f del", "f del", "f put 7")
	ks := Overlay(context.Background(), f, 1, deleted)
	if got, want := rowsOf(t, ks, nil, nil), []string{"b=2@1", "d=9@6", "f=7@8"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := rowsOf(t, ks, []byte("c"), []byte("f")), []string{"d=9@6"}; !slices.Equal(got, want) {
		t.Errorf("of a range: got %q, want %q", got, want)
	}
	if f.open != 0 {
		t.Errorf("%d iterators left open", f.open)
	}
}

func TestHistory(t *testing.T) {
	var lines []string
	for i := range 2 * MaxHistory {
		lines = append(lines, fmt.Sprintf("k put v%d", i))
	}
	lines = append(lines, "l put w")
	var seen []string
	ks := Overlay(context.Background(), newFake(lines...), 3, func(key []byte, history []store.Entry) ([]byte, bool, error) {
		for i := range history {
			if string(history[i].Key) != string(key) {
				t.Errorf("history of %s has key %s", key, history[i].Key)
			}
		}
		seen = append(seen, fmt.Sprintf("%s %d %s", key, len(history), history[0].Value))
		if len(history) > 3 && (string(history[2].Value) != "v2" || history[3].Value != nil) {
			t.Errorf("values %q, %q: want three of them", history[2].Value, history[3].Value)
		}
		return []byte("x"), string(key) == "l", nil
	})
	if got := rowsOf(t, ks, nil, nil); len(got) != 1 || got[0] != "l=x@128" {
		t.Errorf("rows %q", got)
	}
	if want := []string{"k 64 v0", "l 1 w"}; !slices.Equal(seen, want) {
		t.Errorf("histories %q, want %q", seen, want)
	}
}

func TestSeek(t *testing.T) {
	f := newFake("a del", "a put 1", "b del", "b put 2", "c del", "c put 3")
	it, err := Overlay(context.Background(), f, 1, deleted).Rows(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if k, _, _ := it.Next(); string(k) != "a" {
		t.Errorf("first %s", k)
	}
	if err := it.SeekGE([]byte("c")); err != nil {
		t.Fatal(err)
	}
	if k, v, _ := it.Next(); string(k) != "c" || string(v) != "3" {
		t.Errorf("after the seek: %s=%s", k, v)
	}
	var tally record.Tally
	it.Tally(&tally)
	if tally != (record.Tally{}) {
		t.Errorf("tally %+v", tally)
	}
	if err := it.Close(); err != nil || f.open != 0 {
		t.Errorf("close: %v, %d left open", err, f.open)
	}
}

func TestErrors(t *testing.T) {
	boom := errors.New("boom")
	f := newFake("a del", "a put 1")
	f.fail = boom
	it, _ := Overlay(context.Background(), f, 1, deleted).Rows(nil, nil)
	if _, _, err := it.Next(); !errors.Is(err, boom) {
		t.Errorf("entries fail: %v", err)
	}
	it, _ = Overlay(context.Background(), newFake("a put 1"), 1, func([]byte, []store.Entry) ([]byte, bool, error) {
		return nil, false, boom
	}).Rows(nil, nil)
	if _, _, err := it.Next(); !errors.Is(err, boom) {
		t.Errorf("revive fails: %v", err)
	}
}

// list is an iterator over "version" rows.
type list struct {
	store.Iterator
	left   []string
	fail   error
	closed bool
}

func (l *list) Next() (key, value []byte, err error) {
	if len(l.left) == 0 {
		if l.fail != nil {
			return nil, nil, l.fail
		}
		return nil, nil, io.EOF
	}
	key = []byte(l.left[0])
	l.left = l.left[1:]
	return key, nil, nil
}

func (l *list) Close() error { l.closed = true; return nil }

func TestVersions(t *testing.T) {
	of := func(key, _ []byte) (int64, bool) { return int64(key[0] - '0'), key[0] != 'x' }
	var seen []string
	each := func(first bool, key, _ []byte) { seen = append(seen, fmt.Sprintf("%s %v", key, first)) }
	l := &list{left: []string{"2a", "1a", "5a", "3a", "x", "3b", "2b", "4a"}}
	best, n, err := Versions(l, 4, of, each)
	if best != 3 || n != 2 || err != nil || !l.closed {
		t.Errorf("best %d, %d rows, %v, closed %v", best, n, err, l.closed)
	}
	if want := []string{"2a true", "3a true", "3b false"}; !slices.Equal(seen, want) {
		t.Errorf("rows %q, want %q", seen, want)
	}
	if _, n, _ := Versions(&list{}, 4, of, each); n != 0 {
		t.Errorf("%d rows of nothing", n)
	}
	boom := errors.New("boom")
	if _, _, err := Versions(&list{fail: boom}, 4, of, each); !errors.Is(err, boom) {
		t.Errorf("got %v", err)
	}
}
