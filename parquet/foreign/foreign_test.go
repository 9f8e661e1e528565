package foreign_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	parquetgo "github.com/parquet-go/parquet-go"

	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/internal/testkit/formattest"
	"kvferry/parquet"
	"kvferry/record"
	"kvferry/store"
)

const simple = record.TypeSet(1<<record.String | 1<<record.Hash | 1<<record.List | 1<<record.Set | 1<<record.ZSet)

func mapped(t testing.TB, types record.TypeSet, uses ...string) format.Format {
	t.Helper()
	f, err := parquet.WithColumns(uses, types)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// random returns records of the types that files of other programs have.
func random(types record.TypeSet) record.Reader {
	return fixtures.Records(5, 150, fixtures.Options{DB: "0", Types: types & simple, NaN: true, Expired: true, Short: true})
}

// TestRoundTrip reads an export without its manifest, as another program would have written it, by columns
// that are the type's directory among others.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "out")
	e, err := parquet.Create(dir, parquet.ExportOptions{Now: fixtures.Clock, Memory: 1})
	if err != nil {
		t.Fatal(err)
	}
	for n, typ := range simple.Types() {
		w, err := e.Part(n, record.Of(typ))
		if err == nil {
			err = fixtures.Pump(w, random(record.Of(typ)))
		}
		if err != nil || w.Close() != nil {
			t.Fatal(err)
		}
	}
	if e.Finish(0) != nil || os.Remove(filepath.Join(dir, parquet.ManifestName)) != nil {
		t.Fatal("not finished")
	}
	var uses []string
	for _, name := range []string{"db", "type", "key", "expire_at", "index", "field", "value", "member", "score", "field_expire_at"} {
		uses = append(uses, name+"="+name)
	}
	f := mapped(t, 0, uses...)
	for _, memory := range []int64{1 << 30, 1} {
		src := formattest.Open(t, f, dir, &format.OpenOptions{})
		n, size := src.(format.Filed).Files()
		if n != 5 || size < 1000 || len(src.Keyspaces()) > 0 || len(src.Extra()) > 0 || len(src.Where("0", nil)) != 5 {
			t.Error(n, size)
		}
		if text := f.(interface{ SourceOptions() string }).SourceOptions(); !strings.HasPrefix(text, "db=db,expire_at=expire_at,field=field,") {
			t.Error(text)
		}
		if src.Types("0") != simple || src.Layout() != format.LayoutFlat || src.Size("0", simple) == 0 || !src.Sorted() {
			t.Fatal(src.Types("0"), src.Layout(), src.Size("0", simple))
		}
		formattest.CheckClean(t, src, memory, random, record.Copied, record.Expired)
		spans, err := src.Split("0", simple, 9)
		if err != nil || len(spans) < 5 {
			t.Fatalf("%d spans, %v", len(spans), err)
		}
		env := &format.Env{Now: fixtures.Clock, Ledger: new(record.Ledger)}
		var all record.Fingerprint
		for _, s := range spans {
			all.Merge(formattest.Sum(t, formattest.RecordsOf(t, src, "0", simple, s, env)))
		}
		whole := formattest.Sum(t, formattest.RecordsOf(t, src, "0", simple, format.Span{}, env))
		formattest.CheckEqual(t, &all, whole, false)
	}
}

// row is a row of another program.
type row struct {
	K *string    `parquet:"k,optional"`
	F *string    `parquet:"f,optional"`
	V *string    `parquet:"v,optional"`
	N int64      `parquet:"n"`
	S float64    `parquet:"s"`
	E *time.Time `parquet:"e,optional,timestamp(microsecond)"`
	T *string    `parquet:"t,optional"`
	D string     `parquet:"d"`
}

// write writes rows to a file.
func write(t testing.TB, path string, rows ...row) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := parquetgo.WriteFile(path, rows); err != nil {
		t.Fatal(err)
	}
}

// at returns a row; - is null.
func at(k, f, v string, n int64) row {
	text := func(s string) *string {
		if s == "-" {
			return nil
		}
		return &s
	}
	return row{K: text(k), F: text(f), V: text(v), N: n, S: float64(n) / 2, T: text(f), D: fmt.Sprint(n % 2)}
}

