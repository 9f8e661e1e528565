package convert

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"kvferry/format"
	"kvferry/internal/pass"
	"kvferry/internal/pass/filter"
	"kvferry/internal/testkit/fake"
	"kvferry/record"
)

// crashEnv makes the test binary convert the bench in a directory and kill itself at a step.
const (
	crashEnv = "KVFERRY_TEST_CRASH" // the step
	crashDir = "KVFERRY_TEST_DIR"
	crashOf  = "KVFERRY_TEST_SELECT" // not empty: select with someRecords
	crashIn  = "KVFERRY_TEST_PART"   // a part, or 0/0 for the finish
	crashTo  = "KVFERRY_TEST_TO"     // the address to upload to
)

func TestMain(m *testing.M) {
	if step := os.Getenv(crashEnv); step != "" {
		convertAndDie(os.Getenv(crashDir), step)
		os.Exit(3) // it did not die
	}
	os.Exit(m.Run())
}

func die() {
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	if err != nil {
		panic(err)
	}
	time.Sleep(time.Minute)
}

// convertAndDie converts like the benches of these tests and dies at a step.
func convertAndDie(dir, step string) {
	b := openBench(nil, dir)
	if address := os.Getenv(crashTo); address != "" {
		b.uploads(address)
	}
	b.crashable(step)
	if os.Getenv(crashOf) != "" {
		b.o.Selection = someRecords()
	}
	var err error
	switch part, _ := pass.ParsePart(os.Getenv(crashIn)); {
	case part.N > 0:
		_, err = RunPart(context.Background(), &b.o, part)
	case os.Getenv(crashIn) != "":
		_, err = Finish(context.Background(), &b.o)
	default:
		_, err = Run(context.Background(), &b.o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(4)
	}
}

// crashable makes a bench die at a step.
func (b *bench) crashable(step string) {
	b.o.Workers, b.o.ForceSpace = 1, true // the estimate for a nearly full disk would finish a target, too
	b.o.crash = func(s string) {
		if s == step {
			die()
		}
	}
	var records atomic.Int64 // some callers set more workers
	b.from.Wrap = func(s *fake.Source) {
		s.Weight = oneTask / 4
		s.Fail = func(*record.Header, *format.Env) error {
			if fmt.Sprint("record ", records.Add(1)) == step {
				die()
			}
			return nil
		}
	}
	renames := 0
	b.to.MidFinish = func() {
		if renames++; fmt.Sprint("rename ", renames) == step {
			die()
		}
	}
}

// someRecords selects by sample, size and expiry.
func someRecords() *filter.Selection {
	return &filter.Selection{Filter: filter.Filter{Sample: 2}, MinElements: 1, MinBytes: 7,
		ExpireFrom: &filter.Moment{Ahead: time.Hour}, ExpireTo: &filter.Moment{Ahead: 3 * time.Hour}}
}

// killed runs the conversion of a bench in another process that dies at a step.
func (b *bench) killed(step string) { b.killedIn(step, "") }

// killedIn runs a part of the conversion, or the finish, in another process that dies at a step.
func (b *bench) killedIn(step, part string) {
	b.t.Helper()
	exe, err := os.Executable()
	if err != nil {
		b.t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), crashEnv+"="+step, crashDir+"="+b.dir, crashIn+"="+part)
	if b.o.Target.Objects != nil {
		cmd.Env = append(cmd.Env, crashTo+"="+b.o.Target.Objects.Address())
	}
	if b.o.Selection != nil {
		cmd.Env = append(cmd.Env, crashOf+"=1")
	}
	out, err := cmd.CombinedOutput()
	exit, ok := err.(*exec.ExitError)
	if !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		b.t.Fatalf("step %s: the process did not die: %v\n%s", step, err, out)
	}
}

