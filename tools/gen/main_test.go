package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/nemo"
	"kvferry/record"
	"kvferry/store/rocks"
)

func generateIn(t *testing.T, args ...string) error {
	t.Helper()
	var stderr bytes.Buffer
	cmd := root(&stderr)
	cmd.SetArgs(args)
	return cmd.Execute()
}

func TestEveryKindMakesFiveDatabases(t *testing.T) {
	for _, kind := range []string{"mix", "zset", "list", "hash", "set", "linked", "records"} {
		dir := filepath.Join(t.TempDir(), "new")
		if err := generateIn(t, kind, dir, "3000", "--seed", "7"); err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		for _, db := range []string{"kv", "hash", "list", "set", "zset"} {
			if _, err := os.Stat(filepath.Join(dir, db, "CURRENT")); err != nil {
				t.Errorf("%s: %v", kind, err)
			}
		}
	}
}

func TestSameSeedSameFiles(t *testing.T) {
	files := func(seed string) string {
		dir := filepath.Join(t.TempDir(), "new")
		if err := generateIn(t, "mix", dir, "5000", "--seed", seed); err != nil {
			t.Fatal(err)
		}
		tables, err := filepath.Glob(filepath.Join(dir, "hash", "*.sst"))
		if err != nil || len(tables) == 0 {
			t.Fatalf("tables %v, %v", tables, err)
		}
		data, err := os.ReadFile(tables[0])
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	first := files("1")
	if first != files("1") {
		t.Error("one seed made two datasets")
	}
	if first == files("2") {
		t.Error("two seeds made one dataset")
	}
}

func TestBadArguments(t *testing.T) {
	for want, args := range map[string][]string{
		"unknown kind":      {"stream", filepath.Join(t.TempDir(), "a"), "5"},
		"positive number":   {"mix", filepath.Join(t.TempDir(), "b"), "many"},
		"exists":            {"mix", t.TempDir(), "5"},
		"accepts 3 arg":     {"mix"},
		"unknown flag: --x": {"mix", "a", "5", "--x"},
	} {
		if err := generateIn(t, args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error %v, want %q", args, err, want)
		}
	}
}

// readBack returns the fingerprint of a dataset read by nemo.
func readBack(t *testing.T, dir string) *record.Fingerprint {
	t.Helper()
	ctx := context.Background()
	src, err := nemo.New().Open(ctx, dir, &format.OpenOptions{Store: rocks.Open})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	var findings []record.Finding
	env := format.Env{Now: fixtures.Clock, TempDir: t.TempDir(), Ledger: new(record.Ledger), Deep: true,
		Report: func(f record.Finding) { findings = append(findings, f) }}
	r, err := src.Records(ctx, "0", record.AllTypes, format.Span{}, &env)
	if err != nil {
		t.Fatal(err)
	}
	sum, err := fixtures.Sum(record.Booked(r, env.Ledger))
	if err != nil {
		t.Fatal(err)
	}
	if err := env.Ledger.Check(); err != nil {
		t.Error(err)
	}
	if len(findings) > 0 {
		t.Errorf("%d findings, the first: %+v", len(findings), findings[0])
	}
	return sum
}

func TestDatasetsHoldWhatWasGenerated(t *testing.T) {
	limits := nemo.New().Limits()
	for kind, want := range map[string]func(record.TypeSet) record.Reader{
		"mix": func(set record.TypeSet) record.Reader {
			var readers []record.Reader
			for _, t := range set.Types() {
				readers = append(readers, fixtures.Mix(7, 20000).Records(t))
			}
			return record.Merge(readers...)
		},
		"linked": func(record.TypeSet) record.Reader { return fixtures.NewLinked(7, 20000).Records() },
		"zset":   func(record.TypeSet) record.Reader { return fixtures.One(7, record.ZSet, 20000).Records(record.ZSet) },
	} {
		dir := filepath.Join(t.TempDir(), "new")
		if err := generateIn(t, kind, dir, "20000", "--seed", "7"); err != nil {
			t.Fatal(err)
		}
		sum, err := fixtures.Sum(want(limits.Types))
		if err != nil {
			t.Fatal(err)
		}
		if read := readBack(t, dir); len(sum.Diff(read, true)) != 0 {
			t.Errorf("%s: wrote %v, read %v", kind, sum.Parts(), read.Parts())
		}
	}
}
