package ssdb_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kvferry/format"
	"kvferry/internal/testkit/formattest"
	"kvferry/record"
	"kvferry/ssdb"
	"kvferry/store"
)

// TestDetect: what a directory of LevelDB, its keys and its neighbours say.
func TestDetect(t *testing.T) {
	const order = "leveldb.BytewiseComparator"
	both := t.TempDir()
	for _, dir := range []string{"data", "meta", "var/data", "var/meta"} {
		if err := os.MkdirAll(filepath.Join(both, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		dir, path, kind, comparer, keys string
		want                            int
	}{
		{"", "data", "leveldb", order, "\x01\x00 zz", 75}, {"", "data", "leveldb", order, "", 40},
		{both, "data", "leveldb", order, "Ha zz", 95}, {both, "var/data", "leveldb", order, "Ha zz", 95}, {both, "data", "leveldb", order, "", 60},
		{both + "/data", ".", "leveldb", order, "Ha zz", 95}, {both + "/data", ".", "leveldb", order, "", 60}, {both + "/meta", ".", "leveldb", order, "Ha zz", 75},
		{"", ".", "leveldb", order, "Ha zz", 75}, {"", ".", "leveldb", order, "", 0},
		{"", "data", "leveldb", order, "Ha xx", 0}, {"", "data", "leveldb", "ardb.comparator", "Ha", 0}, {"", "data", "rocksdb", order, "Ha", 0},
		{"", "db/data", "leveldb", order, "Ha", 0}, {"", "meta", "leveldb", order, "Ha", 0},
	} {
		ks := format.KeyspaceEvidence{Name: "default", Comparer: c.comparer}
		for _, key := range strings.Fields(c.keys) {
			ks.Ends = append(ks.Ends, []byte(key))
		}
		v := ssdb.New().Detect(&format.Evidence{Dir: c.dir,
			Stores: []format.StoreEvidence{{Path: c.path, Kind: c.kind, Keyspaces: []format.KeyspaceEvidence{ks}}}})
		if v.Score != c.want {
			t.Errorf("%s %s with keys %q: %d, want %d: %q", c.kind, c.path, c.keys, v.Score, c.want, v.Why)
		}
	}
}

// TestOpen: directories that are not SSDB's are refused.
func TestOpen(t *testing.T) {
	m := formattest.NewMemory(t, ssdb.New())
	if _, err := m.Format.Open(t.Context(), m.Dir, &format.OpenOptions{Store: m.FS.Open}); !errors.Is(err, store.ErrNotStore) {
		t.Errorf("nothing: %v", err)
	}
	if err := os.MkdirAll(filepath.Join(m.Dir, "data"), 0o755); err != nil {
		t.Fatal(err)
	}
	m.Store("meta").Len("default")
	if _, err := m.Format.Open(t.Context(), filepath.Join(m.Dir, "meta"), &format.OpenOptions{Store: m.FS.Open}); err == nil ||
		!strings.Contains(err.Error(), "name "+m.Dir+"/data") {
		t.Errorf("meta: %v", err)
	}
	m.Store("data").Len("default")
	m.Store("data").Len("another")
	if _, err := m.Format.Open(t.Context(), m.Dir, &format.OpenOptions{Store: m.FS.Open}); err == nil ||
		!strings.Contains(err.Error(), "a single keyspace in byte order") {
		t.Errorf("two keyspaces: %v", err)
	}
	src := whole(t).Open(t)
	got := src.Databases()
	if !slices.Equal(got, []string{"0"}) || src.Format().Name() != "ssdb" || src.Extra() != nil || !src.Sorted() ||
		src.Layout() != format.LayoutFlat {
		t.Errorf("databases %q, files %q", got, src.Extra())
	}
	if _, err := src.Records(t.Context(), "1", record.AllTypes, format.Span{}, &format.Env{}); err == nil {
		t.Error("database 1 is read")
	}
}

// TestDescribe: each kind of row, whole and damaged.
func TestDescribe(t *testing.T) {
	d := whole(t)
	d.Memory.Store("meta").Len("default")
	src := d.Open(t)
	list := []byte(ssdb.ExpireList)
	for _, c := range []struct {
		key, value []byte
		want       string
	}{
		{nil, nil, `unknown of ""; error offset 0: kind: need 1 bytes, have 0: too short`},
		{[]byte("kk"), []byte("v"), `string of "k" meta until 4000000000000; key kind='k' @0+1; key name="k" @1+1; value value="v" @0+1`},
		{[]byte("kn"), nil, `string of "n" meta; key kind='k' @0+1; key name="n" @1+1; value value="" @0+0`},
		{[]byte("Hk"), ssdb.AppendSize(nil, 2), `hash size of "k" meta; key kind='H' @0+1; key name="k" @1+1; value size=2 @0+8`},
		{[]byte("Zk"), []byte("1"), `zset size of "k" meta; key kind='Z' @0+1; key name="k" @1+1; value undecoded="1" @0+1; error offset 0: size: need 8 bytes, have 1: too short`},
		{[]byte("H"), ssdb.AppendSize(nil, 2), `hash size of "" meta; key kind='H' @0+1; key name="" @1+0; value size=2 @0+8; error offset 1: name: no bytes; the server refuses empty names`},
		{ssdb.AppendFieldKey(nil, []byte("k"), []byte("f")), []byte("v"),
			`hash field of "k"; key kind='h' @0+1; key name length=1 @1+1; key name="k" @2+1; key field="f" @4+1; value value="v" @0+1`},
		{[]byte("h\x05k"), nil, `hash field of ""; key kind='h' @0+1; key undecoded="\x05k" @1+2; error offset 1: name length: need 5 bytes, have 1: too short`},
		{ssdb.AppendScoreKey(nil, []byte("k"), []byte("m")), []byte("-7"),
			`zset member of "k"; key kind='s' @0+1; key name length=1 @1+1; key name="k" @2+1; key member="m" @4+1; value score=-7 @0+2`},
		{ssdb.AppendScoreKey(nil, []byte("k"), []byte("m")), []byte("x"), `zset member of "k"; key kind='s' @0+1; key name length=1 @1+1; key name="k" @2+1; ` +
			`key member="m" @4+1; value undecoded="x" @0+1; error offset 0: score: not a decimal integer`},
		{ssdb.AppendRankKey(nil, []byte("k"), -7, []byte("m")), nil,
			`zset rank of "k"; key kind='z' @0+1; key name length=1 @1+1; key name="k" @2+1; key score=-7 @3+9; key member="m" @13+1`},
		{ssdb.AppendScoreKey(nil, list, []byte("k")), []byte("4000000000000"), `expiry of "k"; key kind='s' @0+1; key name length=20 @1+1; key name="\xff\xff\xff\xff\xff|EXPIRE_LIST|KV" @2+20; ` +
			`key member="k" @23+1; value expiry=2096-10-02T07:06:40Z @0+13`},
		{ssdb.AppendRankKey(nil, list, 5, []byte("k")), nil, `expiry by time of "k"; key kind='z' @0+1; key name length=20 @1+1; key name="\xff\xff\xff\xff\xff|EXPIRE_LIST|KV" @2+20; ` +
			`key score=5 @22+9; key member="k" @32+1`},
		{ssdb.AppendItemKey(nil, []byte("k"), 2), ssdb.AppendSize(nil, 9), `queue front of "k"; key kind='q' @0+1; key name length=1 @1+1; key name="k" @2+1; key seq=2 @3+8; value seq of it=9 @0+8`},
		{ssdb.AppendItemKey(nil, []byte("k"), 3), nil, `queue back of "k"; key kind='q' @0+1; key name length=1 @1+1; key name="k" @2+1; key seq=3 @3+8; value undecoded="" @0+0; ` +
			`error offset 0: size: need 8 bytes, have 0: too short`},
		{ssdb.AppendItemKey(nil, []byte("k"), ssdb.MinItem), []byte("i"), `queue item of "k"; key kind='q' @0+1; key name length=1 @1+1; key name="k" @2+1; key seq=10000 @3+8; value item="i" @0+1`},
		{[]byte("\x01\x00\x00\x00\x00\x00\x00\x00\x05"), ssdb.AppendLog(nil, &ssdb.Log{Seq: 5, Type: 1, Cmd: 2, Key: []byte("kk")}),
			`binlog of ""; key kind='\x01' @0+1; key seq=5 @1+8; value type=1 @8+1; value cmd=2 @9+1; value key="kk" @10+2`},
		{[]byte("\x01"), nil, `binlog of ""; key kind='\x01' @0+1; value undecoded="" @0+0; error offset 1: seq: need 8 bytes, have 0: too short`},
		{[]byte("x"), nil, `unknown of ""; key kind='x' @0+1; key undecoded="x" @0+1; error offset 0: kind: 'x': written by no known server`},
	} {
		if got := formattest.ShowRow(src.Describe("0", "data", c.key, c.value)); got != c.want {
			t.Errorf("%q -> %q:\n%s, want\n%s", c.key, c.value, got, c.want)
		}
	}
	row := src.Describe("0", "meta", ssdb.AppendFieldKey(nil, []byte("key_range"), []byte("kv_s")), nil)
	if row.Kind != "server hash field" || row.UserKey != nil || row.Type != 0 {
		t.Errorf("a row of meta is %+v", row)
	}
	if all := src.Keyspaces(); len(all) != 2 || all[0].Name != "data" || all[1].Name != "meta" || all[1].DB != "" {
		t.Errorf("keyspaces %+v", all)
	}
}

// TestWhere: explain finds all rows of a name, and of a string's expiry.
func TestWhere(t *testing.T) {
	d := whole(t)
	src, found := d.Open(t), 0
	for _, r := range src.Where("0", []byte("k")) {
		it, err := d.Store.Keyspaces()[0].Rows(r.Lo, r.Hi)
		for err == nil {
			if _, _, err = it.Next(); err == nil {
				found++
			}
		}
	}
	if found != 16 { // all but the binlog, the size of the list of expiries and its row by time
		t.Errorf("%d rows", found)
	}
	if samples, err := src.Split("0", record.AllTypes, 4); err != nil || len(samples) == 0 ||
		src.Size("0", record.AllTypes) == 0 {
		t.Errorf("%d spans, %v", len(samples), err)
	}
}

// TestLosses: limits of names and types.
func TestLosses(t *testing.T) {
	dst := formattest.NewMemory(t, ssdb.New()).Create(t, format.CreateOptions{DBs: []string{"0"}})
	long := strings.Repeat("x", 256)
	for _, c := range []struct {
		typ  record.Type
		key  string
		ms   int64
		want string
	}{
		{record.String, "k", 0, ""}, {record.String, "k", 4e12, ""}, {record.String, "k", 1000, "expiry-ms? ms=2000000000"}, {record.Hash, "k", 4e12, "collection-expiry ms=0"},
		{record.Set, "k", 0, "set!"}, {record.Stream, "k", 0, "stream!"}, {record.String, "", 0, "empty-key!"}, {record.List, "", 0, ""}, {record.ZSet, "", 0, "empty-key!"},
		{record.String, long, 0, "key-too-long!"}, {record.List, long, 0, "key-too-long!"}, {record.Hash, long[1:], 0, ""},
		{record.ZSet, ssdb.ExpireList, 0, "key-too-long!"}, {record.Hash, ssdb.ExpireList, 0, ""},
	} {
		if got := formattest.Losses(t, dst, record.Header{Type: c.typ, Key: []byte(c.key), ExpireMS: c.ms}); got != c.want {
			t.Errorf("%s %.20q expires %d: %q, want %q", c.typ, c.key, c.ms, got, c.want)
		}
	}
	for _, c := range []struct {
		typ   record.Type
		name  string
		score float64
		want  string // loss
		kept  float64
	}{
		{record.Hash, "f", 0, "", 0}, {record.Hash, "", 0, "name-length!", 0}, {record.Hash, long, 0, "name-length!", 0}, {record.List, "", 0, "", 0}, {record.String, "", 0, "", 0},
		{record.ZSet, "m", 2, "", 2}, {record.ZSet, "m", -2.9, "score-precision", -2}, {record.ZSet, "m", 1e19, "score-range!", 0}, {record.ZSet, "m", math.Inf(-1), "score-range!", 0},
		{record.ZSet, "m", math.NaN(), "score-nan!", 0}, {record.ZSet, "m", math.Copysign(0, -1), "", 0}, {record.ZSet, "m", 1 << 63, "", 1 << 63}, {record.ZSet, "", 1.5, "name-length!", 0},
	} {
		got := ""
		kept := dst.ElementLosses(&record.Header{Type: c.typ}, []record.Element{{Name: []byte(c.name), Score: c.score}},
			func(l record.Loss) {
				got += l.Kind
				if l.Drops {
					got += "!"
				}
			})
		if got != c.want || (len(kept) == 0) != strings.HasSuffix(got, "!") ||
			len(kept) == 1 && (kept[0].Score != c.kept || math.Signbit(kept[0].Score) != (c.kept < 0)) {
			t.Errorf("%s %.20q %v: %q, want %q; left %+v", c.typ, c.name, c.score, got, c.want, kept)
		}
	}
}

// TestTarget: shards that are adopted give the same rows as shards that are written; refused and aborted targets leave
// nothing behind.
func TestTarget(t *testing.T) {
	read := func(lo, hi int) *oneStrings {
		b := new(record.Batch)
		for i := lo; i < hi; i++ {
			h := record.Header{Type: record.String, Key: fmt.Appendf(nil, "k%03d", i), ExpireMS: int64(i%2) * 4e12}
			b.Records = append(b.Records, record.Record{Header: h, First: i - lo, N: 1, Class: record.Copied})
			b.Elems = append(b.Elems, record.Element{Value: []byte("v")})
		}
		return &oneStrings{b}
	}
	m := formattest.NewMemory(t, ssdb.New())
	o := format.CreateOptions{DBs: []string{"0"}, TempDir: t.TempDir()}
	dst := m.Create(t, o)
	if groups := dst.Groups(); len(groups) != 1 || groups[0] != ssdb.New().Limits().Types {
		t.Errorf("groups %v", groups)
	}
	if _, err := dst.Shard(0, "1", record.AllTypes, 0); err == nil {
		t.Error("database 1 is written")
	}
	formattest.Shard(t, dst, 0, record.AllTypes, 0, read(0, 50))
	second, err := dst.Shard(1, "0", record.AllTypes, 0)
	if err == nil { // several strings at once
		err = errors.Join(second.Write(read(50, 99).rest), second.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	tables, err := dst.Tables(1)
	if err != nil ||
		!slices.ContainsFunc(tables, func(f store.Table) bool { return f.File == "expiries/000001.rows" && f.Entries == 48 }) {
		t.Fatalf("%+v, %v", tables, err)
	}
	for _, bad := range [][]store.Table{{{File: "elsewhere/1.ldb"}}, {{File: "expiries/000007.rows"}},
		{{File: "expiries/000001.rows", Bytes: 1}}} {
		if err := dst.Adopt(1, "0", bad); err == nil {
			t.Errorf("%+v is adopted", bad)
		}
	}
	if err := dst.Adopt(1, "0", tables[len(tables)-1:]); err != nil {
		t.Error(err)
	}
	src := formattest.Finish(t, dst)
	var ledger record.Ledger
	lines := formattest.Lines(t, formattest.Records(t, src, "0", &format.Env{Now: now, Ledger: &ledger}))
	if n := bytes.Count(lines, []byte(`"expire_at_ms":4000000000000`)); n != 49 || bytes.Count(lines, []byte("\n")) != 99 {
		t.Errorf("%d expiries in\n%s", n, lines)
	}
	if got := formattest.Classes(&ledger, "data"); got != "housekeeping=100 copied=99" {
		// two rows of each expiry, their number, and a row of the binlog
		t.Errorf("rows %s", got)
	}
	if entries, err := os.ReadDir(m.Dir); err != nil || len(entries) != 1 || entries[0].Name() != "meta" {
		t.Errorf("%v, %v", entries, err)
	}

	gone := formattest.NewMemory(t, ssdb.New())
	if _, err := gone.Format.Create(t.Context(), gone.Dir, &format.CreateOptions{Create: gone.FS.Create,
		DBs: []string{"0", "1"}}); err == nil || !strings.Contains(err.Error(), "convert it alone with --db 1") {
		t.Errorf("two databases: %v", err)
	}
	dst = gone.Create(t, o)
	formattest.Shard(t, dst, 0, record.AllTypes, 0, read(0, 9))
	dst.Abort()
	if _, err := os.Stat(gone.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an aborted target leaves its directory: %v", err)
	}
	w, err := formattest.One(m.Create(t, o).Shard(0, "0", record.AllTypes, 0))
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range []record.Header{{Type: record.Set, Key: []byte("s")}, {Type: record.Hash},
		{Type: record.String, Key: bytes.Repeat([]byte("x"), 256), ExpireMS: 4e12}} {
		if err := w.Begin(&h); err == nil {
			t.Errorf("%s %.10q is written", h.Type, h.Key)
		}
	}
	w.Abort()
}

// oneStrings reads strings one by one.
type oneStrings struct{ rest *record.Batch }

func (s *oneStrings) Next() (*record.Batch, error) {
	if len(s.rest.Records) == 0 {
		return nil, io.EOF
	}
	one := &record.Batch{Records: s.rest.Records[:1], Elems: s.rest.Elems}
	s.rest.Records = s.rest.Records[1:]
	return one, nil
}

func (s *oneStrings) Close() error { return nil }

// TestStringsAtOnce: strings that are read several at a time have their expiries, also between keys of other types.
func TestStringsAtOnce(t *testing.T) {
	d := whole(t)
	for i := range 200 {
		key := fmt.Sprintf("m%03d", i)
		d.put([]byte("k"+key), []byte("v"))
		if i%3 == 0 {
			d.expire(key, 1_000_000_000_000+int64(i))
		}
	}
	d.size('Z', ssdb.ExpireList, 68)
	src := d.Open(t)
	for _, types := range []record.TypeSet{record.Of(record.String), record.AllTypes} {
		got := formattest.Tell(t, src, "0", types, &format.Env{Now: now, TempDir: t.TempDir()}, 7)
		n := strings.Count(got, " expires 1000000000")
		if n != 67 || !strings.Contains(got, `"m198" in "0" expires 1000000000198 true`) ||
			!strings.Contains(got, `"m199" in "0" expires 0 false`) || !strings.Contains(got, "housekeeping=") {
			t.Errorf("%d expiries:\n%s", n, got)
		}
	}
}

// TestHotPaths: decoding rows, reading and writing records allocates nothing per row.
func TestHotPaths(t *testing.T) {
	var key, value []byte
	field, member, rank := ssdb.AppendFieldKey(nil, []byte("k"), []byte("f")), ssdb.AppendScoreKey(nil, []byte("k"),
		[]byte("m")), ssdb.AppendRankKey(nil, []byte("k"), 5, []byte("m"))
	if n := testing.AllocsPerRun(100, func() {
		for _, raw := range [][]byte{field, member, rank} {
			if _, err := ssdb.DecodeKey(raw[0], raw); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := ssdb.DecodeScore([]byte("-12345")); err != nil {
			t.Fatal(err)
		}
		key, value = ssdb.AppendRankKey(key[:0], []byte("k"), 5, []byte("m")), ssdb.AppendScore(value[:0], 5)
	}); n > 0 {
		t.Errorf("%v allocations for decoded rows", n)
	}
	for _, rows := range []int{1000, 4000} {
		d := newDataset(t)
		for i := range rows {
			d.put(ssdb.AppendFieldKey(nil, []byte("h"), fmt.Appendf(nil, "f%06d", i)), []byte("v"))
			d.score("z", fmt.Sprintf("m%06d", i), int64(i))
			d.rank("z", fmt.Sprintf("m%06d", i), int64(i))
			d.put(fmt.Appendf(nil, "kk%06d", i), []byte("v"))
		}
		src := d.Open(t)
		dst := make([]record.Element, 64)
		if n := testing.AllocsPerRun(1, func() {
			r := formattest.Records(t, src, "0", &format.Env{Now: now})
			defer r.Close()
			for {
				if _, err := r.Next(); err != nil {
					return
				}
				for {
					if n, err := r.Read(dst); err != nil || n == 0 {
						break
					}
				}
			}
		}); n > float64(rows)/4 { // of 4 rows each; memory is opened anew
			t.Errorf("%v allocations to read %d rows", n, 4*rows)
		}
	}
	dst, err := ssdb.New().Create(t.Context(), t.TempDir(), &format.CreateOptions{Create: formattest.Sink{}.Create})
	if err != nil {
		t.Fatal(err)
	}
	for _, typ := range []record.Type{record.String, record.Hash, record.List, record.ZSet} {
		w, err := dst.Shard(0, "0", record.AllTypes, 0)
		if err != nil {
			t.Fatal(err)
		}
		b := record.Batch{Records: make([]record.Record, 1)}
		elems := make([]record.Element, 100)
		for i := range elems {
			elems[i] = record.Element{Name: fmt.Appendf(nil, "m%03d", i), Value: []byte("v"), Score: float64(i)}
		}
		for i := range elems {
			if typ == record.ZSet {
				elems[i].Value = nil
			}
		}
		if typ == record.String {
			elems = elems[:1]
		}
		n, k := 0, []byte("k00000000")
		allocs := testing.AllocsPerRun(200, func() {
			n++
			for i, x := len(k)-1, n; i > 0; i, x = i-1, x/10 {
				k[i] = '0' + byte(x%10)
			}
			b.Records[0] = record.Record{Header: record.Header{Type: typ, Key: k, Len: int64(len(elems))}, N: len(elems),
				Class: record.Copied}
			b.Elems = elems
			if err := w.Write(&b); err != nil {
				t.Fatal(err)
			}
		})
		if allocs > 8 {
			t.Errorf("%v allocations to write a %s of %d elements", allocs, typ, len(elems))
		}
		w.Abort()
	}
}
