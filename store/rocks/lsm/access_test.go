package lsm_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"kvferry/internal/sys/disk"
	"kvferry/internal/testkit/testsst"
	"kvferry/record"
	"kvferry/store"
)

// refuse fails all calls on a file except the first n.
func refuse(name string, n int, err error) (restore func()) {
	return disk.Inject(func(op, path string) error {
		if filepath.Base(path) != name || op == "stat" {
			return nil
		}
		if n--; n < 0 {
			return err
		}
		return nil
	})
}

// TestNoAccess: no reader mistakes a failure of access for damage, at any call.
func TestNoAccess(t *testing.T) {
	d := testsst.NewDB(t)
	spec := testsst.Spec{BlockSize: 4 << 10, IndexType: 2, Filter: "fullfilter.test",
		Tombstones: []testsst.Entry{testsst.RangeDel("x", 9, "y")}}
	name := d.Table(0, 1, spec, testsst.SomeEntries(4000)...)
	dir := d.Finish()
	nothing := func(*store.Entry) error { return nil }
	for what, read := range map[string]func(*database) error{
		"rows":      func(db *database) error { return testsst.WalkRows(t, db.Keyspaces()[0]) },
		"sorted":    func(db *database) error { return testsst.WalkRows(t, db.Keyspaces()[0]) },
		"unordered": func(db *database) error { return db.Keyspaces()[0].Unordered(nothing) },
		"blocks": func(db *database) error {
			return errors.Join(db.Keyspaces()[0].Unordered(nothing), db.CheckBlocks(context.Background()))
		},
	} {
		failed := 0
		for n := 0; ; n++ {
			db, found := openFindings(t, dir, store.Options{Salvage: true, Resort: what == "sorted"})
			restore := refuse(name, n, syscall.EMFILE)
			err := read(db)
			restore()
			if !errors.Is(err, syscall.EMFILE) {
				break // it makes no more calls
			}
			failed++
			var c *record.CorruptError
			if errors.As(err, &c) || len(*found) > 0 {
				t.Errorf("%s, after %d calls: %v, findings %+v", what, n, err, *found)
			}
		}
		if failed < 5 {
			t.Errorf("%s: only %d calls of the system", what, failed)
		}
	}
}

// TestRefusedRead: bytes that the medium refuses once are no damage, and what it does not give back stays lost.
func TestRefusedRead(t *testing.T) {
	d := testsst.NewDB(t)
	name := d.Table(0, 1, testsst.Spec{}, testsst.Put("a", 1, ""))
	dir := d.Finish()
	reads := 0
	restore := disk.Inject(func(op, path string) error {
		if filepath.Base(path) == name && op == "read" {
			if reads++; reads%2 == 1 {
				return syscall.EIO
			}
		}
		return nil
	})
	db, found := openFindings(t, dir, store.Options{})
	wantRows(t, db, 0, "a=")
	restore()
	if len(*found) == 0 || (*found)[0].Kind != record.FindRefusedRead || (*found)[0].Severity != record.Warning ||
		(*found)[0].Place.File != name {
		t.Errorf("findings %+v", *found)
	}

	restore = refuse(name, 1, syscall.EIO)
	db, found = openFindings(t, dir, store.Options{Salvage: true})
	wantRows(t, db, 0, "")
	restore()
	wantRows(t, db, 0, "")
	if err := db.Keyspaces()[0].Unordered(func(*store.Entry) error { return errors.New("a row came back") }); err != nil {
		t.Error(err)
	}
	if len(*found) != 1 || (*found)[0].Kind != record.FindDamagedBlock {
		t.Errorf("findings %+v", *found)
	}
}

// TestSpoolsShareAFile: sorting many tables takes one file.
func TestSpoolsShareAFile(t *testing.T) {
	d := testsst.NewDB(t)
	var want []string
	for i := range 20 {
		value := strings.Repeat(fmt.Sprint(i%10), 5000)
		a, b, c, z := fmt.Sprintf("k%02da", i), fmt.Sprintf("k%02db", i), fmt.Sprintf("k%02dc", i), fmt.Sprintf("k%02dz", i)
		entries := []testsst.Entry{testsst.Put(a, 1, value), testsst.Put(c, 2, value), testsst.Put(b, 2, value),
			testsst.Put(z, 2, value)}
		name := d.Write(testsst.Spec{KeepOrder: true}, entries)
		d.Name(0, 1, name, testsst.Bounds{Smallest: entries[0].Internal(), Largest: entries[3].Internal()}, 2)
		want = append(want, a+"="+value, b+"="+value, c+"="+value, z+"="+value)
	}
	db := openTest(t, d.Finish(), store.Options{Resort: true, Memory: 64 << 10, TempDir: t.TempDir()})
	wantRows(t, db, 0, strings.Join(want, " "))
	if n := db.spaces[0].Env.NumSpools(); n != 1 {
		t.Errorf("%d files", n)
	}
}
