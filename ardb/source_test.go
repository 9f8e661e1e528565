package ardb

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"kvferry/ardb/codec"
	"kvferry/format"
	"kvferry/internal/testkit/formattest"
	"kvferry/internal/testkit/memstore"
	"kvferry/record"
	"kvferry/store"
)

// TestLimits: LMDB is read only; servers before 0.9.7 have no streams, and cannot be written on LevelDB.
func TestLimits(t *testing.T) {
	formattest.Limits(t, New(), "Types=string,hash,list,set,zset,stream EmptyKey FirstMS=1 NoProgress rocksdb:rw leveldb:rw lmdb:r Beside=[backup repl]")
	formattest.Limits(t, New().(format.Served).For("ardb0.9.6"), "Types=string,hash,list,set,zset EmptyKey FirstMS=1 NoProgress rocksdb:rw leveldb:r lmdb:r Beside=[backup repl]")
}

func TestDetect(t *testing.T) {
	ks := func(name, comparer string) format.KeyspaceEvidence {
		return format.KeyspaceEvidence{Name: name, Comparer: comparer}
	}
	for _, tt := range []struct {
		name  string
		store format.StoreEvidence
		score int
		why   string
	}{
		{"data directory", format.StoreEvidence{Path: "rocksdb", Kind: kindRocksDB, Keyspaces: []format.KeyspaceEvidence{ks("default", codec.ComparerName)}}, 100, "ordered by ardb.comparator"},
		{"engine directory", format.StoreEvidence{Path: ".", Kind: kindLevelDB, Keyspaces: []format.KeyspaceEvidence{ks("default", codec.ComparerName)}}, 95, "ordered by"},
		{"lmdb", format.StoreEvidence{Path: "lmdb", Kind: kindLMDB, Keyspaces: []format.KeyspaceEvidence{ks("0", ""), ks(codec.LMDBNamespace, "")}}, 100, "__LMDB_META__"},
		{"another lmdb", format.StoreEvidence{Path: "lmdb", Kind: kindLMDB, Keyspaces: []format.KeyspaceEvidence{ks("0", "")}}, 0, ""},
		{"bytewise", format.StoreEvidence{Path: "hash", Kind: kindRocksDB, Keyspaces: []format.KeyspaceEvidence{ks("default", store.Bytewise.Name)}}, 0, ""},
		{"0.8", format.StoreEvidence{Path: "rocksdb", Kind: kindRocksDB, Keyspaces: []format.KeyspaceEvidence{ks("default", "ARDBRocksDB")}}, 0, "Ardb 0.8"},
		{"too deep", format.StoreEvidence{Path: "a/rocksdb", Kind: kindRocksDB, Keyspaces: []format.KeyspaceEvidence{ks("default", codec.ComparerName)}}, 0, ""},
	} {
		v := New().Detect(&format.Evidence{Stores: []format.StoreEvidence{tt.store}})
		if v.Score != tt.score || !strings.Contains(strings.Join(v.Why, "\n"), tt.why) {
			t.Errorf("%s: %+v", tt.name, v)
		}
	}
}

// TestNoEngine: a directory without an Ardb database is refused with an explanation.
func TestNoEngine(t *testing.T) {
	_, err := New().Open(context.Background(), t.TempDir(), &format.OpenOptions{})
	if err == nil || !strings.Contains(err.Error(), "no rocksdb, leveldb or lmdb") {
		t.Errorf("no engine: %v", err)
	}
}

// levelRows puts rows of several namespaces into a LevelDB store in memory.
func levelRows(t *testing.T, rows ...raw) (format.Source, []record.Finding) {
	t.Helper()
	fs := memstore.New()
	st := fs.Dir("/d/leveldb")
	if err := st.Keyspace(defaultCF, codec.LevelDBComparer()); err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		st.Put(defaultCF, r.key, r.val)
	}
	var found []record.Finding
	src, err := New().Open(context.Background(), "/d", &format.OpenOptions{Store: fs.Open, Kind: kindLevelDB,
		Options: store.Options{Report: func(f record.Finding) { found = append(found, f) }}})
	if err != nil {
		t.Fatal(err)
	}
	return src, found
}

func named(ns codec.Data, user string) raw {
	return raw{codec.AppendKey(nil, codec.AppendData(nil, ns), []byte(user), codec.KindMeta), str(text(user))}
}

