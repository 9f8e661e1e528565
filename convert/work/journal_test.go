package work

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"kvferry/convert/plan"
	"kvferry/convert/result"
	"kvferry/internal/pass"
	"kvferry/internal/sys/disk"
	"kvferry/record"
)

// TestBusy checks that the process that holds the lock is named, if known.
func TestBusy(t *testing.T) {
	for pid, want := range map[string]string{"": ": another kvferry is using it",
		"7\n": ": another kvferry is using it (process 7)", " \n": ": another kvferry is using it"} {
		dir := t.TempDir()
		lock, err := lockWork(dir, os.O_RDWR|os.O_CREATE)
		if err == nil && pid != "" {
			err = os.WriteFile(filepath.Join(dir, pidFile), []byte(pid), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := lockWork(dir, os.O_RDWR); err == nil || err.Error() != dir+want {
			t.Errorf("%q: %v", pid, err)
		}
		if err := probeWork(dir); err == nil {
			t.Errorf("%q: it seems free", pid)
		}
		if err := lock.Close(); err != nil {
			t.Fatal(err)
		}
		if err := probeWork(dir); err != nil {
			t.Errorf("%q: %v", pid, err)
		}
	}
}

// must stops a test at the first error.
func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// TestJournalCut checks that no line follows a partial line, and that complete lines are read back.
func TestJournalCut(t *testing.T) {
	for _, op := range []string{"write", "sync"} {
		dir := t.TempDir()
		j, _, err := openJournal(dir, false)
		must(t, err, j.Append(Entry{Plan: new(Identity)}), j.Append(Entry{Task: &result.Result{N: 1}}))
		mend := disk.Inject(func(did, path string) error {
			if did == op && filepath.Base(path) == "journal" {
				return syscall.ENOSPC
			}
			return nil
		})
		first := j.Append(Entry{Task: &result.Result{N: 2}})
		mend()
		then := j.Append(Entry{Task: &result.Result{N: 3}})
		if !errors.Is(first, syscall.ENOSPC) || !errors.Is(then, syscall.ENOSPC) {
			t.Errorf("%s: %v, and then %v", op, first, then)
		}
		must(t, j.Close())
		j, state, err := openJournal(dir, false)
		must(t, err)
		want := 1
		if op == "sync" {
			want = 2 // it was written
		}
		if len(state.Tasks) != want || state.Tasks[0].N != 1 {
			t.Errorf("%s: %d tasks", op, len(state.Tasks))
		}
		must(t, j.Append(Entry{Task: &result.Result{N: 4}}), j.Close()) // replaces the partial line
		if j, state, err = openJournal(dir, false); err != nil || len(state.Tasks) != want+1 {
			t.Fatalf("%s: continued: %d tasks, %v", op, len(state.Tasks), err)
		}
		must(t, j.reset(), j.Append(Entry{Plan: new(Identity)}), j.Close())
	}
}

// TestJournalOrder checks that results are in the order of the plan, so that reports keep the first samples, in
// whatever order workers finish.
func TestJournalOrder(t *testing.T) {
	state, err := decodeJournal(
		[]byte(`{"plan":{}}` + "\n" + `{"task":{"n":2}}` + "\n" + `{"task":{"n":0}}` + "\n" + `{"task":{"n":1}}` + "\n"))
	if err != nil || len(state.Tasks) != 3 {
		t.Fatalf("%+v, %v", state, err)
	}
	for i, task := range state.Tasks {
		if task.N != i {
			t.Errorf("task %d is number %d", i, task.N)
		}
	}
}

// TestJournalRefused checks that a journal that cannot be read whole is refused, unchanged and unlocked.
func TestJournalRefused(t *testing.T) {
	const whole = `{"plan":{}}` + "\n" + `{"task":{"n":0}}` + "\n"
	for _, c := range []struct{ text, op, want string }{
		{whole, "create", "input/output error"},
		{whole, "read", "input/output error"},
		{whole, "truncate", "input/output error"},
		{`{"task":{"n":0}}` + "\n", "", "line 1: the plan must be on the first line, and only there"},
		{whole + `{"plan":{}}` + "\n", "", "line 3: the plan must be on the first line, and only there"},
		{whole + "{\n", "", "line 3: unexpected end of JSON input"},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, journalFile)
		must(t, os.WriteFile(path, []byte(c.text), 0o644))
		mend := disk.Inject(func(op, at string) error {
			if op == c.op && at == path {
				return syscall.EIO
			}
			return nil
		})
		_, _, err := openJournal(dir, false)
		mend()
		var refused *ResumeError
		if err == nil || !strings.Contains(err.Error(), c.want) || errors.As(err, &refused) != (c.op == "") {
			t.Errorf("%s%q: %v, want %s", c.op, c.text, err, c.want)
		}
		if data, err := os.ReadFile(path); err != nil || string(data) != c.text {
			t.Errorf("%s%q: now %q, %v", c.op, c.text, data, err)
		}
		must(t, probeWork(dir))
	}
}

// TestJournalState checks what is read back of tasks that were done again, and of uploads.
func TestJournalState(t *testing.T) {
	dir := t.TempDir()
	j, _, err := openJournal(dir, false)
	must(t, err, j.Append(), j.Append(Entry{Plan: new(Identity)},
		Entry{Task: &result.Result{N: 1}}, Entry{Task: &result.Result{N: 0}},
		Entry{Task: &result.Result{N: 1, Ledger: result.Tallies{"rows": {Entries: 5}}}},
		Entry{Upload: &Upload{"a", "1"}}, Entry{Upload: &Upload{"b", "2"}}, Entry{Upload: &Upload{"a", "3"}}))
	far := &Identity{Now: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)} // JSON has years of four digits
	if err := j.Append(Entry{Task: &result.Result{N: 2}}, Entry{Plan: far}); err == nil {
		t.Error("written")
	}
	must(t, j.Append(Entry{Uploaded: true}), j.Close())
	j, state, err := openJournal(dir, false)
	must(t, err, j.Close())
	if len(state.Tasks) != 2 || state.Tasks[1].N != 1 || state.Tasks[1].Ledger["rows"].Entries != 5 || j.Done() != 2 {
		t.Errorf("tasks %+v", state.Tasks)
	}
	if !reflect.DeepEqual(state.Uploads, map[string]string{"a": "3", "b": "2"}) || !state.uploaded || state.proved ||
		state.Finishing {
		t.Errorf("%+v", state)
	}
}

