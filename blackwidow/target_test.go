package blackwidow_test

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kvferry/blackwidow"
	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/internal/testkit/formattest"
	"kvferry/record"
	"kvferry/store"
)

func TestCreateRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		o    format.CreateOptions
		want string
	}{
		"hidden version":   {format.CreateOptions{Version: 0x1ff}, "version 511"},
		"negative version": {format.CreateOptions{Version: -2}, "version -2"},
		"two in one":       {format.CreateOptions{DBs: []string{"0", "1"}, Layout: format.LayoutFlat}, "2 databases need a directory each"},
		"odd name":         {format.CreateOptions{DBs: []string{"0", "users"}}, `database "users"`},
	} {
		m := newMemory(t)
		c.o.Create = m.FS.Create
		_, err := blackwidow.New().Create(context.Background(), m.Dir, &c.o)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	full := func(string, store.BuildOptions) (store.Builder, error) { return nil, os.ErrPermission }
	if _, err := blackwidow.New().Create(context.Background(), t.TempDir(), &format.CreateOptions{Create: full}); !errors.Is(err,
		os.ErrPermission) {
		t.Errorf("directory that cannot be made: %v", err)
	}
}

// fillDB writes a string and a hash to a database.
func fillDB(t testing.TB, dst format.Target, n int, db, key string) {
	t.Helper()
	for i, typ := range []record.Type{record.String, record.Hash} {
		w, err := dst.Shard(n+i, db, record.Of(typ), 0)
		if err != nil {
			t.Fatal(err)
		}
		e := record.Element{Name: []byte("f"), Value: []byte("v")}
		if err := fixtures.Pump(w, record.Gather(
			&oneRecord{h: record.Header{DB: db, Type: typ, Key: []byte(key)}, elems: []record.Element{e}}, nil)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func onDisk(t testing.TB, dir string, dbs ...string) format.Target {
	t.Helper()
	return formattest.CreateRocksDB(t, blackwidow.New(), dir, dbs...)
}

func TestSeveralDatabases(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	dst := onDisk(t, dir, "0", "12")
	fillDB(t, dst, 0, "0", "a")
	fillDB(t, dst, 2, "12", "b")
	if _, err := dst.Shard(4, "7", record.AllTypes, 0); err == nil {
		t.Error("shard of a database that was not announced")
	}
	src := formattest.Finish(t, dst)
	if got := src.Databases(); !slices.Equal(got, []string{"0", "12"}) {
		t.Errorf("databases %q", got)
	}
	if got := keysOf(t, src, "12", format.Span{}, &format.Env{}); !slices.Equal(got, []string{"string b", "hash b"}) {
		t.Errorf("records %q", got)
	}
	// Column families exist even if they are empty, or the engine does not open zsets.
	if n := len(src.Keyspaces()); n != 2*10 {
		t.Errorf("%d keyspaces, want 20", n)
	}
}

// TestAdopt: a later process adopts the tables of a shard.
func TestAdopt(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	first := onDisk(t, dir, "0", "1")
	fillDB(t, first, 0, "1", "a")
	var tables [2][]store.Table
	for n := range tables {
		var err error
		if tables[n], err = first.Tables(n); err != nil {
			t.Fatal(err)
		}
	}
	if len(tables[0]) != 1 || len(tables[1]) != 2 || !strings.HasPrefix(tables[0][0].File, "db1/strings/") {
		t.Fatalf("tables %+v", tables)
	}
	second := onDisk(t, dir, "0", "1")
	for n := range tables {
		if err := second.Adopt(n, "0", tables[n]); err == nil {
			t.Error("tables of another database adopted")
		}
		if err := second.Adopt(n, "7", tables[n]); err == nil {
			t.Error("tables of no database adopted")
		}
		if err := second.Adopt(n, "1", tables[n]); err != nil {
			t.Fatal(err)
		}
	}
	got := keysOf(t, formattest.Finish(t, second), "1", format.Span{}, &format.Env{})
	if !slices.Equal(got, []string{"string a", "hash a"}) {
		t.Errorf("records %q", got)
	}
}

func TestAbort(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	dst := onDisk(t, dir, "0", "1")
	fillDB(t, dst, 0, "0", "a")
	w, err := formattest.One(dst.Shard(2, "1", record.AllTypes, 1))
	if err != nil {
		t.Fatal(err)
	}
	for _, typ := range []record.Type{record.String, record.ZSet} {
		if err := errors.Join(w.Begin(&record.Header{Type: typ}), w.Write([]record.Element{{}}), w.End()); err != nil {
			t.Fatal(err)
		}
	}
	w.Abort()
	dst.Abort()
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("something is left: %v", err)
	}
}

func TestWriterErrors(t *testing.T) {
	hash, zset, str := record.Header{Type: record.Hash, Key: k, ByName: true}, record.Header{Type: record.ZSet,
		Key: k}, record.Header{Type: record.String, Key: k}
	late := str
	late.ExpireMS = (math.MaxInt32 + 1) * 1000
	twice := []record.Element{{Name: []byte("a")}, {Name: []byte("a")}}
	for name, c := range map[string]struct {
		h     record.Header
		elems []record.Element
		want  string
	}{
		"stream":                {record.Header{Type: record.Stream}, nil, "blackwidow has no such type"},
		"expiry after 2038":     {late, nil, "does not fit 32 bits"},
		"two values":            {str, twice, "more than one value"},
		"NaN":                   {zset, []record.Element{{Score: math.NaN()}}, "not a number"},
		"a field twice":         {hash, twice, "order"},
		"a member twice":        {zset, twice, "order"},
		"fields out of order":   {hash, []record.Element{{Name: []byte("b")}, {Name: []byte("a")}}, "order"},
		"a type out of numbers": {record.Header{Type: 200}, nil, "no such type"},
	} {
		m := newMemory(t)
		w, err := formattest.One(m.Create(t, format.CreateOptions{TempDir: t.TempDir()}).Shard(0, "0", record.AllTypes, 0))
		if err != nil {
			t.Fatal(err)
		}
		if err = w.Begin(&c.h); err == nil {
			if err = w.Write(c.elems); err == nil {
				err = w.End()
			}
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
		w.Abort()
	}
}

// TestRecordsOutOfOrder: the store refuses records out of order, and its error is kept.
func TestRecordsOutOfOrder(t *testing.T) {
	dst := onDisk(t, filepath.Join(t.TempDir(), "new"))
	defer dst.Abort()
	w, err := formattest.One(dst.Shard(0, "0", record.Of(record.Set), 0))
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"b", "a"} {
		if err == nil {
			err = errors.Join(w.Begin(&record.Header{Type: record.Set, Key: []byte(key)}), w.Write([]record.Element{{}}), w.End())
		}
	}
	if err == nil {
		err = w.Close()
	} else {
		w.Abort()
	}
	if err == nil || !strings.Contains(err.Error(), "order") {
		t.Errorf("no error about the order: %v", err)
	}
}

func TestLosses(t *testing.T) {
	dst := newMemory(t).Create(t, format.CreateOptions{})
	for name, c := range map[string]struct {
		h    record.Header
		want string
	}{
		"plain":           {record.Header{Type: record.Hash, Len: 3}, ""},
		"never":           {record.Header{Type: record.String}, ""},
		"whole seconds":   {record.Header{Type: record.String, ExpireMS: math.MaxInt32 * 1000}, ""},
		"milliseconds":    {record.Header{Type: record.String, ExpireMS: 1700000000001}, "expiry-ms"},
		"after 2038":      {record.Header{Type: record.Set, ExpireMS: math.MaxInt32*1000 + 1}, "expiry-2038 ms=2147483647000"},
		"before 1970":     {record.Header{Type: record.List, ExpireMS: -5000}, ""},
		"early in 1969":   {record.Header{Type: record.List, ExpireMS: -5500}, "expiry-ms? ms=1000"},
		"before 32 bits":  {record.Header{Type: record.String, ExpireMS: math.MinInt64}, "expiry-ms? ms=1000"},
		"most fields":     {record.Header{Type: record.Hash, Len: math.MaxInt32}, ""},
		"many fields":     {record.Header{Type: record.Hash, Len: math.MaxInt32 + 1, ExpireMS: 1}, "too-many-elements!"},
		"a long string":   {record.Header{Type: record.String, Len: math.MaxInt32 + 1}, ""},
		"many list items": {record.Header{Type: record.List, Len: math.MaxInt32 + 1}, ""},
		"stream":          {record.Header{Type: record.Stream, ExpireMS: 1}, "stream!"},
	} {
		if got := formattest.Losses(t, dst, c.h); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	h := &record.Header{Type: record.Hash, Len: 1}
	if n := testing.AllocsPerRun(10, func() { dst.Losses(h) }); n != 0 {
		t.Errorf("%v allocations without a loss", n)
	}
}

// lossKinds joins the kinds of losses; an exclamation mark means that data is dropped, a question mark a note.
func lossKinds(losses []record.Loss) string {
	var out []string
	for _, l := range losses {
		s := l.Kind
		if l.Drops {
			s += "!"
		}
		if l.Note {
			s += "?"
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}

func TestElementLosses(t *testing.T) {
	dst := newMemory(t).Create(t, format.CreateOptions{})
	var lost []record.Loss
	report := func(l record.Loss) { lost = append(lost, l) }
	batch := []record.Element{{Score: 1}, {Score: math.NaN()}, {Score: math.Inf(1)}, {Score: -math.NaN()}, {Score: 2}}
	kept := dst.ElementLosses(&record.Header{Type: record.ZSet}, batch, report)
	if len(kept) != 3 || kept[0].Score != 1 || kept[2].Score != 2 || lossKinds(lost) != "score-nan! score-nan!" {
		t.Errorf("kept %v, lost %+v", kept, lost)
	}
	lost = nil
	dst.ElementLosses(&record.Header{Type: record.String}, []record.Element{{Value: make([]byte, 131072)}}, report)
	if lossKinds(lost) != "hyperloglog?" {
		t.Errorf("lost %+v", lost)
	}
	lost = nil
	dst.ElementLosses(&record.Header{Type: record.String}, []record.Element{{Value: make([]byte, 131071)}}, report)
	dst.ElementLosses(&record.Header{Type: record.ZSet}, kept, report)
	if lost != nil {
		t.Errorf("lost %+v", lost)
	}
}

// TestDefaultVersion: collections have version 1 unless the options set another.
func TestDefaultVersion(t *testing.T) {
	m := newMemory(t)
	dst := m.Create(t, format.CreateOptions{TempDir: t.TempDir()})
	formattest.Shard(t, dst, 0, record.Of(record.Hash), 0,
		record.Gather(&oneRecord{h: record.Header{Type: record.Hash, Key: []byte("k")},
			elems: []record.Element{{Name: []byte("f"), Value: []byte("v")}}}, nil))
	rows := 0
	for _, ks := range formattest.Finish(t, dst).Keyspaces() {
		if ks.Name != "hashes/data_cf" {
			continue
		}
		it, err := ks.Rows(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for key, _, err := it.Next(); err == nil; key, _, err = it.Next() {
			rows++
			if k, err := blackwidow.DecodeDataKey(key); err != nil || k.Version != 1 {
				t.Errorf("%+v, %v", k, err)
			}
		}
		it.Close()
	}
	if rows != 1 {
		t.Errorf("%d rows", rows)
	}
}
