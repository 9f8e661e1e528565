//go:build unix

package rocks

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"kvferry/internal/testkit/testsst"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/manifest"
)

// lockEnv makes the test binary hold the lock of the file it names until its input ends.
const lockEnv = "ROCKSFILE_TEST_LOCK"

func TestMain(m *testing.M) {
	if path := os.Getenv(lockEnv); path != "" {
		holdLock(path)
		return
	}
	os.Exit(m.Run())
}

func holdLock(path string) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err == nil {
		err = unix.FcntlFlock(f.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK})
	}
	fmt.Println("locked", err)
	bufio.NewReader(os.Stdin).ReadByte()
}

// lockElsewhere lets another process hold a lock and returns its pid.
func lockElsewhere(t *testing.T, path string) int {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), lockEnv+"="+path)
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); c.Wait() })
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != "locked <nil>\n" {
		t.Fatalf("helper said %q", line)
	}
	return c.Process.Pid
}

func TestLiveOwner(t *testing.T) {
	d := testsst.NewDB(t)
	d.Table(0, 1, testsst.Spec{}, testsst.Put("a", 1, ""))
	d.Log(7, testsst.Batch(5, testsst.Op(base.KindPut, "b", "")))
	dir := d.Finish()
	d.File("LOCK", nil)
	wantRows(t, openTest(t, dir, store.Options{}), 0, "a= b=")
	pid := lockElsewhere(t, filepath.Join(dir, "LOCK"))
	_, err := Open(context.Background(), dir, nil)
	var live *store.LiveError
	if !errors.As(err, &live) || live.PID != pid || live.Dir != dir {
		t.Fatalf("error %v, want a LiveError of process %d", err, pid)
	}
	// With AllowLive everything is open up front: what vanishes later is still there.
	db := openTest(t, dir, store.Options{AllowLive: true})
	for _, f := range db.Files()[2:] {
		if err := os.Remove(filepath.Join(dir, f.Path)); err != nil {
			t.Fatal(err)
		}
	}
	wantRows(t, db, 0, "a= b=")
}

// TestLiveStartsOver: a table that vanishes while a live database is opened means that the
// MANIFEST has moved on.
func TestLiveStartsOver(t *testing.T) {
	d := testsst.NewDB(t)
	name := d.Table(0, 1, testsst.Spec{}, testsst.Put("a", 1, ""))
	d.Write(testsst.Spec{}, []testsst.Entry{testsst.Put("stray", 1, "")})
	dir := d.Finish()
	path := filepath.Join(dir, name)
	if err := os.Rename(path, path+".away"); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(context.Background(), dir, &store.Options{AllowLive: true}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Open(ctx, dir, &store.Options{AllowLive: true}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if err := os.Rename(path+".away", path); err != nil {
		t.Fatal(err)
	}
	var found []record.Finding
	o := store.Options{AllowLive: true, Report: func(f record.Finding) { found = append(found, f) }}
	wantRows(t, openTest(t, dir, o), 0, "a=")
	if len(found) != 1 {
		t.Errorf("findings %+v", found)
	}
	// A running server may be writing a table that the MANIFEST does not list.
	d.Next = 200
	d.Write(testsst.Spec{}, []testsst.Entry{testsst.Put("new", 1, "")})
	d.File("LOCK", nil)
	for _, want := range []string{"manifest-behind", "unreferenced-table"} {
		found = nil
		openTest(t, dir, o)
		if len(found) != 2 || found[1].Kind != want {
			t.Errorf("findings %+v, want %s", found, want)
		}
		if want == "manifest-behind" {
			lockElsewhere(t, filepath.Join(dir, "LOCK"))
		}
	}
}

func TestUnchanged(t *testing.T) {
	d := testsst.NewDB(t)
	dir := d.Finish()
	db := openTest(t, dir, store.Options{})
	if err := db.unchanged(); err != nil {
		t.Error(err)
	}
	d.Edit(testsst.EditNumber(manifest.TagLogNumber, 2))
	d.Finish()
	if err := db.unchanged(); err != errChanged {
		t.Errorf("error %v, want errChanged", err)
	}
	os.Remove(filepath.Join(dir, manifest.CurrentName))
	if err := db.unchanged(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

// TestLiveMissing: a salvage of a live database skips a missing table that the MANIFEST still lists, but not one that
// the server removed with a later edit.
func TestLiveMissing(t *testing.T) {
	d := testsst.NewDB(t)
	d.Table(0, 2, testsst.Spec{}, testsst.Put("a", 1, "old"))
	name := d.Table(0, 1, testsst.Spec{}, testsst.Put("a", 2, "new"), testsst.Put("b", 3, "new"))
	dir := d.Finish()
	if err := os.Remove(filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
	var found []record.Finding
	o := store.Options{AllowLive: true, Salvage: true, Report: func(f record.Finding) { found = append(found, f) }}
	db := openTest(t, dir, o)
	wantRows(t, db, 0, "a=old")
	if len(found) != 1 || found[0].Kind != record.FindMissingFile || found[0].Place.File != name {
		t.Errorf("findings %+v", found)
	}
	// The MANIFEST has changed since it was read: the server removed the table with an edit.
	gone := db.version.Sorted()[0].Tables[manifest.Position{Level: 1, Number: 11}]
	d.Edit(testsst.EditNumber(manifest.TagNextFileNumber, 100))
	d.Finish()
	found = nil
	if _, err := db.spaces[0].findTable(gone); !errors.Is(err, fs.ErrNotExist) || len(found) > 0 {
		t.Errorf("error %v, findings %+v", err, found)
	}
}
