package work

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"kvferry/internal/pass"
)

// lines writes a file with a line for each task, and a manifest of all.
type lines struct {
	tasks int
	fail  error
}

func (j *lines) Plan(context.Context) (out []pass.Task, err error) {
	for n := range j.tasks {
		out = append(out, pass.Task{N: n, DB: "0", Bytes: int64(n)})
	}
	return out, nil
}

func (j *lines) Write(ctx context.Context, dir string, tasks []pass.Task) (any, error) {
	names := []string{}
	for _, t := range tasks {
		name := fmt.Sprintf("sub%d/%d", t.N%2, t.N)
		err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), fmt.Appendln(nil, t.N), 0o644)
		}
		if err = errors.Join(err, j.fail); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, nil
}

func (j *lines) Assemble(_ context.Context, dir string, parts []json.RawMessage) error {
	var all []string
	for _, p := range parts {
		var names []string
		if err := json.Unmarshal(p, &names); err != nil {
			return err
		}
		all = append(all, names...)
	}
	return os.WriteFile(filepath.Join(dir, "manifest"), []byte(strings.Join(all, "\n")), 0o644)
}

// newRun returns a run of a source with one file.
func newRun(t *testing.T) *Export {
	t.Helper()
	dir := t.TempDir()
	src := filepath.Join(dir, "src")
	if err := errors.Join(os.Mkdir(src, 0o755), os.WriteFile(filepath.Join(src, "file"), []byte("1"), 0o644)); err != nil {
		t.Fatal(err)
	}
	return &Export{Job: &lines{tasks: 12}, Source: ExportPlace{src, "fake"}, Target: ExportPlace{filepath.Join(dir, "dst"), "lines"},
		Tool: "1", Options: map[string]string{"memory": "1"}, Now: time.Unix(5, 0)}
}

