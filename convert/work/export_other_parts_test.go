package work

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kvferry/internal/pass"
)

// TestPartOfAnotherPlan: a part that was made by another plan, as by a run whose work directory was removed, is not
// assembled with those of this one.
func TestPartOfAnotherPlan(t *testing.T) {
	r := newRun(t)
	r.part(t, 1, 2)
	shared := FindParts(r.Target.Path)
	part := filepath.Dir(shared.Report(pass.Part{K: 1, N: 2}))
	earlier := filepath.Join(t.TempDir(), "part")
	if err := errors.Join(os.Rename(part, earlier), os.RemoveAll(shared.Path)); err != nil {
		t.Fatal(err)
	}
	r.part(t, 2, 2)
	if err := os.Rename(earlier, part); err != nil {
		t.Fatal(err)
	}
	var resume *ResumeError
	if _, err := r.Finish(context.Background()); !errors.As(err, &resume) || !strings.Contains(err.Error(), "part 1/2 was made by another plan") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(r.Target.Path); err == nil {
		t.Error("there is a target")
	}
}

// overtaken is a job that another process overtakes while it plans.
type overtaken struct {
	lines
	first func()
}

func (j *overtaken) Plan(ctx context.Context) ([]pass.Task, error) {
	j.first()
	return j.lines.Plan(ctx)
}

// TestOvertaken: a process that plans while another one has published a plan goes on with that plan, or is refused if it
// has other options.
func TestOvertaken(t *testing.T) {
	for _, memory := range []string{"1", "2"} {
		r := newRun(t)
		first := *r
		first.Options = map[string]string{"memory": memory}
		r.Job = &overtaken{lines{tasks: 7}, func() { first.part(t, 1, 3) }}
		_, err := r.Part(context.Background(), pass.Part{K: 2, N: 3})
		if memory == "2" {
			var resume *ResumeError
			if !errors.As(err, &resume) || !strings.Contains(err.Error(), "memory") {
				t.Errorf("%v", err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		r.Job = &lines{tasks: 7} // of a plan that is not made
		r.part(t, 3, 3)
		r.check(t)
	}
}

// TestStopped: a part that is stopped after it was written is not finished, and neither is a target.
func TestStopped(t *testing.T) {
	r := newRun(t)
	stopAt := func(phase string) context.Context {
		ctx, cancel := context.WithCancel(context.Background())
		t.Cleanup(cancel)
		r.Crash = func(at string) {
			if at == phase {
				cancel()
			}
		}
		return ctx
	}
	if _, err := r.Part(stopAt("reported"), pass.Part{K: 1, N: 3}); !errors.Is(err, context.Canceled) {
		t.Errorf("a part: %v", err)
	}
	if left, err := filepath.Glob(r.Target.Path + ".kvferry/parts/1-of-3*"); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	r.Crash = nil
	for k := 1; k <= 3; k++ {
		if rep := r.part(t, k, 3); rep.Already {
			t.Errorf("part %d is finished", k)
		}
	}
	over, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := r.Finish(over); !errors.Is(err, context.Canceled) {
		t.Errorf("a finish: %v", err)
	}
	if _, err := os.Stat(r.Target.Path); err == nil {
		t.Error("there is a target")
	}
	r.check(t)
}

// TestLogsOfTheSource: a target is not made inside of the directory of the source's logs.
func TestLogsOfTheSource(t *testing.T) {
	r := newRun(t)
	r.WALDir = filepath.Join(filepath.Dir(r.Source.Path), "logs")
	if err := errors.Join(os.Mkdir(r.WALDir, 0o755),
		os.WriteFile(filepath.Join(r.WALDir, "000001.log"), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	r.Target.Path = filepath.Join(r.WALDir, "dst")
	if _, err := r.Part(context.Background(), pass.Part{K: 1, N: 1}); err == nil || !strings.Contains(err.Error(), "inside") {
		t.Errorf("%v", err)
	}
}
