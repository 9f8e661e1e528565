package keyspace_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/inspect"
	"kvferry/internal/testkit/formattest"
	"kvferry/nemo"
	"kvferry/record"
	"kvferry/serve/keyspace"
	"kvferry/store"
)

// stops opens the keyspace of records whose readers call before with the number of batches they have returned.
func stops(t *testing.T, f format.Format, before func(batches int) error, records ...*one) (*keyspace.Keyspace, format.Source) {
	t.Helper()
	m := formattest.NewMemory(t, f)
	dst := m.Create(t, format.CreateOptions{TempDir: t.TempDir(), Version: 1, DBs: []string{"0"}, Now: fixtures.Clock})
	src := formattest.Fill(t, dst, 1<<20, func(types record.TypeSet) record.Reader {
		var out []record.Reader
		for _, r := range records {
			if types.Has(r.h.Type) {
				out = append(out, record.Gather(r, nil))
			}
		}
		return record.Merge(out...)
	})
	k, err := keyspace.New(t.Context(), &inspect.Scan{Source: hooked{src, before}, Now: fixtures.Clock, Memory: 16 << 20, TempDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	})
	return k, src
}

// TestNumbersOfScan: keys, those that expire, and records that have the name of another one are counted alike, by a count,
// by a list of all keys, and if a block behind keys that were listed cannot be read.
func TestNumbersOfScan(t *testing.T) {
	const n = 3 * record.BatchLen
	for _, damaged := range []int{-1, 0, 1, 2, 3, 4} { // also between two records of a name
		for _, list := range []bool{false, true} {
			var records []*one
			hidden, expires := 0, 0
			for i, key := range some("k", n) {
				r := put(record.String, key, "v")
				if i%3 == 0 {
					r.h.ExpireMS = fixtures.Clock.UnixMilli() + 1e9
					expires++
				}
				if records = append(records, r); i%5 == 1 { // the name of a string
					records = append(records, put(record.Hash, key, "f"))
					hidden++
				}
			}
			k, src := stops(t, nemo.New(), func(batches int) error {
				if batches == damaged {
					return &store.BlockError{Err: errors.New("a damaged block")}
				}
				return nil
			}, records...)
			k.Reopen = func(context.Context, inspect.Opening) (format.Source, error) {
				return hooked{src, func(int) error { return nil }}, nil
			}
			do := doer(t, k)
			if list {
				if got := do("KEYS *"); !strings.HasPrefix(got, fmt.Sprintf("*%d\r\n", n)) {
					t.Errorf("damage after %d batches: %.40q", damaged, got)
				}
			}
			got := ""
			<-k.Hidden(func(hidden, all int64, exact bool) { got = fmt.Sprint(hidden, all, exact) })
			if want := fmt.Sprint(hidden, n+hidden, true); got != want {
				t.Errorf("damage after %d batches, listed %t: hidden records, all records: %s, want %s", damaged, list, got, want)
			}
			if line, want := do("INFO keyspace"), fmt.Sprintf("db0:keys=%d,expires=%d,", n, expires); !strings.Contains(line, want) {
				t.Errorf("damage after %d batches, listed %t: %q, want %s", damaged, list, line, want)
			}
		}
	}
}

// TestOtherErrors: an error that is not about a block is not read past: what the disk does not give now, it may later.
func TestOtherErrors(t *testing.T) {
	boom := errors.New("input/output error")
	for _, at := range []int{0, 1} {
		k, _ := hook(t, nemo.New(), 3*record.BatchLen, func(batches int) error {
			if batches == at {
				return boom
			}
			return nil
		})
		k.Reopen = func(context.Context, inspect.Opening) (format.Source, error) {
			t.Error("the dataset is opened again")
			return nil, boom
		}
		for _, line := range []string{"KEYS *", "DBSIZE"} {
			if got := doer(t, k)(line); got != "-ERR input/output error\r\n" {
				t.Errorf("%s after %d batches: %.80q", line, at, got)
			}
		}
	}
}
