package circle

import (
	"bytes"
	"kvferry/internal/testkit/testsst"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/logfile"
	"kvferry/store/rocks/wal"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// readLogs calls f with the entries of the logs of a directory.
func readLogs(t *testing.T, dir string, f func(e wal.Entry)) {
	t.Helper()
	logs, _ := filepath.Glob(filepath.Join(dir, "*.log"))
	slices.Sort(logs)
	for _, path := range logs {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		l := logfile.NewReader(bytes.NewReader(b), 0)
		for {
			rec, off, err := l.Next()
			if err != nil {
				break
			}
			batch, err := wal.NewBatch(l, rec, off)
			if err != nil {
				t.Fatal(err)
			}
			if err := batch.Decode(func(e wal.Entry) error { f(e); return nil }); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestSkipListOrder puts whole logs in a list: LevelDB's iterator shows rows in the order of the list.
func TestSkipListOrder(t *testing.T) {
	tested, descents := 0, 0
	for _, dir := range testsst.CircleDirs(t) {
		if tables, _ := filepath.Glob(filepath.Join(dir, "*.ldb")); len(tables) > 0 {
			continue
		}
		tested++
		list := newSkipList(testsst.Wrapping.Compare)
		values := map[*skipNode]string{}
		readLogs(t, dir, func(e wal.Entry) {
			values[list.insert(bytes.Clone(e.Key), base.Trailer(e.Seq, e.Kind))] = string(e.Value)
		})
		want := testsst.ParseShown(t, dir+".shown")
		n := list.first()
		for i, w := range want {
			if i > 0 && want[i-1].Letter == w.Letter && want[i-1].Number > w.Number {
				descents++
			}
			key := testsst.WrappingKey(w.Letter, w.Number)
			for n != nil && (!bytes.Equal(n.key, key) || values[n] != w.Value) {
				n = n.next[0]
			}
			if n == nil {
				t.Fatalf("%s: %+v is not after the row before it", dir, w)
			}
		}
	}
	if tested < 2 || descents < 3 {
		t.Errorf("%d logs, %d times a smaller number after a larger one", tested, descents)
	}
}

// TestSkipListHeights: the heights of the first nodes, computed apart by Schrage's method.
func TestSkipListHeights(t *testing.T) {
	list := newSkipList(bytes.Compare)
	var got []int
	for i := range 33 {
		got = append(got, len(list.insert([]byte{byte(i)}, 0).next))
	}
	if want := []int{2, 1, 1, 1, 1, 1, 1, 1, 2, 1, 1, 1, 1, 1, 2, 1, 3, 1, 1, 1, 1, 1, 1, 1, 2, 1, 1, 1, 1, 1, 1, 1, 2}; !slices.Equal(got, want) {
		t.Errorf("heights %v", got)
	}
}

// TestSkipListSubset: a list of some entries has them in the order of the list of all, when the others are
// passed over.
func TestSkipListSubset(t *testing.T) {
	for _, dir := range testsst.CircleDirs(t) {
		all, some := newSkipList(testsst.Wrapping.Compare), newSkipList(testsst.Wrapping.Compare)
		readLogs(t, dir, func(e wal.Entry) {
			all.insert(bytes.Clone(e.Key), base.Trailer(e.Seq, e.Kind))
			if e.Key[0] == 'c' {
				some.insert(bytes.Clone(e.Key), base.Trailer(e.Seq, e.Kind))
			} else {
				some.skip()
			}
		})
		n := some.first()
		for x := all.first(); x != nil; x = x.next[0] {
			if x.key[0] != 'c' {
				continue
			}
			if n == nil || !bytes.Equal(n.key, x.key) || n.tr != x.tr {
				t.Fatalf("%s: %x, want %x", dir, n.key, x.key)
			}
			n = n.next[0]
		}
	}
}
