package blackwidow_test

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"kvferry/blackwidow"
	"kvferry/format"
	"kvferry/internal/testkit/formattest"
	"kvferry/record"
)

// The version of the records below, and the bounds of a list that was never pushed to the left.
const (
	version = 5
	left    = math.MaxInt64
	first   = left + 1
)

func (m *memory) put(keyspace string, key, value []byte) {
	dir, cf, _ := strings.Cut(keyspace, "/")
	m.Store(dir).Put(cf, key, value)
}

func (m *memory) delete(t testing.TB, keyspace string, key []byte) {
	t.Helper()
	dir, cf, _ := strings.Cut(keyspace, "/")
	if !m.Store(dir).Delete(cf, key) {
		t.Fatalf("%s: no row %q to delete", keyspace, key)
	}
}

// declare declares the column families of all stores.
func (m *memory) declare() *memory {
	for _, cf := range []string{"hashes/data_cf", "sets/member_cf", "zsets/data_cf"} {
		dir, cf, _ := strings.Cut(cf, "/")
		m.Store(dir).Len(cf)
	}
	m.Store("lists").Keyspace("data_cf", blackwidow.ListsDataKeyComparator)
	m.Store("zsets").Keyspace("score_cf", blackwidow.ZSetsScoreKeyComparator)
	return m
}

func meta(count int32, v blackwidow.Version, expiry blackwidow.UnixSeconds) []byte {
	return blackwidow.AppendMeta(nil, blackwidow.Meta{Count: count, Version: v, Expiry: expiry})
}

func listMeta(count, left, right uint64) []byte {
	return blackwidow.AppendListMeta(nil, blackwidow.ListMeta{Count: count, Version: version, Left: left, Right: right})
}

func dataKey(key string, v blackwidow.Version, name string) []byte {
	return blackwidow.AppendDataKey(nil, blackwidow.DataKey{Key: []byte(key), Version: v, Name: []byte(name)})
}

func itemKey(key string, v blackwidow.Version, index uint64) []byte {
	return blackwidow.AppendListKey(nil, blackwidow.ListKey{Key: []byte(key), Version: v, Index: index})
}

func scoreKey(key string, v blackwidow.Version, score float64, member string) []byte {
	return blackwidow.AppendScoreKey(nil, blackwidow.ScoreKey{Key: []byte(key), Version: v, Score: score, Member: []byte(member)})
}

func score(s float64) []byte { return blackwidow.AppendScore(nil, s) }

// whole puts one healthy record of each type, called k.
func whole(t testing.TB) *memory {
	m := newMemory(t).stores().declare()
	k := []byte("k")
	m.put("strings/default", k, blackwidow.AppendStringValue(nil, blackwidow.StringValue{Bytes: []byte("v")}))
	for _, dir := range []string{"hashes", "sets", "zsets"} {
		m.put(dir+"/default", k, meta(2, version, 0))
	}
	for i, name := range []string{"a", "b"} {
		m.put("hashes/data_cf", dataKey("k", version, name), []byte(name))
		m.put("sets/member_cf", dataKey("k", version, name), nil)
		m.put("zsets/data_cf", dataKey("k", version, name), score(float64(i)))
		m.put("zsets/score_cf", scoreKey("k", version, float64(i), name), nil)
	}
	m.put("lists/default", k, listMeta(3, left, first+3))
	for i := range uint64(3) {
		m.put("lists/data_cf", itemKey("k", version, first+i), []byte{byte('1' + i)})
	}
	return m
}

type damageCase struct {
	name   string
	do     func(t *testing.T, m *memory)
	kinds  string // of findings
	where  string // the ledger's keyspace
	ledger string
}

var k = []byte("k")

