package inspect

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"kvferry/internal/pass/filter"
	"kvferry/internal/testkit/fake"
	"kvferry/record"
)

// fileOf returns the fingerprint of a scan after encoding and decoding it as a file.
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

func TestFingerprintSaysWhatItIsOf(t *testing.T) {
	s := scanOf(fake.Named("0", "1"))
	s.Selection = &filter.Selection{Filter: filter.Filter{Types: record.Of(record.Set), DBs: []string{"1"}}, KeepExpired: true}
	f := fileOf(t, s)
	if f.Expired != "keep" || len(f.Filters) != 2 || f.Filters["type"][0] != "set" || f.Filters["db"][0] != "1" ||
		len(f.Databases) != 2 || f.Databases[1] != "1" {
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
		_, err := ReadFingerprint(strings.NewReader(head + text + part + "}"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	whole := head + "," + part + "}"
	one := part[len(`"parts":[`) : len(part)-1]
	twice := head + `,"parts":[` + one + "," + one + "]}"
	for text, want := range map[string]string{
		whole + "\n" + whole: "something follows it",
		whole + "x":          "trailing data: invalid character 'x'",
		twice:                `database "0": set occurs twice`,
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

// TestFingerprintParts checks the databases and parts that a comparison takes from a file.
func TestFingerprintParts(t *testing.T) {
	f := fileOf(t, scanOf(fake.Named("0", "1")))
	d := f.Digests()
	if f.Records() != 4 || len(d) != 4 || d[record.Part{DB: "1", Type: record.Set}].Records != 1 ||
		!slices.Equal(f.DatabaseNames(false), []string{"0", "1"}) {
		t.Errorf("%d records, %v, databases %q", f.Records(), d, f.DatabaseNames(false))
	}
	f.Filters = filter.Conditions{"db": {"1"}}
	f.Parts = f.Parts[2:]
	if got := f.DatabaseNames(true); !slices.Equal(got, []string{"1"}) {
		t.Errorf("selected: %q", got)
	}
}

func TestFingerprintRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"": "it is empty", "5": "not a fingerprint", "{}": "it has no kvferry_fingerprint",
		`{"kvferry_fingerprint":3}`: "fingerprint of version 3",
		`{"kvferry_fingerprint":1}`: `expiry_unit "": want ms or s`,
		`{"kvferry_fingerprint":1,"expiry_unit":"s","parts":[{"db":"0","type":"heap"}]}`: `database "0"`,
		`{"kvferry_fingerprint":2,"expiry_unit":"ms","expired":"sometimes"}`:             "want drop or keep",
	} {
		if _, err := ReadFingerprint(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