// TestNamespaces: MOVE writes integers for namespaces; they are separate databases. Rows outside all
// namespaces are counted.
func TestNamespaces(t *testing.T) {
	ttl := func(ms int64, ns codec.Data, user string) raw {
		return raw{codec.AppendKey(nil, codec.AppendText(nil, []byte(codec.TTLNamespace)), nil, codec.KindTTL, codec.IntData(ms),
			ns, text(user)), ttlValue}
	}
	expiring := raw{codec.AppendKey(nil, codec.AppendText(nil, []byte("1")), []byte("e"), codec.KindMeta),
		strTTL(text("e"), 2000000000000)}
	late := raw{codec.AppendKey(nil, codec.AppendText(nil, []byte("1")), []byte("f"), codec.KindMeta),
		strTTL(text("f"), 2000000000001)}
	src, found := levelRows(t, late,
		named(codec.Data{}, "nil"), named(codec.FloatData(0.5), "float"), named(codec.IntData(1), "moved"),
		named(codec.IntData(1), "too"), named(text("1"), "a"), expiring,
		named(text("10"), "b"), named(text(""), "c"), raw{[]byte{9, 9}, nil}, ttl(2000000000000, text("1"), "e"),
		ttl(5, text("1"), "a"), ttl(6, text("gone"), "a"), ttl(6, text("1"), "gone"),
		raw{codec.AppendKey(nil, codec.AppendText(nil, []byte(codec.TTLNamespace)), []byte("odd"), codec.KindMeta), str(text("odd"))})
	if want := []string{"", "1", "10", "int:1"}; !slices.Equal(src.Databases(), want) {
		t.Fatalf("databases %q", src.Databases())
	}
	if len(found) != 1 || found[0].Kind != FindIntNamespace || found[0].DB != "int:1" {
		t.Errorf("findings %+v", found)
	}
	var kinds, keys []string
	env := testEnv(func(f record.Finding) { kinds = append(kinds, f.Kind) })
	env.Deep = true
	for _, db := range src.Databases() {
		readRecords(t, src, db, record.AllTypes, format.Span{}, env, func(h *record.Header, _ []record.Element) {
			keys = append(keys, h.DB+"/"+string(h.Key))
		})
	}
	if want := []string{"/c", "1/a", "1/e", "1/f", "10/b", "int:1/moved", "int:1/too"}; !slices.Equal(keys, want) {
		t.Errorf("%q", keys)
	}
	rest := env.Ledger.Snapshot()[defaultCF]
	if rest.Rows[record.Housekeeping] != 4 || rest.Rows[record.Malformed] != 4 || env.Ledger.Check() != nil {
		t.Errorf("%+v", rest)
	}
	slices.Sort(kinds)
	if want := []string{FindMalformedKey, FindMalformedKey, FindMalformedKey, FindMissingTTL, record.FindNewer,
		FindStaleTTL}; !slices.Equal(kinds, want) {
		t.Errorf("findings %q", kinds)
	}
	checkViews(t, src)
}

// TestGoldenTTL looks up every expiry in the index. Ardb leaves stale rows and loses others; all of this is at
// most a note.
func TestGoldenTTL(t *testing.T) {
	for kind := range openers {
		kinds := map[string]int{}
		env := testEnv(func(f record.Finding) {
			kinds[f.Kind]++
			if f.Severity != record.Note && f.Kind != record.FindCircularOrder {
				t.Errorf("%s: %+v", kind, f)
			}
		})
		env.Deep = true
		src := openGolden(t, kind)
		for _, db := range src.Databases() {
			readRecords(t, src, db, record.AllTypes, format.Span{}, env, func(*record.Header, []record.Element) {})
		}
		if indexed := kind != kindRocksDB; (kinds[FindStaleTTL] > 0) != indexed || !indexed && len(kinds) > 0 {
			t.Errorf("%s: %v", kind, kinds)
		}
		t.Logf("%s: %v", kind, kinds)
	}
}

