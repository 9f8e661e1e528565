package keylanes

import (
	"bytes"
	"fmt"
	"io"
	"math/rand"
	"slices"
	"testing"

	"kvferry/internal/testkit/memstore"
	"kvferry/record"
	"kvferry/store"
)

// layered counts entries like a store with many versions: tombstones at once when it is opened, and hidden
// entries after each row. It knows the place of every row.
type layered struct {
	store.Keyspace
	plain        bool // no tombstones
	opened, rows int
}

// hides is the number of entries that a row hides.
func hides(key []byte) int64 { return int64(len(key)+int(key[len(key)-1])) % 3 }

func (l *layered) Rows(lo, hi []byte) (store.Iterator, error) {
	l.opened++
	it, err := l.Keyspace.Rows(lo, hi)
	if err != nil {
		return nil, err
	}
	li := &layeredIterator{Iterator: it, l: l}
	if l.plain {
		return li, nil
	}
	tombs, err := l.Keyspace.Rows(lo, hi)
	if err != nil {
		return nil, err
	}
	for {
		key, _, err := tombs.Next()
		if err == io.EOF {
			return li, tombs.Close()
		}
		if key[len(key)-1] == 'a' {
			li.n.Entries, li.n.Tombstones = li.n.Entries+1, li.n.Tombstones+1
		}
	}
}

type layeredIterator struct {
	store.Iterator
	l    *layered
	last []byte
	n    record.Tally
}

func (it *layeredIterator) Next() (key, value []byte, err error) {
	if it.last != nil {
		n := hides(it.last)
		it.n.Entries, it.n.Superseded = it.n.Entries+n, it.n.Superseded+n
	}
	key, value, err = it.Iterator.Next()
	it.last = nil
	if err == nil {
		it.l.rows++
		it.last = bytes.Clone(key)
		it.n.Entries, it.n.Visible = it.n.Entries+1, it.n.Visible+1
	}
	return key, value, err
}

func (it *layeredIterator) Place() record.Place { return placeOf(it.last) }

func (it *layeredIterator) Tally(t *record.Tally) {
	t.Add(&it.n)
	it.n = record.Tally{}
}

func placeOf(raw []byte) record.Place {
	return record.Place{File: "t.sst", Off: int64(len(raw)), Level: 2, Seq: uint64(raw[len(raw)-1])}
}

// TestChunksAreExact reads random keyspaces, skipping some keys, with few iterators and chunks of every size:
// rows, strays, places and counts match a set that keeps all lanes open.
func TestChunksAreExact(t *testing.T) {
	for seed := range int64(80) {
		rng := rand.New(rand.NewSource(seed))
		m := memstore.New().Dir("x")
		keys, _ := randomRows(rng, m)
		for range 20 { // some rows larger than a chunk
			k := keys[rng.Intn(len(keys))]
			m.Put("default", []byte(raw(k, "big")), bytes.Repeat([]byte("v"), rng.Intn(400)))
		}
		l := &layered{Keyspace: m.Keyspaces()[0]}
		want, wantTally := placed(t, NewDirectory(l, testLayout()), keys, maxChunk)
		if wantTally.Superseded == 0 || wantTally.Tombstones == 0 {
			t.Fatalf("seed %d: nothing hidden", seed)
		}
		d := NewDirectory(l, testLayout())
		d.MaxOpen = 1 + rng.Intn(3)
		chunk := []int{0, 80, 200, 500, 5000}[rng.Intn(5)]
		got, tally := placed(t, d, keys, chunk)
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d, chunk %d: rows\n%q\nwant\n%q", seed, chunk, got, want)
		}
		if tally != wantTally {
			t.Fatalf("seed %d, chunk %d: tally %+v, want %+v", seed, chunk, tally, wantTally)
		}
	}
}

