package redis

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/internal/testkit/formattest"
	"kvferry/record"
	"kvferry/redis/rdb"
	"kvferry/store"
)

// A damaged file is an error with its location, or with --salvage its readable part: in file order, in key order, and
// row by row. Every read ends, and the ledger adds up.
func TestDamagedFiles(t *testing.T) {
	dir := t.TempDir()
	src, _ := write(t, filepath.Join(dir, "whole"), formatOf(t, "12"), 15, fixtures.Clock)
	src.Close()
	whole, err := os.ReadFile(filepath.Join(dir, "whole"))
	if err != nil {
		t.Fatal(err)
	}
	rounds := 40
	if testing.Short() {
		rounds = 10
	}
	path := filepath.Join(dir, "damaged")
	r := rand.New(rand.NewPCG(7, 7))
	salvaged := 0
	for range rounds {
		b := bytes.Clone(whole)
		switch at := 9 + r.IntN(len(b)-9); r.IntN(3) {
		case 0:
			b = b[:at]
		case 1:
			b[at] ^= 1 << r.IntN(8)
		default:
			b = append(b[:at], b[min(len(b), at+1+r.IntN(30)):]...)
		}
		if bytes.Equal(b, whole) {
			continue
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := New().Open(context.Background(), path, &format.OpenOptions{Options: store.Options{TempDir: dir}})
		if err == nil {
			t.Fatal("a damaged file is opened as if it were whole")
		}
		src, err := New().Open(context.Background(), path,
			&format.OpenOptions{Options: store.Options{TempDir: dir, Salvage: true}})
		if err != nil {
			var c *record.CorruptError
			if !errors.As(err, &c) {
				t.Fatalf("salvage: %v", err)
			}
			continue
		}
		salvaged++
		readDamaged(t, src, dir)
		if err := src.Close(); err != nil {
			t.Error(err)
		}
	}
	if salvaged < rounds/2 {
		t.Errorf("%d of %d files were salvaged", salvaged, rounds)
	}
}

// readDamaged reads a damaged source in every way.
func readDamaged(t *testing.T, src format.Source, dir string) {
	t.Helper()
	drop := func(record.Finding) {}
	for _, db := range src.Databases() {
		sections, err := format.SplitAny(src, db, record.AllTypes, 3)
		if err != nil {
			t.Fatal(err)
		}
		for _, span := range append(sections, format.Span{}) {
			var ledger record.Ledger
			r, err := src.Records(context.Background(), db, record.AllTypes, span,
				&format.Env{Now: truthTime, TempDir: dir, Ledger: &ledger, Report: drop})
			if err != nil {
				t.Fatal(err)
			}
			formattest.Sum(t, record.Booked(r, &ledger))
			formattest.CheckLedger(t, &ledger)
		}
	}
	for _, ks := range src.Keyspaces() {
		it, err := ks.Rows(nil, nil)
		for err == nil {
			var key, value []byte
			if key, value, err = it.Next(); err == nil {
				src.Describe(ks.DB, ks.Name, key, value)
			}
		}
		if err != io.EOF {
			t.Fatal(err)
		}
	}
}

// Spans come from items that were sorted once, whichever reader comes first, and unused orders are closed.
func TestSortedOnce(t *testing.T) {
	src, want := write(t, filepath.Join(t.TempDir(), "a.rdb"), formatOf(t, "9"), 60, fixtures.Clock)
	s := src.(*source)
	var got record.Fingerprint
	var mu sync.Mutex
	for _, db := range src.Databases() {
		spans, err := src.Split(db, record.AllTypes, 8)
		if err != nil || len(spans) < 4 {
			t.Fatalf("%d spans, %v", len(spans), err)
		}
		var wg sync.WaitGroup
		for _, span := range spans {
			wg.Add(1)
			go func() {
				defer wg.Done()
				r, err := src.Records(context.Background(), db, record.AllTypes, span,
					&format.Env{Now: truthTime, Memory: 64 << 10, TempDir: t.TempDir()})
				if err != nil {
					t.Error(err)
					return
				}
				sum := formattest.Sum(t, r)
				mu.Lock()
				defer mu.Unlock()
				got.Merge(sum)
			}()
		}
		wg.Wait()
		if len(s.orders) != 1 || s.orders[0].users != 0 {
			t.Errorf("database %s: %d sorts, %d users of the first", db, len(s.orders), s.orders[0].users)
		}
	}
	formattest.CheckEqual(t, &got, want, false)
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	r, err := src.Records(cancelled, "0", record.Of(record.Hash), format.Span{}, &format.Env{Now: truthTime})
	if err == nil { // too few items for a check of the context
		err = r.Close()
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestLostKeys: damage says how many of the keys that a file announces are missing.
func TestLostKeys(t *testing.T) {
	cut, dbs := errors.New("cut off"), []*database{{n: 0, items: 30}, {n: 3, items: 5}}
	for _, c := range []struct {
		x    index
		want string
	}{
		{index{end: 1234, err: cut}, "everything from offset 1,234 on"},
		{index{end: 9, err: cut, dbs: dbs, announced: map[uint64]uint64{0: 30, 3: 25}}, "everything from offset 9 on: 20 of the 55 keys that the file announces (36 %)"},
		{index{end: 9, size: 109, err: rdb.ErrNewer, dbs: dbs, announced: map[uint64]uint64{0: 19, 3: 305}}, "everything from offset 9 on, 100 B of 109 B (92 %): 300 of the 324 keys that the file announces (93 %)"},
		{index{end: 9, err: cut, dbs: dbs, announced: map[uint64]uint64{0: 30}}, "everything from offset 9 on, but no key that the file announces up to there"},
		{index{end: 9, err: cut, dbs: dbs, announced: map[uint64]uint64{0: 1 << 60}}, "everything from offset 9 on"},
		{index{damage: cut}, "no part of the file, but any key or value may be wrong: the file has a single checksum"},
	} {
		if lost, sure := c.x.lost(); lost != c.want || sure == "" {
			t.Errorf("lost %q, want %q; certainty: %q", lost, c.want, sure)
		}
	}
}
