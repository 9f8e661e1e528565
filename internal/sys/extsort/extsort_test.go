package extsort

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"kvferry/fixtures"
	"kvferry/record"
	"kvferry/store"
)

type row struct {
	prefix     uint64
	key, value string
}

func rows(t testing.TB, it *Iterator) (out []row) {
	t.Helper()
	for {
		p, k, v, err := it.Next()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, row{p, string(k), string(v)})
	}
}

func sorted(t testing.TB, s *Sorter, in []row) []row {
	t.Helper()
	for _, r := range in {
		if err := s.Add(r.prefix, []byte(r.key), []byte(r.value)); err != nil {
			t.Fatal(err)
		}
	}
	if s.Len() != len(in) {
		t.Fatalf("Len = %d, want %d", s.Len(), len(in))
	}
	it, err := s.Sort()
	if err != nil {
		t.Fatal(err)
	}
	return rows(t, it)
}

// random returns rows with few prefixes, many equal keys, and values that show the insertion order.
func random(seed uint64, n, wide int) []row {
	r := fixtures.NewRand(seed)
	out := make([]row, n)
	for i := range out {
		key := make([]byte, r.Intn(wide))
		r.Fill(key)
		for j := range key {
			key[j] &= 3 // makes equal heads, and keys with trailing zeros
		}
		out[i] = row{uint64(r.Intn(3)), string(key), fmt.Sprint(i)}
	}
	return out
}

func model(in []row, compare func(a, b []byte) int) []row {
	out := slices.Clone(in)
	slices.SortStableFunc(out, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.prefix, b.prefix), compare([]byte(a.key), []byte(b.key)))
	})
	return out
}

func backwards(a, b []byte) int { return bytes.Compare(b, a) }

func TestSort(t *testing.T) {
	for _, memory := range []int64{1, 64 << 10, 1 << 20, 0} {
		for _, wide := range []int{1, 4, 20, 300} {
			for name, compare := range map[string]func(a, b []byte) int{"bytewise": nil, "backwards": backwards} {
				t.Run(fmt.Sprint(memory, wide, name), func(t *testing.T) {
					s := New(Options{Compare: compare, Memory: memory, TempDir: t.TempDir()})
					defer s.Close()
					for round, n := range []int{0, 1, 3000, 7, 5000} {
						in := random(uint64(round), n, wide)
						want := compare
						if want == nil {
							want = bytes.Compare
						}
						if got := sorted(t, s, in); !slices.Equal(got, model(in, want)) {
							t.Fatalf("round %d: wrong order", round)
						}
						s.Reset()
					}
				})
			}
		}
	}
}

func TestSortTwiceGivesTheSame(t *testing.T) {
	for _, memory := range []int64{1, 1 << 20} {
		s := New(Options{Memory: memory, TempDir: t.TempDir()})
		first := sorted(t, s, random(1, 4000, 12))
		it, err := s.Sort()
		if err != nil {
			t.Fatal(err)
		}
		if second := rows(t, it); !slices.Equal(first, second) {
			t.Error("another order the second time")
		}
		if err := s.Add(0, nil, nil); !errors.Is(err, errSorted) {
			t.Errorf("Add after Sort: %v", err)
		}
		s.Close()
	}
}

// TestMemory checks that the sorter never exceeds its memory limit, except for a large row by a small factor.
func TestMemory(t *testing.T) {
	for _, wide := range []int{1, 10, 100, 5000} {
		for _, memory := range []int64{32 << 10, 1 << 20} {
			s := New(Options{Memory: memory, TempDir: t.TempDir()})
			most := memory + int64(2*wide) // a row is held twice while it is written
			in := random(7, int(memory)*4/(wide/2+itemSize), wide)
			for _, r := range in {
				if err := s.Add(r.prefix, []byte(r.key), nil); err != nil {
					t.Fatal(err)
				}
				if held := s.arena + cap(s.items)*itemSize + cap(s.frame); int64(held) > most {
					t.Fatalf("width %d: %d bytes held of %d", wide, held, memory)
				}
			}
			if len(s.runs) < 2 || len(s.runs) > 12 {
				t.Errorf("width %d, memory %d: %d runs of %d rows", wide, memory, len(s.runs), len(in))
			}
			it, err := s.Sort()
			if err != nil {
				t.Fatal(err)
			}
			held := cap(s.frame)
			for _, c := range it.heap {
				held += cap(c.frame)
			}
			if int64(held) > most {
				t.Errorf("width %d: %d bytes of frames held of %d", wide, held, memory)
			}
			s.Close()
		}
	}
}

