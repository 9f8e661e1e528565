package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kvferry/fixtures"
)

// TestForgeryAlone: in each format, a table and a MANIFEST reassembled without a fault are sound and have the same
// records, so a forgery changes nothing but its fault. A row dropped with unchanged counts is detected.
func TestForgeryAlone(t *testing.T) {
	dir := t.TempDir()
	h := &harness{seed: 1, dir: dir, files: "*", run: &runner{work: filepath.Join(dir, "work")}}
	if err := os.Mkdir(h.run.work, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := h.makeTiny(); err != nil {
		t.Fatal(err)
	}
	kept := tableForgeries
	defer func() { tableForgeries = kept }()
	seen := 0
	for _, s := range h.tiny {
		sound := h.run.dump(s.dir)
		for n, file := range s.files {
			if ext := filepath.Ext(file); ext != ".sst" && ext != ".ldb" {
				continue
			}
			for _, kind := range []string{unforged, "row-drop"} {
				tableForgeries = nil
				for _, f := range kept {
					if f.name == kind {
						tableForgeries = append(tableForgeries, f)
					}
				}
				p := &patient{r: fixtures.NewRand(7, uint64(n)), s: s, file: file, dir: filepath.Join(h.run.work, "copy")}
				if err := s.copyTo(p.dir); err != nil {
					t.Fatal(err)
				}
				_, hidden, forged, err := p.forge()
				if err != nil || !forged && kind == unforged {
					t.Fatalf("%s %s: %v, %v", s.name, file, forged, err)
				}
				switch got := h.run.verify(p.dir); {
				case kind == unforged && got.code != 0:
					t.Errorf("%s %s: exit %d, %v %s", s.name, file, got.code, got.told, got.stderr)
				case kind == unforged && !h.run.dump(p.dir).same(sound):
					t.Errorf("%s %s: other records", s.name, file)
				case forged && kind != unforged && hidden == "" && got.code != 0:
					seen++
				}
				if err := os.RemoveAll(p.dir); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if seen < 5 {
		t.Errorf("only %d rows were missed", seen)
	}
}

// TestFramed: records of a log are the same after splitting and framing, for all lengths.
func TestFramed(t *testing.T) {
	f := framed{records: [][]byte{[]byte("a"), bytes.Repeat([]byte("b"), 100<<10), nil, []byte("c")}}
	b, err := f.write()
	if err != nil {
		t.Fatal(err)
	}
	got, ok := readFramed(b)
	if !ok || len(got.records) != 4 || !bytes.Equal(bytes.Join(got.records, nil), bytes.Join(f.records, nil)) {
		t.Errorf("%v, %d records", ok, len(got.records))
	}
}

// TestAgree: commands must agree, except where disagreement is accepted.
func TestAgree(t *testing.T) {
	of := func(code int, lines string) *outcome {
		o := &outcome{code: code, told: map[string]int64{}}
		o.sum.Write([]byte(lines))
		return o
	}
	told := func(o *outcome, kind string) *outcome {
		o.told[kind] = 1
		return o
	}
	sound := &reading{dump: of(0, "a\n"), fingerprint: of(0, ""), inspect: of(0, "")}
	for name, c := range map[string]struct {
		dump, verify, fingerprint, diff *outcome
		counted                         int64 // by fingerprint
		wrong                           string
		resorted                        *outcome
	}{
		"all take it":           {of(0, "a\n"), of(0, ""), of(0, ""), of(0, ""), 1, "", nil},
		"all refuse it":         {of(1, ""), of(3, ""), of(1, ""), of(1, ""), 1, "", nil},
		"verify alone":          {of(0, "a\n"), of(3, ""), of(0, ""), of(0, ""), 1, "read the file, verify refuse it", nil},
		"tables were sorted":    {told(of(0, "a\n"), "unordered-table"), told(of(3, ""), "key-order"), of(0, ""), of(0, ""), 1, "", nil},
		"a large one is sorted": {of(1, ""), told(of(3, ""), "key-order"), of(0, ""), of(0, ""), 1, "", told(of(0, "a\n"), "unordered-table")},
		"nobody can sort it":    {of(1, ""), told(of(3, ""), "key-order"), of(0, ""), of(0, ""), 1, "read the file, dump, verify refuse it", of(1, "")},
		"an index is wrong":     {of(1, ""), told(of(3, ""), "zset-score-mismatch"), of(0, ""), of(0, ""), 1, "read the file, ", nil},
		"all but verify":        {of(1, ""), of(0, ""), of(1, ""), of(1, ""), 1, "read the file, ", nil},
		"other counts":          {of(0, "a\n"), of(0, ""), of(0, ""), of(0, ""), 2, "fingerprint counts 2 records, dump 1", nil},
		"diff sees nothing":     {of(0, "b\n"), of(0, ""), of(0, ""), of(0, ""), 1, "diff finds no difference", nil},
		"diff sees a ghost":     {of(0, "a\n"), of(0, ""), of(0, ""), of(3, ""), 1, "diff finds a difference", nil},
		"diff sees what it is":  {of(0, "b\n"), of(0, ""), of(0, ""), of(3, ""), 1, "", nil},
	} {
		k := class{counts: map[string]int{}}
		x := &reading{dump: c.dump, verify: c.verify, fingerprint: c.fingerprint, inspect: c.fingerprint, convert: c.fingerprint,
			diff: c.diff, resorted: c.resorted, counts: map[string]int64{"dump": c.dump.sum.lines, "fingerprint": c.counted}}
		k.agree(x, sound, name)
		if got := strings.Join(k.wrong, "; "); (got == "") != (c.wrong == "") || !strings.Contains(got, c.wrong) {
			t.Errorf("%s: %q, want %q", name, got, c.wrong)
		}
	}
}
