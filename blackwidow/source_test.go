package blackwidow_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
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

func mkdir(t testing.TB, elem ...string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(elem...), 0o755); err != nil {
		t.Fatal(err)
	}
}

func putString(m *memory, dir, key string) {
	m.Store(dir).Put("default", []byte(key), blackwidow.AppendStringValue(nil, blackwidow.StringValue{Bytes: []byte(dir)}))
}

// keysOf lists the records of a database as "type key".
func keysOf(t testing.TB, src format.Source, db string, s format.Span, e *format.Env) (out []string) {
	t.Helper()
	r := formattest.RecordsOf(t, src, db, record.AllTypes, s, e)
	for {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.DB != db {
			t.Errorf("record of database %q in %q", h.DB, db)
		}
		out = append(out, h.Type.String()+" "+string(h.Key))
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestDatabasesAndPartitions(t *testing.T) {
	m := newMemory(t)
	mkdir(t, m.Dir, "db10")
	mkdir(t, m.Dir, "db2", "1")
	mkdir(t, m.Dir, "db2", "0")
	mkdir(t, m.Dir, "db2", "x")
	mkdir(t, m.Dir, "db3") // empty
	mkdir(t, m.Dir, "db01")
	putString(m, "db10/strings", "c")
	putString(m, "db2/0/strings", "b")
	putString(m, "db2/1/strings", "a")
	m.Store("db2/1/hashes").Put("default", []byte("a"), meta(1, 1, 0))
	m.Store("db2/1/hashes").Put("data_cf", dataKey("a", 1, "f"), nil)
	putString(m, "db01/strings", "no database")
	for _, info := range []string{"info", "db2/info", "db2/0/info"} {
		if err := os.WriteFile(filepath.Join(m.Dir, info), []byte("3s\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var f formattest.Findings
	src, err := blackwidow.New().Open(context.Background(), m.Dir,
		&format.OpenOptions{Store: m.FS.Open, Options: store.Options{Report: f.Report}})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	if got := src.Databases(); !slices.Equal(got, []string{"2", "10"}) || src.Layout() != format.LayoutDB {
		t.Errorf("databases %q, layout %v", got, src.Layout())
	}
	if got := src.Extra(); !slices.Equal(got, []string{"info", "db2/info", "db2/0/info"}) {
		t.Errorf("extra files %q", got)
	}
	if got := f.Kinds(); !slices.Equal(got, []string{"missing-store", "missing-store", "missing-store", "missing-store"}) ||
		!strings.Contains(f.All[0].Detail, "db2/0/zsets") ||
		f.All[3].Severity != record.Warning || !strings.HasPrefix(f.All[3].Detail, "no database in db0 to db1, db3 to db9; ") {
		t.Errorf("found %+v", f.All)
	}
	var l record.Ledger
	if got := keysOf(t, src, "2", format.Span{}, &format.Env{Ledger: &l}); !slices.Equal(got, []string{"string a", "hash a", "string b"}) {
		t.Errorf("records %q", got)
	}
	formattest.CheckLedger(t, &l)
	if got := formattest.Classes(&l, "db2/1/hashes/data_cf"); got != "copied=1" {
		t.Errorf("ledger %q of %v", got, l.Snapshot())
	}
	var names []string
	for _, ks := range src.Keyspaces() {
		names = append(names, ks.DB+":"+ks.Name)
	}
	want := []string{"2:0/strings/default", "2:1/strings/default", "2:1/hashes/default", "2:1/hashes/data_cf", "10:strings/default"}
	if !slices.Equal(names, want) {
		t.Errorf("keyspaces %q", names)
	}
	if got := src.Types("2"); got != record.Of(record.String, record.Hash) || src.Types("7") != 0 {
		t.Errorf("types %v", got)
	}
	if _, err := src.Records(context.Background(), "7", record.AllTypes, format.Span{}, &format.Env{}); err == nil {
		t.Error("records of a database that is not there")
	}
}

// TestMissingStreams: a database should have a streams store if another database has one, or if its RocksDB
// version is Pika 3.5.3's.
func TestMissingStreams(t *testing.T) {
	for _, c := range []struct {
		name    string
		streams []string // databases that have the store
		version string   // in the OPTIONS of db1/lists
		want    string
	}{
		{"Pika 3.4", nil, "5.9.2", ""},
		{"Pika 3.5.2", nil, "8.3.3", ""},
		{"never opened", nil, "", ""},
		{"both", []string{"db0", "db1"}, "8.7.3", ""},
		{"another has it", []string{"db0"}, "", "1 db1/streams not found; it exists in other databases, so data may have been left behind"},
		{"RocksDB has it", nil, "8.7.3", "1 db1/streams not found; Pika 3.5.3 and later always create it, and their RocksDB 8.7.3 opened the database, " +
			"so data may have been left behind"},
	} {
		m := newMemory(t)
		for _, db := range []string{"db0", "db1"} {
			for _, typ := range []string{"strings", "hashes", "sets", "lists", "zsets"} {
				mkdir(t, m.Dir, db, typ)
				m.Declare(db + "/" + typ)
			}
		}
		for _, db := range c.streams {
			mkdir(t, m.Dir, db, "streams")
			m.Declare(db + "/streams")
		}
		if c.version != "" {
			err := os.WriteFile(filepath.Join(m.Dir, "db1/lists/OPTIONS-000007"),
				[]byte("[Version]\n  rocksdb_version="+c.version+"\n"), 0o644)
			if err != nil {
				t.Fatal(err)
			}
		}
		var f formattest.Findings
		src := formattest.Open(t, blackwidow.New(), m.Dir,
			&format.OpenOptions{Store: m.FS.Open, Options: store.Options{Report: f.Report}})
		got := ""
		for _, x := range f.All {
			got += x.DB + " " + x.Detail
			if x.Kind != "missing-store" || x.Severity != record.Error || x.Type != record.Stream {
				t.Errorf("%s: %+v", c.name, x)
			}
		}
		if got != c.want || len(src.Databases()) != 2 {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func openError(t *testing.T, m *memory) string {
	t.Helper()
	src, err := blackwidow.New().Open(context.Background(), m.Dir, &format.OpenOptions{Store: m.FS.Open})
	if err == nil {
		src.Close()
		return ""
	}
	return err.Error()
}

func TestRefusedDirectories(t *testing.T) {
	m := newMemory(t)
	if got := openError(t, m); !strings.Contains(got, "not a blackwidow database: want the RocksDB directories strings") {
		t.Errorf("empty directory: %s", got)
	}
	m.Dir = filepath.Join(m.Dir, "nowhere")
	if got := openError(t, m); !strings.Contains(got, "not a blackwidow database") {
		t.Errorf("no directory: %s", got)
	}
	m = newMemory(t).stores()
	m.Store("hashes").Len("more_cf")
	if got := openError(t, m); !strings.Contains(got, `column family "more_cf", which the engine refuses`) {
		t.Errorf("extra column family: %s", got)
	}
	m = newMemory(t).stores()
	m.Store("lists").Len("data_cf")
	if got := openError(t, m); !strings.Contains(got, "data_cf is ordered by leveldb.BytewiseComparator, want blackwidow.ListsDataKeyComparator") {
		t.Errorf("another comparator: %s", got)
	}
	m = newMemory(t)
	mkdir(t, m.Dir, "sets", "something")
	putString(m, "strings", "k")
	if got := openError(t, m); !strings.Contains(got, store.ErrNotStore.Error()) {
		t.Errorf("directory that is no store: %s", got)
	}
}

// TestMissingColumnFamilies: the engine opens stores with only the default column family.
func TestMissingColumnFamilies(t *testing.T) {
	m := newMemory(t).stores()
	for _, dir := range []string{"hashes", "lists", "sets", "zsets"} {
		m.Store(dir).Len("default")
	}
	m.put("hashes/default", k, meta(0, 1, 0))
	src := m.Open(t)
	var l record.Ledger
	if got := keysOf(t, src, "0", format.Span{}, &format.Env{Ledger: &l}); got != nil {
		t.Errorf("records %q", got)
	}
	formattest.CheckLedger(t, &l)
	if n := len(src.Keyspaces()); n != 5 {
		t.Errorf("%d keyspaces, want 5", n)
	}
	if spans, err := src.Split("0", record.AllTypes, 4); err != nil || len(spans) == 0 || src.Size("0", record.AllTypes) == 0 {
		t.Errorf("spans %v, %v", spans, err)
	}
}

func TestMissingScores(t *testing.T) {
	m := newMemory(t).stores()
	m.put("zsets/default", k, meta(1, version, 0))
	m.put("zsets/data_cf", dataKey("k", version, "m"), score(1))
	var f formattest.Findings
	src, err := blackwidow.New().Open(context.Background(), m.Dir,
		&format.OpenOptions{Store: m.FS.Open, Options: store.Options{Report: f.Report}})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	if got := keysOf(t, src, "0", format.Span{}, &format.Env{Report: f.Report}); !slices.Equal(got, []string{"zset k"}) {
		t.Errorf("records %q", got)
	}
	if got := f.Kinds(); !slices.Equal(got, []string{"missing-score-cf"}) {
		t.Errorf("found %q", got)
	}
}

// TestStoreErrors: a store's error ends the reading. Rows out of order are an OrderError, so that the caller
// can resort the store.
func TestStoreErrors(t *testing.T) {
	for _, ks := range []string{"default", "data_cf", "score_cf"} {
		for _, typ := range []record.Type{record.String, record.List, record.ZSet} {
			m := whole(t)
			open := func(ctx context.Context, dir string, o *store.Options) (store.Store, error) {
				st, err := m.FS.Open(ctx, dir, o)
				return failing{st, ks}, err
			}
			src, err := blackwidow.New().Open(context.Background(), m.Dir, &format.OpenOptions{Store: open})
			if err != nil {
				t.Fatal(err)
			}
			r, err := formattest.Walk(src.Records(context.Background(), "0", record.Of(typ), format.Span{},
				&format.Env{Now: formattest.Now}))
			for err == nil {
				_, err = r.Next()
			}
			var order *store.OrderError
			has := ks == "default" || typ != record.String && ks == "data_cf" || typ == record.ZSet
			if errors.As(err, &order) != has {
				t.Errorf("%s of %s fails: %v", ks, typ, err)
			}
			if r != nil {
				r.Close()
			}
			src.Close()
		}
	}
}

// failing is a store in which one keyspace fails in the middle.
type failing struct {
	store.Store
	keyspace string
}

func (f failing) Keyspaces() []store.Keyspace {
	all := f.Store.Keyspaces()
	for i, ks := range all {
		if ks.Name() == f.keyspace {
			all[i] = failingKeyspace{ks}
		}
	}
	return all
}

type failingKeyspace struct{ store.Keyspace }

func (f failingKeyspace) Rows(lo, hi []byte) (store.Iterator, error) {
	it, err := f.Keyspace.Rows(lo, hi)
	return failingIterator{it}, err
}

type failingIterator struct{ store.Iterator }

func (failingIterator) Next() (key, value []byte, err error) {
	return nil, nil, &store.OrderError{File: "000001.sst"}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	src := whole(t).Open(t)
	r, err := formattest.Walk(src.Records(ctx, "0", record.AllTypes, format.Span{}, &format.Env{Now: formattest.Now}))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cancel()
	if _, err := r.Next(); !errors.Is(err, context.Canceled) {
		t.Errorf("Next after cancelling: %v", err)
	}
}

// TestSpans reads spans one by one and compares them with a single pass.
func TestSpans(t *testing.T) {
	for _, name := range goldens {
		src := formattest.OpenGolden(t, blackwidow.New(), name)
		var all record.Ledger
		want := formattest.Sum(t, formattest.Records(t, src, "0", &format.Env{Ledger: &all}))
		for _, n := range []int{1, 2, 7, 40} {
			spans, err := src.Split("0", record.AllTypes, n)
			if err != nil {
				t.Fatal(err)
			}
			again, err := src.Split("0", record.AllTypes, n)
			if err != nil || !reflect.DeepEqual(spans, again) {
				t.Errorf("%d spans: others the second time", n)
			}
			checkSpans(t, src, spans, want, &all)
		}
	}
}

// TestAnySpans: any boundary works: prefixes of keys, keys with suffixes, and boundaries near the ends of the
// range.
func TestAnySpans(t *testing.T) {
	m := newMemory(t)
	read := func(types record.TypeSet) record.Reader { return formattest.NewLengths(lengths(), types, true) }
	src := formattest.Fill(t, m.Create(t, format.CreateOptions{TempDir: t.TempDir()}), 0, read)
	var all record.Ledger
	want := formattest.Sum(t, formattest.Records(t, src, "0", &format.Env{Ledger: &all}))
	r := fixtures.NewRand(3)
	for range 30 {
		var cuts [][]byte
		for range 1 + r.Intn(6) {
			cut := bytes.Repeat([]byte{"\x00abcd\xff"[r.Intn(6)]}, r.Intn(100))
			if r.Chance(50) {
				cut = append(cut, byte(r.Intn(256)))
			}
			if len(cut) > 0 {
				cuts = append(cuts, cut)
			}
		}
		slices.SortFunc(cuts, bytes.Compare)
		spans := []format.Span{{}}
		for _, c := range slices.CompactFunc(cuts, bytes.Equal) {
			spans[len(spans)-1].Hi = c
			spans = append(spans, format.Span{Lo: c})
		}
		checkSpans(t, src, spans, want, &all)
	}
}

func checkSpans(t *testing.T, src format.Source, spans []format.Span, want *record.Fingerprint, all *record.Ledger) {
	t.Helper()
	var got record.Fingerprint
	var l record.Ledger
	for i, s := range spans {
		if i > 0 && (!bytes.Equal(s.Lo, spans[i-1].Hi) || bytes.Compare(s.Lo, spans[i-1].Lo) <= 0) || i == 0 && s.Lo != nil ||
			i == len(spans)-1 && s.Hi != nil {
			t.Fatalf("spans do not cover all keys: %v", spans)
		}
		got.Merge(formattest.Sum(t, formattest.RecordsOf(t, src, "0", record.AllTypes, s, &format.Env{Ledger: &l})))
	}
	if diff := got.Diff(want, false); diff != nil {
		t.Errorf("%d spans: %v differ", len(spans), diff)
	}
	for name, tally := range all.Snapshot() {
		if got := l.Snapshot()[name]; got.Rows != tally.Rows {
			t.Errorf("%d spans: %s: %v, want %v", len(spans), name, got.Rows, tally.Rows)
		}
	}
}

// TestSplitIsEven: spans have similar weights.
func TestSplitIsEven(t *testing.T) {
	m := newMemory(t).stores().declare()
	for i := range 4000 {
		putString(m, "strings", fmt.Sprintf("key:%05d", i))
	}
	spans, err := m.Open(t).Split("0", record.AllTypes, 8)
	if err != nil || len(spans) != 8 {
		t.Fatalf("%d spans, %v", len(spans), err)
	}
	src := m.Open(t)
	for i, s := range spans {
		if n := len(keysOf(t, src, "0", s, &format.Env{})); n < 450 || n > 550 {
			t.Errorf("span %d: %d records, want about 500", i, n)
		}
	}
}

// TestWhere: Where finds exactly the rows of a key.
func TestWhere(t *testing.T) {
	m := whole(t)
	for _, key := range []string{"", "k\x00", "kk", "j", "\xff", "\xff\xff"} {
		m.put("strings/default", []byte(key), blackwidow.AppendStringValue(nil, blackwidow.StringValue{}))
		m.put("hashes/data_cf", dataKey(key, version, "f"), nil)
		m.put("lists/data_cf", itemKey(key, version, first), nil)
		m.put("zsets/score_cf", scoreKey(key, version, 1, "m"), nil)
	}
	src := m.Open(t)
	for key, want := range map[string]int{"": 4, "k": 5 + 3 + 4*2, "k\x00": 4, "kk": 4, "\xff": 4, "\xff\xff": 4, "nobody": 0} {
		got := 0
		for _, r := range src.Where("0", []byte(key)) {
			all := src.Keyspaces()
			i := slices.IndexFunc(all, func(ks format.Keyspace) bool { return ks.Name == r.Keyspace })
			it, err := all[i].Rows(r.Lo, r.Hi)
			if err != nil {
				t.Fatal(err)
			}
			for {
				raw, value, err := it.Next()
				if err == io.EOF {
					break
				}
				got++
				if row := src.Describe("0", r.Keyspace, raw, value); !bytes.Equal(row.UserKey, []byte(key)) || row.Err != nil {
					t.Errorf("%q: row of %q in %s, %v", key, row.UserKey, r.Keyspace, row.Err)
				}
			}
		}
		if got != want {
			t.Errorf("%q: %d rows, want %d", key, got, want)
		}
	}
}

func TestDetect(t *testing.T) {
	five := func(prefix string, own bool) (out []format.StoreEvidence) {
		for _, dir := range []string{"strings", "hashes", "lists", "sets", "zsets"} {
			s := format.StoreEvidence{Path: prefix + dir, Kind: "rocksdb", Keyspaces: []format.KeyspaceEvidence{{Name: "default"}}}
			if own && dir == "lists" {
				s.Keyspaces = append(s.Keyspaces, format.KeyspaceEvidence{Name: "data_cf", Comparer: "blackwidow.ListsDataKeyComparator"})
			}
			out = append(out, s)
		}
		return out
	}
	other := five("", false)
	other[1].Keyspaces[0].Comparer = "another"
	extra := five("", false)
	extra[0].Keyspaces[0].Name = "data_cf"
	level := five("", false)
	level[0].Kind = "leveldb"
	for name, c := range map[string]struct {
		stores []format.StoreEvidence
		score  int
		why    string
	}{
		"nothing":            {nil, 0, ""},
		"flat":               {five("", false), 95, "strings is a RocksDB database"},
		"in an own order":    {five("", true), 100, "lists is a RocksDB database with a comparator of blackwidow"},
		"databases":          {five("db0/", true), 100, "db0/lists"},
		"partitions":         {five("db0/3/", true), 100, "db0/3/lists"},
		"elsewhere":          {five("x/", true), 0, ""},
		"some":               {five("", false)[:2], 40, "are not there"},
		"some of its order":  {five("", true)[:3], 75, "are not there"},
		"LevelDB":            {level, 80, "strings is a leveldb directory"},
		"another order":      {other, 80, "hashes: default is ordered by another"},
		"odd column family":  {extra, 80, `strings has a column family "data_cf"`},
		"nemo's directories": {[]format.StoreEvidence{{Path: "kv", Kind: "rocksdb"}, {Path: "hash", Kind: "rocksdb"}}, 0, ""},
	} {
		v := blackwidow.New().Detect(&format.Evidence{Stores: c.stores})
		if v.Score != c.score || !strings.Contains(strings.Join(v.Why, "\n"), c.why) {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

func TestLimits(t *testing.T) {
	const expiry = " Seconds MaxExpireMS=2147483647000 EmptyKey NoStreamExpiry NoBlankStream FirstMS=1000"
	const rest = " MaxScore=+Inf MaxElements=2147483647 Unbounded=list SameName Numbered MaxDBs=8 Layouts"
	const end = " rocksdb:rw Beside=[bgsave dbsync dump log]"
	all := "string,hash,list,set,zset"
	formattest.Limits(t, blackwidow.New(), "Types="+all+expiry+" Signed="+all+rest+end)
	all += ",stream"
	formattest.Limits(t, pika35(), "Types="+all+expiry+" Signed="+all+rest+" Layout=db"+end)
}

// TestWALDir: WAL directories are named after the stores.
func TestWALDir(t *testing.T) {
	m := newMemory(t).stores()
	var dirs []string
	open := func(ctx context.Context, dir string, o *store.Options) (store.Store, error) {
		dirs = append(dirs, o.WALDir)
		return m.FS.Open(ctx, dir, o)
	}
	src, err := blackwidow.New().Open(context.Background(), m.Dir, &format.OpenOptions{Store: open, WALDir: "/wal"})
	if err != nil {
		t.Fatal(err)
	}
	src.Close()
	if dirs[0] != "/wal/strings" || dirs[4] != "/wal/zsets" {
		t.Errorf("opened with %q", dirs)
	}
}
