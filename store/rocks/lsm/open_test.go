package lsm_test

import (
	"context"
	"errors"
	"path/filepath"
	"reflect"
	"runtime"
	"testing"

	"kvferry/internal/testkit/testsst"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks"
	"kvferry/store/rocks/lsm"
)

// database is an open database with its keyspaces, as this package knows them.
type database struct {
	store.Store
	dir    string
	spaces []*lsm.Keyspace
}

// embedded returns an embedded field of what rocks wraps around the parts of a database.
func embedded[T any](wrapped any, name string) T {
	return reflect.ValueOf(wrapped).Elem().FieldByName(name).Interface().(T)
}

// CheckBlocks reads the blocks that rows do not need.
func (db *database) CheckBlocks(ctx context.Context) error {
	return db.Store.(interface{ CheckBlocks(context.Context) error }).CheckBlocks(ctx)
}

// openTest opens a directory with every order known, failing the test on errors.
func openTest(t testing.TB, dir string, o store.Options) *database {
	t.Helper()
	if o.Comparers == nil {
		o.Comparers = testsst.Comparers
	}
	if o.Merger == nil {
		o.Merger = testsst.JoinMerger
	}
	s, err := rocks.Open(context.Background(), dir, &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	db := &database{Store: s, dir: dir}
	for _, ks := range s.Keyspaces() {
		db.spaces = append(db.spaces, embedded[*lsm.Keyspace](ks, "Keyspace"))
	}
	return db
}

// openFindings opens a directory and collects the findings.
func openFindings(t *testing.T, dir string, o store.Options) (*database, *[]record.Finding) {
	t.Helper()
	var found []record.Finding
	o.Report = func(f record.Finding) { found = append(found, f) }
	return openTest(t, dir, o), &found
}

// rowsError opens a directory and returns the first error of opening or reading it.
func rowsError(dir string, o store.Options) error {
	o.Comparers = testsst.Comparers
	return testsst.RowsError(rocks.Open(context.Background(), dir, &o))
}

// wantRows fails unless a keyspace of the database shows exactly these rows.
func wantRows(t testing.TB, db *database, family int, want string) {
	t.Helper()
	rows, _ := testsst.ReadRows(t, db.Keyspaces()[family], nil, nil)
	if want != "" {
		want += " "
	}
	if got := testsst.Show(rows); got != want {
		t.Errorf("rows %s\nwant %s", got, want)
	}
}

// wantCorrupt fails unless err is a CorruptError in that file.
func wantCorrupt(t *testing.T, err error, file string) {
	t.Helper()
	var c *record.CorruptError
	if !errors.As(err, &c) || filepath.Base(c.File) != file {
		t.Errorf("error %v, want a CorruptError in %s", err, file)
	}
}

func totalAlloc() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}
