package work

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kvferry/convert/plan"
	"kvferry/convert/result"
	"kvferry/format"
	"kvferry/internal/pass"
	"kvferry/record"
	"kvferry/store"
)

// made holds tables by shard.
type made struct {
	tables map[int][]store.Table
	broken error
	done   bool
}

// builder is a store.Builder of made tables.
type builder struct {
	store.Builder
	*made
}

func (b builder) Run(string, int, uint64) (store.Run, error) { return nil, b.broken }
func (b builder) Adopt([]store.Table) error                  { return b.broken }
func (b builder) Tables(n int) ([]store.Table, error)        { return b.tables[n], b.broken }

func (b builder) Finish() error {
	b.done = true
	return b.broken
}

// target is a format.Target of made tables.
type target struct {
	format.Target
	*made
}

func (t target) Tables(n int) ([]store.Table, error) { return t.tables[n], t.broken }

// TestCounter checks that the tables of all shards that builders wrote or adopted are counted before they are
// renamed.
func TestCounter(t *testing.T) {
	var c Counter
	for n := range 2 {
		m := &made{tables: map[int][]store.Table{
			3: {{File: "a", Entries: 2, Bytes: 10}, {File: "b", Entries: 1, Bytes: 5}}, 5: {{File: "c", Entries: 4, Bytes: 20}}, 7: {{File: "d", Entries: 100, Bytes: 100}}}}
		b, err := c.Create(func(string, store.BuildOptions) (store.Builder, error) {
			return builder{made: m}, nil
		})(fmt.Sprint(n), store.BuildOptions{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = b.Run("rows", 3, 0)
		if err := errors.Join(err, b.Adopt([]store.Table{{Shard: 5}, {Shard: 3}}), b.Finish()); err != nil || !m.done {
			t.Fatalf("%v, done %t", err, m.done)
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a"), []byte("12"), 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := c.Take(dir)
	if err != nil || !got.Stored || got.Tables != 6 || got.Entries != 14 || got.Bytes != 70 || len(got.Files) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	if err := got.CheckFiles(dir); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "b"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := got.CheckFiles(dir); err == nil || !strings.Contains(err.Error(), "somebody else changed it in "+dir+": b is new") {
		t.Error(err)
	}
	if got, err := c.Take(""); err != nil || got.Files != nil || got.Tables != 6 {
		t.Errorf("in no directory: %+v, %v", got, err)
	}
	if err := got.CheckFiles(filepath.Join(dir, "none")); err == nil {
		t.Error("a directory that is gone is as it was")
	}
	if err := os.Symlink("a", filepath.Join(dir, "link")); err != nil {
		t.Skip(err)
	}
	if _, err := c.Take(dir); err == nil || !strings.Contains(err.Error(), "link is a link instead of the written file") {
		t.Errorf("a link among the files of the target: %v", err)
	}
}

// TestCounterFails checks that errors of builders are returned, and that tables that cannot be counted do not become
// a database.
func TestCounterFails(t *testing.T) {
	bad := errors.New("bad")
	var c Counter
	if _, err := c.Create(func(string, store.BuildOptions) (store.Builder, error) {
		return nil, bad
	})("", store.BuildOptions{}); err != bad {
		t.Error(err)
	}
	m := &made{broken: bad}
	b, err := c.Create(func(string, store.BuildOptions) (store.Builder, error) {
		return builder{made: m}, nil
	})("", store.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Run("rows", 1, 0); err != bad || b.Adopt(nil) != bad || b.Finish() != bad || m.done {
		t.Errorf("%v, done %t", err, m.done)
	}
}

// TestCheckTasks checks that every task of the plan is done, and that the target consists of exactly their tables, in
// any order.
func TestCheckTasks(t *testing.T) {
	p := &plan.Plan{Tasks: []pass.Task{{N: 0, DB: "0", Types: record.Of(record.Set), Group: record.AllTypes},
		{N: 1, DB: "0", Types: record.Of(record.Stream)}}}
	a, b := store.Table{File: "a", Entries: 1, Bytes: 10}, store.Table{File: "b", Entries: 2, Bytes: 20}
	for _, c := range []struct {
		has, wrote []store.Table
		want       string
	}{
		{[]store.Table{a, b}, []store.Table{b, a}, ""},
		{[]store.Table{a}, []store.Table{b, a}, "task 0 (database 0, set) wrote 2 tables with 3 rows, and 1 table with 1 row would become part of it"},
		{[]store.Table{a, b}, []store.Table{a, {File: "b", Entries: 2, Bytes: 21}}, "task 0 (database 0, set) wrote"},
		{[]store.Table{a, b}, []store.Table{a, {File: "b", Entries: 3, Bytes: 20}}, "task 0 (database 0, set) wrote"},
		{[]store.Table{a, b}, []store.Table{a, {File: "c", Entries: 2, Bytes: 20}}, "task 0 (database 0, set) wrote"},
	} {
		err := CheckTasks(p, []*result.Result{{Tables: c.wrote}, {}},
			target{made: &made{tables: map[int][]store.Table{0: c.has}}})
		var count *CountError
		if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) || !errors.As(err, &count)) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	if err := CheckTasks(p, []*result.Result{{}, nil}, target{made: new(made)}); err == nil || !strings.Contains(err.Error(), "task 1 (database 0, stream) was not done") {
		t.Error(err)
	}
	if bad := errors.New("bad"); CheckTasks(p, []*result.Result{{}, {}}, target{made: &made{broken: bad}}) != bad {
		t.Error("tables that cannot be listed are those of the task")
	}
}

// closable is a store that can be closed.
type closable struct{ listed }

func (closable) Close() error { return nil }

// TestStores checks that the files of all open stores are listed, and no others.
func TestStores(t *testing.T) {
	var s Stores
	dir := t.TempDir()
	open := s.Opener(func(_ context.Context, path string, _ *store.Options) (store.Store, error) {
		if strings.HasSuffix(path, "bad") {
			return nil, errors.New("bad")
		}
		return closable{listed{files: []store.File{{Path: "sub/1.sst"}}}}, nil
	})
	var stores []store.Store
	for _, name := range []string{"x", "y"} {
		st, err := open(context.Background(), filepath.Join(dir, name), nil)
		if err != nil {
			t.Fatal(err)
		}
		stores = append(stores, st)
	}
	if err := stores[0].Close(); err != nil {
		t.Fatal(err)
	}
	if got := s.files(dir); len(got) != 1 || got[0].Path != "y/sub/1.sst" {
		t.Errorf("%+v", got)
	}
	if _, err := open(context.Background(), filepath.Join(dir, "bad"), nil); err == nil {
		t.Error("a store that cannot be opened is one")
	}
}