// say returns the records of all databases as lines, and the findings.
func say(t testing.TB, f format.Format, dir string, o store.Options) (lines string, findings []string) {
	t.Helper()
	src, err := f.Open(context.Background(), dir, &format.OpenOptions{Options: o})
	if err != nil {
		return "", []string{err.Error()}
	}
	defer src.Close()
	var l record.Ledger
	env := &format.Env{Now: fixtures.Clock, Ledger: &l, Report: func(f record.Finding) {
		findings = append(findings, fmt.Sprintf("%s %q: %s", f.Kind, f.Key, f.Detail))
	}}
	for _, db := range src.Databases() {
		r := formattest.RecordsOf(t, src, db, record.AllTypes, format.Span{}, env)
		for {
			h, err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				return lines, append(findings, err.Error())
			}
			lines += fmt.Sprintf("%s %s %s %d:", db, h.Type, h.Key, h.ExpireMS)
			for {
				elems := make([]record.Element, 2)
				n, err := r.Read(elems)
				for _, e := range elems[:n] {
					lines += fmt.Sprintf(" %s=%s", e.Name, e.Value)
					if h.Type == record.ZSet {
						lines += fmt.Sprint(e.Score)
					}
				}
				if err != nil {
					break
				}
			}
			lines += "\n"
		}
		r.Close()
	}
	formattest.CheckLedger(t, &l)
	for _, name := range slices.Sorted(maps.Keys(l.Snapshot())) {
		lines += name + " " + formattest.Classes(&l, name) + "\n"
	}
	return lines, findings
}

// TestRows reads rows in any order, and names those that are no part of a record.
func TestRows(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "b.parquet"), at("k2", "f", "v9", 9), at("-", "f", "v", 3), at("k1", "-", "v1", 5))
	late, early := time.UnixMilli(4e12), time.UnixMilli(-5)
	a := []row{at("k2", "f", "v1", 1), at("k1", "g", "v2", 2), at("k1", "g", "v2", 2), at("k1", "a", "-", 3)}
	a[1].E, a[2].E, a[3].E = &late, &late, &early
	write(t, filepath.Join(dir, "x=1", "a.parquet"), a...)
	write(t, filepath.Join(dir, "_skipped", "c.parquet"), at("no", "no", "no", 0))
	b, x := filepath.Join(dir, "b.parquet"), filepath.Join(dir, "x=1", "a.parquet")
	for _, c := range []struct {
		uses, want string
		findings   []string
	}{
		{"key=k field=f value=v expire_at=e", "0 hash k1 4000000000000: g=v2\n0 hash k2 0: f=v9\n0/hash malformed=4 index=1 copied=2\n", []string{
			fmt.Sprintf(`null-value "": row 2 of %s: column "k" is null; kvferry does not read the row`, b),
			fmt.Sprintf(`null-value "k1": row 3 of %s: column "f" is null; kvferry does not read the row`, b),
			fmt.Sprintf(`null-value "k1": row 4 of %s: column "v" is null; kvferry does not read the row`, x),
			`conflicting-rows "k2": a field has another value in 1 more row; kvferry reads the first`}},
		{"key=d member=f score=s", "0 zset 0 0: g=1\n0 zset 1 0: a=1.5 f=4.5\n0/zset malformed=3 index=1 copied=3\n", []string{
			fmt.Sprintf(`null-value "1": row 3 of %s: column "f" is null; kvferry does not read the row`, b),
			`conflicting-rows "1": a member has another value in 2 more rows; kvferry reads the first`}},
		{"key=d value=n index=n", "0 list 0 0: =2\n0 list 1 0: =1 =3 =5 =9\n0/list malformed=2 copied=5\n", []string{
			`conflicting-rows "0": an index has another value in 1 more row; kvferry reads the first`,
			`conflicting-rows "1": an index has another value in 1 more row; kvferry reads the first`}},
		{"key=d member=n", "0 set 0 0: 2=\n0 set 1 0: 1= 3= 5= 9=\n0/set index=2 copied=5\n", nil},
		{"key=d member=n expire_at=e", "0 set 0 4000000000000: 2=\n0 set 1 0: 1= 3= 5= 9=\n0/set malformed=1 index=1 copied=5\n", []string{
			`conflicting-rows "1": its rows differ in the expiry; kvferry reads the first`}},
		{"db=d key=k value=n", "0 string k1 0: =2\n1 string k1 0: =5\n1 string k2 0: =9\n0/string index=1 copied=1\n1/string malformed=3 copied=2\n", []string{
			fmt.Sprintf(`null-value "": row 2 of %s: column "k" is null; kvferry does not read the row`, b),
			`conflicting-rows "k1": the key has another value in 1 more row; kvferry reads the first`,
			`conflicting-rows "k2": the key has another value in 1 more row; kvferry reads the first`}},
	} {
		got, findings := say(t, mapped(t, 0, strings.Fields(c.uses)...), dir, store.Options{})
		if got != c.want || !slices.Equal(findings, c.findings) {
			t.Errorf("%s: %s%q, want %s%q", c.uses, got, findings, c.want, c.findings)
		}
	}
	if got, findings := say(t, mapped(t, record.Of(record.List), "key=x", "value=v"), x, store.Options{}); got != "" ||
		len(findings) == 0 {
		t.Errorf("a file without its directory: %s%q", got, findings)
	}
	if got, _ := say(t, mapped(t, record.Of(record.List), "key=d", "value=n"), x, store.Options{}); got != "0 list 0 0: =2 =2\n0 list 1 0: =1 =3\n0/list copied=4\n" {
		t.Errorf("a list in the order of rows: %s", got)
	}
}