func TestSmallRowsNeedNoBudget(t *testing.T) {
	s := New(Options{})
	sorted(t, s, random(1, 10, 10))
	if held := s.arena + cap(s.items)*itemSize; held > 4<<10 {
		t.Errorf("10 rows hold %d bytes", held)
	}
}

func TestLargeRows(t *testing.T) {
	const large = 3 << 20
	s := New(Options{Memory: 1 << 20, TempDir: t.TempDir()})
	defer s.Close()
	in := []row{{0, "b", strings.Repeat("x", large)}, {0, "a", "1"}, {0, strings.Repeat("a", large), ""}, {0, "", "2"}}
	if got := sorted(t, s, in); !slices.Equal(got, model(in, bytes.Compare)) {
		t.Error("wrong order")
	}
	s.Reset()
	if s.arena > 1<<20 {
		t.Errorf("%d bytes held after Reset", s.arena)
	}
}

// TestMergeOfLargeFrames checks that many runs of large rows are merged in passes, a few at a time.
func TestMergeOfLargeFrames(t *testing.T) {
	s := New(Options{Memory: 64 << 10, TempDir: t.TempDir()})
	defer s.Close()
	in := random(3, 40, 10)
	for i := range in {
		in[i].value = fmt.Sprint(i, strings.Repeat("v", 60<<10))
	}
	if got := sorted(t, s, in); !slices.Equal(got, model(in, bytes.Compare)) {
		t.Error("wrong order")
	}
	if n := len(s.runs); n > 2 {
		t.Errorf("%d runs open at once", n)
	}
}

func TestSortedInputIsNotSorted(t *testing.T) {
	s := New(Options{})
	in := model(random(5, 1000, 10), bytes.Compare)
	for _, r := range in {
		if err := s.Add(r.prefix, []byte(r.key), nil); err != nil {
			t.Fatal(err)
		}
	}
	if !s.ordered {
		t.Error("order of sorted input not seen")
	}
	if err := s.Add(0, nil, nil); err != nil {
		t.Fatal(err)
	}
	if s.ordered {
		t.Error("a row out of order not seen")
	}
}

