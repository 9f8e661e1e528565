package listorder_test

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/bits"
	"math/rand"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"kvferry/nemo/listorder"
	"kvferry/record"
)

// brokenList is a list that was linked once. Its element is the seq.
type brokenList struct {
	left, right int64
	nodes       map[int64]listorder.Node

	findings []string // taken by its reader
	fails    int      // the scan that fails, from 1
}

// Scan implements listorder.Host.
func (l *brokenList) Scan(f func(*listorder.Node) error) error {
	if l.fails--; l.fails == 0 {
		return errDisk
	}
	for _, seq := range l.seqs() {
		n := l.nodes[seq]
		if err := f(&n); err != nil {
			return err
		}
	}
	return nil
}

var errDisk = errors.New("disk on fire")

// seqs are in the order of their little-endian bytes.
func (l *brokenList) seqs() []int64 {
	return slices.SortedFunc(maps.Keys(l.nodes), func(a, b int64) int {
		return cmp.Compare(bits.ReverseBytes64(uint64(a)), bits.ReverseBytes64(uint64(b)))
	})
}

// Node implements listorder.Host.
func (l *brokenList) Node(seq int64) (listorder.Node, error) { return l.nodes[seq], nil }

// Damage implements listorder.Host.
func (l *brokenList) Damage(kind string, _ int64, detail string, args ...any) {
	l.findings = append(l.findings, kind+": "+fmt.Sprintf(detail, args...))
}

// newBrokenList makes a list of n nodes in random order or in the order of pushes, with gaps of at most apart,
// and damages some of it.
func newBrokenList(r *rand.Rand, n int, apart int64) *brokenList {
	l := &brokenList{nodes: map[int64]listorder.Node{}}
	seqs := make([]int64, n+2) // between two zeros
	order := r.Perm(n)
	switch r.Intn(4) {
	case 0: // RPUSH
		slices.Sort(order)
	case 1: // LPUSH
		slices.Sort(order)
		slices.Reverse(order)
	}
	for i, j := range order {
		seqs[i+1] = int64(j)*apart + 1 + r.Int63n(apart)
		if j == n-1 && r.Intn(8) == 0 {
			seqs[i+1] = math.MaxInt64 - r.Int63n(3)
		}
	}
	l.left, l.right = seqs[1], seqs[n]
	for i := 1; i <= n; i++ {
		l.nodes[seqs[i]] = listorder.Node{Seq: seqs[i], Prev: seqs[i-1], Next: seqs[i+1], Element: fmt.Append(nil, seqs[i])}
	}
	for range r.Intn(4) { // holes of any width
		at := 1 + r.Intn(n)
		for i := at; i <= min(n, at+r.Intn(5)); i++ {
			delete(l.nodes, seqs[i])
		}
	}
	for range r.Intn(3) * n / 8 { // mostly of one node
		delete(l.nodes, seqs[1+r.Intn(n)])
	}
	if r.Intn(8) == 0 {
		delete(l.nodes, []int64{l.left, l.right}[r.Intn(2)])
	}
	for range max(0, r.Intn(9)-2) {
		l.spoil(r, seqs)
	}
	return l
}

// spoil changes one link or two.
func (l *brokenList) spoil(r *rand.Rand, seqs []int64) {
	to := seqs[r.Intn(len(seqs))]
	if r.Intn(4) == 0 {
		to = []int64{-1, math.MinInt64, math.MaxInt64, math.MaxInt64 - 1, to + 1}[r.Intn(5)]
	}
	i := 1 + r.Intn(len(seqs)-2)
	n, ok := l.nodes[seqs[i]]
	switch r.Intn(10) {
	case 0:
		l.left = to
	case 1:
		l.right = to
	case 2:
		delete(l.nodes, seqs[i])
		ok = false
	case 3:
		n.Next = to
	case 4:
		n.Next = seqs[1+r.Intn(i)]
	case 5:
		n.Prev = to
	default: // a missing node between any two
		if r.Intn(2) == 0 {
			to = 1<<61 + r.Int63n(2)
		}
		n.Next = to
		j := []int{i, 1 + r.Intn(i), 1 + r.Intn(i), 1 + r.Intn(len(seqs)-2)}[r.Intn(4)]
		if o, ok := l.nodes[seqs[j]]; ok && j != i {
			o.Prev = to
			l.nodes[seqs[j]] = o
		} else if ok {
			n.Prev = to
		}
	}
	if ok {
		l.nodes[seqs[i]] = n
	}
}

