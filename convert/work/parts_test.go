package work

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"kvferry/convert/plan"
	"kvferry/convert/result"
	"kvferry/internal/pass"
	"kvferry/internal/sys/disk"
	"kvferry/store"
)

// twoParts publishes a plan of four tasks in two parts.
func twoParts(t *testing.T) (*Parts, *Identity) {
	t.Helper()
	target := filepath.Join(t.TempDir(), "dst")
	p, err := OpenParts(target)
	must(t, err)
	if id, err := p.Identity(); id != nil || err != nil || !p.Exist() {
		t.Fatal("not new", id, err)
	}
	id := &Identity{Began: time.Unix(7, 0).UTC(), Parts: 2, Plan: &plan.Plan{}}
	for n := range 4 {
		id.Plan.Tasks = append(id.Plan.Tasks, pass.Task{N: n, Bytes: 10})
	}
	shared, own, err := p.Publish(id)
	must(t, err)
	if !own || len(shared.Plan.Tasks) != 4 {
		t.Fatal("another plan", own, shared)
	}
	return p, shared
}

// attempt does the tasks of a part: each has one table.
func attempt(t *testing.T, p *Parts, id *Identity, part pass.Part) *Dir {
	t.Helper()
	w, err := p.Attempt(part, "")
	must(t, err, os.MkdirAll(filepath.Join(w.Data(), "db"), 0o755), w.Append(Entry{Plan: id}))
	for _, task := range part.Of(id.Plan.Tasks) {
		name := "db/" + string(rune('a'+task.N))
		must(t, os.WriteFile(filepath.Join(w.Data(), name), []byte(name), 0o644),
			w.Append(Entry{Task: &result.Result{N: task.N, Tables: []store.Table{{File: name}}}}))
	}
	return w
}

// gathered adds the parts to the journal of the target and returns the numbers of the tasks.
func gathered(t *testing.T, p *Parts) (tasks []int, err error) {
	t.Helper()
	w, state, err := p.Open("")
	must(t, err)
	defer func() { must(t, w.Close()) }()
	if state, err = p.Gather(w, state); err != nil {
		return nil, err
	}
	for _, r := range state.Tasks {
		tasks = append(tasks, r.N)
		name := r.Tables[0].File
		if data, err := os.ReadFile(filepath.Join(w.Data(), name)); err != nil || string(data) != name {
			t.Errorf("%s: %q, %v", name, data, err)
		}
	}
	return tasks, nil
}

// TestParts: two processes do each part, and the first to finish wins.
func TestParts(t *testing.T) {
	for _, links := range []bool{true, false} {
		p, id := twoParts(t)
		other := *id
		other.Began = time.Unix(8, 0).UTC()
		if shared, own, err := p.Publish(&other); err != nil || own || !shared.Began.Equal(id.Began) {
			t.Error("the plan changed", own, err)
		}
		again, err := OpenParts(p.Target)
		must(t, err)
		for k := 2; k >= 1; k-- {
			part := pass.Part{K: k, N: 2}
			if missing := again.Missing(2); len(missing) != k || again.Done(part) {
				t.Errorf("missing %v before part %s", missing, part)
			}
			first, second := attempt(t, p, id, part), attempt(t, again, id, part)
			must(t, again.Adopt(second, part), p.Adopt(first, part))
			if _, err := os.Stat(first.Path); !errors.Is(err, os.ErrNotExist) || !p.Done(part) {
				t.Error("an attempt is left", err)
			}
		}
		if p.Report(pass.Part{K: 2, N: 2}) != filepath.Join(p.Path, "parts", "2-of-2", "report.json") {
			t.Error(p.Report(pass.Part{K: 2, N: 2}))
		}
		if !links {
			defer disk.Inject(func(op, _ string) error {
				if op == "link" {
					return syscall.EPERM
				}
				return nil
			})()
		}
		for range 2 { // the second time, all is there
			if tasks, err := gathered(t, p); err != nil || !slices.Equal(tasks, []int{0, 1, 2, 3}) {
				t.Errorf("links %v: %v, %v", links, tasks, err)
			}
		}
	}
}

