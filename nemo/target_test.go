package nemo_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/internal/testkit/formattest"
	"kvferry/internal/testkit/memstore"
	"kvferry/nemo"
	"kvferry/record"
	"kvferry/store/rocks"
	"kvferry/store/rocks/build"
)

// write writes one record to a new shard and finishes the target.
func write(t testing.TB, dst format.Target, h record.Header, elems ...record.Element) {
	t.Helper()
	w, err := formattest.One(dst.Shard(0, "0", record.Of(h.Type), 0))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Begin(&h); err != nil {
		t.Fatal(err)
	}
	if err := w.Write(elems); err != nil {
		t.Fatal(err)
	}
	if err := w.End(); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := dst.Finish(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// rows formats all rows of a store, one a line, key and value quoted.
func rows(t testing.TB, s *memstore.Store) string {
	t.Helper()
	it, err := s.Keyspaces()[0].Rows(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	out := ""
	for {
		k, v, err := it.Next()
		if err != nil {
			return out
		}
		out += fmt.Sprintf("%q %x\n", k, v)
	}
}

// TestWrittenRows pins every byte of small records of version 7.
func TestWrittenRows(t *testing.T) {
	const suffix, zeros = "0700000000000000", "0000000000000000"
	name := func(s string) record.Element { return record.Element{Name: []byte(s), Value: []byte(s)} }
	row := func(key, value string) string { return fmt.Sprintf("%q %s\n", key, strings.ReplaceAll(value, " ", "")) }
	for _, c := range []struct {
		store string
		h     record.Header
		elems []record.Element
		want  string
	}{
		{"kv", record.Header{Type: record.String, ExpireMS: 1699999999001}, []record.Element{{Value: []byte("v")}},
			row("", "76 00000000 00f15365")},
		{"hash", record.Header{Type: record.Hash, Key: []byte("k="), ExpireMS: 1700000000000}, []record.Element{name("b"), name("")},
			row("Hk=", "0200000000000000 07000000 00f15365") + row("h", zeros) +
				row("h\x02k==", suffix) + row("h\x02k==b", "62"+suffix)},
		{"list", record.Header{Type: record.List, Key: []byte("k")}, []record.Element{name("b"), name("a")},
			row("Lk", "0200000000000000 0100000000000000 0200000000000000 0300000000000000"+suffix) + row("l", zeros) +
				row("l\x01k\x01\x00\x00\x00\x00\x00\x00\x00", "0000000000000000 0200000000000000 62"+suffix) +
				row("l\x01k\x02\x00\x00\x00\x00\x00\x00\x00", "0100000000000000 0000000000000000 61"+suffix)},
		{"set", record.Header{Type: record.Set, Key: []byte("k"), ByName: true}, []record.Element{name("a"), name("b")},
			row("Sk", "0200000000000000"+suffix) + row("s", zeros) + row("s\x01ka", suffix) + row("s\x01kb", suffix)},
		{"zset", record.Header{Type: record.ZSet, Key: []byte("k")},
			[]record.Element{{Name: []byte("b"), Score: -1}, {Name: []byte("a"), Score: 1}},
			row("Zk", "0200000000000000"+suffix) +
				row("y", zeros) + row(string(indexKey("k", "b", -1)), suffix) + row(string(indexKey("k", "a", 1)), suffix) +
				row("z", zeros) + row("z\x01ka", "000000000000f03f"+suffix) + row("z\x01kb", "000000000000f0bf"+suffix)},
	} {
		m := newMemory(t)
		write(t, m.Create(t, format.CreateOptions{Version: 7}), c.h, c.elems...)
		if got := rows(t, m.Store(c.store)); got != c.want {
			t.Errorf("%s:\ngot\n%swant\n%s", c.store, got, c.want)
		}
	}
}

// TestDefaultVersion: version 0, which strings have, is not valid for collections: they get version 1.
func TestDefaultVersion(t *testing.T) {
	m := newMemory(t)
	write(t, m.Create(t, format.CreateOptions{}), record.Header{Type: record.Set, Key: []byte("k")}, record.Element{Name: []byte("a")})
	got := rows(t, m.Store("set"))
	if !strings.HasPrefix(got, `"Sk" 01000000000000000100000000000000`) || !strings.HasSuffix(got, "\"s\\x01ka\" 0100000000000000\n") {
		t.Errorf("rows\n%s", got)
	}
}

// TestEmptyTarget checks that all five databases exist and contain only their separators, and that collections
// without elements write no rows.
func TestEmptyTarget(t *testing.T) {
	m := newMemory(t)
	write(t, m.Create(t, format.CreateOptions{}), record.Header{Type: record.Hash, Key: []byte("empty")})
	for name, want := range map[string]string{"kv": "", "hash": `"h"`, "list": `"l"`, "set": `"s"`, "zset": `"y" "z"`} {
		got := strings.TrimSpace(strings.ReplaceAll(rows(t, m.Store(name)), " 0000000000000000\n", " "))
		if got != want {
			t.Errorf("%s holds %s", name, got)
		}
	}
	var l record.Ledger
	src := m.Open(t)
	if got := formattest.Lines(t, formattest.Records(t, src, "0", &format.Env{Ledger: &l})); len(got) > 0 {
		t.Errorf("read %s", got)
	}
	if formattest.Classes(&l, "zset") != "housekeeping=2" {
		t.Errorf("ledger %s", formattest.Classes(&l, "zset"))
	}
}

func TestLayouts(t *testing.T) {
	for _, c := range []struct {
		layout format.Layout
		dbs    []string
		want   []string
		err    string
	}{
		{format.LayoutAuto, nil, []string{"kv"}, ""},
		{format.LayoutAuto, []string{"0"}, []string{"kv"}, ""},
		{format.LayoutAuto, []string{"1"}, []string{"db1/kv"}, ""},
		{format.LayoutAuto, []string{"0", "2"}, []string{"db0/kv", "db2/kv"}, ""},
		{format.LayoutDB, []string{"0"}, []string{"db0/kv"}, ""},
		{format.LayoutFlat, []string{"3"}, []string{"kv"}, ""},
		{format.LayoutFlat, []string{"0", "1"}, nil, "2 databases need a directory each"},
		{format.LayoutDB, []string{"0", "users"}, nil, `database "users": nemo's have numbers for names`},
	} {
		dir := filepath.Join(t.TempDir(), "new")
		dst, err := nemo.New().Create(context.Background(), dir,
			&format.CreateOptions{Create: build.Create, Layout: c.layout, DBs: c.dbs})
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%v: error %v, want %s", c, err, c.err)
			}
		} else if err != nil {
			t.Errorf("%v: %v", c, err)
			continue
		}
		for _, kv := range c.want {
			if _, err := os.Stat(filepath.Join(dir, kv)); err != nil {
				t.Errorf("%v: %v", c, err)
			}
		}
		if dst != nil {
			dst.Abort()
		}
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("%v: something is left in %s: %v", c, dir, err)
		}
	}
}