var damageCases = []damageCase{
	{"nothing", func(*testing.T, *memory) {}, "", "lists/data_cf", "copied=3"},
	{"short string", func(t *testing.T, m *memory) { m.put("strings/default", k, []byte("123")) },
		"short-value", "strings/default", "malformed=1"},
	{"expired string", func(t *testing.T, m *memory) {
		m.put("strings/default", k, blackwidow.AppendStringValue(nil, blackwidow.StringValue{Expiry: -1}))
	}, "", "strings/default", "expired=1"},
	{"short hash meta", func(t *testing.T, m *memory) { m.put("hashes/default", k, make([]byte, 11)) },
		"short-value", "hashes/data_cf", "orphan=2"},
	{"long zset meta", func(t *testing.T, m *memory) { m.put("zsets/default", k, make([]byte, 13)) },
		"newer", "zsets/score_cf", "malformed=2"},
	{"short list meta", func(t *testing.T, m *memory) { m.put("lists/default", k, make([]byte, 12)) },
		"short-value", "lists/data_cf", "orphan=3"},
	{"klen beyond the end", func(t *testing.T, m *memory) {
		m.put("hashes/data_cf", []byte("\x09\x00\x00\x00k\x05\x00\x00\x00f"), nil)
	},
		"bad-key-length", "hashes/data_cf", "malformed=1 copied=2"},
	{"klen below 0", func(t *testing.T, m *memory) {
		m.put("sets/member_cf", []byte("\xff\xff\xff\xffk\x05\x00\x00\x00f"), nil)
	},
		"bad-key-length", "sets/member_cf", "malformed=1 copied=2"},
	{"key without klen", func(t *testing.T, m *memory) { m.put("sets/member_cf", []byte("\x01\x00"), nil) },
		"bad-key-length", "sets/member_cf", "malformed=1 copied=2"},
	{"key without version", func(t *testing.T, m *memory) { m.put("hashes/data_cf", []byte("\x01\x00\x00\x00k\x05\x00"), nil) },
		"bad-row-key", "hashes/data_cf", "malformed=1 copied=2"},
	{"list key with klen beyond the end", func(t *testing.T, m *memory) { m.put("lists/data_cf", []byte("\x09\x00\x00\x00k"), nil) },
		"bad-key-length", "lists/data_cf", "malformed=1 copied=3"},
	{"list key without index", func(t *testing.T, m *memory) { m.put("lists/data_cf", dataKey("k", version, "1234567"), nil) },
		"bad-row-key", "lists/data_cf", "malformed=1 copied=3"},
	{"long list key", func(t *testing.T, m *memory) { m.put("lists/data_cf", dataKey("k", version, "123456789"), nil) },
		"newer", "lists/data_cf", "malformed=1 copied=3"},
	{"score key without score", func(t *testing.T, m *memory) { m.put("zsets/score_cf", dataKey("k", version, "1234567"), nil) },
		"bad-row-key", "zsets/score_cf", "malformed=1 index=2"},
	{"member with a value", func(t *testing.T, m *memory) { m.put("sets/member_cf", dataKey("k", version, "b"), []byte("x")) },
		"count-mismatch newer", "sets/member_cf", "malformed=1 copied=1"},
	{"short score", func(t *testing.T, m *memory) { m.put("zsets/data_cf", dataKey("k", version, "b"), make([]byte, 7)) },
		"count-mismatch short-value zset-missing-member-row", "zsets/score_cf", "orphan=1 index=1"},
	{"row of score_cf with a value", func(t *testing.T, m *memory) { m.put("zsets/score_cf", scoreKey("k", version, 1, "b"), []byte("x")) },
		"newer zset-missing-score-row", "zsets/score_cf", "malformed=1 index=1"},
	{"NaN", func(t *testing.T, m *memory) {
		m.delete(t, "zsets/score_cf", scoreKey("k", version, 1, "b"))
		m.put("zsets/data_cf", dataKey("k", version, "b"), score(math.NaN()))
		m.put("zsets/score_cf", scoreKey("k", version, math.NaN(), "b"), nil)
	}, "zset-bad-score", "zsets/score_cf", "index=2"},

	{"no meta row", func(t *testing.T, m *memory) { m.delete(t, "hashes/default", k) }, "orphan-rows", "hashes/data_cf", "orphan=2"},
	{"no list meta row", func(t *testing.T, m *memory) { m.delete(t, "lists/default", k) }, "orphan-rows", "lists/data_cf", "orphan=3"},
	{"no zset meta row", func(t *testing.T, m *memory) { m.delete(t, "zsets/default", k) }, "orphan-rows orphan-rows", "zsets/score_cf", "orphan=2"},
	{"orphans of three keys", func(t *testing.T, m *memory) {
		for _, key := range []string{"a", "kk", "z"} {
			m.put("lists/data_cf", itemKey(key, version, first), nil)
		}
		m.put("sets/member_cf", dataKey("a", version, "b"), nil)
		m.put("sets/member_cf", dataKey("a", version, "c"), []byte("x"))
	}, "newer orphan-rows orphan-rows orphan-rows orphan-rows", "lists/data_cf", "orphan=3 copied=3"},
	{"count too small", func(t *testing.T, m *memory) { m.put("sets/default", k, meta(1, version, 0)) },
		"count-mismatch", "sets/member_cf", "copied=2"},
	{"count below 0", func(t *testing.T, m *memory) { m.put("sets/default", k, meta(-1, version, 0)) },
		"count-mismatch", "sets/member_cf", "copied=2"},
	{"count 0", func(t *testing.T, m *memory) { m.put("sets/default", k, meta(0, version, 0)) },
		"deleted-rows", "sets/member_cf", "deleted=2"},
	{"deleted zset", func(t *testing.T, m *memory) { m.put("zsets/default", k, meta(0, version+1, 0)) },
		"", "zsets/score_cf", "stale=2"},
	{"deleted list", func(t *testing.T, m *memory) { m.put("lists/default", k, listMeta(0, left, first)) },
		"deleted-rows", "lists/data_cf", "deleted=3"},
	{"deleted with rows of a newer version", func(t *testing.T, m *memory) { m.put("hashes/default", k, meta(0, version-1, 0)) },
		"newer-version", "hashes/data_cf", "orphan=2"},
	{"stale rows", func(t *testing.T, m *memory) { m.put("hashes/data_cf", dataKey("k", version-1, "a"), nil) },
		"", "hashes/data_cf", "stale=1 copied=2"},
	{"newer rows", func(t *testing.T, m *memory) {
		m.put("lists/data_cf", itemKey("k", version+1, first), nil)
		m.put("zsets/score_cf", scoreKey("k", version+256, 1, "b"), nil)
	}, "newer-version newer-version", "zsets/score_cf", "orphan=1 index=2"},
	{"expired with rows missing", func(t *testing.T, m *memory) {
		m.put("zsets/default", k, meta(2, version, 1))
		m.delete(t, "zsets/data_cf", dataKey("k", version, "a"))
		m.put("lists/default", k, blackwidow.AppendListMeta(nil,
			blackwidow.ListMeta{Count: 9, Version: version, Expiry: 1, Left: left, Right: first + 9}))
	}, "", "zsets/score_cf", "expired=2"},
	{"version that hides", func(t *testing.T, m *memory) {
		m.put("sets/default", k, meta(1, 0x1ff, 0))
		m.put("sets/member_cf", dataKey("k", 0x1ff, "m"), nil)
	}, "hidden-version", "sets/member_cf", "stale=2 copied=1"},

	{"no row in score_cf", func(t *testing.T, m *memory) { m.delete(t, "zsets/score_cf", scoreKey("k", version, 1, "b")) },
		"zset-missing-score-row", "zsets/score_cf", "index=1"},
	{"no member row", func(t *testing.T, m *memory) { m.delete(t, "zsets/data_cf", dataKey("k", version, "b")) },
		"count-mismatch zset-missing-member-row", "zsets/score_cf", "orphan=1 index=1"},
	{"scores differ by a bit", func(t *testing.T, m *memory) {
		m.put("zsets/data_cf", dataKey("k", version, "b"), score(math.Nextafter(1, 2)))
	}, "zset-score-mismatch", "zsets/score_cf", "index=2"},
	{"second row in score_cf", func(t *testing.T, m *memory) { m.put("zsets/score_cf", scoreKey("k", version, 7, "b"), nil) },
		"zset-score-mismatch", "zsets/score_cf", "index=3"},
	{"members swapped in score_cf", func(t *testing.T, m *memory) {
		for i, name := range []string{"a", "b"} {
			m.delete(t, "zsets/score_cf", scoreKey("k", version, float64(i), name))
			m.put("zsets/score_cf", scoreKey("k", version, float64(1-i), name), nil)
		}
	}, "zset-score-mismatch zset-score-mismatch", "zsets/score_cf", "index=2"},
	{"rows of other versions beside a missing one", func(t *testing.T, m *memory) {
		m.put("zsets/data_cf", dataKey("k", version-1, "b"), score(1))
		m.put("zsets/score_cf", scoreKey("k", version-1, 3, "c"), nil)
		m.delete(t, "zsets/score_cf", scoreKey("k", version, 0, "a"))
	}, "zset-missing-score-row", "zsets/score_cf", "stale=1 index=1"},

	{"index missing", func(t *testing.T, m *memory) { m.delete(t, "lists/data_cf", itemKey("k", version, first+1)) },
		"list-missing-index", "lists/data_cf", "copied=2"},
	{"indexes missing at both ends", func(t *testing.T, m *memory) { m.put("lists/default", k, listMeta(6, left-1, first+5)) },
		"list-missing-index list-missing-index", "lists/data_cf", "copied=3"},
	{"row outside the bounds", func(t *testing.T, m *memory) { m.put("lists/default", k, listMeta(1, first, first+2)) },
		"list-outside-bounds list-outside-bounds", "lists/data_cf", "orphan=2 copied=1"},
	{"count is not that of the bounds", func(t *testing.T, m *memory) { m.put("lists/default", k, listMeta(4, left, first+3)) },
		"count-mismatch", "lists/data_cf", "copied=3"},
	{"bounds crossed", func(t *testing.T, m *memory) { m.put("lists/default", k, listMeta(3, math.MaxUint64, 0)) },
		"count-mismatch list-outside-bounds list-outside-bounds list-outside-bounds", "lists/data_cf", "orphan=3"},
	{"bounds apart", func(t *testing.T, m *memory) { m.put("lists/default", k, listMeta(math.MaxUint64, 0, math.MaxUint64)) },
		"count-mismatch list-missing-index list-missing-index", "lists/data_cf", "copied=3"},
}

