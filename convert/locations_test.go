package convert

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kvferry/convert/work"
	"kvferry/format"
	"kvferry/internal/pass/filter"
	"kvferry/internal/testkit/fake"
	"kvferry/record"
	"kvferry/store"
)

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// refused runs the conversion of a bench, which must fail and leave the directory as it is.
func (b *bench) refused(text string) {
	b.t.Helper()
	list := func() string {
		out, err := exec.Command("find", b.dir, "-printf", "%p %s %t %l\n").Output()
		must(b.t, err)
		return string(out)
	}
	before := list()
	if _, err := Run(context.Background(), &b.o); err == nil || !strings.Contains(err.Error(), text) {
		b.t.Errorf("error %v, want one with %q", err, text)
	}
	if after := list(); after != before {
		b.t.Errorf("left\n%swant\n%s", after, before)
	}
}

func TestResumeBehindLinks(t *testing.T) {
	for name, c := range map[string]struct {
		change func(b *bench) error
		text   string
	}{
		"the same": {func(*bench) error { return nil }, ""},
		"root": {func(b *bench) error {
			return errors.Join(os.Rename(filepath.Join(b.dir, "real"), filepath.Join(b.dir, "old")),
				exec.Command("cp", "-r", filepath.Join(b.dir, "old"), filepath.Join(b.dir, "real")).Run())
		}, "was modified at"},
		"root elsewhere": {func(b *bench) error {
			return errors.Join(exec.Command("cp", "-a", filepath.Join(b.dir, "real"), filepath.Join(b.dir, "other")).Run(),
				os.Remove(filepath.Join(b.dir, "src")), os.Symlink("other", filepath.Join(b.dir, "src")))
		}, "other"},
		"below": {func(b *bench) error {
			b.write("store/file", []byte("new!"))
			return nil
		}, "link/file has 4 bytes, had 3"},
		"below elsewhere": {func(b *bench) error {
			return errors.Join(exec.Command("cp", "-a", filepath.Join(b.dir, "store"), filepath.Join(b.dir, "store2")).Run(),
				os.Remove(filepath.Join(b.dir, "real/link")), os.Symlink("../store2", filepath.Join(b.dir, "real/link")))
		}, "link/file is at "},
		"logs": {func(b *bench) error { return os.Remove(filepath.Join(b.dir, "wal/000003.log")) }, "wal-dir:000003.log is gone"},
	} {
		b := newBench(t, fake.Dataset(1))
		must(t, os.Rename(filepath.Join(b.dir, "src"), filepath.Join(b.dir, "real")), os.Symlink("real", filepath.Join(b.dir, "src")),
			os.Mkdir(filepath.Join(b.dir, "store"), 0o755), os.Mkdir(filepath.Join(b.dir, "wal"), 0o755),
			os.Symlink("../store", filepath.Join(b.dir, "real/link")))
		b.write("store/file", []byte("old"))
		b.write("wal/000003.log", nil)
		b.o.Source.WALDir = filepath.Join(b.dir, "wal")
		b.o.Resume, b.o.Workers = true, 1
		ctx, cancel := context.WithCancel(context.Background())
		b.o.crash = func(step string) {
			if step == "written 2" {
				cancel()
			}
		}
		if _, err := Run(ctx, &b.o); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		b.o.crash = nil
		must(t, c.change(b))
		_, err := Run(context.Background(), &b.o)
		switch {
		case c.text == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.text != "" && (err == nil || !strings.Contains(err.Error(), c.text) || !strings.Contains(err.Error(), "cannot be resumed")):
			t.Errorf("%s: %v, want %q", name, err, c.text)
		}
	}
}

