package kvrocks_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/internal/formattest"
	"kvferry/internal/loglog"
	"kvferry/kvrocks"
	"kvferry/kvrocks/codec"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks"
)

// TestGoldensAgain writes what the server wrote, modules, bitmaps and consumer groups too, and reads the same: in rows that keep to
// the rules of the server's writers.
func TestGoldensAgain(t *testing.T) {
	src := formattest.Open(t, kvrocks.New(), golden(t, "kvrocks-modules"), &format.OpenOptions{Store: rocks.Open})
	for _, cluster := range []bool{false, true} {
		read := func() record.Reader {
			return formattest.Records(t, src, kvrocks.DefaultNamespace, &format.Env{Now: goldenNow})
		}
		dir := filepath.Join(t.TempDir(), "new")
		dst := formattest.Create(t, kvrocks.New(), dir, &format.CreateOptions{Create: rocks.Create, DBs: []string{kvrocks.DefaultNamespace},
			Cluster: cluster, TempDir: t.TempDir(), Now: fixtures.Clock, Reopen: &format.OpenOptions{Store: rocks.Open}})
		w, err := dst.Shard(0, kvrocks.DefaultNamespace, record.AllTypes, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := fixtures.Pump(w, read()); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if tables, err := dst.Tables(0); err != nil || len(tables) == 0 != cluster || len(tables) > 0 && !strings.HasPrefix(tables[0].File, "db/") {
			t.Errorf("cluster %v: %d tables", cluster, len(tables))
		}
		back := formattest.Finish(t, dst)
		checkWriter(t, back, cluster)
		formattest.CheckEqual(t, formattest.Sum(t, formattest.Records(t, back, kvrocks.DefaultNamespace, &format.Env{Now: goldenNow})),
			formattest.Sum(t, read()), false)
	}
}

// checkWriter holds every row to what the server's own writers do, from the bytes alone.
func checkWriter(t *testing.T, src format.Source, cluster bool) {
	t.Helper()
	metas := map[string]codec.Meta{}
	versions := map[codec.Version]string{}
	rows := map[string]uint64{}
	scores := map[string]bool{}
	for _, ks := range src.Keyspaces() {
		it, err := ks.Rows(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer it.Close()
		for {
			key, value, err := it.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			switch ks.Name {
			case "metadata":
				k, err := codec.DecodeMetaKey(key, cluster)
				m, merr := codec.DecodeMeta(value)
				if err != nil || merr != nil || cluster && k.Slot != codec.Slot(k.Key) || !m.Wide {
					t.Fatalf("%q: %+v, %v, %v", key, m, err, merr)
				}
				m.Extras = bytes.Clone(m.Extras)
				metas[string(k.Key)] = m
				if m.Kind != codec.KindString && m.Kind != codec.KindJSON {
					if other, twice := versions[m.Version]; twice || m.Version == 0 {
						t.Errorf("%q has the version %d of %q", k.Key, m.Version, other)
					}
					versions[m.Version] = string(k.Key)
				}
			case "default", "stream", "zset_score":
				checkBelow(t, ks.Name, key, value, cluster, metas, rows, scores)
			default:
				t.Errorf("a row in %s", ks.Name)
			}
		}
	}
	for key, m := range metas {
		if want := sized(&m); want >= 0 && rows[key] != uint64(want) {
			t.Errorf("%q (%s) has size %d and %d rows", key, m.Kind, m.Size, rows[key])
		}
	}
}

// sized is the number of rows that a size tells of, -1 when it tells of none.
func sized(m *codec.Meta) int64 {
	switch m.Kind {
	case codec.KindHash, codec.KindList, codec.KindSet, codec.KindZSet, codec.KindSortedInt, codec.KindStream:
		return int64(m.Size)
	}
	return -1
}

func checkBelow(t *testing.T, cf string, key, value []byte, cluster bool, metas map[string]codec.Meta, rows map[string]uint64, scores map[string]bool) {
	t.Helper()
	k, err := codec.DecodeSubKey(key, cluster)
	if err != nil || cluster && k.Slot != codec.Slot(k.Key) {
		t.Fatalf("%s %q: %v", cf, key, err)
	}
	member := string(k.Key) + "\x00" + string(k.Sub)
	switch cf {
	case "zset_score":
		if at := string(k.Key) + "\x00" + string(k.Sub[8:]) + "\x00" + string(k.Sub[:8]); !scores[at] {
			t.Errorf("row by score %q without its member", key)
		}
		return
	case "stream":
		if !codec.IsEntry(k.Sub) {
			if g, err := codec.DecodeGroupKey(k.Sub); err != nil || g.Old {
				t.Errorf("group row %q: %v", key, err)
			}
			return
		}
	}
	rows[string(k.Key)]++
	scores[member+"\x00"+string(value)] = true
	m := metas[string(k.Key)] // keyspaces come in this order: metadata, default, zset_score, stream
	if m.Version != k.Version {
		t.Errorf("%s %q is of version %d, its key of %d", cf, key, k.Version, m.Version)
	}
	if m.Kind == codec.KindBitmap && len(value) != 1024 || m.Kind == codec.KindHyperLogLog && len(value) != 768 {
		t.Errorf("a segment of %d bytes of %q", len(value), k.Key)
	}
}

// TestLosses: what a target cannot hold is told, and what it holds in another way is changed before it is hashed.
func TestLosses(t *testing.T) {
	old := formattest.NewMemory(t, kvrocks.New().(format.Served).For("kvrocks2.3")).Create(t, format.CreateOptions{})
	now := formattest.NewMemory(t, kvrocks.New()).Create(t, format.CreateOptions{})
	for _, c := range []struct {
		dst  format.Target
		h    record.Header
		want string
		ms   int64
	}{
		{now, record.Header{Type: record.Hash, ExpireMS: 1}, "", 1},
		{old, record.Header{Type: record.Hash, ExpireMS: 1}, "expiry-ms", 1000},
		{old, record.Header{Type: record.Hash, ExpireMS: 1 << 50}, "expiry-2106", (1<<32 - 1) * 1000},
		{old, record.Header{Type: record.Set, Len: 1 << 33}, "too-many-elements", 0},
	} {
		got := ""
		for _, l := range c.dst.Losses(&c.h) {
			got += l.Kind
		}
		if got != c.want || c.h.ExpireMS != c.ms {
			t.Errorf("%+v: %q, want %q", c.h, got, c.want)
		}
	}
	sparse := "HYLL\x01\x00\x00\x00" + strings.Repeat("\x00", 8)
	for _, c := range []struct {
		dst   format.Target
		typ   record.Type
		e     record.Element
		want  string
		kept  int
		dense bool
	}{
		{now, record.String, record.Element{Value: []byte(sparse + "\x7f\xff")}, "hyperloglog", 1, true},
		{now, record.String, record.Element{Value: []byte(sparse + "\x7f\xff\x00")}, "hyperloglog", 1, false},
		{now, record.String, record.Element{Value: make([]byte, loglog.RawSize)}, "hyperloglog", 1, false},
		{old, record.String, record.Element{Value: []byte(sparse + "\x7f\xff")}, "hyperloglog", 1, false},
		{now, record.String, record.Element{Value: []byte("just a string of some length")}, "", 1, false},
		{now, record.Other, record.Element{Name: []byte("MBbloom--"), Value: []byte("x")}, "module", 0, false},
		{now, record.Other, record.Element{Name: []byte("kvrocks:MBbloom--"), Value: []byte("x")}, "", 1, false},
	} {
		got := ""
		kept := c.dst.ElementLosses(&record.Header{Type: c.typ}, []record.Element{c.e}, func(l record.Loss) { got += l.Kind })
		if got != c.want || len(kept) != c.kept || c.typ == record.String && loglog.IsStale(kept[0].Value) != c.dense {
			t.Errorf("%s %.20q: %q, want %q; %d kept", c.typ, c.e.Value, got, c.want, len(kept))
		}
	}
}

func TestNamespaces(t *testing.T) {
	for _, c := range []struct {
		db      string
		cluster bool
		ok      bool
	}{{"users", false, true}, {"", false, false}, {strings.Repeat("n", 256), false, false}, {strings.Repeat("n", 255), false, true},
		{"a\x7f", false, false}, {"users", true, false}, {kvrocks.DefaultNamespace, true, true}} {
		m := formattest.NewMemory(t, kvrocks.New())
		dst, err := m.Format.Create(context.Background(), m.Dir, &format.CreateOptions{Create: m.FS.Create, DBs: []string{c.db}, Cluster: c.cluster})
		if (err == nil) != c.ok {
			t.Errorf("namespace %.10q: %v", c.db, err)
		}
		if err == nil {
			if err := dst.Adopt(0, c.db, []store.Table{{File: "db/000001.sst"}}); (err != nil) != c.cluster {
				t.Errorf("adopt: %v", err)
			}
			if err := dst.Adopt(0, c.db, []store.Table{{File: "elsewhere"}}); err == nil {
				t.Error("a table of somewhere else is taken")
			}
			dst.Abort()
		}
	}
}

func TestDetect(t *testing.T) {
	evidence := func(path, kind, comparer string, names ...string) *format.Evidence {
		s := format.StoreEvidence{Path: path, Kind: kind}
		for _, n := range names {
			s.Keyspaces = append(s.Keyspaces, format.KeyspaceEvidence{Name: n, Comparer: comparer})
		}
		return &format.Evidence{Stores: []format.StoreEvidence{s}}
	}
	for _, c := range []struct {
		ev    *format.Evidence
		least int
	}{
		{evidence("db", "rocksdb", store.Bytewise.Name, "default", "metadata", "zset_score", "pubsub", "propagate", "stream"), 90},
		{evidence(".", "rocksdb", store.Bytewise.Name, "default", "metadata", "stream"), 80},
		{evidence("db", "rocksdb", store.Bytewise.Name, "default"), 0},
		{evidence("db", "leveldb", store.Bytewise.Name, "default", "metadata", "stream"), 0},
		{evidence("db", "rocksdb", "another", "default", "metadata", "stream"), 0},
		{evidence("x/y", "rocksdb", store.Bytewise.Name, "default", "metadata", "stream"), 0},
	} {
		if v := kvrocks.New().Detect(c.ev); v.Score < c.least || c.least == 0 && v.Score > 0 {
			t.Errorf("%+v: %+v", c.ev, v)
		}
	}
	if f := kvrocks.New().(format.Served); len(f.Servers()) != 2 || f.For("kvrocks2.9").(format.Served).Server() != "kvrocks2.9" {
		t.Error("servers")
	}
}

// TestMisuse: a writer refuses what it cannot write.
func TestMisuse(t *testing.T) {
	for name, do := range map[string]func(w record.Writer) error{
		"order": func(w record.Writer) error {
			if err := w.Begin(&record.Header{Type: record.Hash, Key: []byte("b")}); err != nil {
				return fmt.Errorf("too early: %w", err)
			}
			return w.Begin(&record.Header{Type: record.Hash, Key: []byte("a")})
		},
		"twice": func(w record.Writer) error {
			_ = w.Begin(&record.Header{Type: record.Hash, Key: []byte("a")})
			return w.Begin(&record.Header{Type: record.Set, Key: []byte("a")})
		},
		"two values": func(w record.Writer) error {
			_ = w.Begin(&record.Header{Type: record.String, Key: []byte("a")})
			return w.Write([]record.Element{{Value: []byte("x")}, {Value: []byte("y")}})
		},
		"id": func(w record.Writer) error {
			_ = w.Begin(&record.Header{Type: record.Stream, Key: []byte("a"), ByName: true})
			return w.Write([]record.Element{{Name: []byte("x")}})
		},
		"sortedint": func(w record.Writer) error {
			_ = w.Begin(&record.Header{Type: record.Set, Key: []byte("a"), Native: "sortedint"})
			return w.Write([]record.Element{{Name: []byte("x")}})
		},
		"module": func(w record.Writer) error {
			_ = w.Begin(&record.Header{Type: record.Other, Key: []byte("a")})
			return w.Write([]record.Element{{Name: []byte("x")}})
		},
		"part": func(w record.Writer) error {
			_ = w.Begin(&record.Header{Type: record.Other, Key: []byte("a")})
			return w.Write([]record.Element{{Name: []byte("kvrocks:MBbloom--"), Value: []byte{1, 9}}})
		},
	} {
		dst := formattest.NewMemory(t, kvrocks.New()).Create(t, format.CreateOptions{DBs: []string{"0"}, TempDir: t.TempDir()})
		w, err := dst.Shard(0, "0", record.AllTypes, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := do(w); err == nil || !strings.Contains(err.Error(), "kvrocks namespace") {
			t.Errorf("%s: %v", name, err)
		}
		w.Abort()
	}
}

// TestLoadPath: a folder whose path has the name of a column family is refused, for the server would go by it.
func TestLoadPath(t *testing.T) {
	for path, refused := range map[string]bool{"new": false, "my-default": true, "streams/new": true, "metadata-copy": true} {
		dir := filepath.Join(t.TempDir(), path)
		dst, err := kvrocks.New().Create(context.Background(), dir, &format.CreateOptions{Create: rocks.Create, SST: true,
			DBs: []string{kvrocks.DefaultNamespace}, TempDir: t.TempDir(), Now: fixtures.Clock})
		if refused != (err != nil && strings.Contains(err.Error(), "SST LOAD")) {
			t.Errorf("%s: %v", path, err)
		}
		if dst != nil {
			dst.Abort()
		}
	}
}