func TestDamage(t *testing.T) {
	var told strings.Builder
	for _, c := range damageCases {
		t.Run(c.name, func(t *testing.T) {
			m := whole(t)
			c.do(t, m)
			told.WriteString(formattest.Told(t, c.name, func() format.Source { return m.Open(t) }))
			for _, memory := range []int64{0, 1} {
				var l record.Ledger
				var f formattest.Findings
				drainAll(t, formattest.Records(t, m.Open(t), "0",
					&format.Env{Ledger: &l, Report: f.Report, Memory: memory, TempDir: t.TempDir()}))
				formattest.CheckLedger(t, &l)
				if got := strings.Join(f.Kinds(), " "); got != c.kinds {
					t.Errorf("found %q, want %q", got, c.kinds)
				}
				if got := formattest.Classes(&l, c.where); got != c.ledger {
					t.Errorf("%s: %q, want %q", c.where, got, c.ledger)
				}
				for _, x := range f.All {
					if x.DB != "0" || x.Type == 0 || x.Keyspace == "" || x.Detail == "" || x.Place.File == "" {
						t.Errorf("finding lacks something: %+v", x)
					}
				}
			}
		})
	}
	formattest.CheckOutcomes(t, "testdata/damage.txt", told.String())
}

// drainAll reads some records in full, some in part and some not at all, and settles the expired ones.
func drainAll(t testing.TB, r *record.Walker) {
	t.Helper()
	buf := make([]record.Element, 3)
	for n := 0; ; n++ {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Expired {
			r.Settle(record.Expired)
		}
		for reads := 0; reads < 2-n%3 || n%3 == 0; reads++ {
			if _, err := r.Read(buf); err == io.EOF {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := r.Next(); err != io.EOF {
		t.Errorf("Next after the end: %v", err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestDamagedListIsRead: the remaining elements are read, in order.
func TestDamagedListIsRead(t *testing.T) {
	m := whole(t)
	m.delete(t, "lists/data_cf", itemKey("k", version, first+1))
	r := formattest.RecordsOf(t, m.Open(t), "0", record.Of(record.List), format.Span{}, &format.Env{})
	defer r.Close()
	if _, err := r.Next(); err != nil {
		t.Fatal(err)
	}
	buf := make([]record.Element, 5)
	n, err := r.Read(buf)
	if err != nil || n != 2 || string(buf[0].Value)+string(buf[1].Value) != "13" {
		t.Errorf("read %d elements, %v", n, err)
	}
}

// TestManyFindings: after a hundred findings about one record the rest is summed up, unless all are requested.
func TestManyFindings(t *testing.T) {
	m := newMemory(t).stores().declare()
	m.put("zsets/default", k, meta(150, version, 0))
	for i := range 150 {
		m.put("zsets/data_cf", dataKey("k", version, fmt.Sprint("m", i)), score(1))
	}
	for deep, want := range map[bool]int{false: 101, true: 150} {
		var f formattest.Findings
		drainAll(t, formattest.Records(t, m.Open(t), "0", &format.Env{Report: f.Report, Deep: deep}))
		if len(f.All) != want {
			t.Errorf("deep %v: %d findings, want %d", deep, len(f.All), want)
		}
	}
}

// TestFlippedRows flips each byte of each row: no panic, the ledger adds up, and the record is either whole or
// reported, unless the flip makes another healthy database.
func TestFlippedRows(t *testing.T) {
	var told strings.Builder
	for _, ks := range []string{"strings/default", "hashes/default", "hashes/data_cf", "lists/default", "lists/data_cf",
		"sets/default", "sets/member_cf", "zsets/default", "zsets/data_cf", "zsets/score_cf"} {
		keys, values := rowsOf(t, whole(t), ks)
		for i := range keys {
			sum := crc32.NewIEEE()
			for at := range len(keys[i]) + len(values[i]) {
				for _, bit := range []byte{1, 0x80, 0xff} {
					key, value := bytes.Clone(keys[i]), bytes.Clone(values[i])
					if at < len(key) {
						key[at] ^= bit
					} else {
						value[at-len(key)] ^= bit
					}
					m := whole(t)
					m.delete(t, ks, keys[i])
					m.put(ks, key, value)
					checkReads(t, m, fmt.Sprintf("%s row %d byte %d", ks, i, at))
					sum.Write([]byte(formattest.Tell(t, m.Open(t), "0", record.AllTypes, &format.Env{Deep: true}, 7)))
				}
			}
			for n := range len(values[i]) {
				m := whole(t)
				m.put(ks, keys[i], values[i][:n])
				checkReads(t, m, fmt.Sprintf("%s row %d value cut to %d", ks, i, n))
			}
			for n := range len(keys[i]) {
				m := whole(t)
				m.delete(t, ks, keys[i])
				m.put(ks, keys[i][:n], values[i])
				checkReads(t, m, fmt.Sprintf("%s row %d key cut to %d", ks, i, n))
			}
			fmt.Fprintf(&told, "%s row %d: %08x\n\n", ks, i, sum.Sum32())
		}
	}
	formattest.CheckOutcomes(t, "testdata/flipped.txt", told.String())
}

func rowsOf(t *testing.T, m *memory, name string) (keys, values [][]byte) {
	t.Helper()
	all := m.Open(t).Keyspaces()
	i := slices.IndexFunc(all, func(ks format.Keyspace) bool { return ks.Name == name })
	it, err := all[i].Rows(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for {
		key, value, err := it.Next()
		if err == io.EOF {
			return keys, values
		}
		keys, values = append(keys, key), append(values, value)
	}
}

func checkReads(t *testing.T, m *memory, what string) {
	t.Helper()
	var l record.Ledger
	src := m.Open(t)
	drainAll(t, formattest.Records(t, src, "0", &format.Env{Ledger: &l, Deep: true, Report: func(record.Finding) {}}))
	if err := l.Check(); err != nil {
		t.Errorf("%s: %v", what, err)
	}
	for _, ks := range src.Keyspaces() {
		it, err := ks.Rows(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		var n int64
		for ; err == nil; n++ {
			_, _, err = it.Next()
		}
		tally := l.Snapshot()[ks.Name]
		if got := tally.Total(); got != n-1 {
			t.Errorf("%s: %s: %d rows classified of %d", what, ks.Name, got, n-1)
		}
	}
}
