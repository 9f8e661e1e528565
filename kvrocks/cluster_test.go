package kvrocks_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/internal/pass/sorted"
	"kvferry/internal/testkit/formattest"
	"kvferry/kvrocks"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks"
	"kvferry/store/rocks/build"
)

// TestSlotSpans reads a cluster node in spans of keys, like a resumable conversion: together they have each record and
// each row once.
func TestSlotSpans(t *testing.T) {
	src := formattest.Open(t, kvrocks.New(), fixtures.Unpack(t, "kvrocks-cluster"), &format.OpenOptions{Store: rocks.Open})
	read := func(l *record.Ledger, f *formattest.Findings, s format.Span) record.Reader {
		env := &format.Env{Now: time.Unix(2_000_000_000, 0), Ledger: l, Report: f.Report, TempDir: t.TempDir()}
		r := formattest.RecordsOf(t, src, kvrocks.DefaultNamespace, record.AllTypes, s, env)
		return sorted.Records(r.Reader, sorted.Options{TempDir: t.TempDir()})
	}
	var whole record.Ledger
	var f formattest.Findings
	want := formattest.Sum(t, read(&whole, &f, format.Span{}))
	cut, err := src.Split(kvrocks.DefaultNamespace, record.AllTypes, 8)
	if err != nil || len(cut) < 4 {
		t.Fatalf("%d spans, %v", len(cut), err)
	}
	at := []string{"", "\x00", "S:12", "b:", "h:1", "h:10", "h:1\xff", "k", "s:", "x", "\xff\xff"}
	by := []format.Span{{}}
	for _, key := range at {
		by[len(by)-1].Hi = []byte(key)
		by = append(by, format.Span{Lo: []byte(key)})
	}
	for name, spans := range map[string][]format.Span{"by samples": cut, "by keys": by} {
		var l record.Ledger
		var got record.Fingerprint
		parts := 0
		for _, s := range spans {
			sum := formattest.Sum(t, read(&l, &f, s))
			got.Merge(sum)
			parts += min(1, len(sum.Parts()))
		}
		formattest.CheckEqual(t, &got, want, false)
		if parts < 4 {
			t.Errorf("%s: records in %d spans", name, parts)
		}
		for _, ks := range []string{"metadata", "default", "zset_score", "stream"} {
			if g, w := formattest.Classes(&l, ks), formattest.Classes(&whole, ks); g != w {
				t.Errorf("%s, %s: %s, want %s", name, ks, g, w)
			}
		}
	}
}

// within yields the records whose keys are in a span.
type within struct {
	record.Reader
	span format.Span
}

// Next marks the other records as filtered.
func (w within) Next() (*record.Batch, error) {
	b, err := w.Reader.Next()
	if err != nil {
		return nil, err
	}
	for i := range b.Records {
		r := &b.Records[i]
		if string(r.Key) < string(w.span.Lo) || w.span.Hi != nil && string(r.Key) >= string(w.span.Hi) {
			r.Settle(record.Filtered)
		}
	}
	return b, nil
}

// TestClusterResume: a shard that an earlier process finished is adopted, and the database equals a single process's. A
// file that contradicts the journal is refused.
func TestClusterResume(t *testing.T) {
	o := fixtures.Options{DB: kvrocks.DefaultNamespace, Limits: kvrocks.New().Limits(), Types: record.RedisTypes, Expired: true}
	create := func(dir string) format.Target {
		return formattest.Create(t, kvrocks.New(), dir,
			&format.CreateOptions{Create: build.Create, DBs: []string{o.DB}, Cluster: true,
				TempDir: t.TempDir(), Now: fixtures.Clock, Memory: 64 << 10, Build: store.BuildOptions{Sync: true}})
	}
	shard := func(dst format.Target, n int) []store.Table {
		span := format.Span{Hi: []byte("k")}
		if n > 0 {
			span = format.Span{Lo: span.Hi}
		}
		w, err := dst.Shard(n, o.DB, record.AllTypes, 64<<10)
		if err == nil {
			err = errors.Join(fixtures.Pump(w, within{fixtures.Records(5, 300, o), span}), w.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		tables, err := dst.Tables(n)
		if err != nil || len(tables) != 1 || tables[0].Entries < 80 {
			t.Fatalf("shard %d: %+v, %v", n, tables, err)
		}
		return tables
	}
	finish := func(dst format.Target, dir string) string {
		if _, err := dst.Finish(context.Background()); err != nil {
			t.Fatal(err)
		}
		if names, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(names) != 1 {
			t.Errorf("%q, %v: more than the database is left", names, err)
		}
		return treeText(t, dir)
	}
	root := t.TempDir()
	whole, half := filepath.Join(root, "whole"), filepath.Join(root, "half")
	dst := create(whole)
	shard(dst, 3)
	shard(dst, 0)
	want := finish(dst, whole)

	first := create(half)
	tables := shard(first, 0) // and its process is gone
	for what, bad := range map[string]store.Table{"of another shard": {File: "slots/000003.rows", Bytes: tables[0].Bytes},
		"outside": {File: "../x"}, "longer": {File: tables[0].File, Bytes: tables[0].Bytes + 1}} {
		if err := create(half).Adopt(0, o.DB, []store.Table{bad}); err == nil {
			t.Errorf("a file %s is taken over", what)
		}
	}
	if err := create(half).Adopt(1, o.DB, []store.Table{{File: "slots/000001.rows"}}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	second := create(half)
	if err := second.Adopt(0, o.DB, tables); err != nil {
		t.Fatal(err)
	}
	shard(second, 3)
	if got := finish(second, half); got != want {
		t.Error("the resumed run wrote something else")
	}
}

// treeText returns the names and bytes of all files of a directory.
func treeText(t *testing.T, dir string) string {
	var out strings.Builder
	if err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		fmt.Fprintf(&out, "%s %x\n", strings.TrimPrefix(path, dir), data)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}
