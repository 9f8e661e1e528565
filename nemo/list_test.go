package nemo_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"math/rand"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/internal/formattest"
	"kvferry/internal/memstore"
	"kvferry/nemo"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocksfile"
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

// TestListsOfAnySize reads a shuffled list within memory, by an array of links and by way of files.
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

// readAll reads all records without looking at them and calls each after every batch.
func readAll(t testing.TB, r record.Reader, each func()) {
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

// TestListTimeIsLinear reads lists of 62,500 and of 1,000,000 nodes in memory and beyond it. Sixteen times
// the nodes may take a few times more than sixteen times the time, for the caches, but not 256 times.
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

// cpuTime is what the process has used of all processors: other processes do not make it go faster.
func cpuTime(t *testing.T) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestListMemory reads a list ten times the size of its budget from disk and watches the heap.
func TestListMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	src, _ := openLinked(t, 600_000, rocksfile.Open, rocksfile.Create)
	const memory = 8 << 20
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
	// Beside the budget stand the windows of the store's iterators.
	held := int64(most.Load()) - int64(before)
	t.Logf("%d KiB are held", held>>10)
	if held > memory+(4<<20) {
		t.Errorf("%d MiB are held while a list is read with %d MiB", held>>20, memory>>20)
	}
}

// heap returns the bytes that are reachable.
func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestSparseLists reads a list whose seqs lie far apart, as when most of it was removed, within memory
// and by way of files.
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

