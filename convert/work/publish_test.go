package work

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"kvferry/internal/sys/disk"
)

// TestPublishedErrors checks the messages for a complete target with an error afterwards.
func TestPublishedErrors(t *testing.T) {
	boom := errors.New("boom")
	for e, want := range map[*PublishedError]string{
		{Target: "/t", Dir: "/t.kvferry", Synced: true, Err: boom}: "/t is complete, but /t.kvferry, which is no longer needed, could not be removed: boom; remove it",
		{Target: "/t", Dir: "/t.kvferry", Err: boom}: "/t is complete and its report belongs in /t.kvferry-report.json, but the disk has not confirmed their names: boom; " +
			"sync the disk and look for them before you rely on them",
	} {
		if e.Error() != want || !errors.Is(e, boom) {
			t.Errorf("%s, want %s", e, want)
		}
	}
}

// TestPublishReport checks that an earlier report is renamed to the first free number, and restored when the new one
// is withdrawn.
func TestPublishReport(t *testing.T) {
	w := opened(t, "")
	report := ReportPath(w.Target)
	aside := strings.TrimSuffix(report, ".json")
	for _, links := range []bool{true, false} {
		must(t, os.WriteFile(report, []byte("old"), 0o644), os.WriteFile(aside+".1.json", nil, 0o644), w.WriteReport([]byte("new")))
		if own, err := w.ownReport(); err != nil || own != unpublished {
			t.Errorf("written: %d, %v", own, err)
		}
		mend := disk.Inject(func(op, path string) error {
			if op == "link" && !links {
				return syscall.EPERM
			}
			return nil
		})
		earlier, err := w.PublishReport()
		mend()
		data, e := os.ReadFile(report)
		must(t, err, e)
		if earlier != aside+".2.json" || string(data) != "new" {
			t.Errorf("links %t: %s is set aside, and %q published", links, earlier, data)
		}
		want := published
		if !links {
			want = unwritten
		}
		if own, err := w.ownReport(); err != nil || own != want {
			t.Errorf("links %t: %d, %v", links, own, err)
		}
		must(t, w.WithdrawReport(earlier))
		if data, err := os.ReadFile(report); err != nil || string(data) != "old" {
			t.Errorf("links %t: withdrawn: %q, %v", links, data, err)
		}
	}
	// A report that cannot be published leaves the earlier one in place.
	must(t, w.WriteReport([]byte("new")))
	mend := disk.Inject(func(op, path string) error {
		if path == w.Report() && (op == "link" || op == "rename") {
			return syscall.EIO
		}
		return nil
	})
	_, err := w.PublishReport()
	mend()
	if data, e := os.ReadFile(report); !errors.Is(err, syscall.EIO) || e != nil || string(data) != "old" {
		t.Errorf("%v: the earlier report is %q, %v", err, data, e)
	}
	must(t, w.Discard())
}

// TestOrphan checks that a report without a target is removed only by the run that wrote it.
func TestOrphan(t *testing.T) {
	w := opened(t, "")
	report := ReportPath(w.Target)
	must(t, w.WriteReport([]byte("new")), os.WriteFile(report, []byte("old"), 0o644), w.WithdrawOrphan())
	if data, err := os.ReadFile(report); err != nil || string(data) != "old" {
		t.Errorf("of another run: %q, %v", data, err)
	}
	must(t, os.Remove(report))
	_, err := w.PublishReport()
	must(t, err, os.Mkdir(w.Target, 0o755), w.WithdrawOrphan())
	if _, err := os.Stat(report); err != nil {
		t.Errorf("with a target: %v", err)
	}
	must(t, os.Remove(w.Target), w.WithdrawOrphan())
	if _, err := os.Stat(report); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a target: %v", err)
	}
	must(t, w.Discard())
}