// TestResume writes a shard, adopts its tables in a second target of the same directory, and finishes that
// target.
func TestResume(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	o := format.CreateOptions{Create: build.Create, Layout: format.LayoutDB, DBs: []string{"0", "1"},
		Reopen: &format.OpenOptions{Store: rocks.Open}}
	create := func() format.Target {
		dst, err := nemo.New().Create(context.Background(), dir, &o)
		if err != nil {
			t.Fatal(err)
		}
		return dst
	}
	shard := func(dst format.Target, n int, db string, seed uint64) {
		w, err := dst.Shard(n, db, record.AllTypes, 0)
		if err != nil {
			t.Fatal(err)
		}
		r := fixtures.Records(seed, 40, fixtures.Options{DB: db, Limits: nemo.New().Limits()})
		if err := fixtures.Pump(w, r); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	first := create()
	shard(first, 0, "0", 1)
	tables, err := first.Tables(0)
	if err != nil {
		t.Fatal(err)
	}
	if len(tables) == 0 || !strings.HasPrefix(tables[0].File, "db0/kv/") {
		t.Fatalf("tables %+v", tables)
	}
	second := create()
	if err := second.Adopt(0, "1", tables); err == nil || !strings.Contains(err.Error(), "is of no store of database 1") {
		t.Errorf("adopted by another database: %v", err)
	}
	if err := second.Adopt(0, "7", tables); err == nil {
		t.Error("adopted by a database that is not there")
	}
	if err := second.Adopt(0, "0", tables); err != nil {
		t.Fatal(err)
	}
	shard(second, 1, "1", 2)
	src, err := second.Finish(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	for i, db := range []string{"0", "1"} {
		want := formattest.Sum(t, fixtures.Records(uint64(i+1), 40, fixtures.Options{DB: db, Limits: nemo.New().Limits()}))
		formattest.CheckEqual(t, formattest.Sum(t, formattest.Records(t, src, db, &format.Env{})), want, true)
	}
}

func TestLosses(t *testing.T) {
	dst := newMemory(t).Create(t, format.CreateOptions{})
	for _, c := range []struct {
		h    record.Header
		want string
	}{
		{record.Header{Type: record.String}, ""},
		{record.Header{Type: record.String, Key: bytes.Repeat([]byte("k"), 70_000), Len: math.MaxInt32 + 1}, ""},
		{record.Header{Type: record.Hash, Key: []byte("k"), ExpireMS: math.MaxInt32 * 1000, Len: math.MaxInt32}, ""},
		{record.Header{Type: record.Hash}, "empty-key!"},
		{record.Header{Type: record.Set, Key: bytes.Repeat([]byte("k"), 254)}, ""},
		{record.Header{Type: record.Set, Key: bytes.Repeat([]byte("k"), 255), ExpireMS: 1}, "key-too-long!"},
		{record.Header{Type: record.ZSet, Key: []byte("k"), Len: math.MaxInt32 + 1}, "too-many-elements!"},
		{record.Header{Type: record.ZSet, Len: math.MaxInt32 + 1}, "empty-key!"},
		{record.Header{Type: record.List, Key: []byte("k"), ExpireMS: math.MaxInt32*1000 + 1}, "expiry-2038 ms=2147483647000"},
		{record.Header{Type: record.String, ExpireMS: 1700000000001}, "expiry-ms"},
		{record.Header{Type: record.String, ExpireMS: 1}, "expiry-ms"},
		{record.Header{Type: record.String, ExpireMS: -5000}, "expiry-ms? ms=1000"}, // nemo: never
		{record.Header{Type: record.Hash, Key: []byte("k"), ExpireMS: -1}, "expiry-ms? ms=1000"},
		{record.Header{Type: record.Hash, Key: []byte("k"), ExpireMS: -5000}, ""},
		{record.Header{Type: record.Hash, Key: []byte("k"), ExpireMS: math.MinInt64}, "expiry-ms? ms=1000"},
		{record.Header{Type: record.Stream, Key: []byte("k")}, "stream!"},
	} {
		if got := formattest.Losses(t, dst, c.h); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.h.Type, record.Quote(c.h.Key), got, c.want)
		}
	}
}

