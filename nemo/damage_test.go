package nemo_test

import (
	"slices"
	"strings"
	"testing"

	"kvferry/format"
	"kvferry/internal/shared/versioned"
	"kvferry/internal/testkit/formattest"
	"kvferry/internal/testkit/memstore"
	"kvferry/nemo"
	"kvferry/record"
)

// s1 is the suffix of rows of version 5 without expiry, the version of the records below.
var s1 = nemo.Suffix{Version: 5}

// whole puts one healthy record of each type, called k, and the separators.
func whole(t testing.TB) *memory {
	m := newMemory(t).stores()
	put := func(store string, key, value []byte) { m.Store(store).Put("default", key, value) }
	for _, sep := range []string{"hash/h", "list/l", "set/s", "zset/y", "zset/z"} {
		put(sep[:len(sep)-2], []byte(sep[len(sep)-1:]), nemo.AppendPlain(nil, nemo.Plain{}))
	}
	k := []byte("k")
	put("kv", k, nemo.AppendPlain(nil, nemo.Plain{Bytes: []byte("v")}))
	meta := nemo.AppendMeta(nil, nemo.Meta{Count: 2, Suffix: s1})
	put("hash", []byte("Hk"), meta)
	put("set", []byte("Sk"), meta)
	put("zset", []byte("Zk"), meta)
	for i, name := range []string{"a", "b"} {
		n := []byte(name)
		put("hash", nemo.AppendHashKey(nil, nemo.HashKey{Key: k, Field: n}),
			nemo.AppendPlain(nil, nemo.Plain{Bytes: n, Suffix: s1}))
		put("set", nemo.AppendSetKey(nil, nemo.SetKey{Key: k, Member: n}), nemo.AppendPlain(nil, nemo.Plain{Suffix: s1}))
		m.putMember("k", name, float64(i), float64(i))
	}
	putList(m.Store("list"), "k", nemo.ListMeta{Count: 3, Left: 2, Right: 3, NextSeq: 4, Suffix: s1},
		nemo.Node{Prev: 2, Next: 3}, nemo.Node{Next: 1}, nemo.Node{Prev: 1})
	return m
}

// putMember writes a member of a zset and its index row.
func (m *memory) putMember(key, member string, score, indexed float64) {
	m.Store("zset").Put("default", nemo.AppendScoreKey(nil, nemo.ScoreKey{Key: []byte(key), Member: []byte(member)}),
		nemo.AppendScore(nil, nemo.Score{Score: score, Suffix: s1}))
	m.Store("zset").Put("default", indexKey(key, member, indexed), nemo.AppendPlain(nil, nemo.Plain{Suffix: s1}))
}

func indexKey(key, member string, score float64) []byte {
	return nemo.AppendIndexKey(nil, nemo.IndexKey{Key: []byte(key), Score: nemo.RoundScore(score), Member: []byte(member)})
}

func nodeKey(key string, seq int64) []byte {
	return nemo.AppendListKey(nil, nemo.ListKey{Key: []byte(key), Seq: seq})
}

// putList writes a list whose nodes have the seqs 1, 2, …; their elements are "1", "2", ….
func putList(s *memstore.Store, key string, m nemo.ListMeta, nodes ...nemo.Node) {
	s.Put("default", append([]byte("L"), key...), nemo.AppendListMeta(nil, m))
	for i, n := range nodes {
		n.Element, n.Suffix = []byte{byte('1' + i)}, s1
		s.Put("default", nodeKey(key, int64(i+1)), nemo.AppendNode(nil, n))
	}
}

// nineNodes writes a list k of the nodes 1 to 9, without the nodes in gone.
func (m *memory) nineNodes(gone string) {
	var nodes []nemo.Node
	for i := int64(1); i <= 9; i++ {
		nodes = append(nodes, nemo.Node{Prev: i - 1, Next: (i + 1) % 10})
	}
	putList(m.Store("list"), "k", nemo.ListMeta{Count: 9, Left: 1, Right: 9, NextSeq: 10, Suffix: s1}, nodes...)
	for _, seq := range gone {
		m.Store("list").Delete("default", nodeKey("k", int64(seq-'0')))
	}
}