func TestNothingLeftBehind(t *testing.T) {
	dir := t.TempDir()
	s := New(Options{Memory: 1, TempDir: dir})
	sorted(t, s, random(1, 5000, 30))
	if len(s.runs) == 0 {
		t.Fatal("nothing was spilled")
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 0 {
		t.Errorf("files while sorting: %v, %v", left, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestSpillErrors(t *testing.T) {
	s := New(Options{Memory: 1, TempDir: "/nonexistent"})
	var err error
	for i := 0; i < 1000 && err == nil; i++ {
		err = s.Add(0, make([]byte, 100), nil)
	}
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "/nonexistent") {
		t.Errorf("error does not say where: %v", err)
	}
	if _, serr := s.Sort(); serr != err {
		t.Errorf("Sort after an error: %v", serr)
	}
}

// TestDamagedSpool checks that a change of any byte of a spool is detected.
func TestDamagedSpool(t *testing.T) {
	in := random(1, 600, 10)
	for flip := int64(0); ; flip += 97 {
		s := New(Options{Memory: 1, TempDir: t.TempDir()})
		for _, r := range in {
			if err := s.Add(r.prefix, []byte(r.key), []byte(r.value)); err != nil {
				t.Fatal(err)
			}
		}
		if flip >= s.spilled.size {
			s.Close()
			return
		}
		var b [1]byte
		s.spilled.f.ReadAt(b[:], flip)
		s.spilled.f.WriteAt([]byte{b[0] ^ 0x10}, flip)
		it, err := s.Sort()
		for n := 0; err == nil; n++ {
			if n > len(in) {
				t.Fatal("more rows than were added")
			}
			_, _, _, err = it.Next()
		}
		var corrupt *record.CorruptError
		if !errors.As(err, &corrupt) || !strings.Contains(err.Error(), "kvferry-sort-") {
			t.Fatalf("byte %d flipped: %v", flip, err)
		}
		s.Close()
	}
}

func TestTruncatedSpool(t *testing.T) {
	s := New(Options{Memory: 1, TempDir: t.TempDir()})
	defer s.Close()
	for _, r := range random(1, 600, 10) {
		if err := s.Add(r.prefix, []byte(r.key), nil); err != nil {
			t.Fatal(err)
		}
	}
	it, err := s.Sort()
	if err != nil {
		t.Fatal(err)
	}
	s.spilled.f.Truncate(100)
	for err == nil {
		_, _, _, err = it.Next()
	}
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("truncated spool: %v", err)
	}
}

func TestAllocs(t *testing.T) {
	s := New(Options{})
	in := random(1, 100, 10)
	keys := make([][]byte, len(in))
	for i := range in {
		keys[i] = []byte(in[i].key)
	}
	if n := testing.AllocsPerRun(50, func() { once(t, s, in, keys) }); n != 0 {
		t.Errorf("%v allocations for 100 rows", n)
	}
}

func once(t testing.TB, s *Sorter, in []row, keys [][]byte) {
	s.Reset()
	for i := range in {
		if err := s.Add(in[i].prefix, keys[i], nil); err != nil {
			t.Fatal(err)
		}
	}
	it, err := s.Sort()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, _, _, err := it.Next(); err != nil {
			return
		}
	}
}

// BenchmarkSmall sorts 100 rows by a number, like the scores of a zset. An operation is one row.
func BenchmarkSmall(b *testing.B) {
	s := New(Options{})
	r := fixtures.NewRand(1)
	in, keys := make([]row, 100), make([][]byte, 100)
	for i := range in {
		in[i].prefix = r.Uint64()
		keys[i] = fmt.Appendf(nil, "member:%06d", i)
	}
	for _, sorted := range []bool{false, true} {
		b.Run(fmt.Sprintf("sorted=%v", sorted), func(b *testing.B) {
			if sorted {
				slices.SortFunc(in, func(a, b row) int { return cmp.Compare(a.prefix, b.prefix) })
			}
			for i := 0; i < b.N; i += len(in) {
				once(b, s, in, keys)
			}
		})
	}
}

// BenchmarkSpill sorts rows beyond the memory limit. An operation is one row.
func BenchmarkSpill(b *testing.B) {
	s := New(Options{Memory: 1 << 20, TempDir: b.TempDir()})
	defer s.Close()
	r := fixtures.NewRand(1)
	key := make([]byte, 24)
	for range b.N {
		r.Fill(key)
		if err := s.Add(0, key, nil); err != nil {
			b.Fatal(err)
		}
	}
	it, err := s.Sort()
	for err == nil {
		_, _, _, err = it.Next()
	}
	if err != io.EOF {
		b.Fatal(err)
	}
}

// TestSortWithoutDepth checks that an input that partitions badly is still sorted.
func TestSortWithoutDepth(t *testing.T) {
	s := New(Options{})
	in := random(9, 500, 10)
	for _, r := range in {
		if err := s.Add(r.prefix, []byte(r.key), []byte(r.value)); err != nil {
			t.Fatal(err)
		}
	}
	s.quick(s.items, 0)
	s.ordered = true
	it, err := s.Sort()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(rows(t, it), model(in, bytes.Compare)) {
		t.Error("wrong order")
	}
}

// TestBatches checks that batches contain the same rows as Next, from memory, from spilled runs and in a range.
func TestBatches(t *testing.T) {
	batches := func(it *Iterator) (out []row) {
		var room [7]store.Row
		for {
			n, err := it.NextBatch(room[:])
			if err == io.EOF {
				return out
			}
			if err != nil || n == 0 {
				t.Fatalf("%d rows: %v", n, err)
			}
			for _, r := range room[:n] {
				out = append(out, row{0, string(r.Key), string(r.Value)})
			}
		}
	}
	for _, memory := range []int64{1, 1 << 20} {
		s := New(Options{Memory: memory, TempDir: t.TempDir()})
		in := random(3, 500, 12)
		for i := range in {
			in[i].prefix = 0
		}
		want := sorted(t, s, in)
		it, err := s.Sort()
		if err != nil {
			t.Fatal(err)
		}
		if got := batches(it); !slices.Equal(got, want) || len(got) != len(in) {
			t.Errorf("memory %d: %d rows, want %d", memory, len(got), len(want))
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	s := New(Options{})
	defer s.Close()
	sorted(t, s, []row{{0, "a", "1"}, {0, "b", "2"}, {0, "c", "3"}})
	it, err := s.Range([]byte("b"), []byte("c"))
	if err != nil {
		t.Fatal(err)
	}
	if got := batches(it); !slices.Equal(got, []row{{0, "b", "2"}}) {
		t.Errorf("a range is %v", got)
	}
}
