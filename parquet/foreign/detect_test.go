package foreign_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	parquetgo "github.com/parquet-go/parquet-go"

	"kvferry/record"
	"kvferry/store"
)

// TestFound reads files that were read wrongly once.
func TestFound(t *testing.T) {
	t.Parallel()
	trues := ""
	for i := range 16 {
		trues += fmt.Sprintf("0 string %d 0: =true\n", i)
	}
	for _, c := range []struct {
		file, uses, want string
		findings         []string
	}{
		{"bool-runs", "key=k value=v", trues, nil},
		{"delta-one-row", "key=s value=i", "0 string s0 0: =7\n", nil},
		{"delta-one-row", "key=s value=l", "0 string s0 0: =7\n", nil},
		{"int-score", "key=k member=m score=s", "0 zset a 0: m1=9.007199254740992e+15 m2=-9.007199254740992e+15 m3=9.223372036854776e+18\n", []string{
			`score-precision "a": member "m1" has score 9007199254740993, read as 9007199254740992`,
			`score-precision "a": member "m2" has score -9007199254740993, read as -9007199254740992`,
			`score-precision "a": member "m3" has score 9223372036854775807, read as 9223372036854776000`}},
		{"null-index", "key=k value=v index=i", "0 list l 0: =y =x\n", []string{
			`null-value "l": row 3 of testdata/null-index.parquet: column "i" is null; kvferry does not read the row`}},
		{"leaf-map", "key=k member=m score=sc", "", []string{
			`testdata/leaf-map.parquet: column "k" is BYTE_ARRAY of converted type 2, for which there is no text: write it as a string`}},
	} {
		got, findings := say(t, mapped(t, 0, strings.Fields(c.uses)...), filepath.Join("testdata", c.file+".parquet"),
			store.Options{})
		got = records(got)
		if len(got) > 0 && sortedLines(got) != sortedLines(c.want) || len(got) == 0 && c.want != "" ||
			!slices.Equal(findings, c.findings) {
			t.Errorf("%s: %s%q, want %s%q", c.file, got, findings, c.want, c.findings)
		}
	}
	got, findings := say(t, mapped(t, 0, "key=k", "value=v"), filepath.Join("testdata", "interval.parquet"), store.Options{})
	if !strings.Contains(got, "0 string k0000 0: =PT0S\n0 string k0001 0: =P1D\n") || len(findings) > 0 {
		t.Errorf("%.200s%q", got, findings)
	}
}

// records returns the lines of records, without those of the ledger.
func records(lines string) (out string) {
	for line := range strings.Lines(lines) {
		if strings.Contains(line, ": ") {
			out += line
		}
	}
	return out
}

func sortedLines(s string) string {
	lines := strings.Split(s, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// TestListIndex: positions of a list are signed, and need not begin at 0.
func TestListIndex(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.parquet"), at("k", "c", "c", 3), at("k", "b", "b", -1), at("k", "d", "d", 1<<40),
		at("k", "a", "a", -1<<40))
	got, findings := say(t, mapped(t, 0, "key=k", "value=v", "index=n"), dir, store.Options{})
	if records(got) != "0 list k 0: =a =b =c =d\n" || len(findings) > 0 {
		t.Errorf("%s%q", got, findings)
	}
}

// TestPartitions: columns that are directories, one of them null, and one that is given twice; a file without a suffix
// that is named.
func TestPartitions(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "x=7", "a.parquet"), at("k", "f", "v", 1))
	write(t, filepath.Join(dir, "x=__HIVE_DEFAULT_PARTITION__", "a.parquet"), at("k", "f", "v", 1))
	write(t, filepath.Join(dir, "x=a%2Fb", "a.parquet"), at("k", "f", "v", 1))
	null := filepath.Join(dir, "x=__HIVE_DEFAULT_PARTITION__", "a.parquet")
	got, findings := say(t, mapped(t, 0, "key=x", "value=v"), dir, store.Options{})
	want := []string{fmt.Sprintf(`null-value "": row 1 of %s: column "x" is null; kvferry does not read the row`, null)}
	if records(got) != "0 string 7 0: =v\n0 string a/b 0: =v\n" || !slices.Equal(findings, want) {
		t.Errorf("%s%q", got, findings)
	}
	if _, findings := say(t, mapped(t, 0, "key=k", "value=v", "db=x"), dir, store.Options{}); len(findings) != 1 ||
		!strings.Contains(findings[0], `column "x" is null: a row needs a db`) {
		t.Errorf("%q", findings)
	}
	twice := t.TempDir()
	write(t, filepath.Join(twice, "x=1", "x=2", "a.parquet"), at("k", "f", "v", 1))
	if _, findings := say(t, mapped(t, 0, "key=x", "value=v"), twice, store.Options{}); len(findings) != 1 ||
		!strings.Contains(findings[0], `two directories have the name "x="`) {
		t.Errorf("%q", findings)
	}
	plain := filepath.Join(twice, "part-0")
	if err := os.Rename(filepath.Join(twice, "x=1", "x=2", "a.parquet"), plain); err != nil {
		t.Fatal(err)
	}
	if got, findings := say(t, mapped(t, 0, "key=k", "value=v"), plain, store.Options{}); records(got) != "0 string k 0: =v\n" ||
		len(findings) > 0 {
		t.Errorf("%s%q", got, findings)
	}
}

