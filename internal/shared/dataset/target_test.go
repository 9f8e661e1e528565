package dataset

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"kvferry/format"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks"
	"kvferry/store/rocks/build"
)

// parts are two: the second has a keyspace beside the default one.
var parts = []Part{
	{record.Of(record.String), "kv", []Keyspace{{"default", store.Bytewise}}},
	{record.Of(record.Set), "sets", []Keyspace{{"default", store.Bytewise}, {"members", store.Bytewise}}},
}

// opened is a format that records that it was opened.
type opened struct {
	format.Format
	dirs *[]string
}

func (opened) Name() string { return "fake" }

func (o opened) Open(_ context.Context, dir string, _ *format.OpenOptions) (format.Source, error) {
	*o.dirs = append(*o.dirs, dir)
	return nil, os.ErrProcessDone
}

func create(t *testing.T, dir string, o format.CreateOptions) *Target {
	t.Helper()
	if o.Create == nil {
		o.Create = build.Create
	}
	dst, err := Create(opened{}, dir, &o, parts)
	if err != nil {
		t.Fatal(err)
	}
	return dst
}

// write puts a row into a shard of a part.
func write(t *testing.T, dst *Target, n int, db string, part int, key string) {
	t.Helper()
	d, err := dst.DB(db)
	if err != nil {
		t.Fatal(err)
	}
	run, err := d.Builder(part).Run("default", n, 0)
	if err == nil {
		err = errors.Join(run.Append([]byte(key), nil), run.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestLayouts(t *testing.T) {
	for _, c := range []struct {
		layout format.Layout
		dbs    []string
		want   string
	}{
		{format.LayoutAuto, nil, "kv sets"},
		{format.LayoutAuto, []string{"0"}, "kv sets"},
		{format.LayoutAuto, []string{"1"}, "db1/kv db1/sets"},
		{format.LayoutAuto, []string{"0", "2"}, "db0/kv db0/sets db2/kv db2/sets"},
		{format.LayoutDB, nil, "db0/kv db0/sets"},
		{format.LayoutFlat, []string{"3"}, "kv sets"},
		{format.LayoutFlat, []string{"0", "1"}, "2 databases need a directory each"},
		{format.LayoutDB, []string{"0", "users"}, `database "users": fake's have numbers for names`},
		{format.LayoutAuto, []string{"01"}, `database "01": fake's have numbers for names`},
	} {
		dir := filepath.Join(t.TempDir(), "new")
		dst, err := Create(opened{}, dir, &format.CreateOptions{Create: build.Create, Layout: c.layout, DBs: c.dbs}, parts)
		if err != nil {
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v: %v", c, err)
			}
		} else {
			for _, sub := range strings.Fields(c.want) {
				if _, err := os.Stat(filepath.Join(dir, sub)); err != nil {
					t.Errorf("%v: %v", c, err)
				}
			}
			dst.Abort()
		}
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("%v: something is left in %s: %v", c, dir, err)
		}
	}
}

// refusing is a builder that refuses a keyspace.
type refusing struct{ store.Builder }

func (refusing) Keyspace(name string, _ store.Comparer) error {
	if name == "members" {
		return os.ErrInvalid
	}
	return nil
}

func (refusing) Abort() {}

func TestCreateFails(t *testing.T) {
	for name, c := range map[string]struct {
		create store.CreateFunc
		want   error
	}{
		"store":    {func(string, store.BuildOptions) (store.Builder, error) { return nil, os.ErrPermission }, os.ErrPermission},
		"keyspace": {func(string, store.BuildOptions) (store.Builder, error) { return refusing{}, nil }, os.ErrInvalid},
	} {
		_, err := Create(opened{}, filepath.Join(t.TempDir(), "new"), &format.CreateOptions{Create: c.create}, parts)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestGroups(t *testing.T) {
	dst := create(t, filepath.Join(t.TempDir(), "new"), format.CreateOptions{})
	defer dst.Abort()
	if got := dst.Groups(); !slices.Equal(got, []record.TypeSet{record.Of(record.String), record.Of(record.Set)}) {
		t.Errorf("groups %v", got)
	}
}

// TestResume takes the tables of a shard over into a second target of the same directory.
func TestResume(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	o := format.CreateOptions{DBs: []string{"0", "1"}}
	first := create(t, dir, o)
	write(t, first, 4, "1", 0, "a")
	write(t, first, 4, "1", 1, "a")
	write(t, first, 5, "0", 1, "b")
	tables, err := first.Tables(4)
	if err != nil {
		t.Fatal(err)
	}
	if len(tables) != 2 || !strings.HasPrefix(tables[0].File, "db1/kv/") || !strings.HasPrefix(tables[1].File, "db1/sets/") {
		t.Fatalf("tables %+v", tables)
	}
	second := create(t, dir, o)
	if err := second.Adopt(4, "0", tables); err == nil || !strings.Contains(err.Error(), "is of no store of database 0") {
		t.Errorf("adopted by another database: %v", err)
	}
	if err := second.Adopt(4, "7", tables); err == nil || !strings.Contains(err.Error(), `"7" was not announced`) {
		t.Errorf("adopted by a database that is not there: %v", err)
	}
	if err := second.Adopt(4, "1", tables[1:]); err != nil { // nothing of the first part
		t.Fatal(err)
	}
	if err := second.Adopt(4, "1", tables[:1]); err != nil {
		t.Fatal(err)
	}
	lost := tables[0]
	lost.File = "db0/kv/000999.sst"
	if err := second.Adopt(6, "0", []store.Table{lost}); err == nil {
		t.Error("a table that is not there is adopted")
	}
	if _, err := second.Finish(context.Background()); err != nil {
		t.Fatal(err)
	}
	st, err := rocks.Open(context.Background(), filepath.Join(dir, "db1/sets"), &store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	it, err := st.Keyspaces()[0].Rows(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	if key, _, err := it.Next(); err != nil || string(key) != "a" || len(st.Keyspaces()) != 2 {
		t.Errorf("row %q, %v", key, err)
	}
}

func TestFinish(t *testing.T) {
	var mu sync.Mutex
	var last, dirs []string
	dir := filepath.Join(t.TempDir(), "new")
	o := &format.CreateOptions{Create: build.Create, DBs: []string{"0", "3"}, Reopen: &format.OpenOptions{}}
	dst, err := Create(opened{dirs: &dirs}, dir, o, parts)
	if err != nil {
		t.Fatal(err)
	}
	dst.Last = func(part int, b store.Builder) error {
		mu.Lock()
		defer mu.Unlock()
		last = append(last, fmt.Sprint(part, b != nil))
		return nil
	}
	if _, err := dst.Finish(context.Background()); err != os.ErrProcessDone || !slices.Equal(dirs, []string{dir}) {
		t.Errorf("opened %q: %v", dirs, err)
	}
	slices.Sort(last)
	if want := []string{"0 true", "0 true", "1 true", "1 true"}; !slices.Equal(last, want) {
		t.Errorf("last rows of %q", last)
	}
	broken := create(t, filepath.Join(t.TempDir(), "new"), format.CreateOptions{})
	broken.Last = func(int, store.Builder) error { return os.ErrDeadlineExceeded }
	if _, err := broken.Finish(context.Background()); err != os.ErrDeadlineExceeded {
		t.Errorf("last rows fail: %v", err)
	}
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := broken.Finish(cancelled); err != context.Canceled {
		t.Errorf("cancelled: %v", err)
	}
	overlap := create(t, filepath.Join(t.TempDir(), "new"), format.CreateOptions{})
	write(t, overlap, 0, "0", 1, "a")
	write(t, overlap, 1, "0", 1, "a")
	if _, err := overlap.Finish(context.Background()); err == nil {
		t.Error("runs that overlap are finished")
	}
}