func TestDamage(t *testing.T) {
	cases := []struct {
		name   string
		break_ func(m *memory)
		kinds  string // of findings
		where  string // the ledger's keyspace
		ledger string
	}{
		{"nothing", func(m *memory) {}, "", "list", "housekeeping=1 copied=4"},
		{"short string", func(m *memory) { m.Store("kv").Put("default", []byte("k"), []byte("1234567")) },
			"short-value", "kv", "malformed=1"},
		{"negative expiry", func(m *memory) {
			m.Store("kv").Put("default", []byte("k"), nemo.AppendPlain(nil, nemo.Plain{Suffix: nemo.Suffix{Expiry: -1}}))
		}, "negative-expiry", "kv", "copied=1"},
		{"short hash meta", func(m *memory) { m.Store("hash").Put("default", []byte("Hk"), make([]byte, 12)) },
			"short-value", "hash", "malformed=1 housekeeping=1 orphan=2"},
		{"long hash meta", func(m *memory) { m.Store("hash").Put("default", []byte("Hk"), make([]byte, 17)) },
			"newer", "hash", "malformed=3 housekeeping=1"},
		{"empty meta key", func(m *memory) { m.Store("hash").Put("default", []byte("H"), make([]byte, 16)) },
			"bad-key-length", "hash", "malformed=1 housekeeping=1 copied=3"},
		{"long meta key", func(m *memory) {
			m.Store("set").Put("default", []byte("S"+strings.Repeat("x", 255)), make([]byte, 16))
		}, "bad-key-length", "set", "malformed=1 housekeeping=1 copied=3"},
		{"short field value", func(m *memory) { m.Store("hash").Put("default", []byte("h\x01k=b"), []byte("1234567")) },
			"count-mismatch short-value", "hash", "malformed=1 housekeeping=1 copied=2"},
		{"no equals sign", func(m *memory) { m.Store("hash").Put("default", []byte("h\x01k+b"), make([]byte, 8)) },
			"bad-row-key", "hash", "malformed=1 housekeeping=1 copied=3"},
		{"field key ends early", func(m *memory) { m.Store("hash").Put("default", []byte("h\x01k"), make([]byte, 8)) },
			"bad-row-key", "hash", "malformed=1 housekeeping=1 copied=3"},
		{"klen beyond the end", func(m *memory) { m.Store("hash").Put("default", []byte("h\x09k=b"), make([]byte, 8)) },
			"bad-key-length", "hash", "malformed=1 housekeeping=1 copied=3"},
		{"klen 0", func(m *memory) { m.Store("set").Put("default", []byte("s\x00kb"), make([]byte, 8)) },
			"bad-key-length", "set", "malformed=1 housekeeping=1 copied=3"},
		{"klen 255", func(m *memory) {
			m.Store("set").Put("default", []byte("s\xff"+strings.Repeat("x", 300)), make([]byte, 8))
		}, "bad-key-length", "set", "malformed=1 housekeeping=1 copied=3"},
		{"short separator", func(m *memory) { m.Store("set").Put("default", []byte("s"), make([]byte, 7)) },
			"short-value", "set", "malformed=1 copied=3"},
		{"unknown rows", func(m *memory) {
			for _, k := range []string{"", "A", "[x", "x", "{", "\xff\xff"} {
				m.Store("zset").Put("default", []byte(k), make([]byte, 8))
			}
		}, strings.Repeat("unknown-row ", 6), "zset", "malformed=6 housekeeping=2 index=2 copied=3"},
		{"no hash meta", func(m *memory) { m.Store("hash").Delete("default", []byte("Hk")) },
			"orphan-rows", "hash", "housekeeping=1 orphan=2"},
		{"orphans of two keys, one malformed", func(m *memory) {
			for _, k := range []string{"s\x01ia", "s\x01ja", "s\x01jb"} {
				m.Store("set").Put("default", []byte(k), make([]byte, 8))
			}
			m.Store("set").Put("default", []byte("s\x01jc"), make([]byte, 9))
		}, "newer orphan-rows orphan-rows", "set", "malformed=1 housekeeping=1 orphan=3 copied=3"},
		{"count too small", func(m *memory) {
			m.Store("set").Put("default", []byte("Sk"), nemo.AppendMeta(nil, nemo.Meta{Count: 1, Suffix: s1}))
		}, "count-mismatch", "set", "housekeeping=1 copied=3"},
		{"count below 0", func(m *memory) {
			m.Store("set").Put("default", []byte("Sk"), nemo.AppendMeta(nil, nemo.Meta{Count: -1, Suffix: s1}))
		}, "count-mismatch", "set", "housekeeping=1 deleted=3"},
		{"count 0", func(m *memory) {
			m.Store("set").Put("default", []byte("Sk"), nemo.AppendMeta(nil, nemo.Meta{Suffix: s1}))
		}, "deleted-rows", "set", "housekeeping=1 deleted=3"},
		{"deleted", func(m *memory) {
			m.Store("zset").Put("default", []byte("Zk"), nemo.AppendMeta(nil, nemo.Meta{Suffix: nemo.Suffix{Version: 6}}))
		}, "", "zset", "housekeeping=2 stale=4 deleted=1"},
		{"stale rows", func(m *memory) {
			m.Store("hash").Put("default", []byte("h\x01k=c"), nemo.AppendPlain(nil, nemo.Plain{Suffix: nemo.Suffix{Version: 4}}))
		}, "", "hash", "housekeeping=1 stale=1 copied=3"},
		{"newer row", func(m *memory) {
			m.Store("hash").Put("default", []byte("h\x01k=a"), nemo.AppendPlain(nil, nemo.Plain{Suffix: nemo.Suffix{Version: 9}}))
		}, "newer-version", "hash", "housekeeping=1 copied=3"},
		{"expired", func(m *memory) {
			m.Store("zset").Put("default", []byte("Zk"),
				nemo.AppendMeta(nil, nemo.Meta{Count: 2, Suffix: nemo.Suffix{Version: 5, Expiry: 1}}))
		}, "", "zset", "housekeeping=2 expired=5"},
		{"member with a value", func(m *memory) { m.Store("set").Put("default", []byte("s\x01kb"), make([]byte, 9)) },
			"count-mismatch newer", "set", "malformed=1 housekeeping=1 copied=2"},
		{"no index row", func(m *memory) { m.Store("zset").Delete("default", indexKey("k", "b", 1)) },
			"zset-missing-score-row", "zset", "housekeeping=2 index=1 copied=3"},
		{"an index row of an earlier version alone", func(m *memory) {
			m.Store("zset").Put("default", indexKey("k", "b", 1),
				nemo.AppendPlain(nil, nemo.Plain{Suffix: nemo.Suffix{Version: s1.Version - 1}}))
		}, "zset-missing-score-row", "zset", "housekeeping=2 stale=1 index=1 copied=3"},
		{"no score row", func(m *memory) { m.Store("zset").Delete("default", []byte("z\x01kb")) },
			"count-mismatch zset-missing-member-row", "zset", "housekeeping=2 orphan=1 index=1 copied=2"},
		{"index says another score", func(m *memory) {
			m.Store("zset").Delete("default", indexKey("k", "b", 1))
			m.Store("zset").Put("default", indexKey("k", "b", 1.00001), nemo.AppendPlain(nil, nemo.Plain{Suffix: s1}))
		}, "zset-score-mismatch", "zset", "housekeeping=2 index=2 copied=3"},
		{"index row too many", func(m *memory) {
			m.Store("zset").Put("default", indexKey("k", "b", 7), nemo.AppendPlain(nil, nemo.Plain{Suffix: s1}))
		}, "zset-score-mismatch", "zset", "housekeeping=2 index=3 copied=3"},
		{"stale and malformed index rows", func(m *memory) {
			m.Store("zset").Put("default", indexKey("k", "b", 7), nemo.AppendPlain(nil, nemo.Plain{}))
			m.Store("zset").Put("default", indexKey("k", "b", 8), nemo.AppendPlain(nil, nemo.Plain{Bytes: []byte("x")}))
		}, "newer", "zset", "malformed=1 housekeeping=2 stale=1 index=2 copied=3"},
		{"stale score row beside a missing one", func(m *memory) {
			m.Store("zset").Put("default", []byte("z\x01kb"), nemo.AppendScore(nil, nemo.Score{}))
		}, "count-mismatch zset-missing-member-row", "zset", "housekeeping=2 orphan=1 stale=1 index=1 copied=2"},
		{"empty member", func(m *memory) {
			m.putMember("k", "", 3, 3)
			m.Store("zset").Delete("default", indexKey("k", "", 3))
		}, "count-mismatch zset-missing-score-row", "zset", "housekeeping=2 index=2 copied=4"},
		{"short score", func(m *memory) { m.Store("zset").Put("default", []byte("z\x01kb"), make([]byte, 12)) },
			"count-mismatch short-value zset-missing-member-row", "zset", "malformed=1 housekeeping=2 orphan=1 index=1 copied=2"},
		{"no zset meta", func(m *memory) { m.Store("zset").Delete("default", []byte("Zk")) },
			"orphan-rows orphan-rows", "zset", "housekeeping=2 orphan=4"},
		{"broken link", func(m *memory) { m.Store("list").Delete("default", nodeKey("k", 1)) },
			"count-mismatch list-broken-link", "list", "housekeeping=1 copied=3"},
		{"holes", func(m *memory) { m.nineNodes("2578") },
			"count-mismatch list-broken-link", "list", "housekeeping=1 copied=6"},
		{"two nodes name a hole as next", func(m *memory) {
			m.nineNodes("258")
			m.Store("list").Put("default", nodeKey("k", 3), nemo.AppendNode(nil, nemo.Node{Prev: 2, Next: 5, Suffix: s1}))
		}, "count-mismatch list-broken-link list-unreachable-node", "list", "housekeeping=1 orphan=1 copied=6"},
		{"link to a stale node", func(m *memory) {
			m.Store("list").Put("default", nodeKey("k", 3),
				nemo.AppendNode(nil, nemo.Node{Prev: 1, Suffix: nemo.Suffix{Version: 4}}))
		}, "count-mismatch list-broken-link", "list", "housekeeping=1 stale=1 copied=3"},
		{"prev mismatch", func(m *memory) {
			m.Store("list").Put("default", nodeKey("k", 3), nemo.AppendNode(nil, nemo.Node{Prev: 2, Suffix: s1}))
		}, "list-prev-mismatch", "list", "housekeeping=1 copied=4"},
		{"cycle", func(m *memory) {
			m.Store("list").Put("default", nodeKey("k", 3), nemo.AppendNode(nil, nemo.Node{Prev: 1, Next: 1, Suffix: s1}))
		}, "list-cycle", "list", "housekeeping=1 copied=4"},
		{"next is negative", func(m *memory) {
			m.Store("list").Put("default", nodeKey("k", 3), nemo.AppendNode(nil, nemo.Node{Prev: 1, Next: -1, Suffix: s1}))
		}, "list-broken-link", "list", "housekeeping=1 copied=4"},
		{"cut off", func(m *memory) {
			m.Store("list").Put("default", nodeKey("k", 1), nemo.AppendNode(nil, nemo.Node{Prev: 2, Next: 0, Suffix: s1}))
		}, "list-tail-mismatch", "list", "housekeeping=1 copied=4"},
		{"no left", func(m *memory) {
			m.Store("list").Put("default", []byte("Lk"),
				nemo.AppendListMeta(nil, nemo.ListMeta{Count: 3, NextSeq: 4, Suffix: s1}))
		}, "list-unreachable-node list-unreachable-node list-unreachable-node", "list", "housekeeping=1 orphan=3 copied=1"},
		{"left is 0", func(m *memory) {
			m.Store("list").Put("default", []byte("Lk"),
				nemo.AppendListMeta(nil, nemo.ListMeta{Count: 3, Right: 3, NextSeq: 4, Suffix: s1}))
		}, "list-tail-mismatch", "list", "housekeeping=1 copied=4"},
		{"wrong right", func(m *memory) {
			m.Store("list").Put("default", []byte("Lk"),
				nemo.AppendListMeta(nil, nemo.ListMeta{Count: 3, Left: 2, Right: 1, NextSeq: 4, Suffix: s1}))
		}, "list-tail-mismatch", "list", "housekeeping=1 copied=4"},
		{"next_seq too small", func(m *memory) {
			m.Store("list").Put("default", []byte("Lk"),
				nemo.AppendListMeta(nil, nemo.ListMeta{Count: 3, Left: 2, Right: 3, NextSeq: 3, Suffix: s1}))
		}, "list-next-seq", "list", "housekeeping=1 copied=4"},
		{"bad nodes", func(m *memory) {
			m.Store("list").Put("default", nodeKey("k", 0), nemo.AppendNode(nil, nemo.Node{Suffix: s1}))
			m.Store("list").Put("default", nodeKey("k", -7), nemo.AppendNode(nil, nemo.Node{Suffix: s1}))
			m.Store("list").Put("default", append(nodeKey("k", 7), 'x'), nemo.AppendNode(nil, nemo.Node{Suffix: s1}))
			m.Store("list").Put("default", nodeKey("k", 9), make([]byte, 23))
		}, "bad-row-key bad-row-key newer short-value", "list", "malformed=4 housekeeping=1 copied=4"},
		{"sparse list", func(m *memory) {
			m.Store("list").Delete("default", nodeKey("k", 3))
			m.Store("list").Put("default", nodeKey("k", 1), nemo.AppendNode(nil, nemo.Node{Prev: 2, Next: 1 << 60, Suffix: s1}))
			m.Store("list").Put("default", nodeKey("k", 1<<60), nemo.AppendNode(nil, nemo.Node{Prev: 1, Suffix: s1}))
			m.Store("list").Put("default", []byte("Lk"),
				nemo.AppendListMeta(nil, nemo.ListMeta{Count: 3, Left: 2, Right: 1 << 60, NextSeq: 1<<60 + 1, Suffix: s1}))
		}, "", "list", "housekeeping=1 copied=4"},
	}
	var told strings.Builder
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			m := whole(t)
			c.break_(m)
			told.WriteString(formattest.Told(t, c.name, func() format.Source { return m.Open(t) }))
			for _, memory := range []int64{0, 1, 400} { // lists in memory, in files, with an array of links
				for _, deep := range []bool{true, false} {
					checkDamage(t, m, &format.Env{Memory: memory, Deep: deep}, c.kinds, c.where, c.ledger)
				}
			}
		})
	}
	formattest.CheckOutcomes(t, "testdata/damage.txt", told.String())
}

