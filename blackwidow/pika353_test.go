package blackwidow_test

import (
	"cmp"
	"context"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"testing"

	"kvferry/blackwidow"
	"kvferry/format"
	"kvferry/internal/testkit/formattest"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks"
	"kvferry/store/rocks/build"
)

// pika353 is the order of score_cf in Pika 3.5.3, which has the name used before and after it: versions
// compare as numbers.
var pika353 = store.Comparer{Name: blackwidow.ZSetsScoreKeyComparator.Name, Compare: func(a, b []byte) int {
	x, xerr := blackwidow.DecodeScoreKey(a)
	y, yerr := blackwidow.DecodeScoreKey(b)
	if xerr == nil && yerr == nil && string(x.Key) == string(y.Key) && x.Version != y.Version {
		return cmp.Compare(x.Version, y.Version)
	}
	return blackwidow.ZSetsScoreKeyComparator.Compare(a, b)
}}

// writePika353 writes a zset of version 256 beside rows of version 255.
func writePika353(t *testing.T, dir string) {
	t.Helper()
	b, err := build.Create(filepath.Join(dir, "zsets"), store.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(b.Keyspace("data_cf", store.Bytewise), b.Keyspace("score_cf", pika353)); err != nil {
		t.Fatal(err)
	}
	row := func(cf string, rows ...[]byte) {
		run, err := b.Run(cf, 0, 0)
		for i := 0; i < len(rows) && err == nil; i += 2 {
			err = run.Append(rows[i], rows[i+1])
		}
		if err == nil {
			err = run.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	row("default", k, meta(2, 256, 0))
	row("data_cf", dataKey("k", 256, "a"), score(2), dataKey("k", 256, "b"), score(1), dataKey("k", 255, "a"), score(7))
	row("score_cf", scoreKey("k", 255, 7, "a"), nil, scoreKey("k", 256, 1, "b"), nil, scoreKey("k", 256, 2, "a"), nil)
	if err := b.Finish(); err != nil {
		t.Fatal(err)
	}
}

// read353 opens a dataset and reads all of it.
func read353(t *testing.T, dir string, resort bool, e *format.Env) error {
	src, err := blackwidow.New().Open(context.Background(), dir, &format.OpenOptions{Store: rocks.Open,
		Options: store.Options{Resort: resort, TempDir: t.TempDir()}})
	if err != nil {
		return err
	}
	defer src.Close()
	reader, err := src.Records(context.Background(), "0", record.AllTypes, format.Span{}, e)
	if err != nil {
		return err
	}
	r := record.Walk(record.Booked(reader, e.Ledger))
	defer r.Close()
	for err == nil {
		_, err = r.Next()
	}
	return err
}

// TestPika353: a dataset in Pika 3.5.3's order is detected, never misread, and read in full when it is
// resorted.
func TestPika353(t *testing.T) {
	dir := t.TempDir()
	writePika353(t, dir)
	var l record.Ledger
	var f formattest.Findings
	var order *store.OrderError
	if err := read353(t, dir, false, &format.Env{}); !errors.As(err, &order) || order.Keyspace != "score_cf" {
		t.Errorf("as it is: %v", err)
	}
	if err := read353(t, dir, true, &format.Env{Ledger: &l, Report: f.Report}); err != io.EOF {
		t.Errorf("sorted again: %v", err)
	}
	formattest.CheckLedger(t, &l)
	if got := formattest.Classes(&l, "zsets/score_cf"); got != "stale=1 index=2" || !slices.Equal(f.Kinds(), []string{}) {
		t.Errorf("%s, found %q", got, f.Kinds())
	}
}