func TestKilledAndResumed(t *testing.T) {
	whole := newBench(t, fake.Dataset(1))
	whole.crashable("never")
	want := whole.run()
	tree := whole.tree()
	var phases []string
	for _, p := range conversion {
		if p.name != "" && !slices.Contains(
			[]string{"continued", "adopted", "looked", "counted", "concluded", "reached", "uploaded", "appeared"}, p.name) {
			// no part of this run
			phases = append(phases, p.name)
		}
	}
	planned, kept := slices.Index(phases, "planned")+1, slices.Index(phases, "kept")
	finishing := append(phases[kept:], "rename 1", "rename 7")
	steps := append(phases, "rename 1", "rename 7", "record 1", "record 30", "record 60")
	for n := range want.Tasks {
		if n%4 == 0 || n == want.Tasks-1 {
			steps = append(steps, fmt.Sprint("task ", n), fmt.Sprint("written ", n))
		}
	}
	for _, step := range steps {
		b := newBench(t, fake.Dataset(1))
		b.killed(step)
		_, err := os.Stat(filepath.Join(b.dir, "dst.kvferry", "kept"))
		if want := slices.Contains(finishing, step); (err == nil) != want {
			t.Errorf("%s: tables kept aside: %v", step, err)
		}
		if step != "renamed" {
			_, err := Run(context.Background(), &b.o)
			if err == nil || !strings.Contains(err.Error(), "continue it with --resume") {
				t.Errorf("%s: without --resume: %v", step, err)
			}
		}
		b.crashable("never")
		b.o.Resume = true
		b.o.Now = testNow.Add(time.Hour) // the clock of the first run is used
		got := b.run()
		if b.tree() != tree {
			t.Errorf("%s: the resumed run wrote something else", step)
		}
		if got.Records() != want.Records() || !got.Proof.Done ||
			!got.Now.Equal(testNow) && !slices.Contains(phases[:planned], step) {
			t.Errorf("%s: report %+v", step, got)
		}
	}
}

// TestDiedWithNothingLeft checks that a run that died after it removed its journal, but not its directory, is
// complete. Without a report, a directory beside a target proves nothing.
func TestDiedWithNothingLeft(t *testing.T) {
	b := newBench(t, fake.Dataset(1))
	want := b.run()
	for _, report := range []bool{true, false} {
		if err := os.Mkdir(filepath.Join(b.dir, "dst.kvferry"), 0o755); err != nil {
			t.Fatal(err)
		}
		if report {
			b.o.Resume = true
			if got := b.run(); got.Records() != want.Records() || !got.Proof.Done {
				t.Errorf("report %+v", got)
			}
			if err := os.Remove(filepath.Join(b.dir, "dst.kvferry-report.json")); err != nil {
				t.Fatal(err)
			}
		} else if _, err := Run(context.Background(), &b.o); !errors.Is(err, fs.ErrExist) {
			t.Errorf("without a report: %v", err)
		}
	}
}

func TestKilledThenFailed(t *testing.T) {
	whole := newBench(t, fake.Dataset(1))
	whole.crashable("never")
	whole.run()
	b := newBench(t, fake.Dataset(1))
	b.killed("record 20")
	b.crashable("never")
	b.o.Resume = true
	b.to.FailAfter = 2
	if _, err := Run(context.Background(), &b.o); err == nil {
		t.Fatal("no error")
	}
	b.leaves("dst.kvferry", "src")
	b.to.FailAfter = 0
	b.run()
	if b.tree() != whole.tree() {
		t.Error("the tree differs")
	}
}

func TestWithoutHardLinks(t *testing.T) {
	whole := newBench(t, fake.Dataset(1))
	whole.crashable("never")
	whole.run()
	b := newBench(t, fake.Dataset(1))
	b.killed("rename 3")
	if err := os.RemoveAll(filepath.Join(b.dir, "dst.kvferry/kept")); err != nil {
		t.Fatal(err)
	}
	b.crashable("never")
	b.o.Resume = true
	b.run()
	if b.tree() != whole.tree() {
		t.Error("the tree differs")
	}
}

func TestResumeRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*bench)
		text   string
	}{
		"filter":  {func(b *bench) { b.o.Selection = filtered(filter.Filter{Types: record.Of(record.Hash)}) }, "it was started without --type; leave out the flag to continue it"},
		"version": {func(b *bench) { b.o.Version = 7 }, "it has version-epoch 1, not 7"},
		"now":     {func(b *bench) { b.o.Now, b.o.NowGiven = testNow.Add(1), true }, "leave out --now"},
		"size":    {func(b *bench) { b.write("src/CURRENT", []byte("longer")) }, "CURRENT has 6 bytes, had 5"},
		"mtime": {func(b *bench) {
			if err := os.Chtimes(filepath.Join(b.dir, "src/CURRENT"), testNow, testNow); err != nil {
				t.Fatal(err)
			}
		}, "CURRENT was modified at 2023-11-14"},
		"new":     {func(b *bench) { b.write("src/000001.json", nil) }, "000001.json is new"},
		"gone":    {func(b *bench) { os.Remove(filepath.Join(b.dir, "src/extra")) }, "extra is gone"},
		"missing": {func(b *bench) { removeTables(b) }, "cannot be resumed"},
		"no data": {func(b *bench) {
			if err := os.RemoveAll(filepath.Join(b.dir, "dst.kvferry/data")); err != nil {
				t.Fatal(err)
			}
			b.write("dst.kvferry/data", nil)
		}, "cannot be resumed"},
		"journal": {func(b *bench) { b.write("dst.kvferry/journal", []byte("{\"plan\":{}}\nrubbish\n")) }, "line 2"},
		"order":   {func(b *bench) { b.write("dst.kvferry/journal", []byte("{\"finishing\":true}\n")) }, "the plan must be on the first line"},
	} {
		b := newBench(t, fake.Dataset(1))
		b.write("src/extra", nil)
		b.killed("written 9")
		b.crashable("never")
		b.o.Resume = true
		c.change(b)
		_, err := Run(context.Background(), &b.o)
		if err == nil || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v, want %q", name, err, c.text)
		} else if text := err.Error(); strings.Contains(text, "continues it") ||
			strings.Count(text, "start over with --discard") != 1 {
			t.Errorf("%s: it says that the run that failed can be continued: %s", name, text)
		}
		b.leaves("dst.kvferry", "src")
		if name == "journal" || name == "order" || name == "missing" {
			b.o.Resume, b.o.Discard = false, true
			b.run()
		}
	}
}

// TestResumeWithoutProof checks that a run begun without a proof cannot be resumed with one. The reverse is allowed.
func TestResumeWithoutProof(t *testing.T) {
	for _, first := range []bool{false, true} {
		b := newBench(t, fake.Dataset(1))
		b.o.Resume, b.o.NoProve, b.to.FailAfter = true, first, 2
		if _, err := Run(context.Background(), &b.o); err == nil {
			t.Fatal("no error")
		}
		b.o.NoProve, b.to.FailAfter = !first, 0
		if first {
			if _, err := Run(context.Background(), &b.o); err == nil || !strings.Contains(err.Error(), "begun with --no-prove: pass it again") {
				t.Errorf("with a proof after all: %v", err)
			}
			b.o.NoProve = true
		}
		rep := b.run()
		if rep.Records() != 60 || rep.Proof.Done || (rep.Parts[0].Millis == record.Sum128{}) != first {
			t.Errorf("begun with --no-prove: %t: %+v, %+v", first, rep.Proof, rep.Parts[0])
		}
	}
}

func removeTables(b *bench) {
	tables, err := filepath.Glob(filepath.Join(b.dir, "dst.kvferry/data/*.tmp"))
	if err != nil || len(tables) == 0 {
		b.t.Fatalf("%v, %v", tables, err)
	}
	for _, path := range tables {
		if err := os.Remove(path); err != nil {
			b.t.Fatal(err)
		}
	}
}

func TestOneAtATime(t *testing.T) {
	b := newBench(t, fake.Dataset(1))
	b.o.crash = func(step string) {
		if step != "finish" {
			return
		}
		o := b.o
		o.Resume, o.crash = true, nil
		if _, err := Run(context.Background(), &o); err == nil || !strings.Contains(err.Error(), "another kvferry is using it") {
			t.Errorf("the second run: %v", err)
		}
	}
	b.run()
}

func TestResumeWithNothingThere(t *testing.T) {
	b := newBench(t, fake.Dataset(1))
	b.o.Resume = true
	b.run()

	b = newBench(t, fake.Dataset(1))
	b.o.Resume = true
	b.o.Selection = filtered(filter.Filter{DBs: []string{"none"}})
	b.fails("no database")
}

func TestResumeKeepsARefusal(t *testing.T) {
	b := newBench(t, lossy())
	b.o.Resume = true
	if _, err := Run(context.Background(), &b.o); err == nil {
		t.Fatal("no error")
	}
	b.leaves("dst.kvferry", "src")
	b.o.AllowLoss = []string{"key-too-long", "score-range"}
	if rep := b.run(); rep.Records() != 62 || !rep.Timings.Resumed {
		t.Errorf("%+v", rep)
	}
}
