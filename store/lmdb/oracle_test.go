//go:build lmdb

package lmdb

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"kvferry/store"
	"kvferry/store/lmdb/clmdb"
)

var oracleOrders = map[clmdb.Order]store.Comparer{
	clmdb.Bytewise: store.Bytewise,
	clmdb.Backward: {Name: "backward", Compare: func(a, b []byte) int { return bytes.Compare(b, a) }},
	clmdb.ShortFirst: {Name: "short first", Compare: func(a, b []byte) int {
		return cmp.Or(cmp.Compare(len(a), len(b)), bytes.Compare(a, b))
	}},
}

// orderOf is the order of a database by its name, as churn makes them.
func orderOf(name string) clmdb.Order {
	for o := range oracleOrders {
		if strings.HasPrefix(name, fmt.Sprintf("o%d-", o)) {
			return o
		}
	}
	return clmdb.Bytewise
}

// churn writes and deletes random rows in many databases over many transactions.
func churn(e *clmdb.Env, rng *rand.Rand, names []string) error {
	keys := make(map[string][][]byte)
	for range 12 {
		if err := e.Update(func(t *clmdb.Txn) error {
			for _, name := range names {
				db, err := t.DB(name, orderOf(name), false)
				if err != nil {
					return err
				}
				for range rng.Intn(300) {
					key := make([]byte, 1+rng.Intn(511)>>uint(rng.Intn(9)))
					rng.Read(key)
					if old := keys[name]; len(old) > 0 && rng.Intn(3) == 0 {
						if _, err := t.Del(db, old[rng.Intn(len(old))]); err != nil {
							return err
						}
						continue
					}
					value := make([]byte, rng.Intn(200))
					if rng.Intn(20) == 0 {
						value = make([]byte, rng.Intn(40000))
					}
					rng.Read(value)
					if err := t.Put(db, key, value); err != nil {
						return err
					}
					keys[name] = append(keys[name], key)
				}
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

func oracleRows(t *testing.T, e *clmdb.Env, name string) (out []kv) {
	t.Helper()
	if err := e.Update(func(txn *clmdb.Txn) error {
		db, err := txn.DB(name, orderOf(name), false)
		if err != nil {
			return err
		}
		return txn.Walk(db, func(key, value []byte) error {
			out = append(out, kv{string(key), string(value)})
			return nil
		})
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

func testOrder(name string) *store.Comparer {
	c := oracleOrders[orderOf(name)]
	return &c
}

// TestOracle reads files of the C library row by row, in several orders, with overflow pages and deletions, in ordinary
// and in write-mapped mode.
func TestOracle(t *testing.T) {
	for _, writeMap := range []bool{false, true} {
		seed := rand.Int63()
		t.Logf("seed %d", seed)
		rng := rand.New(rand.NewSource(seed))
		dir := t.TempDir()
		e, err := clmdb.Open(dir, 256<<20, writeMap)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for i := range 60 {
			names = append(names, fmt.Sprintf("o%d-%d", i%3, i))
		}
		slices.Sort(names)
		if err := churn(e, rng, names); err != nil {
			t.Fatal(err)
		}
		want := map[string][]kv{}
		for _, name := range names {
			want[name] = oracleRows(t, e, name)
		}
		if _, err := Open(context.Background(), dir, nil); !errors.As(err, new(*store.LiveError)) && err != nil {
			t.Errorf("open elsewhere: %v", err)
		}
		e.Close()
		compareAll(t, dir, names, want, rng)
	}
}

func compareAll(t *testing.T, dir string, names []string, want map[string][]kv, rng *rand.Rand) {
	t.Helper()
	s := openTest(t, dir, &store.Options{Order: testOrder})
	if got, err := Peek(dir); err != nil || !slices.Equal(got, names) {
		t.Fatalf("names %q, %v", got, err)
	}
	for _, name := range names {
		k, rows := find(t, s, name), want[name]
		if got, err := scan(k, nil, nil); err != nil || !slices.Equal(got, rows) {
			t.Fatalf("%s: %d rows, %v; the C library has %d", name, len(got), err, len(rows))
		}
		for range 10 {
			i, j := rng.Intn(len(rows)), rng.Intn(len(rows))
			i, j = min(i, j), max(i, j)
			got, err := scan(k, []byte(rows[i].key), []byte(rows[j].key))
			if err != nil || !slices.Equal(got, rows[i:j]) {
				t.Fatalf("%s: rows %d to %d: %d, %v", name, i, j, len(got), err)
			}
		}
		n := 0
		if err := k.Unordered(func(*store.Entry) error { n++; return nil }); err != nil || n != len(rows) {
			t.Fatalf("%s: %d rows unordered, %v", name, n, err)
		}
	}
}

// TestOracleMixed opens a database in another order than the one it was created with, like the stock Ardb server: every
// row is still read, in any order, and the contradiction is reported.
func TestOracleMixed(t *testing.T) {
	dir := t.TempDir()
	rng := rand.New(rand.NewSource(5))
	e, err := clmdb.Open(dir, 64<<20, true)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	for _, o := range []clmdb.Order{clmdb.Backward, clmdb.Bytewise} {
		if err := e.Update(func(t *clmdb.Txn) error {
			db, err := t.DB("0", o, false)
			if err != nil {
				return err
			}
			for range 3000 {
				key := make([]byte, 8)
				rng.Read(key)
				if err := t.Put(db, key, key); err != nil {
					return err
				}
				all[string(key)] = true
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		e.Close()
		if e, err = clmdb.Open(dir, 64<<20, true); err != nil {
			t.Fatal(err)
		}
	}
	e.Close()
	s := openTest(t, dir, nil)
	if _, err := scan(find(t, s, "0"), nil, nil); !errors.As(err, new(*store.OrderError)) {
		t.Errorf("mixed orders: %v", err)
	}
	resorted := openTest(t, dir, &store.Options{Resort: true, TempDir: t.TempDir()})
	got, err := scan(find(t, resorted, "0"), nil, nil)
	if err != nil || len(got) != len(all) || !slices.IsSortedFunc(got, func(a, b kv) int { return cmp.Compare(a.key, b.key) }) {
		t.Errorf("resorted: %d rows of %d, %v", len(got), len(all), err)
	}
}

func TestOracleDup(t *testing.T) {
	dir := t.TempDir()
	e, err := clmdb.Open(dir, 1<<20, false)
	if err != nil {
		t.Fatal(err)
	}
	err = e.Update(func(t *clmdb.Txn) error {
		db, err := t.DB("dup", clmdb.Bytewise, true)
		for i := 0; err == nil && i < 100; i++ {
			err = t.Put(db, []byte("k"), []byte(fmt.Sprintf("value %d", i)))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	e.Close()
	k := find(t, openTest(t, dir, nil), "dup")
	if _, err := k.Rows(nil, nil); err == nil || !strings.Contains(err.Error(), "MDB_DUPSORT") {
		t.Errorf("%v", err)
	}
}

// TestLive holds the environment in this process: fcntl locks do not conflict within a process, so no holder may be
// reported. live_test.go uses a second process.
func TestOracleOwnLock(t *testing.T) {
	dir := t.TempDir()
	e, err := clmdb.Open(dir, 1<<20, false)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if err := store.CheckLive(dir, lockFile); err != nil {
		t.Errorf("our own lock is reported: %v", err)
	}
}