// TestRefused refuses mappings and directories by name.
func TestRefused(t *testing.T) {
	t.Parallel()
	for uses, want := range map[string]string{
		"key": "write what the column is for", "kex=a": `unknown use of a column "kex"`, "key=a key=b": "key is given twice", "value=a": "name the column of keys",
		"key=a field=b": "rows of type hash need --column value=NAME", "key=a value=b score=c": "rows of type zset need --column member=NAME",
		"key=a member=b value=c": "--column value=c: type set has none", "key=a": "rows of type string need --column value=NAME",
	} {
		if _, err := parquet.WithColumns(strings.Fields(uses), 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", uses, err, want)
		}
	}
	if _, err := parquet.WithColumns([]string{"key=a", "value=b"}, record.Of(record.Stream)); err == nil ||
		!strings.Contains(err.Error(), "are strings, hashes") {
		t.Error(err)
	}
	dir := t.TempDir()
	for path, want := range map[string]string{"a/_temporary/x.parquet": "has not ended", "b/_delta_log/x.parquet": "Delta Lake",
		"c/_x.parquet": "no files *.parquet",
		"d/x.parquet":  `no column "kk"`} {
		write(t, filepath.Join(dir, path), at("k", "string", "v", 1))
		_, err := mapped(t, 0, "key=kk", "value=v").Open(context.Background(), filepath.Join(dir, path[:1]),
			&format.OpenOptions{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
	for uses, want := range map[string]string{"key=k value=v expire_at=n": "expire_at must be a timestamp or date",
		"key=k member=v score=f": "score must be a number",
		"key=k value=v index=s":  "index must be a signed integer", "key=k value=v type=v": `unknown type "v"`, "key=k type=t": "rows of type string need --column value=NAME",
		"key=k value=v db=nodb": `no column "nodb"`} {
		_, err := mapped(t, 0, strings.Fields(uses)...).Open(context.Background(), filepath.Join(dir, "d"), &format.OpenOptions{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", uses, err, want)
		}
	}
	write(t, filepath.Join(dir, "e", "x.parquet"), at("k", "-", "v", 1))
	for _, uses := range []string{"key=k value=v type=f", "key=k value=v db=f"} {
		_, err := mapped(t, 0, strings.Fields(uses)...).Open(context.Background(), filepath.Join(dir, "e"), &format.OpenOptions{})
		if err == nil || !strings.Contains(err.Error(), "row 1: column \"f\" is null") {
			t.Errorf("%s: %v", uses, err)
		}
	}
}

// TestDamage: damage in a row group ends the reading, or costs that row group with a finding.
func TestDamage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.parquet"), at("k1", "f", "v1", 1))
	write(t, filepath.Join(dir, "b.parquet"), at("k2", "f", "v2", 1))
	path := filepath.Join(dir, "a.parquet")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f := mapped(t, 0, "key=k", "value=v")
	lost := 0
	for i := 4; i < len(whole); i += 3 {
		b := slices.Clone(whole)
		b[i] ^= 0xff
		if err := os.WriteFile(path, b, 0o666); err != nil {
			t.Fatal(err)
		}
		lines, findings := say(t, f, dir, store.Options{Salvage: true})
		if !strings.Contains(lines, "0 string k2 0: =v2\n") && !strings.Contains(fmt.Sprint(findings), "no column") {
			t.Errorf("byte %d: %s%q", i, lines, findings)
		}
		if !strings.Contains(lines, "k1 0: =v1") && len(findings) == 0 {
			lost++
		}
	}
	if lost > 0 {
		t.Errorf("%d silent losses", lost)
	}
	b := slices.Clone(whole)
	b[20] ^= 0xff
	if err := os.WriteFile(path, b, 0o666); err != nil {
		t.Fatal(err)
	}
	src, err := f.Open(context.Background(), dir, &format.OpenOptions{})
	if err == nil {
		_, err = src.Records(context.Background(), "0", simple, format.Span{}, &format.Env{Ledger: new(record.Ledger)})
	}
	if err == nil || !strings.Contains(err.Error(), "a.parquet") {
		t.Error(err)
	}
}