// TestPartsRefused: what is not of the plan is not gathered.
func TestPartsRefused(t *testing.T) {
	type change func(t *testing.T, p *Parts, id *Identity) error
	finish := func(t *testing.T, p *Parts, id *Identity, parts ...int) {
		for _, k := range parts {
			part := pass.Part{K: k, N: 2}
			must(t, p.Adopt(attempt(t, p, id, part), part))
		}
	}
	late := func(id *Identity) *Identity {
		out := *id
		out.Began = time.Unix(9, 0).UTC()
		return &out
	}
	for name, do := range map[string]change{
		"a part is missing": func(t *testing.T, p *Parts, id *Identity) error {
			finish(t, p, id, 1)
			_, err := gathered(t, p)
			return err
		},
		"a part of another plan": func(t *testing.T, p *Parts, id *Identity) error {
			finish(t, p, id, 1)
			finish(t, p, late(id), 2)
			_, err := gathered(t, p)
			return err
		},
		"a part without its tasks": func(t *testing.T, p *Parts, id *Identity) error {
			finish(t, p, id, 1)
			w, err := p.Attempt(pass.Part{K: 2, N: 2}, "")
			must(t, err, w.Append(Entry{Plan: id}), p.Adopt(w, pass.Part{K: 2, N: 2}))
			_, err = gathered(t, p)
			return err
		},
		"a table outside": func(t *testing.T, p *Parts, id *Identity) error {
			w, err := p.Attempt(pass.Part{K: 1, N: 2}, "")
			must(t, err, w.Append(Entry{Plan: id}))
			for n := range 2 {
				must(t, w.Append(Entry{Task: &result.Result{N: n, Tables: []store.Table{{File: "../x"}}}}))
			}
			must(t, p.Adopt(w, pass.Part{K: 1, N: 2}))
			finish(t, p, id, 2)
			_, err = gathered(t, p)
			return err
		},
		"a table is gone": func(t *testing.T, p *Parts, id *Identity) error {
			finish(t, p, id, 1, 2)
			must(t, os.Remove(filepath.Join(p.path(pass.Part{K: 1, N: 2}), "data", "db", "a")))
			_, err := gathered(t, p)
			return err
		},
		"no plan": func(t *testing.T, p *Parts, _ *Identity) error {
			must(t, os.WriteFile(filepath.Join(p.Path, "plan"), []byte("{}"), 0o644))
			_, err := p.Identity()
			return err
		},
		"a run by itself": func(t *testing.T, p *Parts, _ *Identity) error {
			target := filepath.Join(t.TempDir(), "own")
			w, _, err := Open(target, "", false)
			must(t, err)
			defer w.Close()
			_, err = OpenParts(target)
			return err
		},
		"another's directory": func(t *testing.T, p *Parts, _ *Identity) error {
			target := filepath.Join(t.TempDir(), "other")
			must(t, os.MkdirAll(filepath.Join(Path(target), "photos"), 0o755))
			_, err := OpenParts(target)
			return err
		},
		"no place": func(t *testing.T, p *Parts, _ *Identity) error {
			_, err := OpenParts(filepath.Join(t.TempDir(), "none", "dst"))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, id := twoParts(t)
			if err := do(t, p, id); err == nil {
				t.Error("accepted")
			}
		})
	}
}

// TestPartsFinishing: a target under construction takes no tables, because those it has were renamed.
func TestPartsFinishing(t *testing.T) {
	p, _ := twoParts(t)
	state := &State{Finishing: true}
	if got, err := p.Gather(nil, state); got != state || err != nil {
		t.Error(got, err)
	}
	if _, err := FindParts(filepath.Join(t.TempDir(), "dst")).Gather(nil, new(State)); err == nil {
		t.Error("gathered without a plan")
	}
}

// TestPartsFailing: a failing system call never makes half a part or half a plan appear.
func TestPartsFailing(t *testing.T) {
	var ops []string
	for n := 0; ; n++ {
		p, id := twoParts(t)
		part := pass.Part{K: 1, N: 2}
		w := attempt(t, p, id, part)
		var at atomic.Int64 // files are synced by several goroutines
		mend := disk.Inject(func(op, _ string) error {
			if at.Add(1) == int64(n+1) {
				ops = append(ops, op)
				return syscall.EIO
			}
			return nil
		})
		err := p.Adopt(w, part)
		mend()
		if at.Load() <= int64(n) {
			break
		}
		if done := p.Done(part); !done && err == nil {
			t.Errorf("%s failed: no part, and no error", ops[len(ops)-1])
		} else if done {
			if _, err := p.read(part, id); err != nil {
				t.Errorf("%s failed: %v", ops[len(ops)-1], err)
			}
		}
	}
	slices.Sort(ops)
	if len(slices.Compact(ops)) < 3 {
		t.Errorf("only %v", ops)
	}
	p, id := twoParts(t)
	must(t, os.Remove(filepath.Join(p.Path, planFile)))
	mend := disk.Inject(func(op, _ string) error {
		if op == "write" {
			return syscall.ENOSPC
		}
		return nil
	})
	_, _, err := p.Publish(id)
	mend()
	if got, ierr := p.Identity(); !errors.Is(err, syscall.ENOSPC) || ierr != nil || got != nil {
		t.Error(err, ierr, got)
	}
}

