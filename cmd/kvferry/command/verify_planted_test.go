package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kvferry/ardb"
	"kvferry/ardb/codec"
	"kvferry/blackwidow"
	"kvferry/cmd/kvferry/cli"
	"kvferry/fixtures"
	"kvferry/floyd"
	"kvferry/format"
	"kvferry/nemo"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks"
	"kvferry/store/rocks/build"
)

// small is a record for tests. Names and values are text; scores count from 0.
type small struct {
	typ    record.Type
	key    string
	expire int64
	elems  []record.Element
}

func smallRecord(t record.Type, key string, elems ...string) small {
	s := small{typ: t, key: key}
	for i, e := range elems {
		var el record.Element
		switch t {
		case record.Hash:
			name, value, _ := strings.Cut(e, "=")
			el.Name, el.Value = []byte(name), []byte(value)
		case record.Set:
			el.Name = []byte(e)
		case record.ZSet:
			el.Name, el.Score = []byte(e), float64(i)
		default:
			el.Value = []byte(e)
		}
		s.elems = append(s.elems, el)
	}
	return s
}

// smallSet has a record of each type, all named k.
func smallSet() []small {
	return []small{
		smallRecord(record.String, "k", "v"),
		smallRecord(record.Hash, "k", "a=1", "b=2", "c=3"),
		smallRecord(record.List, "k", "x", "y", "z"),
		smallRecord(record.Set, "k", "a", "b", "c"),
		smallRecord(record.ZSet, "k", "a", "b", "c"),
	}
}

// smallReader yields small records.
type smallReader struct {
	left []small
	cur  []record.Element
}

func (r *smallReader) Next() (*record.Header, error) {
	if len(r.left) == 0 {
		return nil, io.EOF
	}
	s := r.left[0]
	r.left, r.cur = r.left[1:], s.elems
	return &record.Header{DB: "0", Type: s.typ, Key: []byte(s.key), ExpireMS: s.expire, Len: int64(len(s.elems)), ByName: true},
		nil
}

func (r *smallReader) Read(dst []record.Element) (int, error) {
	if len(r.cur) == 0 {
		return 0, io.EOF
	}
	n := copy(dst, r.cur)
	r.cur = r.cur[n:]
	return n, nil
}

func (r *smallReader) Heavy() bool { return false }

func (r *smallReader) End(*record.Record) error { return nil }
func (r *smallReader) Close() error             { return nil }

// buildSmall writes records to a dataset.
func buildSmall(t testing.TB, f format.Format, records ...small) string {
	t.Helper()
	return buildStores(t, f, build.Create, records...)
}