// placed records every row that a set returns, and takes the tally at times.
func placed(t *testing.T, d *Directory, keys []string, chunk int) (out []string, tally record.Tally) {
	t.Helper()
	note := func(what string, key, value []byte, p record.Place) {
		if p != placeOf(key) {
			t.Errorf("%s %q: place %+v, want %+v", what, key, p, placeOf(key))
		}
		out = append(out, fmt.Sprintf("%s %q %q", what, key, value))
	}
	s, err := d.Open(nil, nil, 0, func(c record.Class, key, value []byte, p record.Place) { note(c.String(), key, value, p) })
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.chunk = chunk
	for i, k := range keys {
		if err := s.Seek([]byte(k)); err != nil {
			t.Fatal(err)
		}
		for n := 0; n != i%4; n++ { // not all rows of each key
			_, value, ok, err := s.Next()
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			note("row", s.Raw(), value, s.Place())
		}
		if i%10 == 0 {
			s.Tally(&tally)
		}
	}
	if err := s.Finish(); err != nil {
		t.Fatal(err)
	}
	s.Tally(&tally)
	return out, tally
}

// TestBatchesAreExact reads batches of all sizes from random keyspaces, not all rows of each key, with few
// iterators and chunks of every size: rows, strays and counts match single rows with all lanes open.
func TestBatchesAreExact(t *testing.T) {
	for seed := range int64(80) {
		rng := rand.New(rand.NewSource(seed))
		m := memstore.New().Dir("x")
		keys, rows := randomRows(rng, m)
		for i := range 300 { // enough rows of one key to fill batches
			m.Put("default", []byte(raw(keys[len(keys)/2], fmt.Sprintf("%03d", i))), []byte("v"))
		}
		ks := m.Keyspaces()[0]
		want, wantTally := batches(t, NewDirectory(ks, testLayout()), keys, maxChunk, func() int { return 1 })
		if wantTally.Visible < int64(len(rows)) {
			t.Fatalf("seed %d: %d rows counted", seed, wantTally.Visible)
		}
		d := NewDirectory(ks, testLayout())
		d.MaxOpen = 1 + rng.Intn(3)
		chunk := []int{0, 80, 200, 500, 5000}[rng.Intn(5)]
		got, tally := batches(t, d, keys, chunk, func() int { return 1 + rng.Intn(100) })
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d, chunk %d: rows\n%q\nwant\n%q", seed, chunk, got, want)
		}
		if tally != wantTally {
			t.Fatalf("seed %d, chunk %d: tally %+v, want %+v", seed, chunk, tally, wantTally)
		}
	}
}