// outcome is the result of reading a list.
type outcome struct {
	elements []string
	findings []string // sorted
	read     int64
	lost     int64
}

// model reads the list from the left end and, if that does not lead to right, over holes and backwards from
// right.
func (l *brokenList) model() (o outcome, sorts map[string]int) {
	find := func(kind, detail string, args ...any) {
		o.findings = append(o.findings, kind+": "+fmt.Sprintf(detail, args...))
	}
	alive := l.nodes
	links := l.links(alive)
	left, last, at := follow(links.next, nil)
	ends, right := fmt.Sprintf("left %d", l.left), []int64(nil)
	if at != 0 || last != l.right {
		ends += fmt.Sprintf(" or right %d", l.right)
		from, kind, what := "left", "", ""
		if last != 0 {
			from = fmt.Sprintf("next of node %d", last)
		}
		switch {
		case at == 0:
			kind, what = "list-tail-mismatch", fmt.Sprintf("right is %d, but the last node is %d", l.right, last)
		case slices.Contains(left, at):
			kind, what = "list-cycle", fmt.Sprintf("%s is %d, which comes before it", from, at)
		default:
			kind, what = "list-broken-link", fmt.Sprintf("%s is %d, which does not exist", from, at)
		}
		sorts = links.bridge()
		left, last, at = follow(links.next, nil)
		if links.bridged[[2]int64{last, at}] && at != 0 {
			sorts["circle over a hole"]++
		}
		right, last, at = follow(links.prev, left)
		if links.bridged[[2]int64{at, last}] && at != 0 {
			sorts["circle back over a hole"]++
		}
		what += fmt.Sprintf("; nodes read: %s from the left end, %s from the right end", record.Number(len(left)),
			record.Number(len(right)))
		if n := links.bridges(left, right); n > 0 {
			what += fmt.Sprintf("; gaps skipped: %d", n)
		}
		find(kind, "%s", what)
	}
	before, seen := int64(0), map[int64]bool{}
	for _, seq := range left {
		if links.prev[seq] != before {
			find("list-prev-mismatch", "node %d has prev %d, but the node before it is %d", seq, alive[seq].Prev, before)
		}
		before, seen[seq] = seq, true
	}
	for _, seq := range right {
		seen[seq] = true
	}
	slices.Reverse(right)
	for _, seq := range append(left, right...) {
		o.elements = append(o.elements, fmt.Sprint(seq))
	}
	for seq := range alive {
		if !seen[seq] {
			find("list-unreachable-node", "node %d cannot be reached from %s", seq, ends)
		}
	}
	slices.Sort(o.findings)
	o.read, o.lost = int64(len(seen)), int64(len(alive)-len(seen))
	return o, sorts
}

// linkMaps are the links of a list. The meta row's links belong to node 0: its next is left, its prev is
// right.
type linkMaps struct {
	next, prev map[int64]int64
	bridged    map[[2]int64]bool // pairs of nodes with a hole in between
}

func (l *brokenList) links(alive map[int64]listorder.Node) *linkMaps {
	m := &linkMaps{map[int64]int64{0: l.left}, map[int64]int64{0: l.right}, map[[2]int64]bool{}}
	for seq, n := range alive {
		m.next[seq], m.prev[seq] = n.Next, n.Prev
	}
	return m
}

// follow follows links from node 0 until a node is missing or repeated, or up to 0 or one of stop. It returns
// the nodes, the last of them, and the seq reached.
func follow(links map[int64]int64, stop []int64) (nodes []int64, last, at int64) {
	seen := map[int64]bool{0: true}
	for _, seq := range stop {
		seen[seq] = true
	}
	for at = links[0]; !seen[at]; last, at = at, links[at] {
		if _, there := links[at]; !there {
			break
		}
		nodes, seen[at] = append(nodes, at), true
	}
	return nodes, last, at
}

