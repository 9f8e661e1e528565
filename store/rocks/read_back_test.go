package rocks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"kvferry/internal/testkit/testsst"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/build"
)

// buildOwn writes a database, and returns the rows of each keyspace.
func buildOwn(t *testing.T, dir string, create store.CreateFunc, o store.BuildOptions, keyspaces ...string) map[string]string {
	t.Helper()
	b, err := create(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for i, name := range keyspaces {
		if err := b.Keyspace(name, store.Bytewise); err != nil {
			t.Fatal(err)
		}
		run, err := b.Run(name, 0, 0)
		for n := 0; n < 100*i+5 && err == nil; n++ {
			key, value := fmt.Sprintf("key%04d", n), bytes.Repeat([]byte{byte(n)}, n)
			err = run.Append([]byte(key), value)
			rows[name] += key + string(value)
		}
		if err := errors.Join(err, run.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Finish(); err != nil {
		t.Fatal(err)
	}
	return rows
}

// checkOwn reads a database as a target is read back.
func checkOwn(t *testing.T, dir string, want map[string]string) error {
	var found []error
	db, err := Open(context.Background(), dir, &store.Options{Own: true, Report: func(f record.Finding) {
		if f.Severity >= record.Error {
			found = append(found, errors.New(f.Detail))
		}
	}})
	if err != nil {
		return err
	}
	defer db.Close()
	spaces := db.Keyspaces()
	if len(spaces) != len(want) {
		found = append(found, fmt.Errorf("%d keyspaces", len(spaces)))
	}
	for _, ks := range spaces {
		it, err := ks.Rows(nil, nil)
		if err != nil {
			return err
		}
		rows := ""
		for err == nil {
			var key, value []byte
			if key, value, err = it.Next(); err == nil {
				rows += string(key) + string(value)
			}
		}
		if err = errors.Join(err, it.Close()); !errors.Is(err, io.EOF) || rows != want[ks.Name()] {
			return errors.Join(err, errors.New(ks.Name()))
		}
	}
	return errors.Join(found...)
}

// TestOwn: no changed bit of a database that is read back passes for what was written. Without Own a table whose footer
// tells of no checksums is read without, and so is one whose filter is damaged.
func TestOwn(t *testing.T) {
	t.Parallel()
	rarely := 1
	if testing.Short() {
		rarely = 97
	}
	both := []string{"default", "data"}
	for name, db := range map[string]struct {
		create    store.CreateFunc
		o         store.BuildOptions
		keyspaces []string
	}{
		"RocksDB":           {build.Create, store.BuildOptions{Identity: "x"}, both},
		"format_version 5":  {build.Create, store.BuildOptions{TableVersion: 5}, both},
		"to be ingested":    {build.Create, store.BuildOptions{External: true}, both},
		"LevelDB":           {build.CreateLevelDB, store.BuildOptions{}, both[:1]},
		"LevelDB, 2 tables": {build.CreateLevelDB, store.BuildOptions{TableSize: 1}, both[:1]},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "db")
			want := buildOwn(t, dir, db.create, db.o, db.keyspaces...)
			check := func() error { return checkOwn(t, dir, want) }
			if err := check(); err != nil {
				t.Fatal(err)
			}
			entries, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				testsst.FlipBits(t, filepath.Join(dir, e.Name()), rarely, check)
			}
		})
	}
}