func TestElementLosses(t *testing.T) {
	dst := newMemory(t).Create(t, format.CreateOptions{})
	var kinds []string
	report := func(l record.Loss) { kinds = append(kinds, fmt.Sprintf("%s %v %v", l.Kind, l.Drops, l.Note)) }
	scores := []float64{1, math.NaN(), 1e13, -1e13, 1.1e13, math.Inf(-1), 2}
	var batch []record.Element
	for _, s := range scores {
		batch = append(batch, record.Element{Name: []byte("m"), Score: s})
	}
	kept := dst.ElementLosses(&record.Header{Type: record.ZSet}, batch, report)
	var got []float64
	for _, e := range kept {
		got = append(got, e.Score)
	}
	if !slices.Equal(got, []float64{1, 1e13, -1e13, 2}) {
		t.Errorf("kept %v", got)
	}
	dst.ElementLosses(&record.Header{Type: record.String}, []record.Element{{Value: make([]byte, 131072)}}, report)
	dst.ElementLosses(&record.Header{Type: record.String}, []record.Element{{Value: make([]byte, 131071)}}, report)
	dst.ElementLosses(&record.Header{Type: record.Hash}, []record.Element{{Value: make([]byte, 131072)}}, report)
	want := []string{"score-nan true false", "score-range true false", "score-range true false", "hyperloglog false true"}
	if !slices.Equal(kinds, want) {
		t.Errorf("losses %q, want %q", kinds, want)
	}
}

