package compare

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"kvferry/inspect"
	"kvferry/internal/pass/filter"
	"kvferry/internal/testkit/fake"
	"kvferry/record"
)

// fileOf returns the fingerprint of a scan after encoding and decoding it as a file.
func fileOf(t *testing.T, s *inspect.Scan) *inspect.FingerprintFile {
	t.Helper()
	sum, err := inspect.Fingerprint(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(s.File(sum))
	if err != nil {
		t.Fatal(err)
	}
	f, err := inspect.ReadFingerprint(bytes.NewReader(data))
	if err != nil {
		t.Fatalf("%v: %s", err, data)
	}
	return f
}

// check compares a dataset with a fingerprint file and returns the differences as lines.
func check(t *testing.T, f *inspect.FingerprintFile, s *inspect.Scan, m DBMap) (out []string) {
	t.Helper()
	pairs, err := Match(f, s, m)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range Fingerprints(f, fileOf(t, s), pairs) {
		out = append(out, d.String())
	}
	return out
}

func TestFingerprintMapped(t *testing.T) {
	file := fileOf(t, scanOf(fake.Named("0", "bar\xff", "foo")))
	if got := check(t, file, scanOf(fake.Named("0", "2", "3")), dbMap(t, "bar\xff=2 foo=3")); got != nil {
		t.Errorf("of a copy: %q", got)
	}
	other := fake.Named("0", "2", "3")
	other.Held["2"][0] = fake.Rec(record.String, "k", fake.Value("other")).In("2")
	other.Held["3"] = other.Held["3"][:1]
	got := check(t, file, scanOf(other), dbMap(t, "bar\xff=2 foo=3"))
	if len(got) != 2 || !strings.HasPrefix(got[0], "database bar\xff (2) string: file: digest_s ") ||
		!strings.Contains(got[0], ", dataset: digest_s ") ||
		got[1] != "database foo (3) set: file: 1 record and 1 element, dataset: 0 records and 0 elements" {
		t.Errorf("%q", got)
	}
	// Without a map, they are different databases.
	got = check(t, fileOf(t, scanOf(fake.Named("0", "a"))), scanOf(fake.Named("0", "1")), nil)
	if want := []string{
		"database a string: file: 1 record and 1 element, dataset: 0 records and 0 elements",
		"database a set: file: 1 record and 1 element, dataset: 0 records and 0 elements",
		"database 1 string: file: 0 records and 0 elements, dataset: 1 record and 1 element",
		"database 1 set: file: 0 records and 0 elements, dataset: 1 record and 1 element"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if got := check(t, fileOf(t, scanOf(fake.Named("a"))), scanOf(fake.Named("1")), nil); got != nil {
		t.Errorf("the only databases are not matched: %q", got)
	}
	// The selection uses the names in the file.
	only := func(s *fake.Source, db string) *inspect.Scan {
		scan := scanOf(s)
		scan.Selection = &filter.Selection{Filter: filter.Filter{DBs: []string{db}}}
		return scan
	}
	one := fileOf(t, only(fake.Named("0", "bar"), "bar"))
	if got := check(t, one, only(fake.Named("0", "2"), "bar"), dbMap(t, "bar=2 0=0")); got != nil || len(one.Parts) != 2 {
		t.Errorf("one of the databases: %q", got)
	}
	if _, err := Match(one, scanOf(fake.Named("0", "2")), dbMap(t, "x=2")); err == nil || !strings.Contains(err.Error(), `no database "x" in the file: want "0" or "bar"`) {
		t.Errorf("a name that the file does not have: %v", err)
	}
}