func (r *Export) part(t *testing.T, k, n int) *ExportReport {
	t.Helper()
	rep, err := r.Part(context.Background(), pass.Part{K: k, N: n})
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

// check checks that the target is that of 12 tasks, and that nothing else is left.
func (r *Export) check(t *testing.T) {
	t.Helper()
	rep, err := r.Finish(context.Background())
	if err != nil || rep.AllTasks != 12 {
		t.Fatalf("%+v, %v", rep, err)
	}
	data, err := os.ReadFile(filepath.Join(r.Target.Path, "manifest"))
	names := strings.Split(string(data), "\n")
	if err != nil || len(names) != 12 {
		t.Fatalf("%q, %v", data, err)
	}
	for n, name := range names {
		if line, err := os.ReadFile(filepath.Join(r.Target.Path, name)); err != nil || string(line) != fmt.Sprintln(n) {
			t.Errorf("%s: %q, %v", name, line, err)
		}
	}
	entries, err := os.ReadDir(filepath.Dir(r.Target.Path))
	if err != nil || len(entries) != 3 { // source, target, report
		t.Errorf("%v, %v", entries, err)
	}
	if rep, err = r.Finish(context.Background()); err != nil || !rep.Already {
		t.Errorf("again: %+v, %v", rep, err)
	}
	if rep = r.part(t, 1, 3); !rep.Already || rep.Files != nil {
		t.Errorf("a part of a finished target: %+v", rep)
	}
}

// crashing runs do, which dies at a phase; it reports whether there is such a phase.
func (r *Export) crashing(phase string, do func()) (died bool) {
	defer func() {
		r.Crash = nil
		if v := recover(); v == phase {
			died = true
		} else if v != nil {
			panic(v)
		}
	}()
	r.Crash = func(p string) {
		if p == phase {
			panic(p)
		}
	}
	do()
	return false
}

// TestCrash kills a part and the finish at each of their phases; the next process makes the same target.
func TestCrash(t *testing.T) {
	for _, phase := range []string{"shared", "written", "reported"} {
		r := newRun(t)
		if !r.crashing(phase, func() { r.part(t, 2, 3) }) {
			t.Errorf("no phase %s", phase)
		}
		if rep := r.part(t, 1, 3); phase == "reported" && len(rep.Missing) != 2 || rep.Already {
			t.Errorf("%s: %+v", phase, rep)
		}
		r.part(t, 2, 3)
		r.part(t, 3, 3)
		r.check(t)
	}
	for _, phase := range []string{"linked", "assembled", "noted", "announced", "renamed"} {
		r := newRun(t)
		for k := 1; k <= 3; k++ {
			r.part(t, k, 3)
		}
		if !r.crashing(phase, func() { _, _ = r.Finish(context.Background()) }) {
			t.Errorf("no phase %s", phase)
		}
		_, gone := os.Stat(r.Target.Path)
		if complete := phase == "renamed"; complete != (gone == nil) {
			t.Errorf("%s: the target is there: %v", phase, gone == nil)
		}
		// A process that died holds no lock.
		r.check(t)
	}
}

// TestAtOnce runs all parts at the same time, each twice.
func TestAtOnce(t *testing.T) {
	r := newRun(t)
	var all sync.WaitGroup
	for i := range 6 {
		all.Go(func() {
			rep, err := r.Part(context.Background(), pass.Part{K: i%3 + 1, N: 3})
			if err != nil || rep.Part != i%3+1 || rep.AllTasks != 12 {
				t.Errorf("part %d: %+v, %v", i%3+1, rep, err)
			}
		})
	}
	all.Wait()
	r.check(t)
}

// TestExportMissing checks what is said while parts are missing, and that a part that failed leaves nothing.
func TestExportMissing(t *testing.T) {
	r := newRun(t)
	var missing *MissingError
	if _, err := r.Finish(context.Background()); !errors.As(err, &missing) || missing.Parts != 0 {
		t.Errorf("none: %v", err)
	}
	if rep := r.part(t, 2, 3); fmt.Sprint(rep.Missing) != "[1 3]" || rep.Tasks == 0 || rep.Tasks == 12 {
		t.Errorf("%+v", rep)
	}
	if _, err := r.Finish(context.Background()); !errors.As(err, &missing) || fmt.Sprint(missing.Missing) != "[1 3]" {
		t.Errorf("one: %v", err)
	}
	broken := errors.New("broken")
	r.Job = &lines{tasks: 12, fail: broken}
	if _, err := r.Part(context.Background(), pass.Part{K: 1, N: 3}); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	if left, err := filepath.Glob(r.Target.Path + ".kvferry/parts/1-of-3*"); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if _, err := os.Stat(r.Target.Path); err == nil {
		t.Error("there is a target")
	}
}

// TestOther checks that runs of another identity are refused, and a target that is another's.
func TestOther(t *testing.T) {
	r := newRun(t)
	r.part(t, 1, 1)
	for want, change := range map[string]func(*Export){
		"memory":      func(r *Export) { r.Options = map[string]string{"memory": "2"} },
		"not by 2":    func(r *Export) { r.Tool = "2" },
		"--now":       func(r *Export) { r.Now = time.Unix(6, 0) },
		"converts to": func(r *Export) { r.Target.Format = "other" },
		"modified": func(r *Export) {
			_ = os.Chtimes(filepath.Join(r.Source.Path, "file"), time.Unix(1, 0), time.Unix(1, 0))
		},
		"inside the sourc": func(r *Export) { r.Target.Path = filepath.Join(r.Source.Path, "x") },
	} {
		other := *r
		change(&other)
		_, err := other.Part(context.Background(), pass.Part{K: 1, N: 1})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	r = newRun(t)
	if err := os.Mkdir(r.Target.Path, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Part(context.Background(), pass.Part{K: 1, N: 1}); !errors.Is(err, os.ErrExist) {
		t.Errorf("a target that is there: %v", err)
	}
	if _, err := r.Finish(context.Background()); !errors.Is(err, os.ErrExist) {
		t.Errorf("a target that is there: %v", err)
	}
}