// checkViews reads the keyspaces that are parts of a keyspace.
func checkViews(t *testing.T, src format.Source) {
	t.Helper()
	want := map[string]int{"": 1, "1": 3, "10": 1, "int:1": 2, codec.TTLNamespace: 5}
	for _, k := range src.Keyspaces() {
		name := k.DB
		if k.Name == codec.TTLNamespace {
			name = k.Name
		}
		var keys [][]byte
		it, err := k.Rows(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for {
			key, _, err := it.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			keys = append(keys, bytes.Clone(key))
		}
		n := 0
		if err := k.Unordered(func(*store.Entry) error { n++; return nil }); err != nil || n != want[name] || len(keys) != n {
			t.Errorf("%q: %d rows, %d unordered, %v", name, len(keys), n, err)
		}
		ents, err := k.Entries(nil, keys[len(keys)-1])
		if err != nil {
			t.Fatal(err)
		}
		for n = 0; err == nil; n++ {
			_, err = ents.Next()
		}
		if n != len(keys) { // all but the last, and the end
			t.Errorf("%q: %d entries before the last", name, n-1)
		}
		samples, err := k.Sample(10)
		if err != nil || len(samples) != len(keys) || k.Size() <= 0 || k.Size() > 1000 {
			t.Errorf("%q: %d samples, size %d, %v", name, len(samples), k.Size(), err)
		}
	}
}

func TestSizeAndWhere(t *testing.T) {
	for kind := range openers {
		src := openGolden(t, kind)
		whole, small := src.Size("0", record.AllTypes), src.Size("bar", record.AllTypes)
		if whole < 500000 || small >= whole/10 || src.Size("0", record.Of(record.Set)) != whole/6 ||
			src.Size("nope", record.AllTypes) != 0 {
			t.Errorf("%s: %d and %d bytes", kind, whole, small)
		}
		where := src.Where("0", []byte("h:two"))
		if len(where) != 1 || src.Where("nope", nil) != nil {
			t.Fatalf("%s: %+v", kind, where)
		}
		for _, k := range src.Keyspaces() {
			if k.DB == "0" && k.Size() != whole {
				t.Errorf("%s: %d bytes, its rows have %d", kind, whole, k.Size())
			}
			if k.DB != "0" || k.Name != where[0].Keyspace {
				continue
			}
			it, err := k.Rows(where[0].Lo, where[0].Hi)
			if err != nil {
				t.Fatal(err)
			}
			rows := 0
			for {
				key, val, err := it.Next()
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				rows++
				d := src.Describe("0", k.Name, key, val)
				if d.Err != nil || string(d.UserKey) != "h:two" || d.Type != record.Hash {
					t.Errorf("%s: %+v", kind, d)
				}
			}
			if rows != 3 {
				t.Errorf("%s: %d rows of h:two", kind, rows)
			}
		}
		if _, err := src.Split("nope", record.AllTypes, 2); err == nil {
			t.Errorf("%s: an unknown database is split", kind)
		}
	}
}

// orderedStore is a store in memory that reports its rows as unordered until it is opened resorted.
type orderedStore struct {
	store.Store
	sorted bool
}

type orderedSpace struct {
	store.Keyspace
	err error
}

func (s *orderedSpace) CheckOrder() error { return s.err }

func (s *orderedStore) Keyspaces() []store.Keyspace {
	out := s.Store.Keyspaces()
	for i := range out {
		var err error
		if !s.sorted {
			err = &store.OrderError{Keyspace: out[i].Name(), File: "/d/lmdb/data.mdb", Off: 8192}
		}
		out[i] = &orderedSpace{out[i], err}
	}
	return out
}

// TestMixedOrder: an LMDB file that the stock server has mixed up is opened sorted, with a finding.
func TestMixedOrder(t *testing.T) {
	fs := memstore.New()
	st := fs.Dir("/d/lmdb")
	for _, name := range []string{"0", codec.LMDBNamespace, codec.TTLNamespace} {
		if err := st.Keyspace(name, codec.Comparer()); err != nil {
			t.Fatal(err)
		}
		st.Put(name, codec.AppendKey(nil, nil, []byte("k"), codec.KindMeta), str(codec.IntData(1)))
	}
	opened := 0
	var found []record.Finding
	open := func(ctx context.Context, dir string, o *store.Options) (store.Store, error) {
		opened++
		if c := o.Order("0"); c == nil || c.Name != codec.ComparerName || o.Order(codec.LMDBNamespace) != nil {
			t.Errorf("order %+v", c)
		}
		s, err := fs.Open(ctx, dir, o)
		return &orderedStore{s, o.Resort}, err
	}
	src, err := New().Open(context.Background(), "/d", &format.OpenOptions{Store: open, Kind: kindLMDB,
		Options: store.Options{Report: func(f record.Finding) { found = append(found, f) }}})
	if err != nil {
		t.Fatal(err)
	}
	if opened != 2 || len(found) != 1 || found[0].Kind != FindRowOrder ||
		found[0].Place != (record.Place{File: "lmdb/data.mdb", Off: 8192, Level: -1}) || !slices.Equal(src.Databases(), []string{"0"}) {
		t.Errorf("opened %d times, %+v, databases %q", opened, found, src.Databases())
	}
	if err := src.Close(); err != nil {
		t.Error(err)
	}
}

// TestSplitCovers cuts a namespace into many spans: each record is in exactly one.
func TestSplitCovers(t *testing.T) {
	st, src := write(t, kindLevelDB, sampleRecords()...)
	_ = st
	for n := range 9 {
		spans, err := src.Split("0", record.AllTypes, n)
		if err != nil || len(spans) == 0 || len(spans) > max(1, n) {
			t.Fatalf("%d spans for %d, %v", len(spans), n, err)
		}
		var keys []string
		for i, s := range spans {
			if (i == 0) != (s.Lo == nil) || (i == len(spans)-1) != (s.Hi == nil) || i > 0 && !bytes.Equal(s.Lo, spans[i-1].Hi) {
				t.Errorf("span %d of %d: %q to %q", i, len(spans), s.Lo, s.Hi)
			}
			readRecords(t, src, "0", record.AllTypes, s, testEnv(noFindings(t)), func(h *record.Header, _ []record.Element) {
				keys = append(keys, string(h.Key))
			})
		}
		if want := []string{"h", "h1", "l", "s", "str", "x", "z"}; !slices.Equal(keys, want) {
			t.Errorf("%d spans: %q", n, keys)
		}
	}
}

// TestBigRecords reads values larger than the copies of a batch, and skips records that are long enough to
// seek past.
func TestBigRecords(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	big := make([]byte, 300<<10)
	rng.Read(big)
	var elems []record.Element
	for i := range 40 {
		elems = append(elems, record.Element{Name: []byte(fmt.Sprintf("f%03d", i)), Value: big[:i*7000]})
	}
	recs := []rec{
		{record.Header{Type: record.Hash, Key: []byte("h")}, elems},
		{record.Header{Type: record.List, Key: []byte("l")}, elems},
		{record.Header{Type: record.String, Key: []byte("s")}, []record.Element{{Value: big}}},
		{record.Header{Type: record.Set, Key: []byte("t")}, elems},
	}
	for kind := range creators {
		_, src := write(t, kind, recs...)
		n := 0
		readRecords(t, src, "0", record.AllTypes, format.Span{}, testEnv(noFindings(t)),
			func(h *record.Header, got []record.Element) {
				want := recs[n].elems
				n++
				if len(got) != len(want) {
					t.Fatalf("%s: %d elements", h.Type, len(got))
				}
				for i := range got {
					if h.Type != record.Set && !bytes.Equal(got[i].Value, want[i].Value) ||
						h.Type == record.Hash && !bytes.Equal(got[i].Name, want[i].Name) {
						t.Errorf("%s: element %d differs", h.Type, i)
					}
				}
			})
		for _, typ := range []record.Type{record.String, record.Set} {
			env := testEnv(noFindings(t))
			readRecords(t, src, "0", record.Of(typ), format.Span{}, env, func(h *record.Header, _ []record.Element) { n++ })
			if err := env.Ledger.Check(); err != nil {
				t.Error(err)
			}
		}
		if n != len(recs)+2 {
			t.Errorf("%s: %d records", kind, n)
		}
	}
}

// BenchmarkRecords reads a golden, and the random records of a memory store.
func BenchmarkRecords(b *testing.B) {
	src := openGolden(b, kindRocksDB)
	buf := make([]record.Element, 256)
	for range b.N {
		r, err := formattest.Walk(src.Records(context.Background(), "0", record.AllTypes, format.Span{}, testEnv(nil)))
		if err != nil {
			b.Fatal(err)
		}
		for {
			if _, err := r.Next(); err != nil {
				break
			}
			for {
				if _, err := r.Read(buf); err != nil {
					break
				}
			}
		}
		r.Close()
	}
	b.ReportAllocs()
}
