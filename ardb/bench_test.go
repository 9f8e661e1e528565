package ardb

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"testing"

	"kvferry/format"
	"kvferry/internal/testkit/formattest"
	"kvferry/record"
)

// benchElements is the number of elements that the benchmarks write and read at a time.
const benchElements = 200_000

// benchRecords are collections of 100 elements, as in the generator of benchmark datasets.
func benchRecords(t record.Type) []rec {
	var out []rec
	for i := range benchElements / 100 {
		r := rec{h: record.Header{Type: t, Key: []byte(fmt.Sprintf("%s:%08d", t, i))}}
		for j := range 100 {
			name := []byte(fmt.Sprintf("member-%06d", j*7919%100003))
			r.elems = append(r.elems, record.Element{Name: name, Value: []byte(fmt.Sprintf("value of %d and %d", i, j)),
				Score: float64(j)})
		}
		out = append(out, r)
	}
	return out
}

func benchWrite(b *testing.B, dir string, recs []rec) {
	b.Helper()
	target := create(b, dir, createOptions(b, kindRocksDB, "0"))
	w, err := formattest.One(target.Shard(0, "0", record.AllTypes, 16<<20))
	if err != nil {
		b.Fatal(err)
	}
	for _, r := range recs {
		if err := r.write(w); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	if _, err := target.Finish(context.Background()); err != nil {
		b.Fatal(err)
	}
}

func benchRead(b *testing.B, src format.Source) (n int) {
	b.Helper()
	r, err := src.Records(context.Background(), "0", record.AllTypes, format.Span{}, testEnv(nil))
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	buf, w := make([]record.Element, 256), record.Walk(r)
	for {
		if _, err := w.Next(); err == io.EOF {
			return n
		} else if err != nil {
			b.Fatal(err)
		}
		for {
			got, err := w.Read(buf)
			if err == io.EOF {
				break
			}
			if err != nil {
				b.Fatal(err)
			}
			n += got
		}
	}
}

func BenchmarkWriteRead(b *testing.B) {
	for _, t := range []record.Type{record.Hash, record.List, record.Set, record.ZSet} {
		recs := benchRecords(t)
		dir := filepath.Join(b.TempDir(), "src")
		benchWrite(b, dir, recs)
		b.Run("write/"+t.String(), func(b *testing.B) {
			for i := range b.N {
				benchWrite(b, filepath.Join(b.TempDir(), fmt.Sprint(i)), recs)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchElements, "ns/element")
		})
		b.Run("read/"+t.String(), func(b *testing.B) {
			src := openDir(b, dir, kindRocksDB, nil)
			for range b.N {
				if n := benchRead(b, src); n != benchElements {
					b.Fatalf("%d elements", n)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchElements, "ns/element")
		})
	}
}
