package nemo_test

import (
	"context"
	"io"
	"testing"

	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/internal/testkit/formattest"
	"kvferry/nemo"
	"kvferry/record"
)

// mixed puts the benchmarks' mix of records into memory.
func mixed(t testing.TB, elements int64) format.Source {
	m := newMemory(t)
	return formattest.Fill(t, m.Create(t, format.CreateOptions{}), 0, func(types record.TypeSet) record.Reader {
		return fixtures.Mix(1, elements).Records(types.Types()[0])
	})
}

// TestReadingAllocatesNothing reads records one by one and counts allocations: only spilling may allocate.
func TestReadingAllocatesNothing(t *testing.T) {
	src := mixed(t, 200_000)
	for _, typ := range src.Types("0").Types() {
		t.Run(typ.String(), func(t *testing.T) {
			r := formattest.RecordsOf(t, src, "0", record.Of(typ), format.Span{}, &format.Env{})
			defer r.Close()
			elems := make([]record.Element, 64)
			next := func() {
				if _, err := r.Next(); err != nil {
					t.Fatal(err)
				}
				for {
					if _, err := r.Read(elems); err == io.EOF {
						return
					}
				}
			}
			for range 10 { // the first of each key length open lanes
				next()
			}
			if n := testing.AllocsPerRun(50, next); n > 0.5 {
				t.Errorf("%v allocations a record", n)
			}
		})
	}
}

// BenchmarkRead measures the cost of reading per element, over rows in memory.
func BenchmarkRead(b *testing.B) {
	src := mixed(b, 200_000)
	for _, typ := range src.Types("0").Types() {
		b.Run(typ.String(), func(b *testing.B) {
			b.ReportAllocs()
			elems := make([]record.Element, 256)
			n := 0
			for n < b.N {
				r := formattest.RecordsOf(b, src, "0", record.Of(typ), format.Span{}, &format.Env{})
				for {
					if _, err := r.Next(); err != nil {
						break
					}
					for {
						got, err := r.Read(elems)
						if err != nil {
							break
						}
						n += got
					}
				}
				r.Close()
			}
		})
	}
}

// BenchmarkList reads a list with links in random order: in memory, with an array of links and through files.
func BenchmarkList(b *testing.B) {
	const nodes = 300_000
	src, _ := openLinkedInMemory(b, nodes)
	for _, c := range []struct {
		name   string
		memory int64
	}{{"memory", 1 << 30}, {"array", 4 << 20}, {"files", 1 << 20}} {
		b.Run(c.name, func(b *testing.B) {
			for range b.N {
				e := &format.Env{Memory: c.memory, TempDir: b.TempDir()}
				readAll(b, formattest.RecordsOf(b, src, "0", record.Of(record.List), format.Span{}, e), func() {})
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/nodes, "ns/node")
		})
	}
}

// replay yields records held in memory.
type replay struct {
	headers []record.Header
	elems   [][]record.Element
}

func load(t testing.TB, r *record.Walker) *replay {
	p := &replay{}
	for {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		p.headers = append(p.headers, *h)
		p.headers[len(p.headers)-1].Key = append([]byte{}, h.Key...)
		var all []record.Element
		buf := make([]record.Element, 64)
		for {
			n, err := r.Read(buf)
			if err == io.EOF {
				break
			}
			for _, e := range buf[:n] {
				all = append(all, record.Element{Name: append([]byte{}, e.Name...), Value: append([]byte{}, e.Value...),
					Score: e.Score})
			}
		}
		p.elems = append(p.elems, all)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return p
}

// BenchmarkWrite measures the cost of encoding and sorting per element; rows are discarded.
func BenchmarkWrite(b *testing.B) {
	src := mixed(b, 200_000)
	for _, typ := range src.Types("0").Types() {
		b.Run(typ.String(), func(b *testing.B) {
			p := load(b, formattest.RecordsOf(b, src, "0", record.Of(typ), format.Span{}, &format.Env{}))
			dst, err := nemo.New().Create(context.Background(), b.TempDir(), &format.CreateOptions{
				Create: formattest.Sink{}.Create})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			b.ResetTimer()
			n := 0
			for n < b.N {
				w, err := formattest.One(dst.Shard(0, "0", record.Of(typ), 0))
				if err != nil {
					b.Fatal(err)
				}
				for i := range p.headers {
					if err := w.Begin(&p.headers[i]); err != nil {
						b.Fatal(err)
					}
					if err := w.Write(p.elems[i]); err != nil {
						b.Fatal(err)
					}
					if err := w.End(); err != nil {
						b.Fatal(err)
					}
					n += len(p.elems[i])
				}
				if err := w.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