// TestCloseWithinAList: nothing stays open of a list in files that is not read to its end.
func TestCloseWithinAList(t *testing.T) {
	src, _ := openLinkedInMemory(t, 5000)
	for _, memory := range []int64{200 << 10, 16 << 10} {
		before := openFiles(t)
		r := formattest.RecordsOf(t, src, "0", record.Of(record.List), format.Span{}, &format.Env{Memory: memory, TempDir: t.TempDir()})
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

// openFiles returns how many files the process has open.
func openFiles(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip(err)
	}
	return len(all)
}

// brokenList is a list that was linked once. Its element is the seq.
type brokenList struct {
	meta  nemo.ListMeta
	nodes map[int64]nemo.Node
}

// newBrokenList makes a list of n nodes in a random order, apart at most apart, and spoils some of it.
func newBrokenList(r *rand.Rand, n int, apart int64) *brokenList {
	l := &brokenList{nodes: map[int64]nemo.Node{}}
	seqs := make([]int64, n+2) // between two zeros
	for i, j := range r.Perm(n) {
		seqs[i+1] = int64(j)*apart + 1 + r.Int63n(apart)
		if j == n-1 && r.Intn(8) == 0 {
			seqs[i+1] = math.MaxInt64 - r.Int63n(3)
		}
		l.meta.NextSeq = max(l.meta.NextSeq, seqs[i+1])
	}
	l.meta.Count, l.meta.Left, l.meta.Right, l.meta.Suffix = int64(n), seqs[1], seqs[n], s1
	if l.meta.NextSeq < math.MaxInt64 && r.Intn(5) > 0 {
		l.meta.NextSeq++
	}
	for i := 1; i <= n; i++ {
		l.nodes[seqs[i]] = nemo.Node{Prev: seqs[i-1], Next: seqs[i+1], Element: fmt.Append(nil, seqs[i]), Suffix: s1}
	}
	for range r.Intn(4) {
		at := 1 + r.Intn(n)
		for i := at; i <= min(n, at+r.Intn(5)); i++ {
			delete(l.nodes, seqs[i])
		}
	}
	for range max(0, r.Intn(8)-2) {
		l.spoil(r, seqs)
	}
	return l
}

// spoil changes one link.
func (l *brokenList) spoil(r *rand.Rand, seqs []int64) {
	to := seqs[r.Intn(len(seqs))]
	if r.Intn(4) == 0 {
		to = []int64{-1, math.MinInt64, math.MaxInt64, math.MaxInt64 - 1, to + 1}[r.Intn(5)]
	}
	i := 1 + r.Intn(len(seqs)-2)
	n, ok := l.nodes[seqs[i]]
	switch r.Intn(6) {
	case 0:
		l.meta.Left = to
	case 1:
		l.meta.Right = to
	case 2:
		n.Suffix.Version-- // a leftover
	case 3:
		n.Next = to
	case 4:
		n.Next = seqs[1+r.Intn(i)]
	case 5:
		n.Prev = to
	}
	if ok {
		l.nodes[seqs[i]] = n
	}
}

// outcome is what a reader makes of a list.
type outcome struct {
	elements []string
	findings []string // sorted
	ledger   string
}

// model reads the list from the left end and, if that does not lead to the right one, back from there.
func (l *brokenList) model() (o outcome) {
	find := func(kind, detail string, args ...any) {
		o.findings = append(o.findings, kind+": "+fmt.Sprintf(detail, args...))
	}
	m, alive, stale, most := &l.meta, map[int64]nemo.Node{}, 0, int64(0)
	for seq, n := range l.nodes {
		if n.Version == m.Version {
			alive[seq], most = n, max(most, seq)
		} else {
			stale++
		}
	}
	if m.Count != int64(len(alive)) {
		find("count-mismatch", "count is %d, %d rows are there", m.Count, len(alive))
	}
	if m.NextSeq <= most {
		find("list-next-seq", "next_seq is %d, node %d is there", m.NextSeq, most)
	}
	left, seen, at, last := []int64(nil), map[int64]bool{}, m.Left, int64(0)
	for there := true; at != 0 && there && !seen[at]; {
		var n nemo.Node
		if n, there = alive[at]; !there {
			break
		}
		if n.Prev != last {
			find("list-prev-mismatch", "node %d says prev %d, the node before it is %d", at, n.Prev, last)
		}
		left, seen[at] = append(left, at), true
		last, at = at, n.Next
	}
	ends, right := fmt.Sprintf("left %d", m.Left), []int64(nil)
	if at != 0 || last != m.Right {
		ends += fmt.Sprintf(" or right %d", m.Right)
		for back := m.Right; !seen[back]; back = alive[back].Prev {
			if _, there := alive[back]; !there {
				break
			}
			right, seen[back] = append(right, back), true
		}
		from, read := "left", fmt.Sprintf("nodes read: %d from the left end, %d from the right end", len(left), len(right))
		if last != 0 {
			from = fmt.Sprintf("next of node %d", last)
		}
		switch {
		case at == 0:
			find("list-tail-mismatch", "right is %d, the last node is %d; %s", m.Right, last, read)
		case slices.Contains(left, at):
			find("list-cycle", "%s is %d, which comes before it; %s", from, at, read)
		default:
			find("list-broken-link", "%s is %d, which is not there; %s", from, at, read)
		}
	}
	slices.Reverse(right)
	for _, seq := range append(left, right...) {
		o.elements = append(o.elements, fmt.Sprint(seq))
	}
	for seq := range alive {
		if !seen[seq] {
			find("list-unreachable-node", "node %d is not reached from %s", seq, ends)
		}
	}
	slices.Sort(o.findings)
	o.ledger = classes(len(alive)-len(seen), stale, 1+len(seen))
	return o
}

// classes is what formattest.Classes says of a ledger.
func classes(orphan, stale, copied int) (s string) {
	if orphan > 0 {
		s = fmt.Sprintf("orphan=%d ", orphan)
	}
	if stale > 0 {
		s += fmt.Sprintf("stale=%d ", stale)
	}
	return s + fmt.Sprintf("copied=%d", copied)
}

// read reads the list with memory, or when elements is false passes over it.
func (l *brokenList) read(t *testing.T, memory int64, elements bool) (o outcome) {
	t.Helper()
	m := newMemory(t).stores()
	m.Store("list").Put("default", []byte("Lk"), nemo.AppendListMeta(nil, l.meta))
	for seq, n := range l.nodes {
		m.Store("list").Put("default", nodeKey("k", seq), nemo.AppendNode(nil, n))
	}
	var f formattest.Findings
	var ledger record.Ledger
	r := formattest.RecordsOf(t, m.Open(t), "0", record.Of(record.List), format.Span{},
		&format.Env{Memory: memory, TempDir: t.TempDir(), Report: f.Report, Ledger: &ledger, Deep: true})
	if elements {
		o.elements = elementsOf(t, r)
	} else {
		skim(t, r)
	}
	formattest.CheckLedger(t, &ledger)
	for _, x := range f.All {
		o.findings = append(o.findings, x.Kind+": "+x.Detail)
	}
	slices.Sort(o.findings)
	o.ledger = formattest.Classes(&ledger, "list")
	return o
}

// elementsOf returns the elements of the one record there is.
func elementsOf(t *testing.T, r record.Reader) (all []string) {
	t.Helper()
	if _, err := r.Next(); err != nil {
		t.Fatal(err)
	}
	elems := make([]record.Element, 7)
	n, err := r.Read(elems)
	for ; err == nil; n, err = r.Read(elems) {
		for _, e := range elems[:n] {
			all = append(all, string(e.Value))
		}
	}
	if err != io.EOF {
		t.Fatal(err)
	}
	if _, err := r.Next(); err != io.EOF {
		t.Fatalf("after the record: %v", err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestBrokenLists reads lists with nodes missing and links that lead anywhere, in memory, by an array of links and
// by way of files, and compares elements, findings and ledger with what a plain model says.
func TestBrokenLists(t *testing.T) {
	parts := map[string]int{}
	for seed := range int64(600) {
		r := rand.New(rand.NewSource(seed))
		n, apart := 2+r.Intn(40), []int64{1, 1, 3, 977, 1 << 40}[r.Intn(5)]
		if seed%100 == 0 {
			n = 4000 // more pages than are held
		}
		l := newBrokenList(r, n, apart)
		want := l.model()
		for _, memory := range []int64{0, int64(n) * 16, 1} {
			if got := l.read(t, memory, true); !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d, %d nodes %d apart, memory %d:\n%+v\nwant\n%+v", seed, n, apart, memory, got, want)
			}
			if got := l.read(t, memory, false); got.ledger != want.ledger {
				t.Fatalf("seed %d, %d nodes %d apart, memory %d, not read: ledger %s, want %s", seed, n, apart, memory, got.ledger, want.ledger)
			}
		}
		for _, x := range want.findings {
			kind, _, _ := strings.Cut(x, ":")
			parts[kind]++
		}
		told := strings.Join(want.findings, " ")
		if strings.Contains(told, "nodes read") && !strings.Contains(told, " 0 from") && strings.Contains(want.ledger, "orphan") {
			parts["left, right and lost"]++
		}
	}
	t.Logf("what was wrong: %v", parts)
	for _, kind := range []string{"list-broken-link", "list-cycle", "list-tail-mismatch", "list-prev-mismatch",
		"list-unreachable-node", "left, right and lost"} {
		if parts[kind] < 20 {
			t.Errorf("%s: %d times, which proves little", kind, parts[kind])
		}
	}
}
