package inspect

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"kvferry/inspect/internal/fake"
	"kvferry/internal/filter"
	"kvferry/record"
)

// fileOf takes the fingerprint of what a scan reads, through the form of the file.
func fileOf(t *testing.T, s *Scan) *FingerprintFile {
	t.Helper()
	sum, err := Fingerprint(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(s.File(sum))
	if err != nil {
		t.Fatal(err)
	}
	f, err := ReadFingerprint(bytes.NewReader(data))
	if err != nil {
		t.Fatalf("%v: %s", err, data)
	}
	return f
}

// check compares a dataset with a file, as lines.
func check(t *testing.T, f *FingerprintFile, s *Scan, m DBMap) (out []string) {
	t.Helper()
	pairs, err := f.Match(s, m)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range f.Compare(fileOf(t, s), pairs) {
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
	// Without a map they are other databases.
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
	// A scan selects by the file's names.
	only := func(s *fake.Source, db string) *Scan {
		scan := scanOf(s)
		scan.Selection = &filter.Selection{Filter: filter.Filter{DBs: []string{db}}}
		return scan
	}
	one := fileOf(t, only(fake.Named("0", "bar"), "bar"))
	if got := check(t, one, only(fake.Named("0", "2"), "bar"), dbMap(t, "bar=2 0=0")); got != nil || len(one.Parts) != 2 {
		t.Errorf("one of the databases: %q", got)
	}
	if _, err := one.Match(scanOf(fake.Named("0", "2")), dbMap(t, "x=2")); err == nil || !strings.Contains(err.Error(), `no database "x" in the file: want "0" or "bar"`) {
		t.Errorf("a name that the file does not have: %v", err)
	}
}

func TestFingerprintSaysWhatItIsOf(t *testing.T) {
	s := scanOf(fake.Named("0", "1"))
	s.Selection = &filter.Selection{Filter: filter.Filter{Types: record.Of(record.Set), DBs: []string{"1"}}, KeepExpired: true}
	f := fileOf(t, s)
	if f.Expired != "keep" || len(f.Filters) != 2 || f.Filters["type"][0] != "set" || f.Filters["db"][0] != "1" || len(f.Databases) != 2 || f.Databases[1] != "1" {
		t.Errorf("%+v", f)
	}
	if f := fileOf(t, scanOf(fake.Named("0"))); f.Expired != "drop" || len(f.Filters) != 0 {
		t.Errorf("%+v", f)
	}
}

func TestFingerprintFiles(t *testing.T) {
	const head = `{"kvferry_fingerprint":1,"format":"nemo","expiry_unit":"s","now_ms":5`
	const part = `"parts":[{"db":"0","type":"set","records":1,"elements":2,"digest_ms":"00000000000000000000000000000001","digest_s":"00000000000000000000000000000002"}]`
	old, err := ReadFingerprint(strings.NewReader(head + "," + part + "}"))
	if err != nil || old.Expired != "" || old.Filters != nil || !slices.Equal(old.DatabaseNames(true), []string{"0"}) {
		t.Errorf("a file of before: %+v, %v", old, err)
	}
	for text, want := range map[string]string{
		`,"expired":"perhaps",`:                       `expired "perhaps": want drop or keep`,
		`,"expired":"drop","filters":{"size":["5"]},`: `filter "size" is not known`,
		`,"filters":5,`:                               "not a fingerprint",
	} {
		if _, err := ReadFingerprint(strings.NewReader(head + text + part + "}")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	whole := head + "," + part + "}"
	one := part[len(`"parts":[`) : len(part)-1]
	twice := head + `,"parts":[` + one + "," + one + "]}"
	for text, want := range map[string]string{
		whole + "\n" + whole: "something follows it",
		whole + "x":          "trailing data: invalid character 'x'",
		twice:                `database "0": set is there twice`,
	} {
		if _, err := ReadFingerprint(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write([]byte(whole)); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	for cut, want := range map[int]bool{0: true, 4: false, 8: false} {
		r, err := gzip.NewReader(bytes.NewReader(packed.Bytes()[:packed.Len()-cut]))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ReadFingerprint(r); (err == nil) != want {
			t.Errorf("%d bytes less of a compressed file: %v", cut, err)
		}
	}
}