func TestForeignPlaces(t *testing.T) {
	b := newBench(t, fake.Dataset(1))
	must(t, os.Mkdir(filepath.Join(b.dir, "dst.kvferry"), 0o755))
	b.write("dst.kvferry/mine", []byte("x"))
	b.refused("it contains mine")
	b.o.Resume = true
	b.refused("it contains mine")
	must(t, os.Rename(filepath.Join(b.dir, "dst.kvferry/mine"), filepath.Join(b.dir, "dst.kvferry/data")))
	b.refused("it has no journal")
	must(t, os.Remove(filepath.Join(b.dir, "dst.kvferry/data")))
	b.write("dst.kvferry-report.json", []byte("{}"))
	b.o.Resume = false
	b.refused("dst.kvferry-report.json: already exists; kvferry does not overwrite it: move it away")
	must(t, os.Remove(filepath.Join(b.dir, "dst.kvferry-report.json")),
		os.Mkdir(filepath.Join(b.dir, "dst.kvferry-report.json"), 0o755))
	b.refused("dst.kvferry-report.json: already exists")
	if _, err := DryRun(context.Background(), &b.o); !errors.Is(err, fs.ErrExist) {
		t.Errorf("dry run: %v", err)
	}
}

func TestTargetInsideTheSource(t *testing.T) {
	b := newBench(t, fake.Dataset(1))
	must(t, os.MkdirAll(filepath.Join(b.dir, "store/sub"), 0o755), os.Mkdir(filepath.Join(b.dir, "wal"), 0o755),
		os.Symlink("../store", filepath.Join(b.dir, "src/link")), os.Symlink("store/sub", filepath.Join(b.dir, "sub")))
	b.o.Source.WALDir = filepath.Join(b.dir, "wal")
	for _, path := range []string{"src/dst", "store/dst", "store/sub/dst", "sub/dst", "src/link/sub/dst", "wal/dst"} {
		b.o.Target.Path = filepath.Join(b.dir, path)
		b.refused("which kvferry must not change")
	}
}

func TestAnotherAtWork(t *testing.T) {
	b := newBench(t, fake.Dataset(1))
	b.o.crash = func(step string) {
		if step != "finish" {
			return
		}
		o := b.o
		o.crash = nil
		_, err := Run(context.Background(), &o)
		if err == nil || !strings.Contains(err.Error(), "another kvferry is using it (process ") {
			t.Errorf("the second run: %v", err)
		}
	}
	b.run()
}

func TestTempDir(t *testing.T) {
	b := newBench(t, fake.Dataset(1))
	b.o.TempDir = filepath.Join(b.dir, "nowhere")
	b.refused("nowhere: the directory for temporary files does not exist")
	b.o.TempDir = filepath.Join(b.dir, "src/CURRENT")
	b.refused("not a directory")
	b.o.TempDir = filepath.Join(b.dir, "src")
	b.refused("is inside the source")
	if _, err := DryRun(context.Background(), &b.o); err == nil || !strings.Contains(err.Error(), "is inside the source") {
		t.Errorf("dry run: %v", err)
	}

	b.o.TempDir = t.TempDir()
	var used []os.DirEntry
	b.o.crash = func(step string) {
		if step == "finish" {
			used, _ = os.ReadDir(b.o.TempDir)
		}
	}
	b.run()
	if len(used) != 1 || !used[0].IsDir() || !strings.HasPrefix(used[0].Name(), "kvferry-convert-") {
		t.Errorf("in the directory for spools: %v", used)
	}
	if left, err := os.ReadDir(b.o.TempDir); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

// TestTempDirOfADeadRun checks that a killed run leaves its spools in place, and that the resumed run removes them.
func TestTempDirOfADeadRun(t *testing.T) {
	b := newBench(t, fake.Dataset(1))
	w, _, err := work.Open(b.o.Target.Path, t.TempDir(), false)
	must(t, err)
	spools, err := filepath.EvalSymlinks(filepath.Join(w.Path, "tmp"))
	must(t, err, os.WriteFile(filepath.Join(spools, "spool"), nil, 0o644), w.Close())
	b.o.Resume = true
	b.run()
	if _, err := os.Stat(spools); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s: %v", spools, err)
	}
}

