package parquet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/internal/testkit/formattest"
	"kvferry/record"
)

// severalGroups writes strings in a file with several row groups, of several rows each.
func severalGroups(t *testing.T) (string, *manifest) {
	t.Helper()
	dir, m := made(t, filepath.Join(t.TempDir(), "out"), ExportOptions{Memory: 1}, func(w *part) {
		for i := range 40 {
			pumped(t, w, record.Header{Type: record.String, Key: fmt.Appendf(nil, "%02d", i)}, record.Element{Value: noise(i)})
		}
	})
	if g := m.files[0].Groups; len(g) < 3 || g[0].Rows < 2 {
		t.Fatalf("%+v", g)
	}
	return dir, m
}

// encoded returns the bytes of a manifest.
func encoded(t *testing.T, m *manifest) []byte {
	t.Helper()
	b, err := m.append(nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestManifestRefused: a manifest whose sum is right must be possible, too.
func TestManifestRefused(t *testing.T) {
	_, m := severalGroups(t)
	whole := encoded(t, m)
	for want, change := range map[string]func(m *manifest){
		"is not below the directory":              func(m *manifest) { m.files[0].File = "../part-00001.parquet" },
		`file "a\\b" is not below`:                func(m *manifest) { m.files[0].File = `a\b` },
		"a row group of 0 rows from 0":            func(m *manifest) { m.files[0].Groups[0].Rows = 0 },
		"to -1":                                   func(m *manifest) { m.files[0].Groups[1].End = -1 },
		"a row group of":                          func(m *manifest) { m.files[0].Groups[0].Sum = "1" },
		"40 rows in row groups of 41":             func(m *manifest) { m.files[0].Rows++ },
		"of 0 bytes":                              func(m *manifest) { m.files[0].Size = 0 },
		"version 2: " + record.ErrUnknown.Error(): func(m *manifest) { m.head.Parquet++ },
		"1 files, but 2 in the last line":         func(m *manifest) { m.end.Files++ },
		"40 records of 40 rows, but 40 of 400 in the last line": func(m *manifest) { m.end.Rows = 400 },
		"40 records of 40 rows, but 41 of 40 in the last line":  func(m *manifest) { m.end.Records++ },
	} {
		m, err := decodeManifest(whole)
		if err != nil {
			t.Fatal(err)
		}
		change(m)
		if _, err := decodeManifest(encoded(t, m)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	for want, b := range map[string][]byte{
		record.ErrTrailing.Error():        bytes.Replace(whole, []byte("\n"), []byte(" {}\n"), 1),
		`unknown field "new"`:             bytes.Replace(whole, []byte("{"), []byte(`{"new":1,`), 1),
		"checksum mismatch":               bytes.Replace(whole, []byte(`"rows":40`), []byte(`"rows": 40`), 1),
		"0 files, but 0 in the last line": whole[:bytes.IndexByte(whole, '\n')+1],
	} {
		if _, err := decodeManifest(b); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", b[:min(len(b), 40)], err, want)
		}
	}
	for n := range whole {
		if _, err := decodeManifest(whole[:n]); err == nil {
			t.Errorf("%d of %d bytes were enough", n, len(whole))
		}
	}
}

// opened reads a dataset with another manifest, and returns what it is told.
func opened(t *testing.T, dir string, m *manifest) error {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, ManifestName), encoded(t, m), 0o644); err != nil {
		t.Fatal(err)
	}
	src, err := New().Open(context.Background(), dir, &format.OpenOptions{})
	if err != nil {
		return err
	}
	defer src.Close()
	var told []error // rows that are not damaged, but unknown, do not end the reading
	r, err := src.Records(context.Background(), "0", record.AllTypes, format.Span{},
		&format.Env{Now: fixtures.Clock, Ledger: new(record.Ledger),
			Report: func(f record.Finding) { told = append(told, errors.New(f.Kind+": "+f.Detail)) }})
	if err != nil {
		return err
	}
	_, err = fixtures.Sum(r)
	return errors.Join(append(told, err)...)
}

// TestManifestLies: a manifest that is sound in itself must agree with the files.
func TestManifestLies(t *testing.T) {
	dir, m := severalGroups(t)
	if err := opened(t, dir, m); err != nil {
		t.Fatal(err)
	}
	whole := encoded(t, m)
	for want, change := range map[string]func(f *fileLine){
		`unknown type "none"`:                                func(f *fileLine) { f.Type = "none" },
		"in row group 1, but 4 up to 165357 in the manifest": func(f *fileLine) { f.Groups[1].End-- },
		"in row group 0, but 3 up to 82680 in the manifest":  func(f *fileLine) { f.Groups[0].Rows--; f.Groups[1].Rows++ },
		"row groups, but 9 in the manifest": func(f *fileLine) {
			f.Groups[0].Rows += f.Groups[1].Rows
			f.Groups[0].End = f.Groups[1].End
			f.Groups = append(f.Groups[:1], f.Groups[2:]...)
		},
		`no database "0": have ["1"]`: func(f *fileLine) { f.DB = "1" },
		"checksum mismatch":           func(f *fileLine) { f.Groups[0].Sum = f.Groups[1].Sum },
	} {
		m, err := decodeManifest(whole)
		if err != nil {
			t.Fatal(err)
		}
		change(&m.files[0])
		if err := opened(t, dir, m); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestKeysRefused: a dump of keys is no source, even if its manifest says so.
func TestKeysRefused(t *testing.T) {
	e, err := Create(filepath.Join(t.TempDir(), "out"),
		ExportOptions{Memory: 1 << 20, Keys: func() Estimator { return new(counter) }})
	if err != nil {
		t.Fatal(err)
	}
	w, err := e.Part(0, record.AllTypes)
	if err == nil {
		err = fixtures.Pump(w, random(20, true)(record.Of(record.Set)))
	}
	if err := errors.Join(err, w.Close(), e.Finish(0)); err != nil {
		t.Fatal(err)
	}
	m, err := readManifest(e.dir)
	if err != nil || m.end.Records != m.end.Rows || m.end.Records == 0 {
		t.Fatalf("%+v: %v", m, err)
	}
	if err := opened(t, e.dir, m); err == nil || !strings.Contains(err.Error(), "rows of keys only; leave --keys-only out") {
		t.Error(err)
	}
	m.head.Rows = rowsElements
	if err := opened(t, e.dir, m); err == nil || !strings.HasPrefix(err.Error(), record.FindNewer+": ") ||
		!strings.Contains(err.Error(), `column "elements" of INT64`) {
		t.Error(err)
	}
}

// TestFormat checks what the format and a source say of themselves, with and without columns that are named.
func TestFormat(t *testing.T) {
	dir, _ := severalGroups(t)
	named, err := WithColumns([]string{"value=v", "key=user"}, record.Of(record.String))
	if err != nil {
		t.Fatal(err)
	}
	for f, want := range map[format.Format]string{New(): "", named: "key=user,type=(string),value=v"} {
		if got := f.(parquetFormat).SourceOptions(); got != want || f.Name() != "parquet" {
			t.Errorf("%s: %q, want %q", f.Name(), got, want)
		}
	}
	if _, err := named.Open(context.Background(), dir, &format.OpenOptions{}); err == nil || !strings.Contains(err.Error(), "leave --column out") {
		t.Error(err)
	}
	if _, err := WithColumns([]string{"user"}, record.AllTypes); err == nil {
		t.Error("a column without a use")
	}
	if v := New().Detect(&format.Evidence{Dir: dir}); v.Score != 100 || len(v.Why) != 1 || v.Why[0] != "there is a _manifest.jsonl" {
		t.Errorf("%+v", v)
	}
	if v := New().Detect(&format.Evidence{Dir: dir, Head: []byte("{")}); v.Score != 0 {
		t.Errorf("a file: %+v", v)
	}
	src := formattest.Open(t, New(), dir, &format.OpenOptions{}).(*source)
	if src.Layout() != format.LayoutFlat || !src.Sorted() || len(src.Keyspaces()) > 0 {
		t.Error(src.Layout(), src.Keyspaces())
	}
	if spans, err := src.Split("0", record.AllTypes, 1); err != nil || len(spans) != 1 || spans[0].Lo != nil ||
		spans[0].Hi != nil {
		t.Errorf("%v: %v", spans, err)
	}
	src.dbs = append(src.dbs, "1")
	if src.Layout() != format.LayoutDB {
		t.Error(src.Layout())
	}
}
