package convert

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kvferry/convert/work"
	"kvferry/format"
	"kvferry/internal/pass"
	"kvferry/internal/pass/filter"
	"kvferry/internal/testkit/fake"
	"kvferry/record"
)

// part runs a part of the conversion and requires success.
func (b *bench) part(k, n int) *PartReport {
	b.t.Helper()
	rep, err := RunPart(context.Background(), &b.o, pass.Part{K: k, N: n})
	if err != nil {
		b.t.Fatalf("part %d/%d: %v", k, n, err)
	}
	return rep
}

// finish finishes the target and requires success.
func (b *bench) finish() *Report {
	b.t.Helper()
	rep, err := Finish(context.Background(), &b.o)
	if err != nil {
		b.t.Fatal(err)
	}
	b.leaves("dst", "dst.kvferry-report.json", "src")
	return rep
}

// wholeTree returns the target of one run.
func wholeTree(t *testing.T) (*Report, string) {
	b := newBench(t, fake.Dataset(2))
	b.crashable("never")
	return b.run(), b.tree()
}

// TestParts checks that parts, in any order, also more than there are tasks, make the target of one run.
func TestParts(t *testing.T) {
	want, tree := wholeTree(t)
	for _, n := range []int{1, 3, want.Tasks + 2} {
		b := newBench(t, fake.Dataset(2))
		b.crashable("never")
		var missing *MissingError
		if _, err := Finish(context.Background(), &b.o); !errors.As(err, &missing) || missing.Parts != 0 {
			t.Errorf("without parts: %v", err)
		}
		var records int64
		tasks := 0
		for k := n; k > 0; k-- {
			b.o.Workers = k%3 + 1
			if rep := b.part(k, n); rep.Already || len(rep.Missing) != k-1 {
				t.Errorf("part %d/%d: %+v", k, n, rep)
			} else {
				tasks += rep.Tasks
				for _, p := range rep.Fingerprint {
					records += p.Records
				}
			}
			_, err := Finish(context.Background(), &b.o)
			if k > 1 && (!errors.As(err, &missing) || !slices.Contains(missing.Missing, k-1)) {
				t.Errorf("before part %d/%d: %v", k-1, n, err)
			}
			b.o.Now = b.o.Now.Add(time.Hour) // the clock of the first part is used
			if rep := b.part(k, n); k > 1 && !rep.Already {
				t.Errorf("part %d/%d ran twice", k, n)
			}
			if k == 1 {
				break
			}
		}
		if tasks != want.Tasks || records != want.Records() {
			t.Errorf("%d parts have %d tasks and %d records", n, tasks, records)
		}
		got := b.finish()
		if b.tree() != tree {
			t.Errorf("%d parts make another target", n)
		}
		if got.Records() != want.Records() || !got.Proof.Done || got.InParts != n ||
			fmt.Sprint(got.Ledger) != fmt.Sprint(want.Ledger) {
			t.Errorf("report %+v", got)
		}
		if again := b.finish(); again.InParts != n || !b.part(n, n).Already {
			t.Errorf("finished again: %+v", again)
		}
	}
}

