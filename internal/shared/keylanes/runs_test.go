package keylanes

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand"
	"testing"

	"kvferry/internal/testkit/memstore"
	"kvferry/record"
	"kvferry/store"
)

// watched counts open runs and fails at a chosen row.
type watched struct {
	b          store.Builder
	open, most int
	failAt     int
}

func (w *watched) start(id uint64) (store.Run, error) {
	r, err := w.b.Run("default", 0, id)
	w.open++
	w.most = max(w.most, w.open)
	return &watchedRun{r, w}, err
}

type watchedRun struct {
	store.Run
	w *watched
}

func (r *watchedRun) Append(key, value []byte) error {
	if r.w.failAt--; r.w.failAt == 0 {
		return errTest
	}
	return r.Run.Append(key, value)
}

func (r *watchedRun) AppendGroup(g *store.Group) error { return g.Each(r.Append) }

func (r *watchedRun) Close() error {
	r.w.open--
	return r.Run.Close()
}

func (r *watchedRun) Abort() {
	r.w.open--
	r.Run.Abort()
}

// writeLanes writes three keys of each length from 1 to n, in key order.
func writeLanes(r *Runs, n int) error {
	for _, c := range "abc" {
		for klen := 1; klen <= n; klen++ {
			l, err := r.Lane(uint64(klen))
			if err != nil {
				return err
			}
			for _, rest := range "12" {
				err := l.Append([]byte(raw(string(bytes.Repeat([]byte{byte(c)}, klen)), string(rest))), []byte{byte(klen)})
				if err != nil {
					return err
				}
			}
		}
	}
	return r.Close()
}

// TestRuns writes more lanes than may be open, through a spool that spills, and reads them back.
func TestRuns(t *testing.T) {
	m := memstore.New().Dir("x")
	w := &watched{b: m}
	runs := NewRuns(RunsOptions{Open: w.start, Memory: 1, TempDir: t.TempDir()})
	if err := writeLanes(runs, 200); err != nil {
		t.Fatal(err)
	}
	if err := m.Finish(); err != nil {
		t.Fatal(err)
	}
	if w.open != 0 || w.most != MaxOpen {
		t.Errorf("%d runs open at the end, %d at most", w.open, w.most)
	}
	d := NewDirectory(m.Keyspaces()[0], testLayout())
	lens, err := d.Lens()
	if err != nil || len(lens) != 200 {
		t.Errorf("%d lanes, error %v", len(lens), err)
	}
	if n := m.Len("default"); n != 200*3*2 {
		t.Errorf("%d rows", n)
	}
	if err := runs.Abort(); err != nil {
		t.Error(err)
	}
}

// TestRunsOrder sorts the spool in a custom order.
func TestRunsOrder(t *testing.T) {
	m := memstore.New().Dir("x")
	down := store.Comparer{Name: "down", Compare: func(a, b []byte) int { return bytes.Compare(b, a) }}
	if err := m.Keyspace("default", down); err != nil {
		t.Fatal(err)
	}
	runs := NewRuns(RunsOptions{Open: (&watched{b: m}).start, Compare: down.Compare, MaxOpen: 1, TempDir: t.TempDir()})
	for _, id := range []uint64{2, 1} {
		for _, k := range []string{"b", "a"} {
			l, err := runs.Lane(id)
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Append(fmt.Appendf(nil, "%d%s", id, k), nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := runs.Close(); err != nil {
		t.Fatal(err)
	}
	if err := m.Finish(); err != nil {
		t.Fatal(err)
	}
	if got := m.Len("default"); got != 4 {
		t.Errorf("%d rows", got)
	}
}

// TestRunsFail makes the store fail at every row; all runs are closed.
func TestRunsFail(t *testing.T) {
	for at := 1; ; at++ {
		w := &watched{b: memstore.New().Dir("x"), failAt: at}
		runs := NewRuns(RunsOptions{Open: w.start, MaxOpen: 3, TempDir: t.TempDir()})
		err := writeLanes(runs, 5)
		if w.failAt > 0 {
			if err != nil || at <= 5*3*2 {
				t.Errorf("row %d: no failure, %v", at, err)
			}
			return
		}
		if !errors.Is(err, errTest) {
			t.Errorf("row %d: %v", at, err)
		}
		if err := runs.Abort(); err != nil || w.open != 0 {
			t.Errorf("row %d: %d runs left open, %v", at, w.open, err)
		}
	}
}

// TestLanesComeBack writes random lanes and walks them.
func TestLanesComeBack(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	m := memstore.New().Dir("x")
	runs := NewRuns(RunsOptions{Open: (&watched{b: m}).start, MaxOpen: 2, TempDir: t.TempDir()})
	var keys []string
	for i := range 300 {
		keys = append(keys, fmt.Sprintf("%04d%s", i, bytes.Repeat([]byte("x"), rng.Intn(40))))
		l, err := runs.Lane(uint64(len(keys[i])))
		if err == nil {
			err = l.Append([]byte(raw(keys[i], "")), nil)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := runs.Close(); err != nil {
		t.Fatal(err)
	}
	if err := m.Finish(); err != nil {
		t.Fatal(err)
	}
	found, strays, tally := walk(t, NewDirectory(m.Keyspaces()[0], testLayout()), keys, nil, nil)
	if len(found) != 300 || len(strays) != 0 || tally.Rows != (record.Tally{}).Rows {
		t.Errorf("found %d, strays %d", len(found), len(strays))
	}
}