// TestDamagedWhenOpened checks that a finding about the source as a whole prevents any writing.
func TestDamagedWhenOpened(t *testing.T) {
	b := newBench(t, fake.Dataset(1))
	open := b.o.Source.Open
	b.o.Source.Open = reporting(open, record.Finding{Kind: record.FindStoreNotRead, Severity: record.Error, Detail: "a store in x"})
	b.o.crash = func(step string) {
		if strings.HasPrefix(step, "written") {
			t.Errorf("%s", step)
		}
	}
	b.fails("the source is damaged: 1 error;")
	b.o.crash = nil
	b.o.AllowLoss = []string{record.LossDamaged}
	b.run()
}

type opening = func(context.Context, func(*store.Options)) (format.Source, error)

// reporting makes an opener report a finding.
func reporting(open opening, f record.Finding) opening {
	return func(ctx context.Context, change func(*store.Options)) (format.Source, error) {
		var o store.Options
		change(&o)
		o.Report(f)
		return open(ctx, change)
	}
}

// reports lists the reports beside the target by their number of records.
func (b *bench) reports() string {
	b.t.Helper()
	paths, err := filepath.Glob(filepath.Join(b.dir, "dst.kvferry-report*"))
	must(b.t, err)
	var out []string
	for _, path := range paths {
		rep, err := ReadReport(path)
		must(b.t, err)
		out = append(out, fmt.Sprint(strings.TrimPrefix(path, filepath.Join(b.dir, "dst.kvferry-")), " ", rep.Records()))
	}
	return strings.Join(out, ", ")
}

// TestEarlierReports checks that a deleted target can be converted again, and that no report is lost.
func TestEarlierReports(t *testing.T) {
	b := newBench(t, fake.Dataset(1))
	gone := func() { must(t, os.RemoveAll(filepath.Join(b.dir, "dst"))) }
	sized := func(n int64) { b.o.Selection = &filter.Selection{MinElements: n} }
	var want []int64
	for n := int64(1); n <= 3; n++ {
		sized(n)
		if _, err := DryRun(context.Background(), &b.o); err != nil {
			t.Errorf("dry run: %v", err)
		}
		rep, err := Run(context.Background(), &b.o)
		must(t, err)
		earlier := ""
		if n > 1 {
			earlier = filepath.Join(b.dir, fmt.Sprintf("dst.kvferry-report.%d.json", n-1))
		}
		if rep.Earlier != earlier {
			t.Errorf("run %d: kept %q, want %q", n, rep.Earlier, earlier)
		}
		want = append(want, rep.Records())
		gone()
	}
	if got := b.reports(); got != fmt.Sprintf("report.1.json %d, report.2.json %d, report.json %d", want[0], want[1], want[2]) {
		t.Errorf("reports %s", got)
	}

	// A run that fails or is refused does not change them.
	before := b.reports()
	b.to.FailAfter = 1
	if _, err := Run(context.Background(), &b.o); err == nil {
		t.Error("no error")
	}
	b.to.FailAfter = 0
	sized(1 << 40)
	if _, err := Run(context.Background(), &b.o); err == nil {
		t.Error("no error")
	}
	if got := b.reports(); got != before {
		t.Errorf("reports %s, want %s", got, before)
	}

	// A number used by another file is skipped.
	must(t, os.Mkdir(filepath.Join(b.dir, "dst.kvferry-report.3.json"), 0o755))
	sized(1)
	rep, err := Run(context.Background(), &b.o)
	must(t, err, os.Remove(filepath.Join(b.dir, "dst.kvferry-report.3.json")))
	if !strings.HasSuffix(rep.Earlier, ".4.json") {
		t.Errorf("kept %q", rep.Earlier)
	}
	if got := b.reports(); got != fmt.Sprintf("report.1.json %d, report.2.json %d, report.4.json %d, report.json %d", want[0],
		want[1], want[2], want[0]) {
		t.Errorf("reports %s", got)
	}
}

