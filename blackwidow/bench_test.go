package blackwidow_test

import (
	"context"
	"fmt"
	"io"
	"testing"

	"kvferry/blackwidow"
	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/internal/testkit/formattest"
	"kvferry/record"
)

// hundred is a batch of elements as in a nemo zset, set or hash of a hundred: ordered by name, with scores in
// no order.
func hundred() []record.Element {
	r := fixtures.NewRand(1)
	out := make([]record.Element, 100)
	for i := range out {
		out[i] = record.Element{Name: fmt.Appendf(nil, "member:%08d", i), Value: make([]byte, 100),
			Score: float64(r.Intn(1_000_000)) / 100}
	}
	return out
}

// one is reused: the writer must not allocate.
var one = record.Batch{Records: make([]record.Record, 1)}

// writeOne writes a record of the elements.
func writeOne(t testing.TB, to record.Writer, h *record.Header, elems []record.Element) {
	one.Records[0] = record.Record{Header: *h, N: len(elems), Class: record.Copied}
	one.Elems = elems
	if err := to.Write(&one); err != nil {
		t.Fatal(err)
	}
}

func newSink(t testing.TB) record.Writer {
	dst, err := blackwidow.New().Create(context.Background(), "nowhere",
		&format.CreateOptions{Create: formattest.Sink{}.Create})
	if err != nil {
		t.Fatal(err)
	}
	w, err := dst.Shard(0, "0", record.AllTypes, 0)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

var writeCases = []struct {
	typ    record.Type
	byName bool
	n      int
}{{record.String, true, 1}, {record.Hash, true, 100}, {record.Hash, false, 100}, {record.List, false, 100},
	{record.Set, true, 100}, {record.ZSet, true, 100}}

// BenchmarkWriter measures the writer's cost per element on top of the store.
func BenchmarkWriter(b *testing.B) {
	elems := hundred()
	for _, c := range writeCases {
		b.Run(fmt.Sprintf("%s byName=%v", c.typ, c.byName), func(b *testing.B) {
			w := newSink(b)
			h := &record.Header{Type: c.typ, Key: []byte("key:00001234"), ByName: c.byName}
			for i := 0; i < b.N; i += c.n {
				writeOne(b, w, h, elems[:c.n])
			}
		})
	}
}

func TestWriterAllocs(t *testing.T) {
	elems := hundred()
	for _, c := range writeCases {
		w := newSink(t)
		h := &record.Header{Type: c.typ, Key: []byte("key:00001234"), ByName: c.byName}
		writeOne(t, w, h, elems[:c.n])
		if n := testing.AllocsPerRun(20, func() { writeOne(t, w, h, elems[:c.n]) }); n != 0 {
			t.Errorf("%s: %v allocations a record of %d", c.typ, n, c.n)
		}
	}
}

// repeated yields n records with the same elements and ascending keys.
type repeated struct {
	typ   record.Type
	n     int
	elems []record.Element
	h     record.Header
	key   []byte
	at    int
}

func (r *repeated) Next() (*record.Header, error) {
	if r.n == 0 {
		return nil, io.EOF
	}
	r.n--
	r.key = fmt.Appendf(r.key[:0], "key:%08d", 99999999-r.n)
	r.h = record.Header{DB: "0", Type: r.typ, Key: r.key, ByName: true}
	r.at = 0
	return &r.h, nil
}

func (r *repeated) Read(dst []record.Element) (int, error) {
	if r.at == len(r.elems) || r.typ == record.String && r.at > 0 {
		return 0, io.EOF
	}
	if r.typ == record.String {
		dst = dst[:1]
	}
	n := copy(dst, r.elems[r.at:])
	r.at += n
	return n, nil
}

func (r *repeated) Heavy() bool { return false }

func (r *repeated) End(*record.Record) error { return nil }

func (r *repeated) Close() error { return nil }

// readAll drains a reader and counts its elements.
func readAll(t testing.TB, r *record.Walker, buf []record.Element) (n int) {
	for {
		if _, err := r.Next(); err == io.EOF {
			return n
		} else if err != nil {
			t.Fatal(err)
		}
		for {
			got, err := r.Read(buf)
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			n += got
		}
	}
}

// BenchmarkReader measures reading from memory, an element.
func BenchmarkReader(b *testing.B) {
	elems := hundred()
	buf := make([]record.Element, 256)
	for _, typ := range blackwidow.New().Limits().Types.Types() {
		b.Run(typ.String(), func(b *testing.B) {
			m := newMemory(b)
			dst := m.Create(b, format.CreateOptions{TempDir: b.TempDir()})
			formattest.Shard(b, dst, 0, record.Of(typ), 0, record.Gather(&repeated{typ: typ, n: 1000, elems: elems}, nil))
			src := formattest.Finish(b, dst)
			b.ResetTimer()
			for i := 0; i < b.N; {
				r := formattest.RecordsOf(b, src, "0", record.Of(typ), format.Span{}, &format.Env{})
				i += readAll(b, r, buf)
				r.Close()
			}
		})
	}
}

// TestReaderAllocs: reading does not allocate per row or record, for any type.
func TestReaderAllocs(t *testing.T) {
	elems := hundred()
	buf := make([]record.Element, 256)
	for _, typ := range blackwidow.New().Limits().Types.Types() {
		m := newMemory(t)
		dst := m.Create(t, format.CreateOptions{TempDir: t.TempDir()})
		formattest.Shard(t, dst, 0, record.Of(typ), 0, record.Gather(&repeated{typ: typ, n: 200, elems: elems}, nil))
		src := formattest.Finish(t, dst)
		n := testing.AllocsPerRun(3, func() {
			r := formattest.RecordsOf(t, src, "0", record.Of(typ), format.Span{}, &format.Env{})
			readAll(t, r, buf)
			r.Close()
		})
		if n > 50 {
			t.Errorf("%s: %v allocations for 200 records", typ, n)
		}
	}
}