// TestNoRows: a file without rows is no reason to refuse those beside it.
func TestNoRows(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.parquet"))
	write(t, filepath.Join(dir, "b.parquet"), at("k", "f", "v", 1))
	got, findings := say(t, mapped(t, 0, "key=k", "value=v"), dir, store.Options{})
	if records(got) != "0 string k 0: =v\n" || len(findings) > 0 {
		t.Errorf("%s%q", got, findings)
	}
}

// nested is a row with columns that are not one value.
type nested struct {
	K string   `parquet:"k"`
	L []string `parquet:"l,list"`
	R []int32  `parquet:"r"`
	S struct {
		A *int64    `parquet:"a,optional"`
		B []float64 `parquet:"b,list"`
		C []byte    `parquet:"c"`
	} `parquet:"s"`
	M map[string]bool `parquet:"m"`
	G []struct {
		X int32  `parquet:"x"`
		Y string `parquet:"y"`
	} `parquet:"g"`
}

// TestNested reads lists, maps and groups as JSON.
func TestNested(t *testing.T) {
	t.Parallel()
	rows := make([]nested, 3)
	one := int64(1)
	rows[0].K, rows[1].K, rows[2].K = "a", "b", "c"
	rows[0].L, rows[0].R, rows[0].S.A, rows[0].S.B, rows[0].S.C = []string{"x", "\"\n"}, []int32{-1, 2}, &one, []float64{0.5,
		1e300}, []byte{0xff}
	rows[1].M = map[string]bool{"t": true}
	rows[2].G = []struct {
		X int32  `parquet:"x"`
		Y string `parquet:"y"`
	}{{1, "p"}, {2, "q"}}
	path := filepath.Join(t.TempDir(), "a.parquet")
	if err := parquetgo.WriteFile(path, rows); err != nil {
		t.Fatal(err)
	}
	for column, want := range map[string][3]string{
		"l":   {`["x","\"\n"]`, "[]", "[]"},
		"r":   {"[-1,2]", "[]", "[]"},
		"s":   {`{"a":1,"b":[0.5,1e+300],"c":{"base64":"/w=="}}`, `{"a":null,"b":[],"c":""}`, `{"a":null,"b":[],"c":""}`},
		"s.b": {"[0.5,1e+300]", "[]", "[]"},
		"m":   {"{}", `{"t":true}`, "{}"},
		"g":   {"[]", "[]", `[{"x":1,"y":"p"},{"x":2,"y":"q"}]`},
	} {
		got, findings := say(t, mapped(t, 0, "key=k", "value="+column), path, store.Options{})
		text := fmt.Sprintf("0 string a 0: =%s\n0 string b 0: =%s\n0 string c 0: =%s\n", want[0], want[1], want[2])
		if records(got) != strings.ReplaceAll(text, "\\\"\n", `\"\n`) || len(findings) > 0 {
			t.Errorf("%s: %s%q, want %s", column, got, findings, text)
		}
	}
	for column, want := range map[string]string{"l.list.element": "is within a list", "g.x": "is within a list", "s.z": "no column"} {
		_, findings := say(t, mapped(t, 0, "key=k", "value="+column), path, store.Options{})
		if len(findings) != 1 || !strings.Contains(findings[0], want) {
			t.Errorf("%s: %q", column, findings)
		}
	}
	if _, findings := say(t, mapped(t, record.Of(record.ZSet), "key=k", "member=k", "score=r"), path,
		store.Options{}); len(findings) != 1 || !strings.Contains(findings[0], "score must be a number") {
		t.Errorf("%q", findings)
	}
}
