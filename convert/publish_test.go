package convert

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"kvferry/internal/sys/disk"
	"kvferry/internal/testkit/fake"
	"kvferry/record"
)

// failing makes system calls of a bench fail from a step on.
func (b *bench) failing(step string, fail func(op, path string) bool) {
	var on atomic.Bool // tasks run in parallel
	b.o.crash = func(s string) {
		if s == step {
			on.Store(true)
		}
	}
	b.t.Cleanup(disk.Inject(func(op, path string) error {
		if rel, err := filepath.Rel(b.dir, path); on.Load() && err == nil && fail(op, rel) {
			return syscall.EIO
		}
		return nil
	}))
}

// TestFailsAfterPublishing checks that a failure after the target is published does not undo it, and is reported as
// such.
func TestFailsAfterPublishing(t *testing.T) {
	for name, c := range map[string]struct {
		fail   func(op, path string) bool
		synced bool
		left   []string
	}{
		"sync":    {func(op, path string) bool { return op == "sync" && path == "." }, false, nil},
		"journal": {func(op, path string) bool { return op == "close" && strings.HasSuffix(path, "journal") }, true, nil},
		"remove": {func(op, path string) bool { return op == "remove" && path == "dst.kvferry" }, true,
			[]string{"dst.kvferry"}},
	} {
		b := newBench(t, fake.Dataset(1))
		b.failing("renamed", c.fail)
		rep, err := Run(context.Background(), &b.o)
		var published *PublishedError
		if !errors.As(err, &published) || published.Synced != c.synced || rep == nil || rep.Records() != 60 {
			t.Fatalf("%s: %v, %v", name, rep, err)
		}
		if text := err.Error(); !strings.Contains(text, "dst is complete") || strings.Contains(text, "left no files behind") {
			t.Errorf("%s: %s", name, text)
		}
		if read, err := ReadReport(ReportPath(b.o.Target.Path)); err != nil || read.Records() != 60 {
			t.Errorf("%s: the report: %v", name, err)
		}
		b.leaves(append(append([]string{"dst"}, c.left...), "dst.kvferry-report.json", "src")...)
	}
}

// TestUnseenReports checks that a run that has just published does not look for its report, but that a resumed one
// does. If it cannot, it keeps its work to try again.
func TestUnseenReports(t *testing.T) {
	unseen := func(op, path string) bool {
		return op == "stat" && (path == "dst.kvferry-report.json" || path == "dst.kvferry/report.json")
	}
	b := newBench(t, fake.Dataset(1))
	b.failing("renamed", unseen)
	b.run()
	b.leaves("dst", "dst.kvferry-report.json", "src")

	for _, hidden := range []string{"dst.kvferry-report.json", "dst.kvferry/report.json"} {
		b := newBench(t, fake.Dataset(1))
		b.killed("renamed")
		b.o.crash, b.o.Resume = nil, true
		show := disk.Inject(func(op, path string) error {
			if rel, err := filepath.Rel(b.dir, path); err == nil && op == "stat" && rel == hidden {
				return syscall.ENOMEM
			}
			return nil
		})
		_, err := Run(context.Background(), &b.o)
		show()
		var unsure *PublishedError
		if !errors.As(err, &unsure) || !unsure.Kept || !strings.Contains(err.Error(), "--resume") {
			t.Errorf("%s: %v", hidden, err)
		}
		b.leaves("dst", "dst.kvferry", "dst.kvferry-report.json", "src")
		b.run()
		b.leaves("dst", "dst.kvferry-report.json", "src")
	}
}

// TestReportComesFirst checks that the target is not published if the report cannot be.
func TestReportComesFirst(t *testing.T) {
	earlier := []byte(`{"source":{"format":"x"},"target":{"format":"y"}}`)
	for _, op := range []string{"report", "target"} {
		b := newBench(t, fake.Dataset(1))
		b.write("dst.kvferry-report.json", earlier)
		b.failing("publish", func(did, path string) bool {
			if op == "target" {
				return did == "rename" && path == "dst.kvferry/data"
			}
			return path == "dst.kvferry/report.json" && (did == "link" || did == "rename")
		})
		if _, err := Run(context.Background(), &b.o); !errors.Is(err, syscall.EIO) {
			t.Fatalf("%s: %v", op, err)
		}
		b.leaves("dst.kvferry-report.json", "src")
		if got, err := os.ReadFile(ReportPath(b.o.Target.Path)); err != nil || string(got) != string(earlier) {
			t.Errorf("%s: the earlier report is %s, %v", op, got, err)
		}
	}
}

// TestReportSums checks the sums over the databases and types of a report.
func TestReportSums(t *testing.T) {
	digest := func(records, elements int64) PartDigest {
		return PartDigest{Digest: record.Digest{Records: records, Elements: elements}}
	}
	r := &Report{Parts: []PartDigest{digest(1, 20), digest(300, 4000)}, Skipped: []PartDigest{digest(5, 60), digest(700, 8000)}}
	if records, elements := r.SkippedRecords(); records != 705 || elements != 8060 || r.Records() != 301 || r.Elements() != 4020 {
		t.Errorf("skipped %d and %d, converted %d and %d", records, elements, r.Records(), r.Elements())
	}
}

// TestReportUnseen checks that a conversion does not begin if it cannot tell whether its report has a place.
func TestReportUnseen(t *testing.T) {
	for _, op := range []string{"stat", "open"} {
		b := newBench(t, fake.Dataset(1))
		b.write("dst.kvferry-report.json", []byte("mine"))
		mend := disk.Inject(func(did, path string) error {
			if did == op && path == ReportPath(b.o.Target.Path) {
				return syscall.EACCES
			}
			return nil
		})
		_, read := ReadReport(ReportPath(b.o.Target.Path))
		_, err := Run(context.Background(), &b.o)
		mend()
		if !errors.Is(read, syscall.EACCES) || err == nil || op == "stat" && !errors.Is(err, syscall.EACCES) {
			t.Errorf("%s: read %v, ran %v", op, read, err)
		}
		b.leaves("dst.kvferry-report.json", "src")
	}
}

// TestWithoutLinks checks that the report is renamed on a file system without hard links.
func TestWithoutLinks(t *testing.T) {
	b := newBench(t, fake.Dataset(1))
	b.failing("planned", func(op, path string) bool { return op == "link" })
	if rep := b.run(); rep.Records() != 60 {
		t.Errorf("%d records", rep.Records())
	}
}

// TestStuck checks that the error names files that cannot be removed after a failure.
func TestStuck(t *testing.T) {
	b := newBench(t, fake.Dataset(1))
	b.to.FailAfter = 3
	b.failing("planned", func(op, path string) bool { return op == "remove" && path == "dst.kvferry" })
	_, err := Run(context.Background(), &b.o)
	if err == nil || !strings.Contains(err.Error(), "unusable work is left in "+filepath.Join(b.dir, "dst.kvferry")) {
		t.Errorf("%v", err)
	}
	b.leaves("dst.kvferry", "src")
}
