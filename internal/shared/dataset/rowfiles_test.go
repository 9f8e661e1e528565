package dataset

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kvferry/internal/sys/disk"
	"kvferry/internal/sys/extsort"
	"kvferry/store"
)

// TestRowFiles: rows of shards are merged, including an earlier process's, and changed files are refused.
func TestRowFiles(t *testing.T) {
	root := t.TempDir()
	save := func(r *RowFiles, n int, keys ...string) {
		s := extsort.New(extsort.Options{Memory: 1 << 20})
		for _, k := range keys {
			if err := s.Add(0, []byte(k), []byte("v"+k)); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(r.Save(n, s), s.Close()); err != nil {
			t.Fatal(err)
		}
	}
	first := NewRowFiles(root, "late")
	save(first, 3, "c", "a")
	save(first, 4)
	tables := first.Tables(3)
	if len(tables) != 1 || tables[0].File != "late/000003.rows" || tables[0].Entries != 2 || len(first.Tables(4)) != 0 ||
		!first.Has(&tables[0]) || first.Has(&store.Table{File: "000003.sst"}) {
		t.Fatalf("tables %+v", tables)
	}
	synced := disk.Inject(func(op, path string) error {
		if op == "sync" && filepath.Base(path) == "late" {
			return os.ErrPermission
		}
		return nil
	})
	unsynced := extsort.New(extsort.Options{Memory: 1 << 20})
	if err := errors.Join(unsynced.Add(0, []byte("k"), nil), NewRowFiles(root, "late").Save(9, unsynced)); !errors.Is(err,
		os.ErrPermission) {
		t.Errorf("a directory that is not synced: %v", err)
	}
	synced()
	second := NewRowFiles(root, "late")
	for want, change := range map[string]func(*store.Table){
		"is no file of rows of shard 3": func(t *store.Table) { t.File = "../late/000003.rows" },
		"bytes, expected ":              func(t *store.Table) { t.Bytes++ },
	} {
		bad := tables[0]
		change(&bad)
		if err := second.Adopt(3, bad); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if err := second.Adopt(5, store.Table{File: "late/000005.rows"}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	if err := second.Adopt(3, tables[0]); err != nil {
		t.Fatal(err)
	}
	save(second, 7, "b")
	var got []string
	merge := func() error {
		return second.Merge(extsort.Options{}, func(rows *extsort.Sorter) error {
			return rows.Each(func(_ uint64, key, value []byte) error {
				got = append(got, fmt.Sprintf("%s=%s", key, value))
				return nil
			})
		})
	}
	if err := merge(); err != nil || strings.Join(got, " ") != "a=va b=vb c=vc" || !slices.Equal(second.Shards(), []int{3, 7}) {
		t.Errorf("%q, %v", got, err)
	}
	if err := os.Truncate(filepath.Join(root, "late/000007.rows"), 5); err != nil {
		t.Fatal(err)
	}
	if err := merge(); err == nil {
		t.Error("a file that was cut is merged")
	}
	if err := second.Remove(); err != nil || len(second.Shards()) != 0 {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(root, "late")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("files are left: %v", err)
	}
}
