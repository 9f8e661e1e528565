package work

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"syscall"
	"testing"

	"kvferry/convert/plan"
	"kvferry/convert/result"
	"kvferry/internal/pass"
	"kvferry/internal/sys/disk"
	"kvferry/record"
)

// TestBusy checks that the process that holds the lock is named, if known.
func TestBusy(t *testing.T) {
	for pid, want := range map[string]string{"": ": another kvferry is using it", "7\n": ": another kvferry is using it (process 7)", " \n": ": another kvferry is using it"} {
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
		if then := j.Append(Entry{Task: &result.Result{N: 3}}); !errors.Is(first, syscall.ENOSPC) || !errors.Is(then, syscall.ENOSPC) {
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
	state, err := decodeJournal([]byte(`{"plan":{}}` + "\n" + `{"task":{"n":2}}` + "\n" + `{"task":{"n":0}}` + "\n" + `{"task":{"n":1}}` + "\n"))
	if err != nil || len(state.Tasks) != 3 {
		t.Fatalf("%+v, %v", state, err)
	}
	for i, task := range state.Tasks {
		if task.N != i {
			t.Errorf("task %d is number %d", i, task.N)
		}
	}
}

// TestNamesOfAnyBytes checks that journal entries survive encoding with any bytes in database names.
func TestNamesOfAnyBytes(t *testing.T) {
	const db, other = "\xff\xfe", "naïve\u202e"
	in := Entry{
		Plan: &Identity{Plan: &plan.Plan{DBs: plan.Names{db, other}, TargetDBs: plan.Names{other, db}, Tasks: []pass.Task{{N: 1, DB: db, TargetDB: other, Bytes: 7}}}},
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
	must(t, err, w.Append(Entry{Plan: &Identity{Plan: &plan.Plan{DBs: plan.Names{"7"}}}}), w.Append(Entry{Task: &result.Result{N: 1}}), w.Close())
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