// TestNames: the first process makes the names of a part, and one that no process reads comes first.
func TestNames(t *testing.T) {
	p, id := twoParts(t)
	id.Parts = 4
	next := func(k, want int) *Names {
		t.Helper()
		part, more, err := p.Unnamed(pass.Part{K: k, N: 4}, id)
		must(t, err)
		if more != (want > 0) || more && part.K != want {
			t.Errorf("part %d reads the names of %s, want %d", k, part, want)
		}
		return p.Names(part, id)
	}
	write := func(text string) func(string) error {
		return func(path string) error { return os.WriteFile(path, []byte(text), 0o644) }
	}
	for k := 1; k <= 3; k++ {
		must(t, next(k, k).Make(write("first")))
	}
	if err := next(4, 4).Make(func(string) error { return os.ErrPermission }); !errors.Is(err, os.ErrPermission) {
		t.Error(err)
	}
	must(t, next(1, 4).Make(func(path string) error {
		next(2, 4) // it may be dead
		must(t, p.Names(pass.Part{K: 4, N: 4}, id).Make(write("first")))
		return errors.Join(write("second")(path), errors.New("too late"))
	}))
	next(1, 0)
	entries, err := os.ReadDir(filepath.Join(p.Path, "parts"))
	must(t, err)
	if len(entries) != 4 {
		t.Error("left:", entries)
	}
	for k := range 4 {
		if data, err := os.ReadFile(p.Names(pass.Part{K: k + 1, N: 4}, id).Path); string(data) != "first" {
			t.Errorf("%q, %v", data, err)
		}
	}
}

// TestProofs: the proofs of one census count, and of those the largest share.
func TestProofs(t *testing.T) {
	p, id := twoParts(t)
	for k := 1; k <= 2; k++ {
		part := pass.Part{K: k, N: 2}
		must(t, p.Adopt(attempt(t, p, id, part), part))
	}
	if made, err := p.Made(); made != nil || err != nil {
		t.Error("made", made, err)
	}
	census := &Census{Tables: 4}
	w, state, err := p.Open("")
	must(t, err)
	_, err = p.Gather(w, state)
	must(t, err, w.Append(Entry{Finishing: true}, Entry{Written: census}))
	made, err := p.Made()
	must(t, err)
	if !reflect.DeepEqual(made, census) {
		t.Errorf("%+v", made)
	}
	for _, part := range []pass.Part{{K: 1, N: 3}, {K: 1, N: 2}, {K: 3, N: 3}} {
		must(t, p.Proof(part, made).Make(func(path string) error { return os.WriteFile(path, nil, 0o644) }))
	}
	proofs, err := p.Proofs(made)
	must(t, err)
	if !slices.Equal(proofs, []pass.Part{{K: 1, N: 3}, {K: 3, N: 3}}) {
		t.Error(proofs)
	}
	if others, err := p.Proofs(&Census{Tables: 5}); len(others) != 0 || err != nil {
		t.Error(others, err)
	}
	r, done, err := p.Reader("")
	must(t, err)
	if st, err := os.Stat(r.Spools()); err != nil || !st.IsDir() || r.Data() != w.Data() {
		t.Error(r.Spools(), err)
	}
	must(t, done())
	if _, err := os.Stat(r.Spools()); !errors.Is(err, os.ErrNotExist) {
		t.Error("left:", err)
	}
	must(t, w.Close(), os.WriteFile(filepath.Join(p.Path, journalFile), []byte("{\n"), 0o644))
	if _, err := p.Made(); err == nil {
		t.Error("a damaged journal")
	}
}

// TestLinkAll links the files of a part, and reports that are those of parts.
func TestLinkAll(t *testing.T) {
	p, id := twoParts(t)
	part := pass.Part{K: 1, N: 2}
	must(t, p.Adopt(attempt(t, p, id, part), part))
	w, _, err := p.Open("")
	must(t, err, p.LinkAll(w, part))
	for _, task := range part.Of(id.Plan.Tasks) {
		name := "db/" + string(rune('a'+task.N))
		if data, err := os.ReadFile(filepath.Join(w.Data(), name)); string(data) != name {
			t.Errorf("%q, %v", data, err)
		}
	}
	must(t, w.Close())
	for path, want := range map[string]bool{p.Report(part): true, ReportPath("/t"): true, "/t/report.json": false,
		"/t.kvferry/report.json": false} {
		if IsReport(path) != want {
			t.Errorf("%s: want %t", path, want)
		}
	}
	same, other := *id, *id
	other.Began = other.Began.Add(1)
	if id.Run() == other.Run() || id.Run() != same.Run() {
		t.Error(id.Run(), other.Run())
	}
}