// checkDamage reads a damaged dataset, with its elements and without, and compares findings and ledger. Damage
// to the links of a list too large for memory is not fully reported when only its header is read.
func checkDamage(t *testing.T, m *memory, e *format.Env, kinds, where, ledger string) {
	t.Helper()
	for _, read := range []bool{true, false} {
		var f formattest.Findings
		var l record.Ledger
		e.Ledger, e.Report, e.TempDir = &l, f.Report, t.TempDir()
		r := formattest.Records(t, m.Open(t), "0", e)
		if read {
			formattest.Lines(t, r)
		} else {
			skim(t, r)
		}
		formattest.CheckLedger(t, &l)
		if got := strings.Join(f.Kinds(), " "); got != strings.TrimSpace(kinds) && (read || e.Memory == 0) {
			t.Errorf("read %v, memory %d: findings %q, want %q", read, e.Memory, got, kinds)
		}
		if got := formattest.Classes(&l, where); got != ledger {
			t.Errorf("read %v, memory %d: ledger of %s: %q, want %q", read, e.Memory, where, got, ledger)
		}
		checkFindings(t, f.All)
	}
}

// skim goes through all records without reading their elements.
func skim(t testing.TB, r *record.Walker) {
	t.Helper()
	for {
		h, err := r.Next()
		if err != nil {
			break
		}
		if h.Expired {
			r.Settle(record.Expired)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}

// checkFindings checks the properties common to all findings.
func checkFindings(t testing.TB, all []record.Finding) {
	t.Helper()
	garbage := []string{versioned.FindOrphanRows, versioned.FindDeletedRows, nemo.FindNegativeExpiry}
	for _, x := range all {
		if x.DB != "0" || x.Keyspace == "" || x.Type == 0 || x.Detail == "" || x.Place.File != "memory" {
			t.Errorf("finding %+v lacks something", x)
		}
		if (x.Severity == record.Error) == slices.Contains(garbage, x.Kind) {
			t.Errorf("finding %s of severity %s", x.Kind, x.Severity)
		}
	}
}

func TestScoresBeyondTheEngine(t *testing.T) {
	m := whole(t)
	nan := 0.0
	nan /= nan
	m.putMember("k", "a", nan, nan)
	m.Store("zset").Delete("default", indexKey("k", "a", 0))
	m.putMember("k", "b", 1e14, 1e14)
	m.Store("zset").Delete("default", indexKey("k", "b", 1))
	m.Store("zset").Put("default", indexKey("k", "a", nan), nemo.AppendPlain(nil, nemo.Plain{Suffix: s1}))
	var f formattest.Findings
	formattest.Lines(t, formattest.Records(t, m.Open(t), "0", &format.Env{Report: f.Report}))
	if got := strings.Join(f.Kinds(), " "); got != "zset-bad-score zset-bad-score" {
		t.Errorf("findings %q", got)
	}
}

// TestManyFindings checks that a record with many faults does not fill the report.
func TestManyFindings(t *testing.T) {
	m := whole(t)
	for i := range 500 {
		m.Store("zset").Put("default", indexKey("k", "x", float64(i)), nemo.AppendPlain(nil, nemo.Plain{Suffix: s1}))
	}
	var f formattest.Findings
	skim(t, formattest.Records(t, m.Open(t), "0", &format.Env{Report: f.Report}))
	if last := f.All[len(f.All)-1]; len(f.All) != 101 || !strings.Contains(last.Detail, "400 more") {
		t.Errorf("%d findings, the last %q", len(f.All), last.Detail)
	}
	var deep formattest.Findings
	skim(t, formattest.Records(t, m.Open(t), "0", &format.Env{Report: deep.Report, Deep: true}))
	if len(deep.All) != 500 {
		t.Errorf("%d findings of a deep look", len(deep.All))
	}
}

// TestExpiredIsNotDamaged: compaction may have removed any row of an expired collection.
func TestExpiredIsNotDamaged(t *testing.T) {
	for _, expiry := range []nemo.UnixSeconds{1, 0} {
		m := whole(t)
		gone := nemo.Suffix{Version: 5, Expiry: expiry}
		m.Store("hash").Put("default", []byte("Hk"), nemo.AppendMeta(nil, nemo.Meta{Count: 3, Suffix: gone}))
		m.Store("zset").Put("default", []byte("Zk"), nemo.AppendMeta(nil, nemo.Meta{Count: 2, Suffix: gone}))
		m.Store("zset").Delete("default", indexKey("k", "a", 0))
		putList(m.Store("list"), "k", nemo.ListMeta{Count: 9, Left: 7, Right: 8, NextSeq: 1, Suffix: gone})
		var f formattest.Findings
		readAll(t, formattest.RecordsOf(t, m.Open(t), "0", record.AllTypes, format.Span{},
			&format.Env{Now: formattest.Now, Report: f.Report}), func() {})
		if clean := len(f.All) == 0; clean != (expiry != 0) {
			t.Errorf("expiry %d: findings %v", expiry, f.Kinds())
		}
	}
}