// TestPartsAtOnce checks that several processes may do the same parts at once.
func TestPartsAtOnce(t *testing.T) {
	_, tree := wholeTree(t)
	b := newBench(t, fake.Dataset(2))
	b.from.Wrap = func(s *fake.Source) { s.Weight = oneTask / 4 }
	var wg sync.WaitGroup
	errs := make([]error, 12)
	for i := range errs {
		o := b.o
		wg.Go(func() { _, errs[i] = RunPart(context.Background(), &o, pass.Part{K: i%3 + 1, N: 3}) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	b.finish()
	if b.tree() != tree {
		t.Error("another target")
	}
}

// TestPartsKilled checks that parts and the finish may die anywhere and be run again.
func TestPartsKilled(t *testing.T) {
	_, tree := wholeTree(t)
	var parts []string
	for _, p := range partial {
		if p.name != "" && p.name != "looked" && p.name != "created" {
			parts = append(parts, p.name)
		}
	}
	finish := []string{"restored", "kept", "rename 3", "finished", "noted", "reported", "renamed"}
	for i := range max(len(parts)+1, len(finish)) {
		b := newBench(t, fake.Dataset(2))
		step := "record 10"
		if i < len(parts) {
			step = parts[i]
		}
		b.killedIn(step, "1/2")
		b.crashable("never")
		b.part(1, 2)
		b.part(2, 2)
		half, err := filepath.Glob(filepath.Join(b.dir, "dst.kvferry/parts/*-of-*.half"))
		if err != nil || len(half) > 0 {
			t.Errorf("%s: attempts are left: %q, %v", step, half, err)
		}
		if i < len(finish) {
			b.killedIn(finish[i], "0/0")
			if finish[i] == "rename 3" { // as on a file system without links
				if err := os.RemoveAll(filepath.Join(b.dir, "dst.kvferry/kept")); err != nil {
					t.Fatal(err)
				}
			}
		}
		b.finish()
		if b.tree() != tree {
			t.Errorf("%s: another target", step)
		}
	}
}

// TestPartsRefuse checks that parts of different runs do not mix.
func TestPartsRefuse(t *testing.T) {
	b := newBench(t, fake.Dataset(2))
	b.crashable("never")
	b.o.Tool = "1.0"
	b.part(1, 2)
	server := fake.NewFormat()
	server.Bounds.Place = format.OnServer
	for text, change := range map[string]func(*Options){
		"it was started without --type":                  func(o *Options) { o.Selection = filtered(filter.Filter{Types: 2}) },
		"it was written by version 1.0 of kvferry":       func(o *Options) { o.Tool = "1.1" },
		"leave out --now":                                func(o *Options) { o.Now, o.NowGiven = testNow.Add(1), true },
		"--discard would drop all parts of a conversion": func(o *Options) { o.Discard = true },
		"a target on a server is not written in par":     func(o *Options) { o.Target.Address = "redis://localhost" },
		"-: processes that read it at different tim":     func(o *Options) { o.Source.Path = "-" },
		"convert it to an RDB file first, and that ":     func(o *Options) { o.Source.Format = server },
	} {
		o := b.o
		change(&o)
		_, err := RunPart(context.Background(), &o, pass.Part{K: 2, N: 2})
		_, end := Finish(context.Background(), &o)
		var resume *work.ResumeError
		for _, err := range []error{err, end} {
			if err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("%v, want %s", err, text)
			} else if errors.As(err, &resume) && !strings.Contains(err.Error(), "run all parts again") {
				t.Errorf("no remedy: %v", err)
			}
		}
	}
	if _, err := RunPart(context.Background(), &b.o, pass.Part{K: 2, N: 3}); err == nil || !strings.Contains(err.Error(), "it has 2 parts, not 3") {
		t.Errorf("another number of parts: %v", err)
	}
	if _, err := Run(context.Background(), &b.o); err == nil || !strings.Contains(err.Error(), "go on with --part or --finish") {
		t.Errorf("one run: %v", err)
	}
	b.write("src/CURRENT", []byte("longer"))
	if _, err := RunPart(context.Background(), &b.o, pass.Part{K: 1, N: 2}); err == nil || !strings.Contains(err.Error(), "CURRENT has 6 bytes, had 5") {
		t.Errorf("another source: %v", err)
	}
	b.o.Discard = true
	b.run()
}

// TestPartDamaged checks that errors name the damaged report or journal of a part, which makes no target.
func TestPartDamaged(t *testing.T) {
	for file, want := range map[string]string{"report.json": "parts/1-of-2/report.json: unexpected end of JSON input",
		"journal": "parts/1-of-2/journal: line 1: "} {
		b := newBench(t, fake.Dataset(2))
		b.crashable("never")
		b.part(1, 2)
		b.part(2, 2)
		b.write("dst.kvferry/parts/1-of-2/"+file, []byte("{\n"))
		_, err := RunPart(context.Background(), &b.o, pass.Part{K: 1, N: 2})
		if file == "journal" {
			_, err = Finish(context.Background(), &b.o)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", file, err, want)
		}
		b.leaves("dst.kvferry", "src")
		if err := os.Remove(filepath.Join(b.dir, "dst.kvferry/parts/1-of-2", file)); err != nil {
			t.Fatal(err)
		}
		if _, err := RunPart(context.Background(), &b.o, pass.Part{K: 1, N: 2}); file == "report.json" &&
			!errors.Is(err, os.ErrNotExist) {
			t.Errorf("no %s: %v", file, err)
		}
	}
}

// TestPartLosses checks that a part is refused for its losses, and that a failed part leaves nothing.
func TestPartLosses(t *testing.T) {
	records := fake.Dataset(1)
	records[len(records)-1].Key = []byte("lost")
	b := newBench(t, records)
	b.from.Wrap = func(s *fake.Source) { s.Weight = oneTask / 4 }
	var loss *LossError
	refused := 0
	for k := 1; k <= 4; k++ {
		if _, err := RunPart(context.Background(), &b.o, pass.Part{K: k, N: 4}); errors.As(err, &loss) {
			refused++
		} else if err != nil {
			t.Error(err)
		}
	}
	left, err := os.ReadDir(filepath.Join(b.dir, "dst.kvferry/parts"))
	if refused != 1 || len(left) != 3 || err != nil {
		t.Errorf("%d refused, %d left, %v", refused, len(left), err)
	}
}

// TestPartsRename checks that parts read the names of the source once, together, whether they run one by one, at once,
// after one that died, or with names that another process reads first. Damaged names are found.
func TestPartsRename(t *testing.T) {
	begin := func() (*bench, *atomic.Int64) {
		b := newBench(t, append(fake.Dataset(1),
			fake.Record{DB: "0", Type: record.String, Key: []byte("key01:set"), Elems: []record.Element{{Value: []byte("was here")}}}))
		b.to.Bounds.SameName, b.to.Groups, b.o.Rename = false, []record.TypeSet{record.AllTypes}, true
		b.o.Workers, b.o.ForceSpace = 1, true
		read := new(atomic.Int64)
		b.from.Wrap = func(s *fake.Source) {
			s.Weight = oneTask / 5
			s.Fail = func(*record.Header, *format.Env) error { read.Add(1); return nil }
		}
		return b, read
	}
	one, all := begin()
	want := one.run()
	tree, most := one.tree(), all.Load()
	if want.Losses[0].Count == 0 || want.Tasks < 8 {
		t.Fatal("nothing to rename in parts", want.Tasks)
	}
	for name, during := range map[string]func(b *bench, read int64, k int){
		"one by one": func(*bench, int64, int) {},
		"overtaken": func(b *bench, read int64, k int) { // in the middle of the names of part 2
			if k == 1 && read == 40 {
				o := b.o
				if _, err := RunPart(context.Background(), &o, pass.Part{K: 2, N: 4}); err != nil {
					t.Error(err)
				}
			}
		},
	} {
		b, read := begin()
		k := 1
		b.from.Wrap = func(s *fake.Source) {
			s.Weight = oneTask / 5
			s.Fail = func(*record.Header, *format.Env) error { during(b, read.Add(1), k); return nil }
		}
		for ; k <= 4; k++ {
			b.part(k, 4)
		}
		if got := read.Load(); name == "one by one" && got > most+most/10 {
			t.Errorf("%s: %d records read, one run reads %d", name, got, most)
		}
		if rep := b.finish(); b.tree() != tree || fmt.Sprint(rep.Losses) != fmt.Sprint(want.Losses) {
			t.Errorf("%s: another target, losses %+v", name, rep.Losses)
		}
	}
	b, read := begin()
	ctx, stop := context.WithCancel(context.Background())
	wrap := b.from.Wrap
	b.from.Wrap = func(s *fake.Source) {
		wrap(s)
		s.Fail = func(*record.Header, *format.Env) error {
			if read.Add(1) == 30 {
				stop()
			}
			return nil
		}
	}
	if _, err := RunPart(ctx, &b.o, pass.Part{K: 1, N: 4}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	b.part(4, 4)
	files, err := filepath.Glob(filepath.Join(b.dir, "dst.kvferry/parts/names-*"))
	if err != nil || len(files) != 4 {
		t.Fatal(files, err)
	}
	data, err := os.ReadFile(files[2])
	must(t, err)
	flipped := bytes.Clone(data)
	flipped[len(data)/2] ^= 1
	must(t, os.WriteFile(files[2], flipped, 0o644))
	if _, err := RunPart(context.Background(), &b.o, pass.Part{K: 3, N: 4}); err == nil ||
		!strings.Contains(err.Error(), files[2]) {
		t.Errorf("damaged names: %v", err)
	}
	must(t, os.Remove(files[2]))
	for k := range 4 {
		b.part(k+1, 4)
	}
	b.finish()
	if b.tree() != tree {
		t.Error("another target")
	}
}
