package nemo_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/internal/testkit/formattest"
	"kvferry/internal/testkit/memstore"
	"kvferry/nemo"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks"
	"kvferry/store/rocks/build"
)

// openLinked builds a list of n nodes in the order of random pushes and inserts.
func openLinked(t testing.TB, n int, open store.Opener, create store.CreateFunc) (format.Source, *fixtures.Linked) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "linked")
	l := fixtures.NewLinked(7, n)
	if err := l.Build(dir, create); err != nil {
		t.Fatal(err)
	}
	src, err := nemo.New().Open(context.Background(), dir, &format.OpenOptions{Store: open})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { src.Close() })
	return src, l
}

func openLinkedInMemory(t testing.TB, n int) (format.Source, *fixtures.Linked) {
	fs := memstore.New()
	return openLinked(t, n, fs.Open, fs.Create)
}

// TestListsOfAnySize reads a shuffled list in memory, with an array of links and through files.
func TestListsOfAnySize(t *testing.T) {
	for _, n := range []int{1, 2, 300, 5000} {
		src, l := openLinkedInMemory(t, n)
		want := formattest.Sum(t, l.Records())
		for _, memory := range []int64{0, 200 << 10, 16 << 10} {
			t.Run(fmt.Sprintf("%d nodes, memory %d", n, memory), func(t *testing.T) {
				var f formattest.Findings
				var ledger record.Ledger
				e := &format.Env{Memory: memory, TempDir: t.TempDir(), Report: f.Report, Ledger: &ledger}
				formattest.CheckEqual(t, formattest.Sum(t, formattest.Records(t, src, "0", e)), want, true)
				formattest.CheckLedger(t, &ledger)
				f.CheckNone(t, record.Note)
			})
		}
	}
}

// readAll reads all records, ignores them, and calls each after every batch.
func readAll(t testing.TB, r *record.Walker, each func()) {
	t.Helper()
	elems := make([]record.Element, 256)
	for {
		_, err := r.Next()
		if err == io.EOF {
			break
		}
		for err == nil {
			_, err = r.Read(elems)
			each()
		}
		if err != io.EOF {
			t.Fatal(err)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestListTimeIsLinear reads lists of 62,500 and of 1,000,000 nodes in memory and beyond it. Sixteen times the
// nodes may take a few times more than sixteen times the time, because of caches, but not 256 times.
func TestListTimeIsLinear(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	small, _ := openLinkedInMemory(t, 62_500)
	large, _ := openLinkedInMemory(t, 1_000_000)
	for _, memory := range []int64{1 << 30, 32 << 20} {
		measure := func(src format.Source) time.Duration {
			best := time.Duration(1 << 62)
			for range 2 {
				start := cpuTime(t)
				e := &format.Env{Memory: memory, TempDir: t.TempDir()}
				readAll(t, formattest.RecordsOf(t, src, "0", record.Of(record.List), format.Span{}, e), func() {})
				best = min(best, cpuTime(t)-start)
			}
			return best
		}
		a, b := measure(small), measure(large)
		t.Logf("memory %d MiB: 62,500 nodes %v, 1,000,000 nodes %v, ratio %.1f", memory>>20, a, b, float64(b)/float64(a))
		if b > 200*a {
			t.Errorf("memory %d MiB: 1,000,000 nodes took %.1f times as long as 62,500", memory>>20, float64(b)/float64(a))
		}
	}
}

// TestListMemory reads a list ten times the size of its budget from disk and watches the heap.
func TestListMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	src, _ := openLinked(t, 600_000, rocks.Open, build.Create)
	const memory = 8 << 20
	var held int64
	for range 4 { // a collection includes garbage made while it ran, sometimes megabytes: the minimum is the best estimate
		if held = heldWhileReading(t, src, memory); held <= memory+(4<<20) { // the store's windows are outside the budget
			return
		}
	}
	t.Errorf("%d KiB are held while a list is read with %d KiB", held>>10, memory>>10)
}

// heldWhileReading returns the peak growth of reachable memory while lists were read.
func heldWhileReading(t *testing.T, src format.Source, memory int64) int64 {
	before := heap()
	var most atomic.Uint64
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			most.Store(max(most.Load(), heap()))
			select {
			case <-done:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	e := &format.Env{Memory: memory, TempDir: t.TempDir()}
	readAll(t, formattest.RecordsOf(t, src, "0", record.Of(record.List), format.Span{}, e), func() {})
	close(done)
	<-ended
	held := int64(most.Load()) - int64(before)
	t.Logf("%d KiB are held", held>>10)
	return held
}

// heap returns the bytes that are reachable.
func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestSparseLists reads a list whose seqs are far apart, as after removing most nodes, in memory and through
// files.
func TestSparseLists(t *testing.T) {
	const n, apart = 3000, 977
	m := newMemory(t).stores()
	order := rand.New(rand.NewSource(1)).Perm(n)
	seq := func(i int) int64 {
		if i < 0 || i >= n {
			return 0
		}
		return int64(order[i]+1) * apart
	}
	var want []byte
	for i := range n {
		element := fmt.Appendf(nil, "%d,", i)
		want = append(want, element...)
		m.Store("list").Put("default", nodeKey("k", seq(i)),
			nemo.AppendNode(nil, nemo.Node{Prev: seq(i - 1), Next: seq(i + 1), Element: element, Suffix: s1}))
	}
	m.Store("list").Put("default", []byte("Lk"), nemo.AppendListMeta(nil,
		nemo.ListMeta{Count: n, Left: seq(0), Right: seq(n - 1), NextSeq: n*apart + 1, Suffix: s1}))
	for _, memory := range []int64{0, 128 << 10, 8 << 10} {
		var f formattest.Findings
		r := formattest.Records(t, m.Open(t), "0", &format.Env{Memory: memory, TempDir: t.TempDir(), Report: f.Report})
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
		var got []byte
		elems := make([]record.Element, 100)
		for {
			n, err := r.Read(elems)
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range elems[:n] {
				got = append(got, e.Value...)
			}
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) || len(f.All) > 0 {
			t.Errorf("memory %d: %d bytes, want %d; findings %+v", memory, len(got), len(want), f.All)
		}
	}
}

// TestCloseWithinAList: closing a reader within a list kept in files closes the files.
func TestCloseWithinAList(t *testing.T) {
	src, _ := openLinkedInMemory(t, 5000)
	for _, memory := range []int64{200 << 10, 16 << 10} {
		before := openFiles(t)
		r := formattest.RecordsOf(t, src, "0", record.Of(record.List), format.Span{},
			&format.Env{Memory: memory, TempDir: t.TempDir()})
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
		if n, err := r.Read(make([]record.Element, 1)); n != 1 || err != nil {
			t.Fatalf("%d elements, %v", n, err)
		}
		if n := openFiles(t); n <= before {
			t.Errorf("memory %d: %d files are open, %d were before: this proves nothing", memory, n, before)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		if n := openFiles(t); n != before {
			t.Errorf("memory %d: %d files are open, %d were before", memory, n, before)
		}
	}
}

// openFiles returns the number of open files with a path, which excludes those of Go's runtime.
func openFiles(t *testing.T) (n int) {
	t.Helper()
	all, err := filepath.Glob("/proc/self/fd/*")
	if err != nil || len(all) == 0 {
		t.Skip("no list of open files")
	}
	for _, fd := range all {
		if to, err := os.Readlink(fd); err == nil && filepath.IsAbs(to) {
			n++
		}
	}
	return n
}
