package versioned

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"kvferry/internal/sys/extsort"
	"kvferry/internal/testkit/memstore"
	"kvferry/record"
	"kvferry/store"
)

// log is a Judge that records its calls.
type log []string

func (l *log) say(format string, args ...any) { *l = append(*l, fmt.Sprintf(format, args...)) }

func (l *log) NoIndex(member []byte, score uint64, p record.Place) {
	l.say("%s=%d has no index (%s)", member, score, p.File)
}

func (l *log) NoMember(member []byte, score uint64) { l.say("index %s=%d", member, score) }

func (l *log) Pair(member []byte, score, indexed uint64) { l.say("%s %d=%d", member, score, indexed) }

// rowsOf stores words like "a1" in a keyspace, as a member of one letter and a score of one digit. The key of
// an index row starts with the score. "-" marks rows that do not count.
func rowsOf(words string, index bool) zsetRows {
	s := new(memstore.Store)
	for _, w := range strings.Fields(words) {
		key := []byte(w)
		if index {
			key[0], key[1] = key[1], key[0]
		}
		s.Put("default", key, nil)
	}
	s.Put("default", []byte("~beyond"), nil)
	return zsetRows{Keyspace: s.Keyspaces()[0], To: []byte("~"), Decode: func(raw, _ []byte) ([]byte, uint64, bool) {
		member, score := raw[0], raw[1]
		if index {
			member, score = score, member
		}
		return []byte{member}, uint64(score - '0'), !bytes.HasSuffix(raw, []byte("-"))
	}}
}

func TestCompare(t *testing.T) {
	for _, c := range []struct {
		members, index string
		want           string
		lone           int64
	}{
		{"", "", "", 0},
		{"a1 b2", "a1 b2", "a 1=1; b 2=2", 0},
		{"a2 b1", "b1 a2", "a 2=2; b 1=1", 0},
		{"a1 b2 c3", "b2", "a=1 has no index (memory); b 2=2; c=3 has no index (memory)", 0},
		{"b2", "a1 b2 c3", "index a=1; b 2=2; index c=3", 2},
		{"a1 b2", "a9 a0 a1", "a 1=0; a 1=1; a 1=9; b=2 has no index (memory)", 0},
		{"a1", "b9 b8", "a=1 has no index (memory); index b=8; index b=9", 2},
		{"a1- b2", "a1 b2-", "index a=1; b=2 has no index (memory)", 1},
	} {
		var got log
		lone, err := compareZset(rowsOf(c.members, false), rowsOf(c.index, true), extsort.Options{TempDir: t.TempDir()}, &got)
		if err != nil || lone != c.lone || strings.Join(got, "; ") != c.want {
			t.Errorf("%q and %q: %d, %v, %q", c.members, c.index, lone, err, got)
		}
	}
}

// failing is a keyspace that cannot be opened, or whose nth row cannot be read.
type failing struct {
	store.Keyspace
	at int
}

type failingRows struct {
	store.Iterator
	left int
}

func (f failing) Rows(lo, hi []byte) (store.Iterator, error) {
	if f.at == 0 {
		return nil, os.ErrPermission
	}
	it, err := f.Keyspace.Rows(lo, hi)
	return &failingRows{it, f.at}, err
}

func (f *failingRows) Next() (key, value []byte, err error) {
	if f.left--; f.left == 0 {
		return nil, nil, os.ErrPermission
	}
	return f.Iterator.Next()
}

func TestCompareFails(t *testing.T) {
	good, temp := "a1 b2 c3", t.TempDir()
	for at := range 4 {
		for side := range 2 {
			rows := [2]zsetRows{rowsOf(good, false), rowsOf(good, true)}
			rows[side].Keyspace = failing{rows[side].Keyspace, at}
			_, err := compareZset(rows[0], rows[1], extsort.Options{TempDir: temp}, new(log))
			if !errors.Is(err, os.ErrPermission) {
				t.Errorf("side %d fails at %d: %v", side, at, err)
			}
		}
	}
	// More index rows than fit into memory, and no directory for the spill.
	many := rowsOf("", true)
	s := new(memstore.Store)
	for i := range 4000 {
		s.Put("default", fmt.Appendf(nil, "1%09d", i), nil)
	}
	many.Keyspace, many.Decode = s.Keyspaces()[0], func(raw, _ []byte) ([]byte, uint64, bool) { return raw, 1, true }
	if _, err := compareZset(rowsOf(good, false), many, extsort.Options{Memory: 1, TempDir: temp + "/gone"},
		new(log)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no directory for spools: %v", err)
	}
	var got log
	lone, err := compareZset(rowsOf(good, false), many, extsort.Options{Memory: 1, TempDir: temp}, &got)
	if err != nil || lone != 4000 || len(got) != 4003 {
		t.Errorf("%d of the index have no member, %d told, %v", lone, len(got), err)
	}
	if left, _ := os.ReadDir(temp); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}