// TestLockless checks that only a file system without locks does without one: not a lock that another process holds.
func TestLockless(t *testing.T) {
	for cause, want := range map[error]bool{
		syscall.ENOLCK: true, syscall.ENOSYS: true, syscall.EOPNOTSUPP: true, errors.ErrUnsupported: true,
		errBusy: false, syscall.EIO: false, syscall.EACCES: false, os.ErrNotExist: false,
	} {
		if lockless(fmt.Errorf("/d: %w", &os.PathError{Op: "flock", Path: "/d/lock", Err: cause})) != want {
			t.Errorf("%v: lockless %t", cause, !want)
		}
	}
	dir := t.TempDir()
	j, _, err := openJournal(dir, true)
	must(t, err)
	for _, lax := range []bool{true, false} {
		if _, _, err := openJournal(dir, lax); !errors.Is(err, errBusy) {
			t.Errorf("lax %t: %v", lax, err)
		}
	}
	must(t, j.Close(), unlock(nil))
}

// TestNamesOfAnyBytes checks that journal entries survive encoding with any bytes in database names.
func TestNamesOfAnyBytes(t *testing.T) {
	const db, other = "\xff\xfe", "naïve\u202e"
	in := Entry{
		Plan: &Identity{Plan: &plan.Plan{DBs: plan.Names{db, other}, TargetDBs: plan.Names{other, db},
			Tasks: []pass.Task{{N: 1, DB: db, TargetDB: other, Bytes: 7}}}},
		Task: &result.Result{N: 3, Parts: []result.PartDigest{{DB: db, Type: "hash", Digest: record.Digest{Records: 2}}},
			Ledger: result.Tallies{db + "/rows": {Entries: 5, Visible: 5}, "plain": {Entries: 1}},
			Losses: []result.LossKind{{Kind: "k", Samples: []result.Sample{{DB: db, Key: []byte("\x00\xff"), Detail: "d"}}}}},
	}
	data, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var out Entry
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(in, out) {
		t.Errorf("%s\n%+v\n%+v", data, in.Task, out.Task)
	}
}

// TestBegun checks that the unfinished runs in a directory are those whose journal has a plan.
func TestBegun(t *testing.T) {
	dir := t.TempDir()
	begun := filepath.Join(dir, "begun")
	w, _, err := Open(begun, "", false)
	must(t, err, w.Append(Entry{Plan: &Identity{Plan: &plan.Plan{DBs: plan.Names{"7"}}}}),
		w.Append(Entry{Task: &result.Result{N: 1}}), w.Close())
	w, _, err = Open(filepath.Join(dir, "fresh"), "", false)
	must(t, err, w.Close(), os.Mkdir(Path(filepath.Join(dir, "empty")), 0o755), os.Mkdir(filepath.Join(dir, "database"), 0o755))
	broken := Path(filepath.Join(dir, "broken"))
	must(t, os.Mkdir(broken, 0o755), os.WriteFile(filepath.Join(broken, "journal"), []byte("{\n"), 0o644))
	runs, err := Begun(dir)
	if id := runs[begun]; err != nil || len(runs) != 1 || id == nil || !reflect.DeepEqual(id.Plan.DBs, plan.Names{"7"}) {
		t.Errorf("%v, %v", runs, err)
	}
	if runs, err := Begun(filepath.Join(dir, "missing")); !errors.Is(err, os.ErrNotExist) || runs != nil {
		t.Errorf("of a directory that is not there: %v, %v", runs, err)
	}
}