// batches records every row that a set returns: of each key at most 50 for each of its bytes.
func batches(t *testing.T, d *Directory, keys []string, chunk int, size func() int) (out []string, tally record.Tally) {
	t.Helper()
	s, err := d.Open(nil, nil, 0, func(c record.Class, key, value []byte, _ record.Place) {
		out = append(out, fmt.Sprintf("%s %q %q", c, key, value))
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.chunk = chunk
	for _, k := range keys {
		if err := s.Seek([]byte(k)); err != nil {
			t.Fatal(err)
		}
		for left := 50 * len(k); left > 0; {
			rows, skip, err := s.Batch(min(size(), left))
			if err != nil {
				t.Fatal(err)
			}
			if len(rows) == 0 {
				break
			}
			for i, r := range rows {
				if skip != 2+len(k) || string(r.Key[2:skip]) != k {
					t.Errorf("row %q of key %q: the rest is said to start at %d", r.Key, k, skip)
				}
				if p := s.PlaceAt(i); p.File == "" {
					t.Errorf("row %q has no place", r.Key)
				}
				out = append(out, fmt.Sprintf("row %q %q", r.Key, r.Value))
			}
			left -= len(rows)
		}
	}
	if err := s.Finish(); err != nil {
		t.Fatal(err)
	}
	s.Tally(&tally)
	return out, tally
}

// manyLanes fills a keyspace with records of two rows each, cycling through lens key lengths.
func manyLanes(records, lens int) (*layered, []string) {
	m := memstore.New().Dir("x")
	var keys, rows []string
	for i := range records {
		k := fmt.Sprintf("%08d%s", i, bytes.Repeat([]byte("x"), i%lens))
		keys = append(keys, k)
		rows = append(rows, raw(k, "field:1"), raw(k, "field:2"))
	}
	slices.Sort(rows) // each goes to the end
	for _, r := range rows {
		m.Put("default", []byte(r), []byte("some value"))
	}
	return &layered{Keyspace: m.Keyspaces()[0], plain: true}, keys
}

// TestManyLanesCostLittle: the cost of a row does not depend on the number of lanes that alternate. Opening an
// iterator counts as much as reading 50 rows, about right for an iterator over some tables.
func TestManyLanesCostLittle(t *testing.T) {
	cost := func(lens int) float64 {
		l, keys := manyLanes(20_000, lens)
		found, strays, _ := walk(t, NewDirectory(l, testLayout()), keys, nil, nil)
		if len(found) != 40_000 || len(strays) != 0 {
			t.Fatalf("%d lengths: found %d, strays %d", lens, len(found), len(strays))
		}
		return float64(l.rows+50*l.opened) / float64(len(found))
	}
	few, many := cost(60), cost(200)
	t.Logf("a row costs %.2f with 60 key lengths, %.2f with 200", few, many)
	if many > 3*few {
		t.Error("more than 3 times as much")
	}
}

// TestChunksAllocateNothing: once every lane has its memory, only opening allocates.
func TestChunksAllocateNothing(t *testing.T) {
	l, keys := manyLanes(30_000, 100)
	d := NewDirectory(l.Keyspace, testLayout())
	s, err := d.Open(nil, nil, 0, func(record.Class, []byte, []byte, record.Place) {})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	read := func(n int) {
		for _, k := range keys[:n] {
			if err := s.Seek([]byte(k)); err != nil {
				t.Fatal(err)
			}
			for ok := true; ok; {
				_, _, ok, _ = s.Next()
			}
		}
		keys = keys[n:]
	}
	read(5000)
	if n := testing.AllocsPerRun(1, func() { read(10_000) }); n > 2000 {
		t.Errorf("%v allocations for 20000 rows", n)
	}
}

func TestChunkSize(t *testing.T) {
	for _, c := range []struct {
		memory int64
		lanes  int
		want   int
	}{
		{defaultMemory, 1, maxChunk}, {defaultMemory, 0, maxChunk}, {1 << 20, 64, 16 << 10}, {1 << 20, 100_000, minChunk}, {1 << 40, 1, maxChunk},
	} {
		if got := chunkSize(c.memory, c.lanes); got != c.want {
			t.Errorf("%d bytes for %d lanes: %d, want %d", c.memory, c.lanes, got, c.want)
		}
	}
}

// graves is a keyspace in which rows with the value "dead" are tombstones.
type graves struct{ store.Keyspace }

func (g graves) Rows(lo, hi []byte) (store.Iterator, error) {
	it, err := g.Keyspace.Rows(lo, hi)
	return &gravesIterator{Iterator: it}, err
}

type gravesIterator struct {
	store.Iterator
	dead int64
}

func (it *gravesIterator) Next() (key, value []byte, err error) {
	for {
		key, value, err = it.Iterator.Next()
		if err != nil || string(value) != "dead" {
			return key, value, err
		}
		it.dead++
	}
}

func (it *gravesIterator) Tally(t *record.Tally) {
	it.Iterator.Tally(t)
	t.Visible -= it.dead
	t.Tombstones += it.dead
	it.dead = 0
}

// TestGravesAreCounted: entries that are no rows are counted once wherever they are, even if all rows of a key
// length were deleted.
func TestGravesAreCounted(t *testing.T) {
	for seed := range int64(80) {
		rng := rand.New(rand.NewSource(seed))
		m := memstore.New().Dir("x")
		keys, rows := randomRows(rng, m)
		dead := 0
		for _, r := range rows {
			if klen, ok := testLayoutLen(r); rng.Intn(4) == 0 || ok && klen%2 == int(seed)%2 {
				m.Put("default", []byte(r), []byte("dead"))
				dead++
			}
		}
		var sum record.Tally
		d := NewDirectory(graves{m.Keyspaces()[0]}, testLayout())
		cut := []byte(keys[rng.Intn(len(keys))])
		for _, span := range [][2][]byte{{nil, cut}, {cut, nil}} {
			_, _, tally := walk(t, d, keys, span[0], span[1])
			sum.Add(&tally)
		}
		if sum.Entries != int64(len(rows)) || sum.Tombstones != int64(dead) || sum.Visible != int64(len(rows)-dead) {
			t.Fatalf("seed %d: %d entries, %d of them tombstones: tally %+v", seed, len(rows), dead, sum)
		}
	}
}

// testLayoutLen returns the key length in a raw key.
func testLayoutLen(raw string) (int, bool) {
	l := testLayout()
	return l.klen([]byte(raw))
}
