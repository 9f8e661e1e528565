package inspect

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"kvferry/internal/pass"
	"kvferry/internal/testkit/fake"
)

// partOf returns the report of a part after encoding and decoding it.
func partOf(t *testing.T, k, n int) *PartFile {
	t.Helper()
	s := scanOf(fake.Named("0", "1"))
	s.Share = pass.Part{K: k, N: n}
	f := &PartFile{Command: []string{"fingerprint"}, Tool: "1", Source: "src"}
	_, err := f.Fingerprint(context.Background(), s)
	data, jerr := json.Marshal(f)
	if err != nil || jerr != nil {
		t.Fatal(err, jerr)
	}
	out, err := ReadPart(bytes.NewReader(data))
	if err != nil {
		t.Fatalf("%v: %s", err, data)
	}
	out.Path = "part"
	return out
}

// TestMergeParts: the sums of all parts are those of one run, each part counts once, and missing ones are named.
func TestMergeParts(t *testing.T) {
	want := fileOf(t, scanOf(fake.Named("0", "1")))
	for _, n := range []int{1, 2, 5} {
		var files []*PartFile
		tasks := 0
		for k := 1; k <= n; k++ {
			f := partOf(t, k, n)
			files = append(files, f, f)
			tasks += f.Tasks
		}
		parts, missing, err := Together(files)
		if err != nil || missing != nil || tasks != files[0].AllTasks || len(parts) != n {
			t.Errorf("%d parts: %d, missing %v, %v, %d tasks", n, len(parts), missing, err, tasks)
		}
		if got, err := MergeFingerprints(parts); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%d parts: %+v, %v", n, got, err)
		}
		if _, missing, err = Together(files[2*n-1:]); err != nil || len(missing) != n-1 || slices.Contains(missing, n) {
			t.Errorf("%d parts: missing %v, %v", n, missing, err)
		}
	}
}

// TestMergePartsRefused: reports of different runs, and a part with two results, are not added up.
func TestMergePartsRefused(t *testing.T) {
	for want, change := range map[string]func(f *PartFile){
		"source":             func(f *PartFile) { f.Source = "other" },
		"version of kvferry": func(f *PartFile) { f.Tool = "2" },
		"number of parts":    func(f *PartFile) { f.Parts = 3 },
		"--now":              func(f *PartFile) { f.Now++ },
		"set of filters":     func(f *PartFile) { f.Filters = map[string][]string{"db": {"1"}} },
		"command line":       func(f *PartFile) { f.Command = append(f.Command, "-q") },
		"files":              func(f *PartFile) { f.Files = "x" },
		"plan":               func(f *PartFile) { f.AllTasks++ },
		"different results":  func(f *PartFile) { f.Part = 1 },
		"both are part":      func(f *PartFile) { f.Part, f.Errors = 1, true },
	} {
		a, b := partOf(t, 1, 2), partOf(t, 2, 2)
		if reflect.DeepEqual(a.Result, b.Result) {
			t.Fatal("nothing to mix up")
		}
		change(b)
		if _, _, err := Together([]*PartFile{a, b}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	good, err := json.Marshal(partOf(t, 1, 2))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range [][3]string{
		{`"kvferry_part":2`, `"kvferry_part":0`, "no kvferry_part"}, {`"kvferry_part":2`, `"kvferry_part":3`, "knows 2"},
		{`["fingerprint"]`, `[]`, "no command"}, {`"part":1`, `"part":3`, "not a part"}, {`{"`, `[{"`, "not the report"},
	} {
		text := strings.Replace(string(good), c[0], c[1], 1)
		if _, err := ReadPart(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), c[2]) {
			t.Errorf("%s: %v", c[1], err)
		}
	}
	bad := partOf(t, 1, 1)
	bad.Result = []byte(`{"fingerprint":1}`)
	if _, err := MergeFingerprints([]*PartFile{bad}); !errors.Is(err, ErrNotFingerprint) {
		t.Error(err)
	}
	if _, err := ReadPart(strings.NewReader(string(good) + "{}")); err == nil || !strings.Contains(err.Error(), "something follows") {
		t.Error(err)
	}
}
