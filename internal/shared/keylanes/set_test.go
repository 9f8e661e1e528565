package keylanes

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"kvferry/internal/testkit/memstore"
	"kvferry/record"
	"kvferry/store"
)

// testLayout has rows 'd' len key '=' rest; lengths over 250 are invalid.
func testLayout() Layout {
	return Layout{
		PrefixLen:    2,
		AppendPrefix: func(dst []byte, klen int) []byte { return append(dst, 'd', byte(klen)) },
		Parse:        func(raw []byte) (int, bool) { return int(raw[1]), raw[0] == 'd' && raw[1] <= 250 },
		MinRest:      1,
		From:         []byte("d"),
		To:           []byte("e"),
	}
}

func raw(key, rest string) string {
	return "d" + string([]byte{byte(len(key))}) + key + "=" + rest
}

// walk requests keys from a set and records everything it returns.
func walk(t *testing.T, d *Directory, keys []string, lo, hi []byte) (found, strays []string, tally record.Tally) {
	t.Helper()
	s, err := d.Open(lo, hi, int64(len(keys)%7), func(c record.Class, key, value []byte, _ record.Place) {
		strays = append(strays, fmt.Sprintf("%s %q %q", c, key, value))
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range keys {
		if (lo != nil && k < string(lo)) || (hi != nil && k >= string(hi)) {
			continue
		}
		if err := s.Seek([]byte(k)); err != nil {
			t.Fatal(err)
		}
		for ended := false; ; ended = s.Ended() {
			rest, value, ok, err := s.Next()
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			if ended {
				t.Errorf("%q has ended, and has a row %q", k, rest)
			}
			if want := raw(k, string(rest[1:])); string(s.Raw()) != want {
				t.Errorf("raw key %q, want %q", s.Raw(), want)
			}
			found = append(found, fmt.Sprintf("%q %q %q", k, rest, value))
		}
	}
	if err := s.Finish(); err != nil {
		t.Fatal(err)
	}
	s.Tally(&tally)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return found, strays, tally
}

func TestSetHandsOutEveryRow(t *testing.T) {
	m := memstore.New().Dir("x")
	for _, k := range []string{
		"c", "d", "d\x00", raw("", "e"), raw("a", "1"), raw("a", "2"), raw("b", "1"), "d\x01c",
		raw("c", ""), raw("aa", "x"), raw("ab", "y"), "d\x02ab", "d\xfbzz", "d\xff", "e", "f",
	} {
		m.Put("default", []byte(k), []byte("v"))
	}
	d := NewDirectory(m.Keyspaces()[0], testLayout())
	found, strays, tally := walk(t, d, []string{"a", "aa", "c", "d", "zzz"}, nil, nil)
	wantFound := []string{`"a" "=1" "v"`, `"a" "=2" "v"`, `"aa" "=x" "v"`, `"c" "=" "v"`}
	wantStrays := []string{
		`orphan "d\x01b=1" "v"`, `malformed "d\x01c" "v"`, `orphan "d\x00=e" "v"`,
		`malformed "d\x02ab" "v"`, `orphan "d\x02ab=y" "v"`,
		`malformed "d" "v"`, `malformed "d\xfbzz" "v"`, `malformed "d\xff" "v"`,
	}
	slices.Sort(strays)
	slices.Sort(wantStrays)
	if !slices.Equal(found, wantFound) {
		t.Errorf("found %q\nwant  %q", found, wantFound)
	}
	// "d\x00" has no lane: it is in the lane of the empty key, and too short.
	wantStrays = append(wantStrays, `malformed "d\x00" "v"`)
	slices.Sort(wantStrays)
	if !slices.Equal(strays, wantStrays) {
		t.Errorf("strays %q\nwant   %q", strays, wantStrays)
	}
	if want := int64(13); tally.Visible != want || tally.Entries != want {
		t.Errorf("tally %+v, want %d", tally, want)
	}
	if lens, _ := d.Lens(); !slices.Equal(lens, []int{0, 1, 2}) {
		t.Errorf("lens %v", lens)
	}
}

// TestSeekRow: a key goes on at the first row at or after the one sought, whether it is in memory or not, and ends where
// another begins.
func TestSeekRow(t *testing.T) {
	m := memstore.New().Dir("x")
	for i := range 3 * record.BatchLen {
		m.Put("default", []byte(raw("a", fmt.Sprintf("%03d", i))), []byte("v"))
	}
	m.Put("default", []byte(raw("b", "0")), []byte("v"))
	for _, x := range []struct {
		at   []string
		want string
		left int
	}{
		{[]string{""}, "=000", 3 * record.BatchLen},
		{[]string{"005"}, "=005", 3*record.BatchLen - 5},
		{[]string{"0051"}, "=006", 3*record.BatchLen - 6},
		{[]string{"005", "003"}, "=005", 3*record.BatchLen - 5}, // never back
		{[]string{"150"}, "=150", 3*record.BatchLen - 150},
		{[]string{"005", "150", "191"}, "=191", 1},
		{[]string{"192"}, "", 0},
	} {
		s, err := NewDirectory(m.Keyspaces()[0], testLayout()).Open(nil, nil, 4,
			func(class record.Class, key, _ []byte, _ record.Place) {
				t.Errorf("%q: a stray %q, %v", x.at, key, class)
			})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(s.SeekRow([]byte(raw("a", "7"))), s.Seek([]byte("a"))); err != nil {
			// without a key it has no effect
			t.Fatal(err)
		}
		for _, at := range x.at {
			if err := s.SeekRow([]byte(raw("a", at))); err != nil {
				t.Fatal(err)
			}
		}
		first, left := "", 0
		for rest, _, ok, err := s.Next(); ok || err != nil; rest, _, ok, err = s.Next() {
			if err != nil {
				t.Fatal(err)
			}
			if left++; left == 1 {
				first = string(rest)
			}
		}
		if first != x.want || left != x.left {
			t.Errorf("%q: %d rows from %q, want %d from %q", x.at, left, first, x.left, x.want)
		}
		if err := s.Seek([]byte("b")); err != nil {
			t.Fatal(err)
		}
		if rest, _, ok, err := s.Next(); !ok || err != nil || string(rest) != "=0" {
			t.Errorf("%q: the next key has %q, %v", x.at, rest, err)
		}
		if err := errors.Join(s.SeekRow([]byte("e")), s.Close()); err != nil {
			t.Error(err)
		}
	}
}

// TestSeekRowInChunk: a lane that was closed to make room goes on at the row sought, too, in its chunk or behind it.
func TestSeekRowInChunk(t *testing.T) {
	m := memstore.New().Dir("x")
	for i := range 3 * record.BatchLen {
		m.Put("default", []byte(raw("a", fmt.Sprintf("%03d", i))), []byte("v"))
	}
	m.Put("default", []byte(raw("bb", "0")), []byte("v"))
	const rows = 3 * record.BatchLen
	for at, want := range map[string]int{"": rows, "001": rows - 1, "150": rows - 150, "192": 0} {
		d := NewDirectory(m.Keyspaces()[0], testLayout())
		d.MaxOpen = 1
		s, err := d.Open(nil, nil, 200, func(class record.Class, key, _ []byte, _ record.Place) {
			t.Errorf("a stray %q, %v", key, class)
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(s.Seek([]byte("a")), s.Seek([]byte("bb")), s.Seek([]byte("a"))); err != nil {
			t.Fatal(err)
		}
		if s.cur.it != nil || s.cur.ahead.empty() {
			t.Fatal("the lane is open, or has no chunk")
		}
		if err := s.SeekRow([]byte(raw("a", at))); err != nil {
			t.Fatal(err)
		}
		left := 0
		for _, _, ok, err := s.Next(); ok || err != nil; _, _, ok, err = s.Next() {
			if err != nil {
				t.Fatal(err)
			}
			left++
		}
		if err := s.Close(); err != nil || left != want {
			t.Errorf("%q: %d rows, want %d; %v", at, left, want, err)
		}
	}
}

// TestEnded: the end of a key is known while the row behind it is in memory.
func TestEnded(t *testing.T) {
	m := memstore.New().Dir("x")
	for _, k := range []string{raw("a", "1"), raw("b", "1"), raw("b", "2")} {
		m.Put("default", []byte(k), []byte("v"))
	}
	s, err := NewDirectory(m.Keyspaces()[0], testLayout()).Open(nil, nil, 4, func(record.Class, []byte, []byte, record.Place) {})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ended := s.Ended()
	for _, key := range []string{"a", "b"} {
		if err := s.Seek([]byte(key)); err != nil {
			t.Fatal(err)
		}
		for {
			rows, _, err := s.Batch(1)
			if err != nil {
				t.Fatal(err)
			}
			if len(rows) == 0 {
				break
			}
			if got, want := s.Ended(), string(rows[0].Key) == raw("a", "1"); got != want || ended || s.Released() {
				t.Errorf("after %q: ended %v, want %v", rows[0].Key, got, want)
			}
		}
	}
}

// randomRows makes rows of many key lengths over a small alphabet, some malformed.
func randomRows(rng *rand.Rand, m *memstore.Store) (keys, rows []string) {
	alphabet := []byte{0, 'a', 0xfe, 0xff}
	seen := make(map[string]bool)
	for range 400 {
		k := make([]byte, rng.Intn(7))
		for i := range k {
			k[i] = alphabet[rng.Intn(len(alphabet))]
		}
		r := raw(string(k), string(alphabet[:rng.Intn(3)]))
		if rng.Intn(10) == 0 {
			r = r[:1+rng.Intn(len(r)-1)]
		}
		if !seen[r] {
			rows = append(rows, r)
			m.Put("default", []byte(r), []byte("v"))
		}
		if rng.Intn(2) == 0 && !seen["k"+string(k)] {
			keys = append(keys, string(k))
			seen["k"+string(k)] = true
		}
		seen[r] = true
	}
	slices.Sort(keys)
	return keys, rows
}

// TestSpansAddUp cuts random keyspaces into spans and checks that together they return the rows of one pass
// over the whole keyspace, each row once, even if lanes are closed and reopened constantly.
func TestSpansAddUp(t *testing.T) {
	for seed := range int64(60) {
		rng := rand.New(rand.NewSource(seed))
		m := memstore.New().Dir("x")
		keys, rows := randomRows(rng, m)
		ks := m.Keyspaces()[0]
		found, strays, tally := walk(t, NewDirectory(ks, testLayout()), keys, nil, nil)
		if n := int64(len(rows)); tally.Visible != n || int64(len(found)+len(strays)) != n {
			t.Fatalf("seed %d: %d rows, tally %d, found %d, strays %d", seed, n, tally.Visible, len(found), len(strays))
		}
		cuts := []string{string(rune('a')), "\xff", "a\xff", "aaa", "\xff\xff\xff\xff\xff\xff\xff\xff", "a\x00"}
		for range rng.Intn(5) {
			cuts = append(cuts, keys[rng.Intn(len(keys))]+"x"[:rng.Intn(2)])
		}
		slices.Sort(cuts)
		cuts = slices.DeleteFunc(slices.Compact(cuts), func(s string) bool { // a span of one key is a lookup
			return s == "" || slices.Contains(cuts, strings.TrimSuffix(s, "\x00")) && strings.HasSuffix(s, "\x00")
		})
		d := NewDirectory(ks, testLayout())
		d.MaxOpen = 1 + rng.Intn(3)
		var found2, strays2 []string
		var tally2 record.Tally
		for i := 0; i <= len(cuts); i++ {
			var lo, hi []byte
			if i > 0 {
				lo = []byte(cuts[i-1])
			}
			if i < len(cuts) {
				hi = []byte(cuts[i])
			}
			f, st, ta := walk(t, d, keys, lo, hi)
			found2, strays2 = append(found2, f...), append(strays2, st...)
			tally2.Add(&ta)
		}
		slices.Sort(strays)
		slices.Sort(strays2)
		if !slices.Equal(found, found2) || !slices.Equal(strays, strays2) {
			t.Fatalf("seed %d: spans differ from the whole:\n%q\n%q\n%q\n%q", seed, found, found2, strays, strays2)
		}
		if tally2 != tally {
			t.Fatalf("seed %d: tally of spans %+v, of the whole %+v", seed, tally2, tally)
		}
	}
}

func TestOpenLanesAreBounded(t *testing.T) {
	m := memstore.New().Dir("x")
	var keys []string
	for n := range 200 {
		for _, c := range "abc" {
			k := string(bytes.Repeat([]byte{byte(c)}, n))
			keys = append(keys, k)
			m.Put("default", []byte(raw(k, "1")), nil)
			m.Put("default", []byte(raw(k, "2")), nil)
		}
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	ks := &countingKeyspace{Keyspace: m.Keyspaces()[0]}
	found, strays, tally := walk(t, NewDirectory(ks, testLayout()), keys, nil, nil)
	if len(found) != 2*len(keys) || len(strays) != 0 || tally.Visible != int64(len(found)) {
		t.Errorf("found %d, strays %d, visible %d", len(found), len(strays), tally.Visible)
	}
	if ks.most > MaxOpen {
		t.Errorf("%d iterators open at once", ks.most)
	}
	if ks.open != 0 {
		t.Errorf("%d iterators left open", ks.open)
	}
}

// weighing is a keyspace whose iterators take size bytes.
type weighing struct {
	*countingKeyspace
	size int64
}

func (w weighing) IteratorSize() int64 { return w.size }

// TestOpenLanesKeepToMemory: the larger an iterator, the fewer are open, down to a minimum.
func TestOpenLanesKeepToMemory(t *testing.T) {
	l, keys := manyLanes(400, 100)
	for _, c := range []struct {
		size int64
		want int
	}{{0, MaxOpen}, {1 << 10, MaxOpen}, {1 << 16, 16}, {1 << 30, minOpen}} {
		ks := &countingKeyspace{Keyspace: l.Keyspace}
		s, err := NewDirectory(weighing{ks, c.size}, testLayout()).Open(nil, nil, 1<<20,
			func(record.Class, []byte, []byte, record.Place) {})
		if err != nil {
			t.Fatal(err)
		}
		rows := 0
		for _, k := range keys {
			if err := s.Seek([]byte(k)); err != nil {
				t.Fatal(err)
			}
			for ok := true; ok; rows++ {
				if _, _, ok, err = s.Next(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if ks.most != c.want || rows != 3*len(keys) {
			t.Errorf("%d bytes each: %d iterators open at once, want %d; %d rows", c.size, ks.most, c.want, rows)
		}
		s.Close()
	}
}

// countingKeyspace counts open iterators and fails at a chosen row.
type countingKeyspace struct {
	store.Keyspace
	open, most int
	failAt     int
}

var errTest = errors.New("disk on fire")

func (k *countingKeyspace) Rows(lo, hi []byte) (store.Iterator, error) {
	it, err := k.Keyspace.Rows(lo, hi)
	k.open++
	k.most = max(k.most, k.open)
	return &countingIterator{Iterator: it, k: k}, err
}

type countingIterator struct {
	store.Iterator
	k *countingKeyspace
}

func (it *countingIterator) Next() (key, value []byte, err error) {
	if it.k.failAt--; it.k.failAt == 0 {
		return nil, nil, errTest
	}
	return it.Iterator.Next()
}

func (it *countingIterator) Close() error {
	it.k.open--
	return it.Iterator.Close()
}

func TestErrorsComeThrough(t *testing.T) {
	m := memstore.New().Dir("x")
	for _, k := range []string{"a", "b", "cc", "dd"} {
		m.Put("default", []byte(raw(k, "1")), nil)
		m.Put("default", []byte(raw(k, "2")), nil)
	}
	m.Put("default", []byte("d"), nil)
	for at := 1; ; at++ {
		ks := &countingKeyspace{Keyspace: m.Keyspaces()[0], failAt: at}
		err := readAll(NewDirectory(ks, testLayout()), "b", "cc")
		if ks.open != 0 {
			t.Errorf("failing at row %d: %d iterators left open", at, ks.open)
		}
		if ks.failAt > 0 {
			if err != nil || at < 12 {
				t.Errorf("no failure before row %d: %v", at, err)
			}
			return
		}
		if !errors.Is(err, errTest) {
			t.Errorf("failing at row %d: error %v", at, err)
		}
	}
}

func readAll(d *Directory, keys ...string) error {
	s, err := d.Open(nil, nil, 0, func(record.Class, []byte, []byte, record.Place) {})
	if err != nil {
		return err
	}
	defer s.Close()
	for _, k := range keys {
		if err := s.Seek([]byte(k)); err != nil {
			return err
		}
		for ok := true; ok; {
			if _, _, ok, err = s.Next(); err != nil {
				return err
			}
		}
	}
	return s.Finish()
}

func TestLayout(t *testing.T) {
	l := testLayout()
	for _, c := range []struct {
		raw  string
		want string
		ok   bool
	}{
		{raw("ab", "x"), "ab", true}, {raw("", ""), "", true}, {"d\x02ab", "", false}, {"d", "", false},
		{"d\xfb=", "", false}, {"e\x01a=", "", false}, {"", "", false},
	} {
		if k, ok := l.UserKey([]byte(c.raw)); string(k) != c.want || ok != c.ok {
			t.Errorf("user key of %q: %q, %v", c.raw, k, ok)
		}
	}
	from, to := l.Rows([]byte("a\xff"))
	if string(from) != "d\x02a\xff" || string(to) != "d\x02b" {
		t.Errorf("rows of a key: %q to %q", from, to)
	}
	if _, ok := store.Successor([]byte("\xff\xff")); ok {
		t.Error("a successor of all 0xFF")
	}
}

func TestNextAllocatesNothing(t *testing.T) {
	s, keys := wide(t, 1000)
	defer s.Close()
	i := 0
	n := testing.AllocsPerRun(500, func() {
		if err := s.Seek(keys[i]); err != nil {
			t.Fatal(err)
		}
		i++
		for ok := true; ok; {
			_, _, ok, _ = s.Next()
		}
	})
	if n != 0 {
		t.Errorf("%v allocations a record", n)
	}
}

// wide returns a set over n records of ten rows.
func wide(t testing.TB, n int) (*Set, [][]byte) {
	rows := make([]string, 0, 10*n)
	var keys [][]byte
	for i := range n {
		k := fmt.Sprintf("key:%08d", i)
		keys = append(keys, []byte(k))
		for j := range 10 {
			rows = append(rows, raw(k, fmt.Sprintf("field:%d", j)))
		}
	}
	s, err := NewDirectory(fixed{rows: rows}, testLayout()).Open(nil, nil, 0, func(record.Class, []byte, []byte, record.Place) {})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Seek(nil); err != nil {
		t.Fatal(err)
	}
	return s, keys
}

// fixed is a keyspace of sorted rows that is almost free to walk.
type fixed struct {
	store.Keyspace
	rows []string
}

func (f fixed) Rows(lo, _ []byte) (store.Iterator, error) {
	it := &fixedIterator{}
	for _, r := range f.rows {
		it.rows = append(it.rows, []byte(r))
	}
	return it, it.SeekGE(lo)
}

type fixedIterator struct {
	store.Iterator
	rows [][]byte
}

func (it *fixedIterator) Next() (key, value []byte, err error) {
	if len(it.rows) == 0 {
		return nil, nil, io.EOF
	}
	key, it.rows = it.rows[0], it.rows[1:]
	return key, nil, nil
}

func (it *fixedIterator) SeekGE(key []byte) error {
	i, _ := slices.BinarySearchFunc(it.rows, key, bytes.Compare)
	it.rows = it.rows[i:]
	return nil
}

func (it *fixedIterator) Tally(*record.Tally) {}

func (it *fixedIterator) Close() error { return nil }

// BenchmarkNext measures the cost of a lane per row on top of the store's iterator.
func BenchmarkNext(b *testing.B) {
	s, keys := wide(b, b.N/10+1)
	defer s.Close()
	if err := s.Seek(keys[0]); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for _, k := range keys {
		if err := s.Seek(k); err != nil {
			b.Fatal(err)
		}
		for ok := true; ok; {
			_, _, ok, _ = s.Next()
		}
	}
}

// TestLookups opens random keyspaces at each key alone: it reads the rows of the key and no others, malformed ones in
// its range among them, and never looks for lanes.
func TestLookups(t *testing.T) {
	for seed := range int64(20) {
		m := memstore.New().Dir("x")
		keys, rows := randomRows(rand.New(rand.NewSource(seed)), m)
		ks := m.Keyspaces()[0]
		for _, key := range append(keys, "nobody", strings.Repeat("x", 251)) {
			d := NewDirectory(ks, testLayout())
			found, _, tally := walk(t, d, []string{key}, []byte(key), []byte(key+"\x00"))
			own := 0
			for _, r := range rows {
				if len(key) <= 250 && strings.HasPrefix(r, strings.TrimSuffix(raw(key, ""), "=")) {
					own++
				}
			}
			if tally.Visible != int64(own) || len(found) > own || d.lanes != nil {
				t.Fatalf("seed %d, key %q: %d rows read and %d found of %d, lanes %v", seed, key, tally.Visible, len(found), own,
					d.lanes)
			}
		}
	}
}