// buildStores is build with the stores made by create.
func buildStores(t testing.TB, f format.Format, create store.CreateFunc, records ...small) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "db")
	open := &format.OpenOptions{Store: rocks.Open}
	target, err := f.Create(context.Background(), dir, &format.CreateOptions{Create: create, DBs: []string{"0"},
		Layout: format.LayoutFlat, Now: testNow, Reopen: open})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortStableFunc(records, func(a, b small) int {
		if c := strings.Compare(a.key, b.key); c != 0 {
			return c
		}
		return int(a.typ) - int(b.typ)
	})
	err = fixtures.BuildFrom(context.Background(), target, 8<<20, func(group record.TypeSet) record.Reader {
		var in []small
		for _, s := range records {
			if group.Has(s.typ) {
				in = append(in, s)
			}
		}
		return record.Gather(&smallReader{left: in}, nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// rows holds the rows of a store by keyspace.
type rows struct {
	t         testing.TB
	keyspaces []string
	order     map[string]store.Comparer
	kv        map[string]map[string]string
}

// alter reads a store, changes its rows and rewrites it.
func alter(t testing.TB, dir string, change func(r *rows)) {
	t.Helper()
	opts := &store.Options{Comparers: slices.Concat(blackwidow.Comparers(), floyd.Comparers(),
		[]store.Comparer{codec.Comparer()}), Merger: ardb.Merger()}
	tables, err := filepath.Glob(filepath.Join(dir, "*.ldb"))
	if err != nil {
		t.Fatal(err)
	}
	create := build.Create
	if len(tables) > 0 { // the comparator is found by name
		opts.Comparers, create = []store.Comparer{codec.LevelDBComparer()}, build.CreateLevelDB
	}
	st, err := rocks.Open(context.Background(), dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	r := &rows{t: t, order: make(map[string]store.Comparer), kv: make(map[string]map[string]string)}
	for _, ks := range st.Keyspaces() {
		r.keyspaces = append(r.keyspaces, ks.Name())
		r.order[ks.Name()], r.kv[ks.Name()] = *ks.Comparer(), make(map[string]string)
		it, err := ks.Rows(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for {
			k, v, err := it.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			r.kv[ks.Name()][string(k)] = string(v)
		}
		it.Close()
	}
	st.Close()
	change(r)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	r.write(dir, create)
}

func (r *rows) write(dir string, create store.CreateFunc) {
	r.t.Helper()
	b, err := create(dir, store.BuildOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	for _, name := range r.keyspaces {
		if err := b.Keyspace(name, r.order[name]); err != nil {
			r.t.Fatal(err)
		}
		keys := make([]string, 0, len(r.kv[name]))
		for k := range r.kv[name] {
			keys = append(keys, k)
		}
		if len(keys) == 0 {
			continue
		}
		compare := r.order[name].Compare
		slices.SortFunc(keys, func(a, b string) int { return compare([]byte(a), []byte(b)) })
		run, err := b.Run(name, 0, 0)
		for _, k := range keys {
			if err == nil {
				err = run.Append([]byte(k), []byte(r.kv[name][k]))
			}
		}
		if err == nil {
			err = run.Close()
		}
		if err != nil {
			r.t.Fatal(err)
		}
	}
	if err := b.Finish(); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rows) put(keyspace string, key, value []byte) { r.kv[keyspace][string(key)] = string(value) }

func (r *rows) del(keyspace string, key []byte) {
	if _, ok := r.kv[keyspace][string(key)]; !ok {
		r.t.Errorf("%s has no row %q", keyspace, key)
	}
	delete(r.kv[keyspace], string(key))
}

func (r *rows) get(keyspace string, key []byte) []byte {
	v, ok := r.kv[keyspace][string(key)]
	if !ok {
		r.t.Errorf("%s has no row %q", keyspace, key)
	}
	return []byte(v)
}

// foundIn verifies a dataset and returns "severity kind" of each finding, with ×n if it occurs n times.
func foundIn(t *testing.T, dir string, args ...string) []string {
	t.Helper()
	unchanged(t, dir[strings.Index(dir, ":")+1:])
	r := kvferry(t, append([]string{"verify", "--format", "json", "--fail-on", "note", dir}, args...)...)
	var report struct {
		Passed bool
		Counts []struct {
			Kind, Severity string
			Count          int
		}
		Findings []struct{ Kind, Detail string }
	}
	if err := json.Unmarshal([]byte(r.stdout), &report); err != nil {
		t.Fatalf("exit %d: %s%s", r.code, r.stderr, r.stdout)
	}
	var out []string
	for _, c := range report.Counts {
		s := c.Severity + " " + c.Kind
		if c.Count > 1 {
			s += fmt.Sprintf(" ×%d", c.Count)
		}
		out = append(out, s)
	}
	want := map[bool]int{true: cli.ExitOK, false: cli.ExitFindings}[len(out) == 0]
	if r.code != want || report.Passed != (want == cli.ExitOK) {
		t.Errorf("exit %d with findings %q", r.code, out)
	}
	for _, f := range report.Findings {
		if f.Detail == "" {
			t.Errorf("%s has no sentence", f.Kind)
		}
		if _, known := record.FindingKindOf(f.Kind); !known {
			t.Errorf("%s is not listed", f.Kind)
		}
	}
	return out
}

// Shorthands for nemo's rows of records named k, all of version 1.
var (
	nk  = []byte("k")
	nv1 = nemo.Suffix{Version: 1}
)

func nemoNode(seq int64) []byte { return nemo.AppendListKey(nil, nemo.ListKey{Key: nk, Seq: seq}) }

func nemoIndex(member string, score float64) []byte {
	return nemo.AppendIndexKey(nil, nemo.IndexKey{Key: nk, Score: nemo.RoundScore(score), Member: []byte(member)})
}

func nemoScore(member string) []byte {
	return nemo.AppendScoreKey(nil, nemo.ScoreKey{Key: nk, Member: []byte(member)})
}

// node changes a node of nemo's list.
func (r *rows) node(seq int64, change func(*nemo.Node)) {
	n, err := nemo.DecodeNode(r.get("default", nemoNode(seq)))
	if err != nil {
		r.t.Fatal(err)
	}
	change(&n)
	r.put("default", nemoNode(seq), nemo.AppendNode(nil, n))
}

// listMeta changes the meta row of nemo's list.
func (r *rows) listMeta(change func(*nemo.ListMeta)) {
	m, err := nemo.DecodeListMeta(r.get("default", []byte("Lk")))
	if err != nil {
		r.t.Fatal(err)
	}
	change(&m)
	r.put("default", []byte("Lk"), nemo.AppendListMeta(nil, m))
}

// plant is one kind of damage with the expected findings.
type plant struct {
	name  string
	store string
	do    func(r *rows)
	want  string // "severity kind", joined by ", "
}

func (p *plant) check(t *testing.T, dir string) {
	alter(t, filepath.Join(dir, p.store), p.do)
	if got := strings.Join(foundIn(t, dir), ", "); got != p.want {
		t.Errorf("found %q, want %q", got, p.want)
	}
}

// nemoPlants are kinds of damage to rows of smallSet in nemo.
func nemoPlants() []plant {
	field := func(name string) []byte { return nemo.AppendHashKey(nil, nemo.HashKey{Key: nk, Field: []byte(name)}) }
	plain := func(v string) []byte { return nemo.AppendPlain(nil, nemo.Plain{Bytes: []byte(v), Suffix: nv1}) }
	return []plant{
		{"nothing", "hash", func(*rows) {}, ""},
		{"count", "hash", func(r *rows) { r.put("default", []byte("Hk"), nemo.AppendMeta(nil, nemo.Meta{Count: 4, Suffix: nv1})) },
			"error count-mismatch"},
		{"orphans", "hash", func(r *rows) { r.del("default", []byte("Hk")) }, "warning orphan-rows"},
		{"short", "kv", func(r *rows) { r.put("default", nk, []byte("1234567")) }, "error short-value"},
		{"long", "set", func(r *rows) {
			r.put("default", append([]byte("S"), "other"...), append(nemo.AppendMeta(nil, nemo.Meta{Suffix: nv1}), 0))
		}, "error newer"},
		{"newer", "hash", func(r *rows) {
			r.put("default", field("a"), nemo.AppendPlain(nil, nemo.Plain{Suffix: nemo.Suffix{Version: 9}}))
		},
			"error newer-version"},
		{"klen", "hash", func(r *rows) { r.put("default", []byte("h\x09k=d"), plain("v")) }, "error bad-key-length"},
		{"no equals sign", "hash", func(r *rows) { r.put("default", []byte("h\x01k+d"), plain("v")) }, "error bad-row-key"},
		{"leading byte", "hash", func(r *rows) { r.put("default", []byte("xyz"), plain("v")) }, "error unknown-row"},
		{"negative expiry", "kv", func(r *rows) {
			r.put("default", nk, nemo.AppendPlain(nil, nemo.Plain{Bytes: nk, Suffix: nemo.Suffix{Expiry: -5}}))
		}, "note negative-expiry"},
		{"empty, with rows", "set", func(r *rows) { r.put("default", []byte("Sk"), nemo.AppendMeta(nil, nemo.Meta{Suffix: nv1})) },
			"warning deleted-rows"},
		{"stale rows are none", "hash", func(r *rows) {
			r.put("default", field("old"), nemo.AppendPlain(nil, nemo.Plain{Bytes: nk, Suffix: nemo.Suffix{}}))
		}, ""},
		{"no rank", "zset", func(r *rows) { r.del("default", nemoIndex("b", 1)) }, "error zset-missing-score-row"},
		{"another rank", "zset", func(r *rows) {
			r.del("default", nemoIndex("b", 1))
			r.put("default", nemoIndex("b", 1.5), plain(""))
		}, "error zset-score-mismatch"},
		{"rank only", "zset", func(r *rows) { r.put("default", nemoIndex("ghost", 1), plain("")) }, "error zset-missing-member-row"},
		{"no number", "zset", func(r *rows) {
			r.put("default", nemoScore("b"), nemo.AppendScore(nil, nemo.Score{Score: 2e13, Suffix: nv1}))
			r.del("default", nemoIndex("b", 1))
			r.put("default", nemoIndex("b", 2e13), plain(""))
		}, "error zset-bad-score"},
		{"next_seq", "list", func(r *rows) { r.listMeta(func(m *nemo.ListMeta) { m.NextSeq = 3 }) }, "error list-next-seq"},
		{"tail", "list", func(r *rows) { r.listMeta(func(m *nemo.ListMeta) { m.Right = 2 }) }, "error list-tail-mismatch"},
		{"prev", "list", func(r *rows) { r.node(2, func(n *nemo.Node) { n.Prev = 3 }) }, "error list-prev-mismatch"},
		{"unreachable", "list", func(r *rows) {
			r.put("default", nemoNode(7), nemo.AppendNode(nil, nemo.Node{Element: nk, Suffix: nv1}))
			r.listMeta(func(m *nemo.ListMeta) { m.NextSeq, m.Count = 8, 4 })
		}, "error list-unreachable-node"},
		{"cycle", "list", func(r *rows) { r.node(3, func(n *nemo.Node) { n.Next = 1 }) }, "error list-cycle"},
		{"broken link", "list", func(r *rows) { r.node(3, func(n *nemo.Node) { n.Next = 9 }) }, "error list-broken-link"},
	}
}

func TestVerifyPlantedNemo(t *testing.T) {
	for _, p := range nemoPlants() {
		t.Run(p.name, func(t *testing.T) { p.check(t, buildSmall(t, nemo.New(), smallSet()...)) })
	}
}

// blackwidowPlants are kinds of damage to rows of smallSet in blackwidow.
func blackwidowPlants() []plant {
	const v = 1
	data := func(name string, version int32) []byte {
		return blackwidow.AppendDataKey(
			nil, blackwidow.DataKey{Key: nk, Version: blackwidow.Version(version), Name: []byte(name)})
	}
	index := func(i uint64) []byte {
		return blackwidow.AppendListKey(nil, blackwidow.ListKey{Key: nk, Version: v, Index: i})
	}
	byScore := func(member string, score float64) []byte {
		return blackwidow.AppendScoreKey(nil, blackwidow.ScoreKey{Key: nk, Version: v, Score: score, Member: []byte(member)})
	}
	const first = 1 << 63 // the initial right index
	return []plant{
		{"nothing", "hashes", func(*rows) {}, ""},
		{"count", "sets", func(r *rows) { r.put("default", nk, blackwidow.AppendMeta(nil, blackwidow.Meta{Count: 7, Version: v})) },
			"error count-mismatch"},
		{"orphans", "hashes", func(r *rows) { r.del("default", nk) }, "note orphan-rows"},
		{"short", "strings", func(r *rows) { r.put("default", nk, []byte("123")) }, "error short-value"},
		{"long", "sets", func(r *rows) { r.put("default", []byte("other"), make([]byte, 13)) }, "error newer"},
		{"klen", "hashes", func(r *rows) { r.put("data_cf", []byte("\x09\x00\x00\x00k\x01\x00\x00\x00d"), nk) }, "error bad-key-length"},
		{"newer", "hashes", func(r *rows) { r.put("data_cf", data("d", 2), nk) }, "warning newer-version"},
		{"stale rows are none", "hashes", func(r *rows) { r.put("data_cf", data("d", 0), nk) }, ""},
		{"empty, with rows", "sets", func(r *rows) { r.put("default", nk, blackwidow.AppendMeta(nil, blackwidow.Meta{Version: v})) },
			"warning deleted-rows"},
		{"no rank", "zsets", func(r *rows) { r.del("score_cf", byScore("b", 1)) }, "error zset-missing-score-row"},
		{"rank only", "zsets", func(r *rows) { r.put("score_cf", byScore("ghost", 1), nil) }, "error zset-missing-member-row"},
		{"another rank", "zsets", func(r *rows) {
			r.del("score_cf", byScore("b", 1))
			r.put("score_cf", byScore("b", 1.5), nil)
		}, "error zset-score-mismatch"},
		{"no number", "zsets", func(r *rows) {
			nan := math.NaN()
			r.put("data_cf", data("b", v), blackwidow.AppendScore(nil, nan))
			r.del("score_cf", byScore("b", 1))
			r.put("score_cf", byScore("b", nan), nil)
		}, "error zset-bad-score"},
		{"-0.0 is 0.0 to the engine", "zsets", func(r *rows) {
			r.put("data_cf", data("a", v), blackwidow.AppendScore(nil, math.Copysign(0, -1)))
		}, ""},
		{"-0.0, and another rank", "zsets", func(r *rows) {
			r.put("data_cf", data("a", v), blackwidow.AppendScore(nil, math.Copysign(0, -1)))
			r.del("score_cf", byScore("b", 1))
			r.put("score_cf", byScore("b", 1.5), nil)
		}, "error zset-score-mismatch"},
		{"outside", "lists", func(r *rows) { r.put("data_cf", index(first+100), nk) }, "error list-outside-bounds"},
		{"hole", "lists", func(r *rows) { r.del("data_cf", index(first+1)) }, "error list-missing-index"},
		{"no end", "lists", func(r *rows) { r.del("data_cf", index(first+2)) }, "error list-missing-index"},
		{"list count", "lists", func(r *rows) {
			r.put("default", nk, blackwidow.AppendListMeta(nil,
				blackwidow.ListMeta{Count: 2, Version: v, Left: first - 1, Right: first + 3}))
		}, "error count-mismatch"},
		{"hidden", "hashes", func(r *rows) {
			r.put("default", nk, blackwidow.AppendMeta(nil, blackwidow.Meta{Count: 1, Version: 0xFF}))
			r.put("data_cf", data("a", 0xFF), nk)
			for _, name := range []string{"a", "b", "c"} {
				r.del("data_cf", data(name, v))
			}
		}, "note hidden-version"},
		{"no score_cf", "zsets", func(r *rows) {
			r.keyspaces = slices.DeleteFunc(r.keyspaces, func(name string) bool { return name == "score_cf" })
		}, "error missing-score-cf"},
	}
}

func TestVerifyPlantedBlackwidow(t *testing.T) {
	for _, p := range blackwidowPlants() {
		t.Run(p.name, func(t *testing.T) { p.check(t, buildSmall(t, blackwidow.New(), smallSet()...)) })
	}
}

// TestVerifyPlantedOrder checks that a file that is not in its comparator's order is found and sorted: the records
// are complete.
func TestVerifyPlantedOrder(t *testing.T) {
	dir := disordered(t)
	if got := strings.Join(foundIn(t, dir), ", "); got != "error key-order" {
		t.Errorf("found %q", got)
	}
	if out := kvferry(t, "verify", dir).stdout; !strings.Contains(out, ": 2 records, 3 elements") {
		t.Errorf("the records did not come out whole:\n%s", out)
	}
	want := `{"db":"0","type":"list","key":"aa","expire_at_ms":0,"value":["x","y"]}` + "\n" +
		`{"db":"0","type":"list","key":"b","expire_at_ms":0,"value":["z"]}` + "\n"
	if got := ok(t, "dump", dir); got != want {
		t.Errorf("dumped\n%s", got)
	}
	for _, args := range [][]string{{"fingerprint", dir}, {"inspect", dir}, {"diff", dir, dir}} {
		ok(t, args...)
	}
}

// TestVerifyOrderBesideUnreadable checks that the second pass, with sorted rows, also skips a store that cannot be
// opened, and that the report lists it as unread.
func TestVerifyOrderBesideUnreadable(t *testing.T) {
	dir := disordered(t)
	current := filepath.Join(dir, "zsets", "CURRENT")
	if err := errors.Join(os.Remove(current), os.Mkdir(current, 0o755)); err != nil {
		t.Fatal(err)
	}
	r := kvferry(t, "verify", dir)
	for _, want := range []string{"error key-order", "error unreadable-store", "\nnot all records could be read: all of zsets\n",
		": 2 records, 3 elements"} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("exit %d, the report does not say %q:\n%s%s", r.code, want, r.stdout, r.stderr)
		}
	}
	if n := strings.Count(r.stdout, "error unreadable-store: "); n != 1 {
		t.Errorf("the store is named %d times:\n%s", n, r.stdout)
	}
}