// bridge links two nodes that name the same missing node to each other, unless a third one names it. Then it
// links nodes that name different missing nodes between the same two seqs, unless there is a third. It returns
// the number of holes of each sort.
func (m *linkMaps) bridge() map[string]int {
	before, after := map[int64][]int64{}, map[int64][]int64{}
	for seq := range m.next {
		before[m.next[seq]] = append(before[m.next[seq]], seq)
		after[m.prev[seq]] = append(after[m.prev[seq]], seq)
	}
	missing := map[int64]bool{}
	for _, links := range []map[int64]int64{m.next, m.prev} {
		for _, seq := range links {
			if _, there := m.next[seq]; !there && seq > 0 {
				missing[seq] = true
			}
		}
	}
	type run struct{ before, after []int64 }
	sorts, runs := map[string]int{}, map[int]*run{}
	nodes := slices.Sorted(maps.Keys(m.next))
	for seq := range missing {
		if m.join(before[seq], after[seq], sorts, "narrow") {
			continue
		}
		i, _ := slices.BinarySearch(nodes, seq)
		if runs[i] == nil {
			runs[i] = &run{}
		}
		runs[i].before = append(runs[i].before, before[seq]...)
		runs[i].after = append(runs[i].after, after[seq]...)
	}
	for _, r := range runs {
		m.join(r.before, r.after, sorts, "wide")
	}
	return sorts
}

// join links two nodes if before and after have one node each.
func (m *linkMaps) join(before, after []int64, sorts map[string]int, width string) bool {
	switch {
	case len(before) == 0 || len(after) == 0:
		sorts[width+", named on one side"]++
		return false
	case len(before) > 1 || len(after) > 1:
		sorts[width+", named twice"]++
		return false
	}
	a, b := before[0], after[0]
	switch {
	case a == b:
		sorts[width+", in a node"]++
		return false
	case a == 0:
		sorts[width+", head"]++
	case b == 0:
		sorts[width+", tail"]++
	default:
		sorts[width]++
	}
	m.next[a], m.prev[b] = b, a
	m.bridged[[2]int64{a, b}] = true
	return true
}

// bridges counts the holes between nodes that were read: before the nodes of left, after the nodes of right.
func (m *linkMaps) bridges(left, right []int64) (n int) {
	last := int64(0)
	for _, seq := range left {
		if m.bridged[[2]int64{last, seq}] {
			n++
		}
		last = seq
	}
	last = 0
	for _, seq := range right {
		if m.bridged[[2]int64{seq, last}] {
			n++
		}
		last = seq
	}
	return n
}

// read reads the list with memory or, if elements is false, skips it.
func (l *brokenList) read(t *testing.T, memory int64, elements bool) (o outcome) {
	t.Helper()
	o, err := l.try(listorder.New(l, listorder.Options{Memory: memory, TempDir: t.TempDir()}), elements)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// try reads the list with a List that may have read others.
func (l *brokenList) try(list *listorder.List, elements bool) (o outcome, err error) {
	l.findings = nil
	list.Begin(l.left, l.right)
	for _, seq := range l.seqs() {
		n := l.nodes[seq]
		if !elements {
			n.Element = nil
		}
		list.Add(&n)
	}
	if o.read, o.lost, err = list.Follow(elements); err != nil {
		return o, errors.Join(err, list.End())
	}
	elems := make([]record.Element, 7)
	for elements {
		n, err := list.Read(elems)
		if err != nil {
			if err != io.EOF {
				return o, err
			}
			break
		}
		for _, e := range elems[:n] {
			o.elements = append(o.elements, string(e.Value))
		}
	}
	o.findings = slices.Clone(l.findings)
	slices.Sort(o.findings)
	return o, list.End()
}

// TestBrokenLists reads lists with missing nodes and arbitrary links, in memory, with an array of links and
// with files, and compares elements, findings and ledger with a plain model.
func TestBrokenLists(t *testing.T) {
	parts := map[string]int{}
	for seed := range int64(1000) {
		r := rand.New(rand.NewSource(seed))
		n, apart := 2+r.Intn(40), []int64{1, 1, 3, 977, 1 << 40}[r.Intn(5)]
		if seed%200 == 0 {
			n = 4000 // more pages than are held
		}
		l := newBrokenList(r, n, apart)
		want, sorts := l.model()
		for _, memory := range []int64{0, int64(n) * 16, 1} {
			if got := l.read(t, memory, true); !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d, %d nodes %d apart, memory %d:\n%+v\nwant\n%+v", seed, n, apart, memory, got, want)
			}
			if got := l.read(t, memory, false); got.read != want.read || got.lost != want.lost {
				t.Fatalf("seed %d, %d nodes %d apart, memory %d, not read: %+v, want %+v", seed, n, apart, memory, got, want)
			}
		}
		for sort := range sorts {
			parts[sort]++
		}
		for _, x := range want.findings {
			kind, _, _ := strings.Cut(x, ":")
			parts[kind]++
		}
		told := strings.Join(want.findings, " ")
		if strings.Contains(told, "nodes read") && !strings.Contains(told, " 0 from") && want.lost > 0 {
			parts["left, right and lost"]++
		}
		if strings.Contains(told, "gaps skipped") {
			parts["passed over"]++
		}
	}
	t.Logf("what was wrong: %v", parts)
	for _, kind := range []string{"list-broken-link", "list-cycle", "list-tail-mismatch", "list-prev-mismatch",
		"list-unreachable-node", "left, right and lost", "passed over", "narrow", "narrow, named on one side", "narrow, named twice", "narrow, in a node", "narrow, head",
		"narrow, tail", "wide", "wide, named on one side", "wide, named twice", "wide, in a node", "wide, head", "wide, tail",
		"circle over a hole", "circle back over a hole"} {
		if parts[kind] < 20 {
			t.Errorf("%s: %d times, which proves little", kind, parts[kind])
		}
	}
}

