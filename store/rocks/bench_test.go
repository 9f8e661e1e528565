//go:build unix

package rocks

import (
	"encoding/binary"
	"fmt"
	"io"
	"math/rand"
	"testing"

	"golang.org/x/sys/unix"

	"kvferry/internal/testkit/testsst"
	"kvferry/store"
)

// Benchmarks read rows of 28 + 100 bytes, half of them compressible, snappy, 4 KiB blocks, warm.
const benchRows = 200_000

// benchDB writes rows over runs; with several, a fifth of the rows have an older version and a
// twentieth are deleted.
func benchDB(b *testing.B, runs int, cmp *store.Comparer) store.Keyspace {
	return benchTables(b, runs, testsst.Spec{}, cmp)
}

// benchTables does so with tables of some kind.
func benchTables(b *testing.B, runs int, spec testsst.Spec, cmp *store.Comparer) store.Keyspace {
	spec.Comparator, spec.BlockSize, spec.Restarts, spec.Codec = cmp.Name, 4096, 16, testsst.Snappy
	d := testsst.NewDB(b)
	if cmp.Name != testsst.BytewiseName {
		d.Edits[0] = append(testsst.EditComparator(cmp.Name), d.Edits[0][2+len(testsst.BytewiseName):]...)
	}
	parts := make([][]testsst.Entry, runs)
	r := rand.New(rand.NewSource(1))
	seq := uint64(1)
	value := make([]byte, 100)
	for i := range benchRows {
		for j := 0; j < 48; j += 8 {
			binary.LittleEndian.PutUint64(value[j:], r.Uint64())
		}
		key := fmt.Sprintf("h\x0ckey:%08d=field:%07d", i/50, i%50)
		run := r.Intn(runs)
		parts[run] = append(parts[run], testsst.Put(key, seq+uint64(run)<<32, string(value)))
		if run > 0 && i%5 == 0 {
			older := r.Intn(run)
			parts[older] = append(parts[older], testsst.Put(key, seq+uint64(older)<<32, string(value)))
		}
		if run > 0 && i%20 == 0 {
			parts[0] = append(parts[0], testsst.Put(key+"~", seq, string(value)))
			parts[run] = append(parts[run], testsst.Del(key+"~", seq+uint64(run)<<32))
		}
		seq++
	}
	for i, p := range parts {
		level := 0
		if i == 0 {
			level = 6
		}
		d.Table(0, level, spec, p...)
	}
	return openTest(b, d.Finish(), store.Options{}).Keyspaces()[0]
}

func benchScan(b *testing.B, ks store.Keyspace) {
	bench(b, func() (n int, err error) {
		it, err := ks.Rows(nil, nil)
		if err != nil {
			return 0, err
		}
		defer it.Close()
		for {
			if _, _, err := it.Next(); err != nil {
				return n, err
			}
			n++
		}
	})
}

// bench reports what scan costs, a row.
func bench(b *testing.B, scan func() (rows int, err error)) {
	b.ReportAllocs()
	b.SetBytes(benchRows * 128)
	b.ResetTimer()
	cpu := cpuTime()
	for range b.N {
		if n, err := scan(); err != io.EOF || n != benchRows {
			b.Fatalf("%d rows, %v", n, err)
		}
	}
	b.ReportMetric(float64(cpuTime()-cpu)/float64(b.N)/benchRows, "cpu-ns/row")
}

// cpuTime returns the CPU time of the process, which does not depend on the load of the machine.
func cpuTime() int64 {
	var r unix.Rusage
	unix.Getrusage(unix.RUSAGE_SELF, &r)
	return r.Utime.Nano() + r.Stime.Nano()
}

// BenchmarkScan reads one sorted run.
func BenchmarkScan(b *testing.B) { benchScan(b, benchDB(b, 1, &store.Bytewise)) }

// BenchmarkScanModern reads the same rows from a table as RocksDB writes it today: format_version 5, XXH3, an index
// with user keys and deltas. It is to take no more than 1/0.9 of the time of BenchmarkScan.
func BenchmarkScanModern(b *testing.B) {
	benchScan(b, benchTables(b, 1, testsst.Spec{Version: 5, Checksum: testsst.XXH3, Delta: true, UserKeys: true, Hash: true},
		&store.Bytewise))
}

// BenchmarkScanContext is BenchmarkScanModern with format_version 6 and a two-level index.
func BenchmarkScanContext(b *testing.B) {
	benchScan(b, benchTables(b, 1, testsst.Spec{Version: 6, Checksum: testsst.XXH3, Delta: true, UserKeys: true, Hash: true,
		IndexType: testsst.TwoLevelIndex}, &store.Bytewise))
}

// BenchmarkMerge reads 13 overlapping sorted runs.
func BenchmarkMerge(b *testing.B) { benchScan(b, benchDB(b, 13, &store.Bytewise)) }

// BenchmarkScanOrdered and BenchmarkMergeOrdered read in an order that only a comparer knows.
// BenchmarkBatch reads as BenchmarkScan does, several rows at a time.
func BenchmarkBatch(b *testing.B) { benchBatch(b, benchDB(b, 1, &store.Bytewise)) }

// BenchmarkMergeBatch reads as BenchmarkMerge does, several rows at a time.
func BenchmarkMergeBatch(b *testing.B) { benchBatch(b, benchDB(b, 13, &store.Bytewise)) }

func benchBatch(b *testing.B, ks store.Keyspace) {
	batch := make([]store.Row, 64)
	bench(b, func() (n int, err error) {
		it, err := ks.Rows(nil, nil)
		if err != nil {
			return 0, err
		}
		defer it.Close()
		for {
			got, err := it.(store.Batcher).NextBatch(batch)
			n += got
			if err != nil {
				return n, err
			}
		}
	})
}

func BenchmarkScanOrdered(b *testing.B) { benchScan(b, benchDB(b, 1, &testsst.Forwards)) }

func BenchmarkMergeOrdered(b *testing.B) { benchScan(b, benchDB(b, 13, &testsst.Forwards)) }

// BenchmarkLanes opens an iterator over a few rows of 13 runs, reads it and closes it.
func BenchmarkLanes(b *testing.B) {
	ks := benchDB(b, 13, &store.Bytewise)
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		it, err := ks.Rows([]byte(fmt.Sprintf("h\x0ckey:%08d=", i%4000)), []byte(fmt.Sprintf("h\x0ckey:%08d=~", i%4000)))
		for err == nil {
			_, _, err = it.Next()
		}
		if err != io.EOF {
			b.Fatal(err)
		}
		it.Close()
	}
}
