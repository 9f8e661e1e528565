package work

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"kvferry/internal/pass"
	"kvferry/internal/sys/disk"
)

// failing runs do once for each of its system calls, which fails with EIO in that run. After each run it calls mended
// with the name of the call and the error of do.
func failing(t *testing.T, setup func() (do func() error, mended func(call string, err error))) {
	t.Helper()
	for n := 0; ; n++ {
		do, mended := setup()
		at, call := 0, ""
		mend := disk.Inject(func(op, path string) error {
			if at++; at == n+1 {
				call = op + " " + filepath.Base(path)
				return syscall.EIO
			}
			return nil
		})
		err := do()
		mend()
		if call == "" {
			if n < 3 || err != nil {
				t.Errorf("only %d calls, and without a fault: %v", n, err)
			}
			return
		}
		mended(call, err)
	}
}

// attempts lists the directories of attempts at any part.
func attempts(t *testing.T, p *Parts) (out []string) {
	t.Helper()
	for name := range strings.FieldsSeq(left(t, filepath.Join(p.Path, partsDir))) {
		if strings.HasSuffix(name, halfSuffix) {
			out = append(out, name)
		}
	}
	return out
}

// TestPartsDo: a process does a part by the plan of the first process, and none that another has done.
func TestPartsDo(t *testing.T) {
	_, id := twoParts(t) // of another target: only its tasks matter
	p := FindParts(filepath.Join(t.TempDir(), "dst"))
	one, two := pass.Part{K: 1, N: 2}, pass.Part{K: 2, N: 2}
	boom := errors.New("boom")
	asked := 0
	fits := func(was *Identity) error {
		asked++
		if !was.Began.Equal(id.Began) {
			t.Errorf("asked about the plan of %s", was.Began)
		}
		return nil
	}
	never := func(*Dir, *Identity) error {
		t.Error("an attempt was made")
		return nil
	}
	finish := func(part pass.Part) error { return p.Adopt(attempt(t, p, id, part), part) }

	already, err := p.Do(one, "", fits, func(w *Dir, was *Identity) error {
		if was != nil || w.Target != p.Target || filepath.Dir(w.Path) != filepath.Join(p.Path, partsDir) {
			t.Errorf("the first process: %v in %s", was, w.Path)
		}
		_, _, err := p.Publish(id)
		return errors.Join(err, w.Discard(), finish(one))
	})
	if already || err != nil || !p.Done(one) || asked != 0 {
		t.Errorf("the first part: %t, %v, asked %d times", already, err, asked)
	}
	if already, err := p.Do(one, "", fits, never); !already || err != nil || asked != 1 {
		t.Errorf("again: %t, %v, asked %d times", already, err, asked)
	}
	if _, err := p.Do(two, "", func(*Identity) error { return boom }, never); !errors.Is(err, boom) || attempts(t, p) != nil {
		t.Errorf("another plan: %v, left %s", err, attempts(t, p))
	}
	if already, err := p.Do(two, "", fits, func(w *Dir, _ *Identity) error { return errors.Join(boom, w.Discard()) }); already ||
		!errors.Is(err, boom) {
		t.Errorf("a failed attempt: %t, %v", already, err)
	}
	if already, err := p.Do(two, filepath.Join(t.TempDir(), "none"), fits, never); already || !errors.Is(err, fs.ErrNotExist) ||
		attempts(t, p) != nil {
		t.Errorf("no directory for spools: %t, %v, left %s", already, err, attempts(t, p))
	}
	already, err = p.Do(two, "", fits, func(w *Dir, was *Identity) error {
		must(t, finish(two)) // another process, which removes this attempt
		if _, err := os.Stat(w.Path); was == nil || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("by %v; the attempt: %v", was, err)
		}
		return errors.Join(boom, w.Close())
	})
	if !already || err != nil {
		t.Errorf("another process was faster: %t, %v", already, err)
	}
	must(t, os.WriteFile(filepath.Join(p.Path, planFile), []byte("{}"), 0o644))
	var refused *ResumeError
	if _, err := p.Do(two, "", fits, never); !errors.As(err, &refused) || !refused.Parts {
		t.Errorf("a damaged plan: %v", err)
	}
	var place *NoPlaceError
	if _, err := FindParts(filepath.Join(t.TempDir(), "none", "dst")).Do(one, "", fits, never); !errors.As(err, &place) {
		t.Errorf("no place: %v", err)
	}
}