// TestConclude checks that a run that died after it published its target is recognized, that a report that lost its
// name is published again, and that no work is left.
func TestConclude(t *testing.T) {
	w := opened(t, "")
	must(t, os.Mkdir(w.Data(), 0o755), w.WriteReport([]byte("new")))
	proved := &State{proved: true}
	if w.Concluded(proved) {
		t.Error("concluded before it was published")
	}
	must(t, os.Rename(w.Data(), w.Target))
	if w.Concluded(new(State)) || !w.Concluded(proved) {
		t.Errorf("not proved: %t, proved: %t", w.Concluded(new(State)), w.Concluded(proved))
	}
	hide := disk.Inject(func(op, path string) error {
		if op == "stat" && path == w.Report() {
			return syscall.EIO
		}
		return nil
	})
	err := w.ConcludeLost()
	hide()
	var unsure *PublishedError
	if !errors.As(err, &unsure) || !unsure.Kept || !strings.Contains(err.Error(), "--resume") {
		t.Errorf("a report that is not seen: %v", err)
	}
	w, _, err = Open(w.Target, "", true)
	must(t, err, w.ConcludeLost())
	if data, err := os.ReadFile(ReportPath(w.Target)); err != nil || string(data) != "new" || left(t, filepath.Dir(w.Target)) != "dst dst.kvferry-report.json" {
		t.Errorf("%q, %v; left %s", data, err, left(t, filepath.Dir(w.Target)))
	}
	for op, synced := range map[string]bool{"sync": false, "remove": true} {
		target := filepath.Join(t.TempDir(), "dst")
		w, _, err := Open(target, "", false)
		must(t, err)
		mend := disk.Inject(func(did, path string) error {
			if did == op && (path == w.Path || path == filepath.Dir(target)) {
				return syscall.EIO
			}
			return nil
		})
		err = w.Conclude()
		mend()
		if !errors.As(err, &unsure) || unsure.Synced != synced || unsure.Kept || !errors.Is(err, syscall.EIO) {
			t.Errorf("%s: %v", op, err)
		}
		must(t, os.RemoveAll(w.Path))
	}
}

// TestConcludeEarlier completes runs that died at each step after the rename, and no other.
func TestConcludeEarlier(t *testing.T) {
	conclude := func(target string, local bool, read error) (bool, error) {
		return ConcludeEarlier(target, local, func() (*Dir, *State, error) { return Open(target, "", true) },
			func() error { return read })
	}
	unread := errors.New("no report")
	for name, c := range map[string]struct {
		prepare func(w *Dir) // the target is published by the tests below
		local   bool
		read    error
		done    bool
		want    error
	}{
		"no work":     {func(w *Dir) { must(t, w.Discard()) }, true, nil, false, nil},
		"no target":   {func(w *Dir) { must(t, os.RemoveAll(w.Target), w.Close()) }, true, nil, false, nil},
		"not proved":  {func(w *Dir) { must(t, w.Close()) }, true, nil, false, nil},
		"not renamed": {func(w *Dir) { must(t, os.MkdirAll(w.Data(), 0o755), w.Append(Entry{Proved: true}), w.Close()) }, true, nil, false, nil},
		"renamed":     {func(w *Dir) { must(t, w.Append(Entry{Proved: true}), w.Close(), os.RemoveAll(w.Data())) }, true, nil, true, nil},
		"unreadable":  {func(w *Dir) { must(t, w.Append(Entry{Proved: true}), w.Close(), os.RemoveAll(w.Data())) }, true, unread, true, unread},
		"uploaded":    {func(w *Dir) { must(t, os.RemoveAll(w.Target), w.Append(Entry{Uploaded: true}), w.Close()) }, false, nil, true, nil},
		"emptied":     {func(w *Dir) { must(t, w.Close(), os.RemoveAll(w.Path), os.Mkdir(w.Path, 0o755)) }, true, nil, true, nil},
		"emptied, remote": {func(w *Dir) {
			must(t, w.Close(), os.RemoveAll(w.Path), os.Mkdir(w.Path, 0o755), os.RemoveAll(w.Target))
		}, false, nil, true, nil},
	} {
		w := opened(t, "")
		must(t, os.MkdirAll(w.Target, 0o755), w.Append(Entry{Plan: &Identity{}}), os.WriteFile(ReportPath(w.Target), nil, 0o644))
		c.prepare(w)
		done, err := conclude(w.Target, c.local, c.read)
		if done != c.done || !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%s: %t, %v", name, done, err)
		}
		if _, err := os.Stat(w.Path); done && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: the work is left", name)
		}
	}
}