// TestHoles reads lists of nine nodes, with seqs close together or far apart, without some of them and with
// links to these, in memory, with an array of links and through files.
func TestHoles(t *testing.T) {
	for _, c := range []struct {
		gone        string
		links       string // "a>b": next of a is b, "a<b": prev of b is a; node 0 is the meta row
		order       string // "" is 123456789
		want        string
		left, right int // nodes read
		holes       int // passed over
		findings    int // besides the finding about the link that ended the walk
	}{
		{gone: "5", want: "12346789", left: 8, holes: 1},
		{gone: "2468", want: "13579", left: 5, holes: 4},
		{gone: "1", want: "23456789", left: 8, holes: 1},
		{gone: "9", want: "12345678", left: 8},
		{gone: "19", want: "2345678", left: 7, holes: 1},
		{gone: "1379", want: "24568", left: 5, holes: 3},
		// The seqs of neighbours are consecutive, up or down.
		{gone: "45", want: "1236789", left: 7, holes: 1},
		{gone: "123", want: "456789", left: 6, holes: 1},
		{gone: "789", want: "123456", left: 6},
		{gone: "1289", want: "34567", left: 5, holes: 1},
		{gone: "23678", want: "1459", left: 4, holes: 2},
		{gone: "234568", want: "179", left: 3, holes: 2},
		{gone: "3456", order: "987654321", want: "98721", left: 5, holes: 1},
		// Each is a narrow hole if both sides agree.
		{gone: "456", order: "162839475", want: "128397", left: 6, holes: 2},
		{gone: "3458", order: "123846579", want: "12679", left: 5, holes: 2},
		// Neighbours with seqs that are not consecutive end the walk in both directions.
		{gone: "72", order: "172345896", want: "1345896", left: 1, right: 6},
		{gone: "38", order: "123846579", want: "1246579", left: 2, right: 5},
		// A seq that two nodes name on one side is not skipped.
		{gone: "5", links: "8>5", want: "12346789", left: 4, right: 4},
		{gone: "5", links: "5<2", want: "12346789", left: 4, right: 4, findings: 1},
		{gone: "3", links: "7>3", want: "12456789", left: 2, right: 6},
		{gone: "37", links: "5>7", want: "124589", left: 4, right: 2, holes: 1, findings: 1},
		{gone: "1", links: "6>1", want: "23456789", right: 8},
		{gone: "9", links: "9<3", want: "12345678", left: 8, findings: 1},
		{gone: "345", links: "8>4", want: "126789", left: 2, right: 4},
		{gone: "345", links: "3<1", want: "126789", left: 2, right: 4, findings: 1},
		{gone: "3456", links: "8>4 4<9", want: "12789", left: 5, holes: 2},
		// Other holes are skipped between nodes that were not neighbours.
		{gone: "258", links: "1>8 7>2", want: "19", left: 2, holes: 1, findings: 4},
		// A cycle over holes ends where it closes.
		{gone: "37", links: "4>7 7<1 6>0 6<8", want: "1245689", left: 3, right: 4, holes: 1, findings: 1},
		{gone: "36", links: "2>0 8>3", want: "1245789", left: 2, right: 5, holes: 1},
		{gone: "5", links: "4>5 5<4", want: "12346789", left: 4, right: 4, findings: 1},
		// The prevs of the other nodes are checked as usual.
		{gone: "5", links: "2<8", want: "12346789", left: 8, holes: 1, findings: 1},
	} {
		for _, apart := range []int64{1, 1 << 40} {
			l := nineNodes(apart, c.order, c.gone, c.links)
			for _, memory := range []int64{0, 150, 1} {
				got := l.read(t, memory, true)
				name := fmt.Sprintf("%s gone of %q, links %q, %d apart, memory %d", c.gone, c.order, c.links, apart, memory)
				if s := strings.Join(got.elements, ""); s != c.want {
					t.Errorf("%s: %s, want %s", name, s, c.want)
				}
				want := fmt.Sprintf("nodes read: %s from the left end, %s from the right end", record.Number(c.left),
					record.Number(c.right))
				if c.holes > 0 {
					want += fmt.Sprintf("; gaps skipped: %d", c.holes)
				}
				if !slices.ContainsFunc(got.findings, func(s string) bool { return strings.HasSuffix(s, want) }) ||
					len(got.findings) != 1+c.findings {
					t.Errorf("%s: %d findings %q, want %d and %q", name, len(got.findings), got.findings, 1+c.findings, want)
				}
			}
		}
	}
}