// TestWriterRefuses gives the writer records that Losses would have removed.
func TestWriterRefuses(t *testing.T) {
	name := []record.Element{{Name: []byte("m"), Score: math.Inf(1)}}
	two := []record.Element{{Name: []byte("b")}, {Name: []byte("a")}}
	for _, c := range []struct {
		h     record.Header
		elems []record.Element
		want  string
	}{
		{record.Header{Type: record.Stream, Key: []byte("k")}, nil, "nemo has no such type"},
		{record.Header{Type: record.Set}, nil, "the engine accepts keys of 1 to 254 bytes"},
		{record.Header{Type: record.Set, Key: bytes.Repeat([]byte("k"), 255)}, nil, "the engine accepts keys of 1 to 254 bytes"},
		{record.Header{Type: record.Set, Key: []byte("k"), ExpireMS: math.MaxInt64}, nil, "does not fit 32 bits"},
		{record.Header{Type: record.ZSet, Key: []byte("k")}, name, "the engine accepts scores from -1e13 to 1e13"},
		{record.Header{Type: record.String, Key: []byte("k")}, two, "more than one value"},
		{record.Header{Type: record.Set, Key: []byte("k"), ByName: true}, two, "out of order"},
		{record.Header{Type: record.Set, Key: []byte("k")}, append(two, two...), "out of order"},
	} {
		w, err := formattest.One(newMemory(t).Create(t, format.CreateOptions{}).Shard(0, "0", record.AllTypes, 0))
		if err != nil {
			t.Fatal(err)
		}
		if err = w.Begin(&c.h); err == nil {
			if err = w.Write(c.elems); err == nil {
				err = w.End()
			}
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: error %v, want %q", c.h.Type, record.Quote(c.h.Key), err, c.want)
		}
		w.Abort()
	}
	if _, err := newMemory(t).Create(t, format.CreateOptions{}).Shard(0, "9", record.AllTypes, 0); err == nil {
		t.Error("a shard of a database that was not announced")
	}
}

// TestExpiryBeforeTime writes expiries that would otherwise become never.
func TestExpiryBeforeTime(t *testing.T) {
	for _, c := range []struct {
		typ  record.Type
		ms   int64
		want string
	}{
		{record.String, -5000, "01000000"}, {record.String, -1, "01000000"}, {record.String, 1, "01000000"},
		{record.Set, -5000, "fbffffff"}, {record.Set, -1, "01000000"}, {record.Set, 1001, "02000000"},
	} {
		m := newMemory(t)
		h := record.Header{Type: c.typ, Key: []byte("k"), ExpireMS: c.ms}
		write(t, m.Create(t, format.CreateOptions{}), h, record.Element{Name: []byte("m"), Value: []byte("v")})
		value := m.Store("kv").Get("default", []byte("k"))
		if c.typ == record.Set {
			value = m.Store("set").Get("default", []byte("Sk"))
		}
		if got := fmt.Sprintf("%x", value[len(value)-4:]); got != c.want {
			t.Errorf("%s, %d ms: expiry %s, want %s", c.typ, c.ms, got, c.want)
		}
	}
}

// TestWriterFails makes the disk fail at every row: the error is returned and no files remain.
func TestWriterFails(t *testing.T) {
	for n := 1; ; n++ {
		temp, f := t.TempDir(), &formattest.Faults{Left: n, Stays: true}
		dir := filepath.Join(temp, "new")
		dst, err := nemo.New().Create(context.Background(), dir, &format.CreateOptions{TempDir: temp, Create: f.Create})
		if err != nil {
			t.Fatal(err)
		}
		w, err := dst.Shard(0, "0", record.AllTypes, 0)
		if err != nil {
			t.Fatal(err)
		}
		o := randomOptions()
		o.Short, o.MaxElements = true, 3
		if err = fixtures.Pump(w, fixtures.Records(5, 8, o)); err == nil {
			err = w.Close()
		} else {
			w.Abort()
		}
		if err == nil {
			_, err = dst.Finish(context.Background())
		}
		if err == nil {
			dst.Abort()
			break
		}
		if !errors.Is(err, formattest.ErrDisk) {
			t.Fatalf("failing at row %d: %v", n, err)
		}
		dst.Abort()
		if left, _ := os.ReadDir(temp); len(left) > 0 {
			t.Fatalf("failing at row %d: %v is left", n, left)
		}
	}
}