// TestPartsWhole: a target can be finished once all parts are, and only by the options of its plan.
func TestPartsWhole(t *testing.T) {
	agree := func(*Identity) error { return nil }
	none := FindParts(filepath.Join(t.TempDir(), "dst"))
	var missing *MissingError
	if _, err := none.Whole(agree); !errors.As(err, &missing) || missing.Parts != 0 || missing.Target != none.Target {
		t.Errorf("no part has run: %v", err)
	}
	p, id := twoParts(t)
	boom := errors.New("boom")
	refuse := func(got *Identity) error {
		if !got.Began.Equal(id.Began) {
			t.Errorf("asked about the plan of %s", got.Began)
		}
		return boom
	}
	for k := 1; k <= 2; k++ {
		part := pass.Part{K: k, N: 2}
		if _, err := p.Whole(agree); !errors.As(err, &missing) || missing.Parts != 2 ||
			!slices.Equal(missing.Missing, p.Missing(2)) {
			t.Errorf("before part %s: %v", part, err)
		}
		if got, err := p.Planned(agree); err != nil || len(got.Plan.Tasks) != 4 {
			t.Errorf("before part %s: planned %v, %v", part, got, err)
		}
		must(t, p.Adopt(attempt(t, p, id, part), part))
	}
	if got, err := p.Whole(agree); err != nil || !got.Began.Equal(id.Began) {
		t.Errorf("all parts: %v, %v", got, err)
	}
	if got, err := p.Whole(refuse); got != nil || !errors.Is(err, boom) {
		t.Errorf("other options: %v, %v", got, err)
	}
}

// TestAttemptFailing: an attempt that cannot begin leaves no directory.
func TestAttemptFailing(t *testing.T) {
	p, _ := twoParts(t)
	part := pass.Part{K: 1, N: 2}
	failing(t, func() (func() error, func(string, error)) {
		var w *Dir
		do := func() (err error) { w, err = p.Attempt(part, ""); return err }
		return do, func(call string, err error) {
			if err == nil {
				must(t, w.Discard()) // it did without the call
			} else if !errors.Is(err, syscall.EIO) {
				t.Errorf("%s failed: %v", call, err)
			}
			if names := attempts(t, p); names != nil {
				t.Errorf("%s failed: left %s", call, names)
			}
		}
	})
}

// TestPublishFailing: a plan appears whole or not at all, and the process can try again.
func TestPublishFailing(t *testing.T) {
	_, id := twoParts(t)
	failing(t, func() (func() error, func(string, error)) {
		p, err := OpenParts(filepath.Join(t.TempDir(), "dst"))
		must(t, err)
		do := func() error { _, _, err := p.Publish(id); return err }
		return do, func(call string, err error) {
			got, ierr := p.Identity()
			if ierr != nil || got == nil && err == nil || got != nil && len(got.Plan.Tasks) != 4 {
				t.Errorf("%s failed with %v: %+v, %v", call, err, got, ierr)
			}
			if _, own, err := p.Publish(id); !own || err != nil {
				t.Errorf("%s failed: then own %t, %v", call, own, err)
			}
		}
	})
}

// TestPublishRefused: what cannot be written or was removed again is not the shared plan.
func TestPublishRefused(t *testing.T) {
	p, err := OpenParts(filepath.Join(t.TempDir(), "dst"))
	must(t, err)
	far := &Identity{Now: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)} // JSON has years of four digits
	if _, own, err := p.Publish(far); own || err == nil || left(t, p.Path) != partsDir {
		t.Errorf("own %t, %v; left %s", own, err, left(t, p.Path))
	}
	_, id := twoParts(t)
	mend := disk.Inject(func(op, path string) error {
		if op == "sync" && filepath.Base(path) == partsDir {
			return os.Remove(filepath.Join(p.Path, planFile))
		}
		return nil
	})
	_, own, err := p.Publish(id)
	mend()
	if own || err == nil || !strings.HasSuffix(err.Error(), "plan: deleted by another program") {
		t.Errorf("own %t, %v", own, err)
	}
}