// TestHolesOfEachList reads a list with a hole, and then a list without a hole at the same seq.
func TestHolesOfEachList(t *testing.T) {
	for _, memory := range []int64{0, 150, 1} {
		a, b := nineNodes(1, "", "5", ""), nineNodes(1, "", "5", "5<2")
		h := &host{}
		list := listorder.New(h, listorder.Options{Memory: memory, TempDir: t.TempDir()})
		for l, want := range map[*brokenList]string{a: "8 from the left end, 0 from the right end; gaps skipped: 1", b: "4 from the left end, 4 from the right end"} {
			h.brokenList = l
			o, err := l.try(list, true)
			if err != nil || !slices.ContainsFunc(o.findings, func(s string) bool { return strings.HasSuffix(s, want) }) {
				t.Errorf("memory %d: %q, %v, want %q", memory, o.findings, err, want)
			}
		}
	}
}

// host has one list after the other.
type host struct{ *brokenList }

// TestFailures makes each scan of a broken list fail, and then leaves no room for files: the error is returned
// and no files remain.
func TestFailures(t *testing.T) {
	for _, memory := range []int64{150, 1} {
		for at := 1; ; at++ {
			l, temp := nineNodes(1, "", "37", "5>7"), t.TempDir()
			l.fails = at
			_, err := l.try(listorder.New(l, listorder.Options{Memory: memory, TempDir: temp}), true)
			if left, _ := os.ReadDir(temp); len(left) > 0 {
				t.Errorf("memory %d, scan %d: %v is left", memory, at, left)
			}
			if l.fails > 0 {
				if err != nil || at < 4 {
					t.Errorf("memory %d: %v after %d scans", memory, err, at)
				}
				break
			}
			if !errors.Is(err, errDisk) {
				t.Errorf("memory %d, scan %d: %v", memory, at, err)
			}
		}
		l := nineNodes(1, "", "37", "5>7")
		if _, err := l.try(listorder.New(l, listorder.Options{Memory: memory, TempDir: t.TempDir() + "/gone"}),
			true); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("memory %d, no directory: %v", memory, err)
		}
	}
}

// nineNodes makes a list of nodes 1 to 9 with gaps between them, changes links and removes nodes.
func nineNodes(apart int64, order, gone, links string) *brokenList {
	if order == "" {
		order = "123456789"
	}
	seqs := []int64{0}
	for _, c := range order {
		seqs = append(seqs, int64(c-'0')*apart)
	}
	seqs = append(seqs, 0)
	l := &brokenList{nodes: map[int64]listorder.Node{}}
	l.left, l.right = seqs[1], seqs[9]
	for i := 1; i <= 9; i++ {
		l.nodes[seqs[i]] = listorder.Node{Seq: seqs[i], Prev: seqs[i-1], Next: seqs[i+1], Element: []byte{order[i-1]}}
	}
	for _, link := range strings.Fields(links) {
		a, b := int64(link[0]-'0')*apart, int64(link[2]-'0')*apart
		n := l.nodes[a]
		if link[1] == '>' {
			n.Next = b
			l.nodes[a] = n
		} else {
			n = l.nodes[b]
			n.Prev = a
			l.nodes[b] = n
		}
	}
	for _, seq := range gone {
		delete(l.nodes, int64(seq-'0')*apart)
	}
	return l
}
