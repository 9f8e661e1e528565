package sorted_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"os"
	"slices"
	"testing"

	"kvferry/internal/pass/sorted"
	"kvferry/record"
)

// kept is a record in memory.
type kept struct {
	h     record.Header
	elems []record.Element
}

// reader yields records in the given order. Its views expire as early as the contract allows.
type reader struct {
	records []kept
	at, pos int
	h       record.Header
	scratch []byte
	closed  int
	fail    error // instead of io.EOF
}

func (r *reader) Next() (*record.Header, error) {
	if r.at == len(r.records) {
		return nil, cmpErr(r.fail)
	}
	r.h = r.records[r.at].h
	r.h.Key = bytes.Clone(r.h.Key)
	r.at++
	r.pos = 0
	return &r.h, nil
}

func cmpErr(err error) error {
	if err == nil {
		return io.EOF
	}
	return err
}

func (r *reader) Read(dst []record.Element) (int, error) {
	for i := range r.scratch {
		r.scratch[i] = 0xEE
	}
	r.scratch = r.scratch[:0]
	elems := r.records[r.at-1].elems
	if r.pos == len(elems) {
		return 0, io.EOF
	}
	n := min(len(dst), len(elems)-r.pos, 7)
	size := 0
	for _, e := range elems[r.pos : r.pos+n] {
		size += len(e.Name) + len(e.Value)
	}
	r.scratch = slices.Grow(r.scratch, size)
	for i, e := range elems[r.pos : r.pos+n] {
		e.Name, e.Value = r.view(e.Name), r.view(e.Value)
		dst[i] = e
	}
	r.pos += n
	return n, nil
}

func (r *reader) view(b []byte) []byte {
	r.scratch = append(r.scratch, b...)
	return r.scratch[len(r.scratch)-len(b):]
}

func (r *reader) Heavy() bool              { return r.at%5 == 0 }
func (r *reader) End(*record.Record) error { return nil }
func (r *reader) Close() error             { r.closed++; return nil }

// random returns records of all types with awkward keys.
func random(seed int64, n int) []kept {
	rnd := rand.New(rand.NewSource(seed))
	seen := map[string]bool{}
	var out []kept
	for len(out) < n {
		key := make([]byte, rnd.Intn(4))
		for i := range key {
			key[i] = []byte{0, 1, 0xFF, 'a'}[rnd.Intn(4)]
		}
		key = append(key, fmt.Sprint(rnd.Intn(n))...)[:rnd.Intn(len(key)+2)]
		h := record.Header{DB: "7", Type: record.Type(1 + rnd.Intn(6)), Key: key, ExpireMS: rnd.Int63n(3) * 1e12,
			Len: int64(rnd.Intn(3) - 1), Expired: rnd.Intn(2) == 0, ByName: rnd.Intn(2) == 0}
		if id := fmt.Sprint(h.Type, key); seen[id] {
			key = append(key, fmt.Sprint(len(out))...)
			h.Key = key
		} else {
			seen[id] = true
		}
		if h.Type == record.Stream {
			h.Last, h.Added = bytes.Repeat([]byte{byte(n)}, 16), uint64(rnd.Intn(3))
			if rnd.Intn(2) == 0 {
				h.MaxDeleted = bytes.Repeat([]byte{byte(n + 1)}, 16)
			}
		}
		k := kept{h: h}
		for i := range []int{0, 1, 3, 100, 2000}[rnd.Intn(5)] {
			e := record.Element{Name: []byte(fmt.Sprintf("%x-%d", rnd.Int31(), i)),
				Value: bytes.Repeat([]byte{'v'}, rnd.Intn(60))}
			switch h.Type {
			case record.Hash:
				e.ExpireMS = rnd.Int63n(3)
			case record.ZSet:
				e.Score = rnd.NormFloat64()
			case record.Stream:
				e.Kind = record.Kind(rnd.Intn(4))
			}
			k.elems = append(k.elems, e)
		}
		out = append(out, k)
	}
	return out
}

func collect(t *testing.T, r *record.Walker, batch int) []kept {
	t.Helper()
	dst := make([]record.Element, batch)
	var out []kept
	for {
		h, err := r.Next()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		k := kept{h: *h}
		k.h.Key, k.h.Last, k.h.MaxDeleted = bytes.Clone(h.Key), bytes.Clone(h.Last), bytes.Clone(h.MaxDeleted)
		if h.Type == record.List && len(out)%3 == 2 {
			out = append(out, k) // left unread
			continue
		}
		for {
			n, err := r.Read(dst)
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range dst[:n] {
				e.Name, e.Value = bytes.Clone(e.Name), bytes.Clone(e.Value)
				k.elems = append(k.elems, e)
			}
		}
		out = append(out, k)
	}
}

