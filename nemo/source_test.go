package nemo_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/internal/shared/dataset"
	"kvferry/internal/testkit/formattest"
	"kvferry/nemo"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks"
)

func TestOpenRefuses(t *testing.T) {
	root := t.TempDir()
	mk := func(path string) string {
		dir := filepath.Join(root, path)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	damaged := mk("damaged")
	mk("damaged/kv")
	if err := os.WriteFile(filepath.Join(root, "damaged/kv/000004.sst"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ dir, want string }{
		{filepath.Join(root, "missing"), "not a nemo database"},
		{mk("empty"), "not a nemo database: want the RocksDB directories kv, hash, list, set and zset"},
		{damaged, filepath.Join(damaged, "kv")},
	} {
		src, err := nemo.New().Open(context.Background(), c.dir, &format.OpenOptions{Store: rocks.Open})
		if err == nil || src != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.dir, err, c.want)
		}
	}
}

func TestOpenRefusesOtherStores(t *testing.T) {
	m := newMemory(t).stores()
	m.Store("set").Keyspace("member_cf", store.Bytewise)
	open := func() error {
		_, err := nemo.New().Open(context.Background(), m.Dir, &format.OpenOptions{Store: m.FS.Open})
		return err
	}
	if err := open(); err == nil || !strings.Contains(err.Error(), "set: has a column family") {
		t.Errorf("a second column family: %v", err)
	}
	m = newMemory(t).stores()
	m.Store("set").Keyspace("default", store.Comparer{Name: "odd", Compare: bytes.Compare})
	if err := open(); err == nil || !strings.Contains(err.Error(), "set: column family default is ordered by odd") {
		t.Errorf("another order: %v", err)
	}
}

// TestMissingStore opens a dataset that lacks two of the five.
func TestMissingStore(t *testing.T) {
	m := newMemory(t)
	m.Store("kv").Put("default", []byte("k"), make([]byte, 8))
	m.Store("set").Len("default")
	m.Store("zset").Len("default")
	var f formattest.Findings
	src, err := nemo.New().Open(context.Background(), m.Dir,
		&format.OpenOptions{Store: m.FS.Open, Options: store.Options{Report: f.Report}})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	if len(f.All) != 1 || f.All[0].Kind != dataset.FindMissingStore || f.All[0].Severity != record.Error ||
		!strings.HasPrefix(f.All[0].Detail, "hash, list not found") {
		t.Errorf("findings %+v", f.All)
	}
	if got := src.Types("0"); got != record.Of(record.String, record.Set, record.ZSet) {
		t.Errorf("types %s", got)
	}
}

