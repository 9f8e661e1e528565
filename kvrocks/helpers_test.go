package kvrocks_test

import (
	"testing"

	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/internal/testkit/formattest"
	"kvferry/record"
	"kvferry/store"
)

var bytewise = store.Bytewise

// reportTo returns options that report the findings of opening a store.
func reportTo(f *formattest.Findings) store.Options { return store.Options{Report: f.Report} }

// fillShard writes records into a shard of all types.
func fillShard(t testing.TB, dst format.Target, n int, db string, memory int64, r record.Reader) {
	t.Helper()
	w, err := dst.Shard(n, db, record.AllTypes, memory)
	if err != nil {
		t.Fatal(err)
	}
	if err := fixtures.Pump(w, r); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}
