package parquet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	parquetgo "github.com/parquet-go/parquet-go"
	"github.com/zeebo/xxh3"

	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/internal/testkit/formattest"
	"kvferry/parquet/columns"
	"kvferry/record"
	"kvferry/store"
)

// export writes records as a dataset, in parts of the given readers.
func export(t testing.TB, memory int64, text string, parts ...record.Reader) (string, error) {
	t.Helper()
	return exportAs(t, ExportOptions{Memory: memory, Text: text}, parts...)
}

// exportAs is export with options.
func exportAs(t testing.TB, o ExportOptions, parts ...record.Reader) (string, error) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "out")
	o.Creator, o.Source, o.Now = "test", "test", fixtures.Clock
	e, err := Create(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	for n, r := range parts {
		w, err := e.Part(n, record.AllTypes)
		if err != nil {
			t.Fatal(err)
		}
		if err := fixtures.Pump(w, r); err != nil {
			w.Abort()
			return dir, errors.Join(err, e.Abort())
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return dir, e.Finish(0)
}

// random returns records of all kinds.
func random(n int, short bool) func(record.TypeSet) record.Reader {
	return func(types record.TypeSet) record.Reader {
		return fixtures.Records(5, n, fixtures.Options{DB: "0", Types: types, NaN: true, Expired: true, Short: short})
	}
}

// byType returns a reader for each type.
func byType(read func(record.TypeSet) record.Reader) (out []record.Reader) {
	for _, t := range record.RedisTypes.Types() {
		out = append(out, read(record.Of(t)))
	}
	return out
}

// sum returns the fingerprint of what byType reads.
func sum(t testing.TB, read func(record.TypeSet) record.Reader) *record.Fingerprint {
	t.Helper()
	var f record.Fingerprint
	for _, r := range byType(read) {
		f.Merge(formattest.Sum(t, r))
	}
	return &f
}

// TestRoundTrip writes and reads random records, in one row group a type and in many, compressed in every way.
func TestRoundTrip(t *testing.T) {
	for _, c := range []struct {
		memory      int64
		n           int
		compression string
	}{{1 << 30, 100, "zstd"}, {1, 60, "zstd"}, {1 << 20, 60, "snappy"}, {1 << 20, 60, "none"}} {
		read := random(c.n, false)
		dir, err := exportAs(t, ExportOptions{Memory: c.memory, Compression: c.compression}, byType(read)...)
		if err != nil {
			t.Fatal(err)
		}
		src := formattest.Open(t, New(), dir, &format.OpenOptions{Options: store.Options{Salvage: true}})
		formattest.CheckClean(t, src, 1<<20, read, record.Copied)
		checkSpans(t, src, read)
	}
}

// checkSpans reads the dataset in spans, and looks up keys.
func checkSpans(t *testing.T, src format.Source, read func(record.TypeSet) record.Reader) {
	t.Helper()
	spans, err := src.Split("0", record.AllTypes, 9)
	if err != nil || len(spans) < 2 {
		t.Fatalf("%d spans, %v", len(spans), err)
	}
	env := &format.Env{Now: fixtures.Clock, Ledger: new(record.Ledger)}
	var all record.Fingerprint
	for _, s := range spans {
		all.Merge(formattest.Sum(t, formattest.RecordsOf(t, src, "0", record.AllTypes, s, env)))
	}
	formattest.CheckEqual(t, &all, sum(t, read), false)
	r := record.Walk(record.Merge(byType(read)...))
	defer r.Close()
	for n := 0; ; n++ {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if n%60 > 0 || h.Keyless != record.Keyed {
			continue
		}
		found := formattest.RecordsOf(t, src, "0", record.Of(h.Type), format.KeySpan(h.Key), env)
		if got, err := found.Next(); err != nil || !bytes.Equal(got.Key, h.Key) {
			t.Fatalf("%s %q: %v, %v", h.Type, h.Key, got, err)
		}
		if got, err := found.Next(); err != io.EOF {
			t.Fatalf("%s %q is followed by %v, %v", h.Type, h.Key, got, err)
		}
		found.Close()
	}
	gone := formattest.RecordsOf(t, src, "0", record.AllTypes, format.KeySpan([]byte("no such key")), env)
	if h, err := gone.Next(); err != io.EOF {
		t.Errorf("%v, %v", h, err)
	}
	gone.Close()
}

// TestParts checks that files are numbered by type and part, whichever part is done first.
func TestParts(t *testing.T) {
	one := func(db, key string) record.Reader {
		r := fixtures.Records(1, 3, fixtures.Options{DB: db, Types: record.Of(record.String), Short: true})
		return &prefixed{r, key}
	}
	dir, err := export(t, 1<<20, "", one("0", "a"), one("0", "b"), one("1", "a"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := readManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range m.files {
		got = append(got, f.File+" "+string(f.DB)+" "+string(f.Groups[0].First[:1]))
	}
	want := []string{"type=string/part-00001.parquet 0 a", "type=string/part-00002.parquet 0 b", "type=string/part-00003.parquet 1 a"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	src := formattest.Open(t, New(), dir, &format.OpenOptions{})
	dbs := src.Databases()
	if !slices.Equal(dbs, []string{"0", "1"}) || src.Layout() != format.LayoutDB || src.Types("1") != record.Of(record.String) {
		t.Errorf("%q", dbs)
	}
}

// prefixed puts a prefix before keys.
type prefixed struct {
	record.Reader
	prefix string
}

func (p *prefixed) Next() (*record.Batch, error) {
	b, err := p.Reader.Next()
	if err != nil {
		return nil, err
	}
	for i := range b.Records {
		b.Records[i].Key = append([]byte(p.prefix), b.Records[i].Key...)
	}
	return b, nil
}

// TestText checks that bytes which are not UTF-8 are refused by name, or replaced and counted.
func TestText(t *testing.T) {
	r := func() record.Reader { return random(60, true)(record.RedisTypes) }
	dir, err := export(t, 1<<20, TextStrict, r())
	if err == nil || !strings.Contains(err.Error(), "is not UTF-8: leave --text out") {
		t.Error(err)
	}
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if entries, err := os.ReadDir(filepath.Dir(dir)); err != nil || len(entries) > 0 {
		t.Errorf("%v is left, %v", entries, err)
	}
	if dir, err = export(t, 1<<20, TextLossy, r()); err != nil {
		t.Fatal(err)
	}
	if _, err := New().Open(context.Background(), dir, &format.OpenOptions{}); err == nil || !strings.Contains(err.Error(), "leave --text=lossy out") {
		t.Errorf("keys were changed: %v", err)
	}
	if f := footer(t, "0", TextLossy); !f.Schema[1+colKey].ConvertedType.Valid {
		t.Error("keys are not declared as text")
	}
}

// TestLossyOrder: keys whose bytes were replaced may be out of order, so the row groups claim none.
func TestLossyOrder(t *testing.T) {
	for text, want := range map[string]int{"": 2, TextLossy: 0} {
		dir, _ := made(t, filepath.Join(t.TempDir(), "out"), ExportOptions{Memory: 1, Text: text}, func(w *part) {
			for _, key := range []string{"a\x80", "a\u0800", "b"} {
				h := record.Header{DB: "0", Type: record.String, Key: []byte(key)}
				if err := errors.Join(w.Begin(&h), w.Elements([]record.Element{{Value: []byte("v")}}), w.End()); err != nil {
					t.Fatal(err)
				}
			}
		})
		f, err := os.Open(filepath.Join(dir, "type=string", "part-00001.parquet"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		st, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		file, err := parquetgo.OpenFile(f, st.Size())
		if err != nil {
			t.Fatal(err)
		}
		if got := len(file.Metadata().RowGroups[0].SortingColumns); got != want {
			t.Errorf("--text=%s: sorted by %d columns, want %d", text, got, want)
		}
	}
}

// TestManyFiles writes several files in each of more than 10 parts, which end in the reverse order: files are numbered in key
// order, so that every key is found, and one hash without an order makes its own file alone one without.
func TestManyFiles(t *testing.T) {
	const parts, each = 12, 3
	dir := filepath.Join(t.TempDir(), "out")
	e, err := Create(dir, ExportOptions{Now: fixtures.Clock, Memory: 1})
	if err != nil {
		t.Fatal(err)
	}
	e.full = 0 // a record a file
	var writers []record.Writer
	for n := range parts {
		w, err := e.Part(n, record.Of(record.Hash))
		if err != nil {
			t.Fatal(err)
		}
		writers = append(writers, w)
		for i := range each {
			p, key := w.(*part), []byte(fmt.Sprintf("k%02d-%d", n, i))
			h := record.Header{DB: "0", Type: record.Hash, Key: key, ByName: n != 5 || i != 1}
			err := errors.Join(p.Begin(&h),
				p.Elements([]record.Element{{Name: []byte("b"), Value: key}, {Name: []byte("a"), Value: key}}), p.End())
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	slices.Reverse(writers)
	for _, w := range writers {
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Finish(0); err != nil {
		t.Fatal(err)
	}
	src := formattest.Open(t, New(), dir, &format.OpenOptions{}).(*source)
	if n := len(src.m.files); n != parts*each {
		t.Fatalf("%d files", n)
	}
	env := &format.Env{Now: fixtures.Clock, Ledger: new(record.Ledger)}
	for i := range src.m.files {
		key, line := fmt.Sprintf("k%02d-%d", i/each, i%each), &src.m.files[i]
		if want := partName("hash", i+1); line.File != want || string(line.Groups[0].First) != key || line.ByName != (key != "k05-1") {
			t.Errorf("file %d is %s from %s, by name: %v", i, line.File, line.Groups[0].First, line.ByName)
		}
		r := formattest.RecordsOf(t, src, "0", record.AllTypes, format.KeySpan([]byte(key)), env)
		if h, err := r.Next(); err != nil || string(h.Key) != key || h.ByName != (key != "k05-1") {
			t.Errorf("%s: %v, %v", key, h, err)
		}
		r.Close()
	}
}

// made writes records in database 0 with few buffers, and returns the directory and its manifest.
func made(t *testing.T, name string, o ExportOptions, write func(w *part)) (string, *manifest) {
	t.Helper()
	e, err := Create(name, o)
	if err != nil {
		t.Fatal(err)
	}
	w, err := e.Part(0, record.AllTypes)
	if err != nil {
		t.Fatal(err)
	}
	write(w.(*part))
	if err := errors.Join(w.Close(), e.Finish(0)); err != nil {
		t.Fatal(err)
	}
	m, err := readManifest(e.dir)
	if err != nil {
		t.Fatal(err)
	}
	return e.dir, m
}

// footer opens the only file of a dataset with a record of a database.
func footer(t *testing.T, db, text string) *columns.File {
	t.Helper()
	dir, _ := made(t, filepath.Join(t.TempDir(), "out"), ExportOptions{Memory: 1, Text: text}, func(w *part) {
		h := record.Header{DB: db, Type: record.Set, Key: []byte("é")}
		if err := errors.Join(w.Begin(&h), w.Elements([]record.Element{{Name: []byte("m")}}), w.End()); err != nil {
			t.Fatal(err)
		}
	})
	src := formattest.Open(t, New(), dir, &format.OpenOptions{}).(*source)
	if dbs := src.Databases(); !slices.Equal(dbs, []string{db}) {
		t.Errorf("%q", dbs)
	}
	f, err := src.file(&src.m.files[0])
	if err != nil {
		t.Fatal(err)
	}
	return f.cols
}

// TestDatabaseBytes checks that only a database whose name is UTF-8 is declared as text.
func TestDatabaseBytes(t *testing.T) {
	for db, text := range map[string]bool{"name": true, "\xff\x00": false} {
		if e := footer(t, db, "").Schema[1+colDB]; e.ConvertedType.Valid != text {
			t.Errorf("%q: %+v", db, e)
		}
	}
}

// TestTarget checks the names and permissions of directories.
func TestTarget(t *testing.T) {
	parent := t.TempDir()
	dir, _ := made(t, filepath.Join(parent, "out")+"/", ExportOptions{Memory: 1}, func(w *part) {
		pumped(t, w, record.Header{Type: record.Set, Key: []byte("k")}, record.Element{Name: []byte("m")})
	})
	if entries, err := os.ReadDir(parent); err != nil || len(entries) != 1 || dir != filepath.Join(parent, "out") {
		t.Errorf("%s: %v, %v", dir, entries, err)
	}
	out, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	if in, err := os.Stat(filepath.Join(dir, "type=set")); err != nil || in.Mode() != out.Mode() {
		t.Errorf("%v has %v, %v", out.Mode(), in, err)
	}
}

// noise returns bytes that do not compress, a few of which fill a small row group.
func noise(seed int) []byte {
	b := make([]byte, 20<<10)
	_, _ = rand.NewChaCha8([32]byte{byte(seed)}).Read(b)
	return b
}

// TestCutFirst looks up long keys that begin alike, of which the manifest has a part only, in files and row groups.
func TestCutFirst(t *testing.T) {
	key := func(i int) []byte { return fmt.Appendf(nil, "%0200d", i) }
	const n = 100
	dir, m := made(t, filepath.Join(t.TempDir(), "out"), ExportOptions{Memory: 1}, func(w *part) {
		w.e.full = 500 << 10
		for i := range n {
			pumped(t, w, record.Header{Type: record.String, Key: key(i)}, record.Element{Value: noise(i)})
		}
	})
	groups := 0
	for i := range m.files {
		groups += len(m.files[i].Groups)
		for _, g := range m.files[i].Groups {
			if len(g.First) != maxFirst {
				t.Errorf("%d bytes of a key", len(g.First))
			}
		}
	}
	if len(m.files) < 2 || groups < 10 {
		t.Fatalf("%d files, %d row groups", len(m.files), groups)
	}
	src := formattest.Open(t, New(), dir, &format.OpenOptions{})
	env := &format.Env{Now: fixtures.Clock}
	count := func(s format.Span) (got int) {
		r := formattest.RecordsOf(t, src, "0", record.AllTypes, s, env)
		defer r.Close()
		for {
			if _, err := r.Next(); err == io.EOF {
				return got
			} else if err != nil {
				t.Fatal(err)
			}
			got++
		}
	}
	for i := range n {
		if got := count(format.KeySpan(key(i))); got != 1 {
			t.Fatalf("key %d is there %d times", i, got)
		}
	}
	if low, high := count(format.Span{Hi: key(n / 3)}), count(format.Span{Lo: key(n / 3)}); low != n/3 || high != n-n/3 {
		t.Errorf("%d and %d records", low, high)
	}
}

// TestFooterDamage checks that a finding names all row groups of a file whose footer is damaged.
func TestFooterDamage(t *testing.T) {
	dir, m := severalGroups(t)
	line := &m.files[0]
	path := filepath.Join(dir, line.File)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[line.Tail+4] ^= 1
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	var told []string
	src := formattest.Open(t, New(), dir, &format.OpenOptions{Options: store.Options{Salvage: true}})
	formattest.Sum(t, formattest.Records(t, src, "0", &format.Env{Now: fixtures.Clock, Ledger: new(record.Ledger),
		Report: func(f record.Finding) { told = append(told, f.Detail) }}))
	want := fmt.Sprintf("rows of row groups 0 to %d are missing", len(line.Groups)-1)
	if len(told) != 1 || !strings.Contains(told[0], want) {
		t.Errorf("%q, want %s", told, want)
	}
}

// TestRefused checks directories that are no datasets, and targets that exist.
func TestRefused(t *testing.T) {
	dir := t.TempDir()
	if _, err := New().Open(context.Background(), dir, &format.OpenOptions{}); err == nil || !strings.Contains(err.Error(), "no _manifest.jsonl") {
		t.Error(err)
	}
	if v := New().Detect(&format.Evidence{Dir: dir}); v.Score != 0 {
		t.Error(v)
	}
	if _, err := Create(dir, ExportOptions{}); !errors.Is(err, fs.ErrExist) {
		t.Error(err)
	}
	if _, err := New().Create(context.Background(), dir, nil); err == nil || !strings.Contains(err.Error(), "kvferry dump") {
		t.Error(err)
	}
}

// pumped writes records with few elements.
func pumped(t *testing.T, to record.Writer, h record.Header, elems ...record.Element) {
	t.Helper()
	h.DB = "0"
	w := to.(*part)
	if err := errors.Join(w.Begin(&h), w.Elements(elems), w.End()); err != nil {
		t.Fatal(err)
	}
}

// TestRareRecords writes what random records lack, a file for each of them, and reads it back.
func TestRareRecords(t *testing.T) {
	e, err := Create(filepath.Join(t.TempDir(), "out"), ExportOptions{Memory: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	e.full = 0
	w, err := e.Part(0, record.AllTypes)
	if err != nil {
		t.Fatal(err)
	}
	id := func(n byte) []byte { return append(make([]byte, 15), n) }
	b := func(s string) []byte { return []byte(s) }
	pumped(t, w, record.Header{Type: record.Other, Key: record.Library.AppendName(nil, "lib"), Keyless: record.Library},
		record.Element{Name: b("function"), Value: b("x")})
	pumped(t, w, record.Header{Type: record.String, Key: b("a"), Native: "hyperloglog"}, record.Element{Value: b("v")})
	pumped(t, w, record.Header{Type: record.Hash, Key: b("b")})
	pumped(t, w, record.Header{Type: record.Other, Key: b("c")}, record.Element{Name: b("row"), Value: b("1")},
		record.Element{Name: b("row"), Value: b("2")})
	pumped(t, w, record.Header{Type: record.Other, Key: b("c2"), Native: "array"}, record.Element{Name: b("array"), Value: b("2")})
	pumped(t, w, record.Header{Type: record.Stream, Key: b("d"), Last: id(9), Added: 12, MaxDeleted: id(8)},
		record.Element{Name: id(1)}, record.Element{Name: id(2),
			Value: record.AppendPair(record.AppendPair(nil, b("f"), b("v")), b(""), nil)},
		record.Element{Kind: record.Group, Name: b("g"),
			Value: record.AppendGroup(nil, &record.GroupState{Last: id(2), Read: -1})},
		record.Element{Kind: record.Consumer, Name: b("g"),
			Value: record.AppendConsumer(nil, &record.ConsumerState{SeenMS: 5, ActiveMS: -1})},
		record.Element{Kind: record.Pending, Name: b("g"),
			Value: record.AppendPending(nil, &record.PendingEntry{ID: id(1), DeliveredMS: 7, Count: 2})})
	pumped(t, w, record.Header{Type: record.Stream, Key: b("e")})
	if err := errors.Join(w.Close(), e.Finish(0)); err != nil {
		t.Fatal(err)
	}
	src := formattest.Open(t, New(), e.dir, &format.OpenOptions{})
	got := string(formattest.Lines(t, formattest.Records(t, src, "0", &format.Env{Now: fixtures.Clock})))
	want := `{"db":"0","type":"other","key":"RlVOQ1RJT04gbGli","keyless":"function","expire_at_ms":0,"native":"ZnVuY3Rpb24=","value":"eA=="}
{"db":"0","type":"string","key":"YQ==","expire_at_ms":0,"value":"dg=="}
{"db":"0","type":"other","key":"Yw==","expire_at_ms":0,"native":"cm93","value":"MQ==","part1":"Mg=="}
{"db":"0","type":"other","key":"YzI=","expire_at_ms":0,"native":"YXJyYXk=","value":"Mg=="}
{"db":"0","type":"stream","key":"ZA==","expire_at_ms":0,"value":[["0-1",[]],["0-2",[["Zg==","dg=="],["",""]]]],"groups":[{"name":"Zw==","last_id":"0-2","entries_read":null,"consumers":[""],"pending":[["0-1",null,7,2]]}]}
{"db":"0","type":"stream","key":"ZQ==","expire_at_ms":0,"value":[]}
`
	if got != want {
		t.Errorf("%s", got)
	}
	if n, size := src.(format.Filed).Files(); n != 6 || size != src.Size("0", record.AllTypes) {
		t.Errorf("%d files of %d bytes", n, size)
	}
}

// TestLongKeys checks that a file ends before the bounds of long keys take much memory.
func TestLongKeys(t *testing.T) {
	e, err := Create(filepath.Join(t.TempDir(), "out"), ExportOptions{Memory: 1})
	if err != nil {
		t.Fatal(err)
	}
	w, err := e.Part(0, record.AllTypes)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 40 { // 16 KiB of bounds each; eight row groups are 512 KiB
		pumped(t, w, record.Header{Type: record.Set, Key: fmt.Appendf(nil, "%08192d", i)}, record.Element{Name: []byte("m")})
	}
	if err := errors.Join(w.Close(), e.Finish(0)); err != nil {
		t.Fatal(err)
	}
	m, err := readManifest(e.dir)
	if err != nil || len(m.files) != 2 || m.files[0].Records != 32 || m.files[1].Records != 8 {
		t.Errorf("%v, %+v", err, m)
	}
}

// counter estimates a byte for each element.
type counter struct{ n int64 }

func (c *counter) Begin(*record.Header)            { c.n = 0 }
func (c *counter) Elements(elems []record.Element) { c.n += int64(len(elems)) }
func (c *counter) Bytes() int64                    { return c.n }

type auditRow struct {
	Key      []byte  `parquet:"key"`
	Elements int64   `parquet:"elements"`
	Bytes    int64   `parquet:"bytes"`
	Redis    int64   `parquet:"redis_bytes"`
	Slot     int64   `parquet:"slot"`
	Prefix1  *[]byte `parquet:"prefix1,optional"`
	Prefix2  *[]byte `parquet:"prefix2,optional"`
	Prefix3  *[]byte `parquet:"prefix3,optional"`
}

// TestKeys writes a row for each record, and reads the columns.
func TestKeys(t *testing.T) {
	e, err := Create(filepath.Join(t.TempDir(), "out"),
		ExportOptions{Memory: 1 << 20, Keys: func() Estimator { return new(counter) }})
	if err != nil {
		t.Fatal(err)
	}
	w, err := e.Part(0, record.AllTypes)
	if err != nil {
		t.Fatal(err)
	}
	member := []record.Element{{Name: []byte("ab")}, {Name: []byte("c")}}
	long := strings.Repeat("x", maxPrefix)
	for key, elems := range map[string][]record.Element{"a:b:c:d:e": member, "a:" + long + ":c": member[:1], "none": nil} {
		h := record.Header{DB: "0", Type: record.Set, Key: []byte(key)}
		p := w.(*keysPart)
		if err := errors.Join(p.Begin(&h), p.Elements(elems), p.End()); err != nil {
			t.Fatal(err)
		}
	}
	p := w.(*keysPart)
	if err := errors.Join(p.Begin(&record.Header{DB: "0", Type: record.Stream, Key: []byte("s")}), p.End()); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Close(), e.Finish(0)); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	m, err := readManifest(e.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range m.files {
		f, err := parquetgo.ReadFile[auditRow](filepath.Join(e.dir, line.File))
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range f {
			got[string(r.Key)] = fmt.Sprintf("%s %d %d %d %d", line.Type, r.Elements, r.Bytes, r.Redis, r.Slot)
			for _, p := range []*[]byte{r.Prefix1, r.Prefix2, r.Prefix3} {
				if p != nil {
					got[string(r.Key)] += " " + string(*p)
				}
			}
		}
	}
	want := map[string]string{"s": "stream 0 1 0 3828", "a:b:c:d:e": "set 2 12 2 7275 a: a:b: a:b:c:", "a:" + long + ":c": "set 1 262 1 15055 a:"}
	if !maps.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// TestOddRows checks that rows which no version of kvferry writes are named, and cost only themselves.
func TestOddRows(t *testing.T) {
	id := make([]byte, 16)
	for name, odd := range map[string]func(r *rows) error{
		"kind":  func(r *rows) error { return r.row(&streamRow{kind: "new", id: id}) },
		"entry": func(r *rows) error { return r.row(&streamRow{field: []byte("f"), value: []byte("v")}) },
		"group": func(r *rows) error { return r.row(&streamRow{kind: kindGroup, value: []byte(`{"entries_read":1}`)}) },
		"state": func(r *rows) error { return r.row(&streamRow{kind: kindGroup, id: id, value: []byte(`{"entries":1}`)}) },
		"first row": func(r *rows) error {
			r.h.Key = []byte("x2")
			return r.row(&streamRow{kind: kindStream, value: []byte(`{"new":1}`)})
		},
		"deleted id": func(r *rows) error {
			r.h.Key = []byte("x2")
			return r.row(&streamRow{kind: kindStream, value: []byte(`{"max_deleted_id":"1"}`)})
		},
		"database": func(r *rows) error {
			r.h.Key, r.db = []byte("x2"), []byte("7")
			return r.row(&streamRow{kind: kindStream})
		},
	} {
		e, err := Create(filepath.Join(t.TempDir(), "out"), ExportOptions{Memory: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		w, err := e.Part(0, record.AllTypes)
		if err != nil {
			t.Fatal(err)
		}
		pumped(t, w, record.Header{Type: record.Stream, Key: []byte("x1"), Last: id},
			record.Element{Name: id, Value: record.AppendPair(nil, id, id)})
		f := w.(*part).open[record.Stream]
		if err := errors.Join(odd(&f.rows), f.wrote(1)); err != nil {
			t.Fatal(err)
		}
		f.rows.db = []byte("0")
		pumped(t, w, record.Header{Type: record.Stream, Key: []byte("x3"), Last: id})
		if err := errors.Join(w.Close(), e.Finish(0)); err != nil {
			t.Fatal(err)
		}
		var told formattest.Findings
		var l record.Ledger
		src := formattest.Open(t, New(), e.dir, &format.OpenOptions{})
		r := formattest.Records(t, src, "0", &format.Env{Now: fixtures.Clock, Ledger: &l, Report: told.Report})
		var keys []string
		for {
			h, err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			keys = append(keys, string(h.Key))
			for batch := make([]record.Element, 3); err == nil; {
				_, err = r.Read(batch)
			}
		}
		r.Close()
		if got := told.Kinds(); !slices.Equal(got, []string{record.FindNewer}) || !slices.Equal(keys, []string{"x1", "x3"}) {
			t.Errorf("%s: %q, keys %q", name, got, keys)
		}
		formattest.CheckLedger(t, &l)
	}
}

// TestDirectory checks what is said of files that are missing, changed in size or not listed, and of a dump with errors.
func TestDirectory(t *testing.T) {
	read := random(20, true)
	for want, change := range map[string]func(dir string) error{
		record.FindMissingFile: func(dir string) error { return os.Remove(filepath.Join(dir, "type=hash/part-00001.parquet")) },
		record.FindFileSize:    func(dir string) error { return os.Truncate(filepath.Join(dir, "type=set/part-00001.parquet"), 100) },
		FindUnlisted: func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "type=set/part-00002.parquet"), nil, 0o644)
		},
		FindIncomplete: func(dir string) error {
			m, err := readManifest(dir)
			if err != nil {
				return err
			}
			m.end.Errors = 2
			b, err := m.append(nil)
			return errors.Join(err, os.WriteFile(filepath.Join(dir, ManifestName), b, 0o644))
		},
	} {
		dir, err := export(t, 1<<20, "", byType(read)...)
		if err == nil {
			err = change(dir)
		}
		if err != nil {
			t.Fatal(err)
		}
		var told formattest.Findings
		src := formattest.Open(t, New(), dir, &format.OpenOptions{Options: store.Options{Salvage: true, Report: told.Report}})
		formattest.Sum(t, formattest.Records(t, src, "0", &format.Env{Now: fixtures.Clock, Report: told.Report}))
		if got := told.Kinds(); !slices.Equal(got, []string{want}) {
			t.Errorf("%q, want %s", got, want)
		}
		if _, err := New().Open(context.Background(), dir,
			&format.OpenOptions{}); (err != nil) != (want == record.FindMissingFile || want == record.FindFileSize) {
			t.Errorf("%s: without salvage: %v", want, err)
		}
	}
}

// TestDamage changes and cuts each file of a dataset. Either something is said, or the records are what they were.
func TestDamage(t *testing.T) {
	read := random(4, true)
	dir, err := export(t, 1, "", byType(read)...)
	if err != nil {
		t.Fatal(err)
	}
	want := sum(t, read)
	silent, n := 0, 0
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for i := range b {
			n++
			if i%389 > 0 {
				continue
			}
			changed := bytes.Clone(b)
			changed[i] ^= 1 << (i % 8)
			tell(t, dir, path, changed, want, &silent)
			if i%(389*4) == 0 {
				tell(t, dir, path, b[:i], want, &silent)
			}
		}
		return os.WriteFile(path, b, 0o644)
	})
	if err != nil || n < 1000 {
		t.Fatal(n, err)
	}
	if silent > 0 {
		t.Errorf("%d changes make other records without a finding", silent)
	}
}

// tell reads the dataset with other bytes in a file.
func tell(t *testing.T, dir, path string, b []byte, want *record.Fingerprint, silent *int) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, salvage := range []bool{true, false} {
		var told formattest.Findings
		src, err := New().Open(context.Background(), dir,
			&format.OpenOptions{Options: store.Options{Salvage: salvage, Report: told.Report}})
		if err != nil {
			continue
		}
		var l record.Ledger
		all := new(record.Fingerprint)
		for _, db := range src.Databases() {
			r, err := src.Records(context.Background(), db, record.AllTypes, format.Span{},
				&format.Env{Now: fixtures.Clock, Ledger: &l, Report: told.Report})
			if err != nil {
				t.Fatal(err)
			}
			f, err := fixtures.Sum(record.Booked(r, &l))
			if err != nil && salvage && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Fatalf("%s: %v", path, err)
			}
			if err != nil {
				all = nil
				break
			}
			all.Merge(f)
		}
		src.Close()
		if all != nil && len(all.Diff(want, false)) > 0 && len(told.Kinds()) == 0 {
			*silent++
			t.Logf("%s: %d bytes", path, len(b))
		}
		if all != nil { // after an error a batch is not counted
			formattest.CheckLedger(t, &l)
		}
	}
}

// TestArrow: the stream of fixed records, which arrow-go 18.8 reads, does not change.
func TestArrow(t *testing.T) {
	streams := map[int64]string{}
	for _, memory := range []int64{1, 1 << 30} {
		a := NewArrow("", memory == 1, memory)
		b := a.AppendHead(nil)
		r := record.Walk(random(300, true)(record.AllTypes))
		defer r.Close()
		elems := make([]record.Element, 16)
		for {
			h, err := r.Next()
			if err == io.EOF {
				break
			}
			if b, err = a.AppendBegin(b, h); err != nil {
				t.Fatal(err)
			}
			for n, more := 0, error(nil); more == nil; {
				n, more = r.Read(elems)
				for i := range elems[:n] {
					if b, err = a.AppendElement(b, &elems[i]); err != nil {
						t.Fatal(err)
					}
				}
			}
			b, _ = a.AppendEnd(b)
		}
		b = a.AppendTail(b)
		streams[memory] = fmt.Sprintf("%x", xxh3.Hash(b))
	}
	if want := map[int64]string{1: "75836ef56eeee53c", 1 << 30: "ef1aae1af4cbf587"}; !maps.Equal(streams, want) {
		t.Errorf("%v, want %v", streams, want)
	}
	text := NewArrow(TextStrict, false, 0)
	if _, err := text.AppendBegin(nil, &record.Header{DB: "0", Type: record.Set, Key: []byte{0xff}}); err == nil ||
		!strings.Contains(err.Error(), "--text: key of set") {
		t.Error(err)
	}
	lossy := NewArrow(TextLossy, false, 0)
	if _, err := lossy.AppendBegin(nil, &record.Header{DB: "0", Type: record.Set, Key: []byte{0xff}}); err != nil ||
		lossy.Replaced() != 1 {
		t.Error(err, lossy.Replaced())
	}
}

// TestAssemble: a dataset of the files of parts that were written apart is that of one run.
func TestAssemble(t *testing.T) {
	one := func(n int) record.Reader {
		return &prefixed{fixtures.Records(uint64(n), 20, fixtures.Options{DB: "0", Types: record.AllTypes, Short: true}),
			string(rune('a' + n))}
	}
	whole, err := export(t, 1<<20, "lossy", one(0), one(1))
	if err != nil {
		t.Fatal(err)
	}
	want, err := readManifest(whole)
	if err != nil {
		t.Fatal(err)
	}
	o := ExportOptions{Creator: "test", Source: "test", Now: fixtures.Clock, Memory: 1 << 20, Text: "lossy"}
	all := t.TempDir()
	var parts []*Files
	for n := range 2 {
		dir := t.TempDir()
		e := In(dir, o)
		w, err := e.Part(n, record.AllTypes)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(fixtures.Pump(w, one(n)), w.Close(), os.CopyFS(all, os.DirFS(dir))); err != nil {
			t.Fatal(err)
		}
		parts = append([]*Files{e.Files()}, parts...) // in any order
	}
	e := In(all, o)
	records, err := e.Assemble(parts, 0)
	if err != nil {
		t.Fatal(err)
	}
	got, err := readManifest(all)
	if err != nil || !slices.EqualFunc(got.files, want.files, func(a, b fileLine) bool {
		return a.File == b.File && a.Size == b.Size
	}) || records == 0 {
		t.Errorf("%d records, %v; %+v, want %+v", records, err, got, want)
	}
	if replaced := parts[0].Replaced + parts[1].Replaced; e.Replaced() != replaced {
		t.Errorf("%d values replaced, want %d", e.Replaced(), replaced)
	}
	parts[0].Files[0].Line.File = got.files[0].File
	parts[0].Files[0].Line.Size++
	if _, err := In(all, o).Assemble(parts, 0); err == nil || !strings.Contains(err.Error(), "were written") {
		t.Error(err)
	}
	parts[0].Files[0].Line.File = "none"
	if _, err := In(all, o).Assemble(parts, 0); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// TestLookupOfDamage flips bits of a row group of several pages, of their headers too, and looks for keys in it: a lookup
// reads few pages, and yields the record that was written, or an error or finding.
func TestLookupOfDamage(t *testing.T) {
	const keys = 60
	value := func(i int) []byte { return bytes.Repeat([]byte(fmt.Sprintf("%08d", i*i)), 30) }
	dir, m := made(t, filepath.Join(t.TempDir(), "out"), ExportOptions{Now: fixtures.Clock, Memory: 1}, func(w *part) {
		for i := range keys {
			h := record.Header{DB: "0", Type: record.Hash, Key: []byte(fmt.Sprintf("k%03d", i)), ByName: true}
			err := errors.Join(w.Begin(&h), w.Elements(
				[]record.Element{{Name: []byte("a"), Value: value(i)}, {Name: []byte("b"), Value: value(i + 1)}}), w.End())
			if err != nil {
				t.Fatal(err)
			}
		}
	})
	line := &m.files[0]
	name := filepath.Join(dir, line.File)
	whole, err := os.ReadFile(name)
	if err != nil || len(line.Groups) != 1 {
		t.Fatalf("%d row groups, %v", len(line.Groups), err)
	}
	// look returns an error, or whether the record of a key is the one that was written.
	look := func(key int) (right bool, err error) {
		src := formattest.Open(t, New(), dir, &format.OpenOptions{})
		defer src.Close()
		found := 0
		env := &format.Env{Now: fixtures.Clock, Ledger: new(record.Ledger), Report: func(record.Finding) { found++ }}
		r, err := src.Records(t.Context(), "0", record.AllTypes, format.KeySpan([]byte(fmt.Sprintf("k%03d", key))), env)
		if err != nil {
			return false, err
		}
		defer r.Close()
		var got []byte
		b := &record.Batch{}
		for b, err = r.Next(); err == nil; b, err = r.Next() {
			for _, e := range b.Elems {
				got = append(got, e.Value...)
			}
		}
		if err != io.EOF || found > 0 {
			return false, errors.Join(err, errors.New("a finding"))
		}
		return bytes.Equal(got, slices.Concat(value(key), value(key+1))), nil
	}
	write := func(b []byte) {
		t.Helper()
		if err := os.WriteFile(name, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	met, missed := 0, 0
	for at := 4; at < int(line.Tail); at += 3 {
		b := bytes.Clone(whole)
		b[at] ^= 1 << (at % 8)
		write(b)
		for _, key := range []int{0, keys / 2} {
			switch right, err := look(key); {
			case err != nil:
				met++
			case !right:
				t.Errorf("byte %d of %d: a wrong record of key %d", at, line.Tail, key)
			default:
				missed++
			}
		}
	}
	if met < missed/4 || missed < met/20 {
		t.Errorf("%d lookups met the damage, %d did not", met, missed)
	}
	write(whole)
	if right, err := look(7); !right || err != nil {
		t.Errorf("an intact file: %v", err)
	}
}