// TestReportMadeMeanwhile checks that a report that another process creates during the conversion is kept, too.
func TestReportMadeMeanwhile(t *testing.T) {
	b := newBench(t, fake.Dataset(1))
	b.o.crash = func(step string) {
		if step == "publish" {
			b.write("dst.kvferry-report.json", []byte("mine"))
		}
	}
	rep, err := Run(context.Background(), &b.o)
	must(t, err)
	data, err := os.ReadFile(rep.Earlier)
	if err != nil || string(data) != "mine" {
		t.Errorf("kept %q, %v", data, err)
	}
	if again, err := ReadReport(ReportPath(b.o.Target.Path)); err != nil || again.Records() != rep.Records() {
		t.Errorf("%+v, %v", again, err)
	}
}

// TestEarlierReportsAfterACrash checks that a run that dies while it renames reports still ends with both.
func TestEarlierReportsAfterACrash(t *testing.T) {
	for _, step := range []string{"publish", "aside", "reported", "renamed", "lost"} {
		b := newBench(t, fake.Dataset(1))
		b.o.Selection = &filter.Selection{MinElements: 4}
		old := b.run()
		must(t, os.RemoveAll(filepath.Join(b.dir, "dst")))
		b.o.Selection = nil
		switch step {
		case "aside": // it died a moment later
			b.killed("publish")
			report := ReportPath(b.o.Target.Path)
			must(t, os.Rename(report, strings.TrimSuffix(report, ".json")+".1.json"))
		case "lost": // the target's new name was durable, but not the report's
			b.killed("renamed")
			must(t, os.Remove(ReportPath(b.o.Target.Path)))
		default:
			b.killed(step)
		}
		b.o.Resume = true
		rep, err := Run(context.Background(), &b.o)
		must(t, err)
		got := b.reports()
		if got != fmt.Sprintf("report.1.json %d, report.json %d", old.Records(), rep.Records()) || rep.Records() != 60 {
			t.Errorf("%s: reports %s", step, got)
		}
		if (rep.Earlier != "") != (step == "publish") { // at later steps the killed run had set it aside
			t.Errorf("%s: kept %q", step, rep.Earlier)
		}
		b.leaves("dst", "dst.kvferry-report.1.json", "dst.kvferry-report.json", "src")
	}
}

func TestReadReportRefuses(t *testing.T) {
	b := newBench(t, nil)
	for name, data := range map[string]string{"empty": "", "object": "{}", "list": "[]", "half": `{"source":{"format":"fake"}`,
		"other": `{"source":{"format":"fake"},"target":{}}`} {
		b.write(name, []byte(data))
	}
	must(t, os.Truncate(filepath.Join(b.dir, "empty"), maxReport+1)) // zeros, never read
	for _, name := range []string{"empty", "object", "list", "half", "other", "src"} {
		if _, err := ReadReport(filepath.Join(b.dir, name)); err == nil || !strings.Contains(err.Error(), "not a kvferry report") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := ReadReport(filepath.Join(b.dir, "nothing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing: %v", err)
	}
}

// TestDrySteps checks that a dry run has the step that reads all records, unless it only estimates.
func TestDrySteps(t *testing.T) {
	b := newBench(t, nil)
	for _, c := range []struct {
		estimate, rename bool
		want             string
	}{{false, false, "plan read sample"}, {false, true, "plan look read sample"}, {true, false, "plan sample"}, {true, true, "plan sample"}} {
		b.o.Estimate, b.o.Rename = c.estimate, c.rename
		var got []string
		for _, s := range b.o.steps(new(dryRun).phases(&b.o)) {
			got = append(got, s.Name)
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("estimate %t, rename %t: %s, want %s", c.estimate, c.rename, s, c.want)
		}
	}
}