// TestDatabases reads db0, db2 and db10, and ignores directories that only look like databases.
func TestDatabases(t *testing.T) {
	m := newMemory(t)
	for _, db := range []string{"db10", "db0", "db2", "db", "db01", "dbx", "other"} {
		if err := os.MkdirAll(filepath.Join(m.Dir, db), 0o755); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"kv", "hash", "list", "set", "zset"} {
			m.Store(db + "/" + name).Len("default")
		}
		m.Store(db+"/kv").Put("default", []byte(db), make([]byte, 8))
	}
	if err := os.Rename(filepath.Join(m.Dir, "db10"), filepath.Join(m.Dir, "disk2")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("disk2", filepath.Join(m.Dir, "db10")); err != nil { // databases may be on separate disks
		t.Fatal(err)
	}
	for _, file := range []string{"info", "db2/info"} {
		if err := os.WriteFile(filepath.Join(m.Dir, file), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	src := m.Open(t)
	if got := src.Databases(); !slices.Equal(got, []string{"0", "2", "10"}) || src.Layout() != format.LayoutDB {
		t.Errorf("databases %q, layout %v", got, src.Layout())
	}
	if got := src.Extra(); !slices.Equal(got, []string{"info", "db2/info"}) {
		t.Errorf("extra files %q", got)
	}
	var l record.Ledger
	got := string(formattest.Lines(t, formattest.Records(t, src, "10", &format.Env{Ledger: &l})))
	if want := `{"db":"10","type":"string","key":"ZGIxMA==","expire_at_ms":0,"value":""}` + "\n"; got != want {
		t.Errorf("records of db10: %s", got)
	}
	if formattest.Classes(&l, "db10/kv") != "copied=1" {
		t.Errorf("ledger %+v", l.Snapshot())
	}
	if ks := src.Keyspaces(); len(ks) != 15 || ks[5].DB != "2" || ks[6].Name != "hash" {
		t.Errorf("%d keyspaces", len(ks))
	}
	if _, err := src.Records(context.Background(), "7", record.AllTypes, format.Span{}, &format.Env{}); err == nil {
		t.Error("a database that is not there was read")
	}
	if src.Format().Name() != "nemo" || !src.Sorted() {
		t.Error("not a sorted nemo source")
	}
}

func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	src := formattest.OpenGolden(t, nemo.New(), goldens[0])
	for _, typ := range src.Types("0").Types() {
		r, err := formattest.Walk(src.Records(ctx, "0", record.Of(typ), format.Span{}, &format.Env{}))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Next(); typ == record.String && err != nil {
			t.Fatal(err)
		}
		cancel()
		for err == nil { // records read before the cancellation may be returned
			_, err = r.Next()
		}
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v after cancelling", typ, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestExpiry checks the engine's rule: whole seconds, and a key lives in the second it expires.
func TestExpiry(t *testing.T) {
	m := newMemory(t).stores()
	at := nemo.UnixSeconds(formattest.Now.Unix())
	for name, e := range map[string]nemo.UnixSeconds{"0": 0, "past": at - 1, "now": at, "later": at + 1, "negative": -5} {
		m.Store("kv").Put("default", []byte(name), nemo.AppendPlain(nil, nemo.Plain{Suffix: nemo.Suffix{Expiry: e}}))
		m.Store("set").Put("default", []byte("S"+name), nemo.AppendMeta(nil, nemo.Meta{Count: 1, Suffix: nemo.Suffix{Expiry: e}}))
	}
	r := formattest.Records(t, m.Open(t), "0", &format.Env{Now: formattest.Now.Add(999 * time.Millisecond)})
	defer r.Close()
	got := ""
	for {
		h, err := r.Next()
		if err != nil {
			break
		}
		got += fmt.Sprintf("%s %s %d %v\n", h.Key, h.Type, h.ExpireMS, h.Expired)
	}
	want := `0 string 0 false
0 set 0 false
later string 1700000101000 false
later set 1700000101000 false
negative string 0 false
negative set -5000 true
now string 1700000100000 false
now set 1700000100000 false
past string 1700000099000 true
past set 1700000099000 true
`
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestLargeElements reads elements that no batch copies.
func TestLargeElements(t *testing.T) {
	m := newMemory(t).stores()
	var want [][]byte
	for i := range 9 {
		v := bytes.Repeat([]byte{byte('a' + i)}, 1+i%3*70_000)
		want = append(want, v)
		m.Store("hash").Put("default", nemo.AppendHashKey(nil, nemo.HashKey{Key: []byte("k"), Field: []byte{byte(i)}}),
			nemo.AppendPlain(nil, nemo.Plain{Bytes: v, Suffix: s1}))
	}
	m.Store("hash").Put("default", []byte("Hk"), nemo.AppendMeta(nil, nemo.Meta{Count: 9, Suffix: s1}))
	r := formattest.Records(t, m.Open(t), "0", &format.Env{})
	defer r.Close()
	if _, err := r.Next(); err != nil {
		t.Fatal(err)
	}
	var got [][]byte
	elems := make([]record.Element, 4)
	for {
		n, err := r.Read(elems)
		if err != nil {
			break
		}
		for _, e := range elems[:n] {
			got = append(got, bytes.Clone(e.Value))
		}
	}
	if !slices.EqualFunc(got, want, bytes.Equal) {
		t.Errorf("%d elements, want %d", len(got), len(want))
	}
}

func TestWhere(t *testing.T) {
	src := formattest.OpenGolden(t, nemo.New(), goldens[0])
	got := ""
	for _, r := range src.Where("0", []byte("k\xff")) {
		got += fmt.Sprintf("%s %s %q %q\n", r.Keyspace, r.Type, r.Lo, r.Hi)
	}
	want := `kv string "k\xff" "k\xff\x00"
hash hash "Hk\xff" "Hk\xff\x00"
hash hash "h\x02k\xff" "h\x02l"
list list "Lk\xff" "Lk\xff\x00"
list list "l\x02k\xff" "l\x02l"
set set "Sk\xff" "Sk\xff\x00"
set set "s\x02k\xff" "s\x02l"
zset zset "Zk\xff" "Zk\xff\x00"
zset zset "z\x02k\xff" "z\x02l"
zset zset "y\x02k\xff" "y\x02l"
`
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if got := src.Where("0", nil); len(got) != 5 || got[0].Lo == nil || len(got[0].Hi) != 1 {
		t.Errorf("rows of the empty key: %q", got)
	}
}

// TestLimits: a row's suffix has 31 bits for seconds, a row's key one byte for the length of the user key.
func TestLimits(t *testing.T) {
	formattest.Limits(t, nemo.New(), "Types=string,hash,list,set,zset Seconds MaxExpireMS=2147483647000 MaxKey=254 FirstMS=1000 Signed=hash,list,set,zset MaxScore=1e+13 "+
		"MaxElements=2147483647 SameName Numbered Layouts rocksdb:rw Beside=[bgsave dbsync dump log]")
}

func TestDetect(t *testing.T) {
	evidence := func(paths ...string) *format.Evidence {
		ev := &format.Evidence{Dir: "/x"}
		for _, p := range paths {
			ev.Stores = append(ev.Stores, format.StoreEvidence{Path: p, Kind: "rocksdb",
				Keyspaces: []format.KeyspaceEvidence{{Name: "default", Comparer: store.Bytewise.Name}}})
		}
		return ev
	}
	other := evidence("kv", "hash", "list", "set", "zset")
	other.Stores[1].Kind = "leveldb"
	other.Stores[2].Keyspaces[0].Comparer = "odd"
	other.Stores[3].Keyspaces = append(other.Stores[3].Keyspaces, format.KeyspaceEvidence{Name: "data_cf"})
	for _, c := range []struct {
		name  string
		ev    *format.Evidence
		score int
	}{
		{"all five", evidence("hash", "kv", "list", "set", "zset"), 95},
		{"in db0 and db1", evidence("db0/hash", "db0/kv", "db0/list", "db0/set", "db0/zset", "db1/kv"), 95},
		{"three", evidence("hash", "kv", "list"), 60},
		{"blackwidow's", evidence("hashes", "strings", "lists", "sets", "zsets"), 0},
		{"too deep", evidence("a/kv", "a/hash", "db0/x/list"), 0},
		{"itself a store", evidence("."), 0},
		{"two, the others unlike", other, 40},
		{"nothing", evidence(), 0},
	} {
		v := nemo.New().Detect(c.ev)
		if v.Score != c.score || (len(c.ev.Stores) > 0 && c.score > 0) != (len(v.Why) > 0) {
			t.Errorf("%s: %d %q, want %d", c.name, v.Score, v.Why, c.score)
		}
	}
}

// TestSourceStaysAsItIs checks that reading leaves the files unchanged.
func TestSourceStaysAsItIs(t *testing.T) {
	dir := fixtures.Unpack(t, goldens[0])
	before := tree(t, dir)
	src, err := nemo.New().Open(context.Background(), dir, &format.OpenOptions{Store: rocks.Open})
	if err != nil {
		t.Fatal(err)
	}
	formattest.Lines(t, formattest.Records(t, src, "0", &format.Env{}))
	if err := src.Close(); err != nil {
		t.Fatal(err)
	}
	if after := tree(t, dir); after != before {
		t.Errorf("before\n%safter\n%s", before, after)
	}
}

func tree(t testing.TB, dir string) string {
	s := ""
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		s += fmt.Sprintf("%s %d %s\n", path, info.Size(), info.ModTime())
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}