// TestAppear: the first file of a name stays, with and without links, whatever a network file system reports.
func TestAppear(t *testing.T) {
	dir := t.TempDir()
	half, to := filepath.Join(dir, "a.half"), filepath.Join(dir, "a")
	linked := func() error { return errors.Join(os.Link(half, to), syscall.EIO) }
	for name, c := range map[string]struct {
		was          string
		link, rename func() error
		want         string
		err          error
	}{
		"new":                 {want: "new"},
		"second":              {was: "old", want: "old"},
		"no links":            {link: func() error { return syscall.EPERM }, want: "new"},
		"no links, second":    {was: "old", link: func() error { return syscall.EPERM }, want: "old"},
		"an answer is lost":   {link: linked, rename: func() error { return syscall.EIO }, want: "new"},
		"neither way is open": {link: func() error { return syscall.EPERM }, rename: func() error { return syscall.EROFS }, err: syscall.EROFS},
	} {
		must(t, os.RemoveAll(to), os.WriteFile(half, []byte("new"), 0o644))
		if c.was != "" {
			must(t, os.WriteFile(to, []byte(c.was), 0o644))
		}
		mend := disk.Inject(func(op, _ string) error {
			switch {
			case op == "link" && c.link != nil:
				return c.link()
			case op == "rename" && c.rename != nil:
				return c.rename()
			}
			return nil
		})
		err := appear(half, to)
		mend()
		data, _ := os.ReadFile(to)
		if string(data) != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: %q, %v", name, data, err)
		}
		if _, err := os.Stat(half); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: the other name: %v", name, err)
		}
	}
}

// TestPartsOpen: one process at a time finishes a target, in no directory but that of parts.
func TestPartsOpen(t *testing.T) {
	p, _ := twoParts(t)
	w, _, err := p.Open("")
	must(t, err)
	if _, _, err := p.Open(""); !errors.Is(err, errBusy) ||
		!strings.Contains(err.Error(), fmt.Sprintf("process %d", os.Getpid())) {
		t.Errorf("beside another: %v", err)
	}
	must(t, w.Close())
	w, _, err = p.Open("")
	must(t, err, w.Close(), os.WriteFile(filepath.Join(p.Path, "mine"), nil, 0o644))
	if _, _, err := p.Open(""); err == nil || !strings.Contains(err.Error(), "it contains mine") {
		t.Errorf("with a strange file: %v", err)
	}
	if _, _, err := FindParts(filepath.Join(t.TempDir(), "dst")).Open(""); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a directory: %v", err)
	}
}

// TestGatherFailing: after a failure at any call, the next process gathers each task once.
func TestGatherFailing(t *testing.T) {
	failing(t, func() (func() error, func(string, error)) {
		p, id := twoParts(t)
		for k := 1; k <= 2; k++ {
			part := pass.Part{K: k, N: 2}
			must(t, p.Adopt(attempt(t, p, id, part), part))
		}
		w, state, err := p.Open("")
		must(t, err)
		var out *State
		do := func() (err error) { out, err = p.Gather(w, state); return err }
		return do, func(call string, err error) {
			must(t, w.Close())
			if err == nil && len(out.Tasks) != 4 || err != nil && !errors.Is(err, syscall.EIO) { // some calls are made again
				t.Errorf("%s failed: %+v, %v", call, out, err)
			}
			if tasks, err := gathered(t, p); err != nil || !slices.Equal(tasks, []int{0, 1, 2, 3}) {
				t.Errorf("%s failed: then %v, %v", call, tasks, err)
			}
		}
	})
}

// TestCopyTable: without links, a table has its name only when its copy is complete and durable.
func TestCopyTable(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	src, dst := filepath.Join(from, "data", "db", "a"), filepath.Join(to, "data", "db", "a")
	must(t, os.MkdirAll(filepath.Dir(src), 0o755), os.WriteFile(src, []byte("rows"), 0o644))
	check := func(call string, err error) {
		t.Helper()
		data, rerr := os.ReadFile(dst)
		if err == nil && (rerr != nil || string(data) != "rows") || err != nil && !errors.Is(rerr, fs.ErrNotExist) {
			t.Errorf("%s failed with %v: the table is %q, %v", call, err, data, rerr)
		}
	}
	for _, op := range []string{"mkdir", "open", "create", "read", "write", "sync", "close", "rename"} {
		must(t, os.RemoveAll(to))
		mend := disk.Inject(func(did, path string) error {
			if did == "link" || did == op && (did != "close" || path != src) {
				return syscall.EPERM
			}
			return nil
		})
		err := linkTable(from, to, "db/a")
		mend()
		check(op, err)
		if !errors.Is(err, syscall.EPERM) {
			t.Errorf("%s failed: %v", op, err)
		}
		noLinks := disk.Inject(func(did, _ string) error {
			if did == "link" {
				return syscall.EPERM
			}
			return nil
		})
		err = linkTable(from, to, "db/a")
		noLinks()
		must(t, err)
		if left(t, filepath.Dir(dst)) != "a" {
			t.Errorf("%s failed, then left %s", op, left(t, filepath.Dir(dst)))
		}
		check("nothing", err)
		a, errA := os.Stat(src)
		b, errB := os.Stat(dst)
		must(t, errA, errB)
		if os.SameFile(a, b) {
			t.Error("it is a link")
		}
	}
}