func equal(a, b kept) error {
	x, y := a.h, b.h
	if !bytes.Equal(x.Key, y.Key) || !bytes.Equal(x.Last, y.Last) || !bytes.Equal(x.MaxDeleted, y.MaxDeleted) {
		return fmt.Errorf("key %q, want %q", x.Key, y.Key)
	}
	x.Key, y.Key, x.Last, y.Last, x.MaxDeleted, y.MaxDeleted = nil, nil, nil, nil, nil, nil
	if fmt.Sprint(x) != fmt.Sprint(y) {
		return fmt.Errorf("header %v, want %v", x, y)
	}
	if !slices.EqualFunc(a.elems, b.elems, func(e, f record.Element) bool {
		return bytes.Equal(e.Name, f.Name) && bytes.Equal(e.Value, f.Value) && e.Score == f.Score && e.ExpireMS == f.ExpireMS &&
			e.Kind == f.Kind
	}) {
		return fmt.Errorf("%d elements, want %d", len(a.elems), len(b.elems))
	}
	return nil
}

func TestRecords(t *testing.T) {
	for _, memory := range []int64{8 << 10, 256 << 10, 64 << 20} {
		dir := t.TempDir()
		in := random(memory, 300)
		src := &reader{records: in}
		r := record.Walk(sorted.Records(record.Gather(src, nil), sorted.Options{Memory: memory, TempDir: dir}))
		got := collect(t, r, 5)
		if src.closed != 1 {
			t.Error("the source holds its buffers while its records are merged")
		}
		if err := r.Close(); err != nil || src.closed != 1 {
			t.Errorf("close: %v, closed %d times", err, src.closed)
		}
		want := slices.Clone(in)
		slices.SortStableFunc(want, func(a, b kept) int { return record.Compare(&a.h, &b.h) })
		if len(got) != len(want) {
			t.Fatalf("memory %d: %d records, want %d", memory, len(got), len(want))
		}
		for i := range want {
			if want[i].h.Type == record.List && len(got[i].elems) == 0 {
				continue
			}
			if err := equal(got[i], want[i]); err != nil {
				t.Fatalf("memory %d: record %d: %v", memory, i, err)
			}
		}
		isEmpty(t, dir)
	}
}

func isEmpty(t *testing.T, dir string) {
	t.Helper()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left in the directory: %v, %v", left, err)
	}
}

func TestRecordsPassesErrors(t *testing.T) {
	boom := errors.New("boom")
	r := record.Walk(sorted.Records(record.Gather(&reader{records: random(1, 3), fail: boom}, nil),
		sorted.Options{TempDir: t.TempDir()}))
	if _, err := r.Next(); !errors.Is(err, boom) {
		t.Errorf("got %v", err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	r = record.Walk(sorted.Records(record.Gather(&reader{}, nil), sorted.Options{TempDir: t.TempDir()}))
	for range 2 {
		if _, err := r.Next(); err != io.EOF {
			t.Errorf("empty: %v", err)
		}
	}
	if _, err := r.Read(make([]record.Element, 1)); err != io.EOF {
		t.Errorf("read without a record: %v", err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

func TestByName(t *testing.T) {
	for _, memory := range []int64{8 << 10, 64 << 20} {
		dir := t.TempDir()
		in := random(9, 100)
		src := &reader{records: in}
		r := record.Walk(sorted.ByName(record.Gather(src, nil), sorted.Options{Memory: memory, TempDir: dir}))
		got := collect(t, r, 5)
		if err := r.Close(); err != nil || src.closed != 1 {
			t.Errorf("close: %v, closed %d times", err, src.closed)
		}
		for i, want := range in {
			switch want.h.Type {
			case record.List:
				if len(got[i].elems) == 0 {
					continue
				}
			case record.Hash, record.Set, record.ZSet:
				if !want.h.ByName {
					want.elems = slices.Clone(want.elems)
					slices.SortFunc(want.elems, func(a, b record.Element) int { return bytes.Compare(a.Name, b.Name) })
					want.h.ByName = true
				}
			}
			if err := equal(got[i], want); err != nil {
				t.Fatalf("memory %d: record %d: %v", memory, i, err)
			}
		}
		isEmpty(t, dir)
	}
}

// TestByNameLeavesOut checks that a large record that is left out halfway through its elements is not read on.
func TestByNameLeavesOut(t *testing.T) {
	k := kept{h: record.Header{Type: record.Set, Key: []byte("k")}}
	for i := range 1000 {
		k.elems = append(k.elems, record.Element{Name: fmt.Append(nil, i)})
	}
	r := record.Walk(sorted.ByName(record.Gather(&reader{records: []kept{k, k}}, nil), sorted.Options{TempDir: t.TempDir()}))
	for range 2 {
		if h, err := r.Next(); err != nil || string(h.Key) != "k" {
			t.Fatalf("%+v, %v", h, err)
		}
		if n, err := r.Read(make([]record.Element, 1)); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	if _, err := r.Next(); err != io.EOF || r.Close() != nil {
		t.Error(err)
	}
}
