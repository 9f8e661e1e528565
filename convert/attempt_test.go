package convert

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"kvferry/convert/plan"
	"kvferry/convert/result"
	"kvferry/convert/work"
	"kvferry/format"
	"kvferry/internal/pass"
	"kvferry/internal/sys/disk"
	"kvferry/internal/testkit/fake"
	"kvferry/record"
	"kvferry/store"
)

// TestStartsOverWhole checks that a table found out of order late does not lose the results of other tasks, with and
// without a proof.
func TestStartsOverWhole(t *testing.T) {
	whole := newBench(t, fake.Dataset(1))
	whole.run()
	for _, noProve := range []bool{false, true} {
		for _, late := range []record.Type{record.String, record.List, record.ZSet} {
			b := newBench(t, fake.Dataset(1))
			b.o.Workers, b.o.NoProve = 1, noProve
			b.from.Wrap = func(s *fake.Source) { s.Disorder = record.Of(late) }
			if rep := b.run(); rep.Records() != 60 || len(rep.Findings) != 1 {
				t.Errorf("no proof %t, %s late: %d records, findings %+v", noProve, late, rep.Records(), rep.Findings)
			}
			if b.tree() != whole.tree() {
				t.Errorf("no proof %t, %s late: another target", noProve, late)
			}
		}
	}
}

// TestStartsOverAfterResume checks the same for tasks that an earlier process did.
func TestStartsOverAfterResume(t *testing.T) {
	whole := newBench(t, fake.Dataset(1))
	whole.crashable("never")
	whole.run()
	b := newBench(t, fake.Dataset(1))
	b.killed("record 40")
	b.crashable("never")
	wrap := b.from.Wrap
	b.from.Wrap = func(s *fake.Source) {
		wrap(s)
		s.Disorder = record.Of(record.ZSet)
	}
	b.o.Resume, b.o.NoProve = true, true
	if rep := b.run(); rep.Records() != 60 {
		t.Errorf("%d records", rep.Records())
	}
	if b.tree() != whole.tree() {
		t.Error("another target")
	}
}

// TestTargetForgets checks that a target is not published if it has lost the tables of a finished task.
func TestTargetForgets(t *testing.T) {
	for _, resume := range []bool{false, true} {
		b := newBench(t, fake.Dataset(1))
		b.o.NoProve, b.o.Resume = true, resume
		b.to.Forgets = 3
		err := b.fails("task 3 (database 0, set) wrote 1 table ")
		var count *CountError
		if !errors.As(err, &count) {
			t.Errorf("%T", err)
		}
	}
}

// TestChangedBeforePublishing checks that a finished target is not published if it was changed afterwards.
func TestChangedBeforePublishing(t *testing.T) {
	data := func(b *bench, name string) string { return filepath.Join(b.dir, "dst.kvferry", "data", name) }
	for name, c := range map[string]struct {
		change func(b *bench) error
		want   string
	}{
		"gone":  {func(b *bench) error { return os.Remove(data(b, "000002.json")) }, "000002.json is gone"},
		"new":   {func(b *bench) error { return os.WriteFile(data(b, "000099.json"), nil, 0o644) }, "000099.json is new"},
		"short": {func(b *bench) error { return os.Truncate(data(b, "000001.json"), 7) }, "000001.json has 7 bytes"},
		"CURRENT": {func(b *bench) error {
			return errors.Join(os.Remove(data(b, "CURRENT")), os.WriteFile(data(b, "CURRENT"), []byte("WHOLE"), 0o644))
		}, "CURRENT was modified"},
	} {
		for _, step := range []string{"finished", "proved"} {
			b := newBench(t, fake.Dataset(1))
			b.o.NoProve, b.o.Resume = step == "finished", true
			b.o.crash = func(s string) {
				if s == step {
					if err := c.change(b); err != nil {
						t.Error(err)
					}
				}
			}
			b.fails(c.want)
			if t.Failed() {
				t.Fatalf("%s at %s", name, step)
			}
		}
	}
}

// TestAdoptsTables checks that the target adopts no tables of a task whose types it cannot hold.
func TestAdoptsTables(t *testing.T) {
	var adopted []int
	a := &attempt{run: &run{}, state: &work.State{Tasks: []*result.Result{{N: 0}, {N: 1}, {N: 2}}}, stores: &result.Stored{},
		target: adopting{nil, &adopted}}
	a.id = &work.Identity{Plan: &plan.Plan{Tasks: []pass.Task{{N: 0, Group: 1}, {N: 1}, {N: 2, Group: record.AllTypes}}}}
	if err := a.adopt(); err != nil || !slices.Equal(adopted, []int{0, 2}) {
		t.Errorf("the target adopts %d, %v", adopted, err)
	}
	for n, r := range a.results {
		if r == nil {
			t.Errorf("task %d is to be done again", n)
		}
	}
}

// adopting records the adopted tables.
type adopting struct {
	format.Target
	n *[]int
}

func (a adopting) Adopt(n int, _ string, _ []store.Table) error {
	*a.n = append(*a.n, n)
	return nil
}

// closedSource records whether it was closed.
type closedSource struct {
	format.Source
	closed int
}

func (s *closedSource) Close() error {
	s.closed++
	return nil
}

func TestCloseSource(t *testing.T) {
	s := new(closedSource)
	if err := errors.Join(closeSource(s), closeSource(nil)); err != nil || s.closed != 1 {
		t.Errorf("closed %d times, %v", s.closed, err)
	}
}

// TestFinishedIsNotNoted checks that a run that cannot record the contents of the target does not publish it.
func TestFinishedIsNotNoted(t *testing.T) {
	b := newBench(t, fake.Dataset(1))
	restore, failed := func() {}, false
	b.o.crash = func(step string) {
		if step != "finished" {
			return
		}
		restore = disk.Inject(func(op, path string) error {
			if op == "write" && filepath.Base(path) == "journal" && !failed { // only this line
				failed = true
				return syscall.EIO
			}
			return nil
		})
	}
	_, err := Run(context.Background(), &b.o)
	restore()
	if _, there := os.Lstat(b.o.Target.Path); !errors.Is(err, syscall.EIO) || !errors.Is(there, os.ErrNotExist) {
		t.Errorf("%v; the target: %v", err, there)
	}
}
