package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
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
	if files("1") != files("1") {
		t.Error("one seed made two datasets")
	}
	if files("1") == files("2") {
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
