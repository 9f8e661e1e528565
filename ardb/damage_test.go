package ardb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"path/filepath"
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

// raw is a row put into a memory store unchanged.
type raw struct{ key, val []byte }

func row(user string, k codec.Kind, val []byte, elems ...codec.Data) raw {
	return raw{codec.AppendKey(nil, nil, []byte(user), k, elems...), val}
}

func metaOf(user string, v codec.Value, data ...codec.Data) raw {
	return row(user, codec.KindMeta, codec.AppendValue(nil, &v, data...))
}

func elem(k codec.Kind, d ...codec.Data) []byte {
	return codec.AppendValue(nil, &codec.Value{Kind: k}, d...)
}

// openRows opens a memory store of rows in namespace 0.
func openRows(t testing.TB, rows ...raw) format.Source {
	t.Helper()
	fs := memstore.New()
	st := fs.Dir("/d/rocksdb")
	for _, name := range []string{defaultCF, "0"} {
		if err := st.Keyspace(name, codec.Comparer()); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range rows {
		st.Put("0", r.key, r.val)
	}
	src, err := New().Open(context.Background(), "/d", &format.OpenOptions{Store: fs.Open, Kind: kindRocksDB})
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// outcome reads everything and formats records, findings and ledger.
func outcome(t testing.TB, src format.Source, types record.TypeSet) (records, kinds []string, rows [record.NumClasses]int64) {
	t.Helper()
	env := testEnv(func(f record.Finding) {
		kinds = append(kinds, fmt.Sprintf("%s %s %s", f.Kind, f.Type, f.Key))
		if f.Detail == "" || f.Keyspace == "" {
			t.Errorf("finding %+v", f)
		}
	})
	env.Memory, env.TempDir = 8<<10, t.TempDir()
	readRecords(t, src, "0", types, format.Span{}, env, func(h *record.Header, elems []record.Element) {
		s := fmt.Sprintf("%s %s:", h.Type, h.Key)
		for _, e := range elems {
			switch h.Type {
			case record.Set:
				s += fmt.Sprintf(" %s", e.Name)
			case record.ZSet:
				s += fmt.Sprintf(" %s=%v", e.Name, e.Score)
			case record.Hash:
				s += fmt.Sprintf(" %s=%s", e.Name, e.Value)
			case record.Stream:
				s += fmt.Sprintf(" %x=%q", e.Name[7:8], e.Value)
			default:
				s += fmt.Sprintf(" %s", e.Value)
			}
		}
		records = append(records, s)
	})
	for name, tally := range env.Ledger.Snapshot() {
		if err := tally.Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for i, n := range tally.Rows {
			rows[i] += n
		}
	}
	return records, kinds, rows
}

func TestFindings(t *testing.T) {
	expiring := func(key string, ms int64) raw {
		return raw{codec.AppendKey(nil, nil, []byte(key), codec.KindMeta), strTTL(text("v"), formattest.Now.UnixMilli()+ms)}
	}
	var told strings.Builder
	list := func(size int64, seq bool, lo, hi codec.Data) raw {
		return metaOf("l", codec.Value{Kind: codec.KindList, Size: size, Sequential: seq}, lo, hi)
	}
	item := func(at codec.Data, s string) raw {
		return row("l", codec.KindElement, elem(codec.KindElement, text(s)), at)
	}
	zmeta := metaOf("z", codec.Value{Kind: codec.KindZSet, Size: 1}, text("m"), text("m"))
	sort := func(f float64, m string) raw {
		return row("z", codec.KindSort, elem(codec.KindSort), codec.FloatData(f), text(m))
	}
	score := func(m string, d codec.Data) raw {
		return row("z", codec.KindScore, elem(codec.KindScore, d), text(m))
	}
	smeta := metaOf("s", codec.Value{Kind: codec.KindSet, Size: -1})
	mem := func(d codec.Data) raw { return row("s", codec.KindMember, elem(codec.KindMember), d) }
	hmeta := metaOf("h", codec.Value{Kind: codec.KindHash, Size: -1})
	fld := func(d, v codec.Data) raw { return row("h", codec.KindField, elem(codec.KindField, v), d) }
	xmeta := metaOf("x", codec.Value{Kind: codec.KindStream, Size: 1, Last: codec.TextData(streamID(9, 0))}, text("f"))
	ent := func(ms uint64, d ...codec.Data) raw {
		return row("x", codec.KindEntry, elem(codec.KindEntry, d...), codec.TextData(streamID(ms, 0)))
	}
	type counts map[record.Class]int64
	for _, tt := range []struct {
		name    string
		rows    []raw
		records []string
		kinds   []string
		counts  counts
	}{
		{"orphans", []raw{fld(text("a"), text("b")), fld(text("c"), text("b")), mem(text("q"))}, nil,
			[]string{"orphan-rows hash h", "orphan-rows set s"}, counts{record.Orphan: 3}},
		{"rows of another type", []raw{smeta, mem(text("a")), row("s", codec.KindField, elem(codec.KindField, text("v")), text("f"))},
			[]string{"set s: a"}, []string{"orphan-rows hash s"}, counts{record.Orphan: 1, record.Copied: 2}},
		{"rows behind a string", []raw{{codec.AppendKey(nil, nil, []byte("s"), codec.KindMeta), str(codec.IntData(1))}, mem(text("a"))},
			[]string{"string s: 1"}, []string{"orphan-rows set s"}, counts{record.Orphan: 1, record.Copied: 1}},
		{"members in a circle", []raw{smeta, mem(codec.IntData(-1<<62 - 1)), mem(codec.IntData(1 << 62))},
			[]string{"set s: 4611686018427387904 -4611686018427387905"}, []string{"circular-order set s"}, counts{record.Copied: 3}},
		{"fields just not in a circle", []raw{hmeta, fld(codec.IntData(-1<<62), text("v")), fld(codec.IntData(1<<62-1), text("w"))},
			[]string{"hash h: -4611686018427387904=v 4611686018427387903=w"}, nil, counts{record.Copied: 3}},
		{"emptied collection", []raw{hmeta}, nil, nil, counts{record.Deleted: 1}},
		{"empty value", []raw{{codec.AppendKey(nil, nil, []byte("a"), codec.KindMeta), nil}}, nil, []string{"empty-value invalid a"}, counts{record.Deleted: 1}},
		{"operand", []raw{{codec.AppendKey(nil, nil, []byte("a"), codec.KindMeta), operand(1002, codec.IntData(1))}}, nil,
			[]string{"unmerged-operand invalid a"}, counts{record.Malformed: 1}},
		{"value of another kind", []raw{{codec.AppendKey(nil, nil, []byte("a"), codec.KindMeta), elem(codec.KindField, text("a"))}}, nil,
			[]string{"malformed-value invalid a"}, counts{record.Malformed: 1}},
		{"cut value", []raw{{codec.AppendKey(nil, nil, []byte("a"), codec.KindMeta), []byte{2, 0, 0x80}}}, nil,
			[]string{"malformed-value string a"}, counts{record.Malformed: 1}},
		{"cut string", []raw{{codec.AppendKey(nil, nil, []byte("a"), codec.KindMeta), []byte{2, 0, 0, 1, 4, 9}}}, nil,
			[]string{"malformed-value string a"}, counts{record.Malformed: 1}},
		{"string of two", []raw{metaOf("a", codec.Value{Kind: codec.KindString}, text("a"), text("b"))}, nil,
			[]string{"newer string a"}, counts{record.Malformed: 1}},
		{"elements in a META key", []raw{{append(codec.AppendPrefix(nil, nil, []byte("a")), 1, 1), str(codec.IntData(1))}}, nil,
			[]string{"newer string a"}, counts{record.Malformed: 1}},
		{"malformed key", []raw{{[]byte{9, 1}, nil}}, nil, []string{"malformed-key invalid \t\x01"}, counts{record.Malformed: 1}},
		{"unknown type", []raw{{append(codec.AppendPrefix(nil, nil, []byte("a")), 99, 0), nil}}, nil,
			[]string{"newer invalid a"}, counts{record.Malformed: 1}},
		{"malformed elements", []raw{hmeta, fld(text("a"), text("b")), {append(codec.AppendPrefix(nil, nil, []byte("h")), byte(codec.KindField), 1, 9), elem(codec.KindField, text("x"))},
			row("h", codec.KindField, elem(codec.KindMember), text("k")), row("h", codec.KindField, []byte{4, 1, 4, 9}, text("l")), row("h", codec.KindField, elem(codec.KindField), text("m"))},
			[]string{"hash h: a=b"}, []string{"malformed-value hash h", "malformed-value hash h", "malformed-value hash h", "newer hash h"},
			counts{record.Malformed: 4, record.Copied: 2}},
		{"malformed members", []raw{smeta, row("s", codec.KindMember, []byte{8}, text("k")), row("s", codec.KindMember, elem(codec.KindField), text("l")), mem(text("m"))},
			[]string{"set s: m"}, []string{"malformed-value set s", "malformed-value set s"}, counts{record.Malformed: 2, record.Copied: 2}},
		{"not canonical", []raw{hmeta, fld(codec.IntData(3), text("a")), fld(text("5"), text("b")), fld(text("x"), text("c"))},
			[]string{"hash h: 3=a 5=b x=c"}, []string{"not-canonical hash h"}, counts{record.Copied: 4}},
		{"member twice", []raw{smeta, mem(codec.IntData(5)), mem(text("5")), mem(text("6x"))},
			[]string{"set s: 5 6x"}, []string{"member-twice set s"}, counts{record.Orphan: 1, record.Copied: 3}},
		{"both tags and encodings", []raw{smeta, mem(codec.FloatData(0.5)), {append(codec.AppendPrefix(nil, nil, []byte("s")), byte(codec.KindMember), 1, 3, 1, 'k'), elem(codec.KindMember)},
			{append([]byte{0x81, 0, 's'}, byte(codec.KindMember), 1, 4, 1, 'l'), elem(codec.KindMember)}},
			[]string{"set s: 0.5 k l"}, nil, counts{record.Copied: 4}},
		{"whole zset", []raw{zmeta, sort(1, "m"), score("m", codec.FloatData(1))}, []string{"zset z: m=1"}, nil, counts{record.Copied: 2, record.Index: 1}},
		{"zset minus zero", []raw{zmeta, sort(0, "m"), score("m", codec.FloatData(math.Copysign(0, -1)))}, []string{"zset z: m=-0"}, nil,
			counts{record.Copied: 2, record.Index: 1}},
		{"zset score as integer", []raw{zmeta, sort(3, "m"), score("m", codec.IntData(3))}, []string{"zset z: m=3"}, nil, counts{record.Copied: 2, record.Index: 1}},
		{"zset scores differ", []raw{zmeta, sort(1, "m"), score("m", codec.FloatData(2))}, []string{"zset z: m=2"}, []string{"zset-twin zset z"},
			counts{record.Copied: 2, record.Index: 1}},
		{"zset without score row", []raw{zmeta, sort(1, "m")}, nil, []string{"zset-twin zset z"}, counts{record.Deleted: 1, record.Orphan: 1}},
		{"zset without sort row", []raw{zmeta, score("m", codec.FloatData(2))}, []string{"zset z: m=2"}, []string{"zset-twin zset z"}, counts{record.Copied: 2}},
		{"zset wrong size", []raw{metaOf("z", codec.Value{Kind: codec.KindZSet, Size: 5}), sort(1, "m"), score("m", codec.FloatData(1))}, []string{"zset z: m=1"},
			[]string{"size-mismatch zset z"}, counts{record.Copied: 2, record.Index: 1}},
		{"zset odd rows", []raw{zmeta, row("z", codec.KindField, elem(codec.KindField, text("v")), text("f")), row("z", codec.KindSort, elem(codec.KindSort), text("1"), text("m")), sort(1, "m"),
			score("m", codec.FloatData(1)), score("n", text("x")), score("o", codec.FloatData(math.NaN()))}, []string{"zset z: m=1 o=NaN"},
			[]string{"orphan-rows hash z", "malformed-key zset z", "malformed-value zset z", "score-nan zset z", "zset-twin zset z", "size-mismatch zset z"},
			counts{record.Copied: 3, record.Index: 1, record.Malformed: 2, record.Orphan: 1}},
		{"list of mixed indexes", []raw{list(3, false, codec.IntData(0), codec.IntData(1)), item(codec.IntData(0), "a"), item(codec.FloatData(0.5), "b"), item(codec.IntData(1), "c")},
			[]string{"list l: a b c"}, nil, counts{record.Copied: 4}},
		{"list with wider bounds", []raw{list(1, false, codec.IntData(-7), codec.IntData(9)), item(codec.IntData(1), "c")}, []string{"list l: c"}, nil, counts{record.Copied: 2}},
		{"list of wrong size", []raw{list(3, true, codec.IntData(1), codec.IntData(1)), item(codec.IntData(1), "c")}, []string{"list l: c"}, []string{"size-mismatch list l"}, counts{record.Copied: 2}},
		{"list with gaps", []raw{list(2, true, codec.IntData(1), codec.IntData(3)), item(codec.IntData(1), "c"), item(codec.IntData(3), "d")}, []string{"list l: c d"},
			[]string{"list-bounds list l"}, counts{record.Copied: 3}},
		{"list beyond bounds", []raw{list(1, false, codec.IntData(1), codec.IntData(1)), item(codec.IntData(3), "d")}, []string{"list l: d"}, []string{"list-bounds list l"}, counts{record.Copied: 2}},
		{"list without bounds", []raw{metaOf("l", codec.Value{Kind: codec.KindList, Size: 1}), item(codec.IntData(3), "d")}, []string{"list l: d"},
			[]string{"list-bounds list l"}, counts{record.Copied: 2}},
		{"list of far indexes", []raw{list(4, false, codec.IntData(-6e18), codec.IntData(6e18)), item(codec.IntData(6e18), "d"), item(codec.IntData(-6e18), "a"), item(codec.FloatData(-0.5), "b"), item(codec.IntData(0), "c")},
			[]string{"list l: a b c d"}, nil, counts{record.Copied: 5}},
		{"list of far indexes, damaged", []raw{list(2, false, codec.IntData(-6e18), codec.IntData(6e18)), item(codec.IntData(6e18), "d"), item(text("x"), "a"), item(codec.IntData(0), "c"),
			row("l", codec.KindElement, nil, codec.IntData(5))},
			[]string{"list l: c d"}, []string{"malformed-value list l", "malformed-key list l"}, counts{record.Copied: 3, record.Malformed: 2}},
		{"list index as string", []raw{list(1, false, codec.IntData(0), codec.IntData(1)), item(codec.IntData(0), "c"), item(text("x"), "a")},
			[]string{"list l: c"}, []string{"malformed-key list l"}, counts{record.Copied: 2, record.Malformed: 1}},
		{"list that lies about its bounds", []raw{list(4, false, codec.IntData(0), codec.IntData(1)), item(codec.IntData(0), "c"), item(codec.IntData(4e18), "b"), item(codec.IntData(8e18), "d"), item(codec.IntData(-7e18), "a")},
			[]string{"list l: c b d"}, []string{"list-order list l", "list-bounds list l", "size-mismatch list l"}, counts{record.Copied: 4, record.Malformed: 1}},
		{"stream", []raw{xmeta, ent(1, codec.IntData(1), codec.IntData(5)), ent(2, codec.IntData(1), text("v"), text("g")), ent(3, codec.IntData(0))},
			[]string{`stream x: 01="\x01f\x015" 02="\x01g\x01v" 03=""`}, nil, counts{record.Copied: 4}},
		{"stream groups", []raw{xmeta, ent(1, codec.IntData(1), codec.IntData(5)), row("x", codec.KindPending, elem(codec.KindPending, codec.TextData(streamID(1, 0))), text("g"), codec.Data{})},
			[]string{`stream x: 01="\x01f\x015"`}, []string{"stream-groups stream x"}, counts{record.Copied: 2, record.Lost: 1}},
		{"damaged entries", []raw{xmeta, ent(1, codec.IntData(2), codec.IntData(5)), ent(2, text("v"), text("g")), ent(3), row("x", codec.KindEntry, elem(codec.KindField, text("v")), codec.TextData(streamID(4, 0))),
			row("x", codec.KindEntry, elem(codec.KindEntry, codec.IntData(0)), text("short")), row("x", codec.KindEntry, []byte{13, 2, 1, 2, 9}, codec.TextData(streamID(5, 0))),
			row("x", codec.KindEntry, []byte{13, 3, 1, 2, 1, 2, 9}, codec.TextData(streamID(6, 0)))},
			[]string{"stream x:"}, []string{"malformed-value stream x", "malformed-value stream x", "malformed-value stream x", "malformed-value stream x",
				"newer stream x", "newer stream x", "malformed-key stream x"}, counts{record.Copied: 1, record.Malformed: 7}},
		{"damaged stream META", []raw{metaOf("x", codec.Value{Kind: codec.KindStream, Last: text("short")}), metaOf("y", codec.Value{Kind: codec.KindStream, Last: codec.TextData(streamID(1, 0))}, codec.IntData(1))},
			nil, []string{"malformed-value stream x", "malformed-value stream y"}, counts{record.Malformed: 2}},
		{"negative expiry", []raw{{codec.AppendKey(nil, nil, []byte("a"), codec.KindMeta), strTTL(text("v"), -5)}}, []string{"string a: v"},
			[]string{"bad-expiry string a"}, counts{record.Copied: 1}},
		{"expiring strings", []raw{expiring("a", -1), expiring("b", 0), expiring("c", 1), expiring("d", 1<<40), expiring("e", 1-formattest.Now.UnixMilli())},
			[]string{"string d: v"}, nil, counts{record.Copied: 1, record.Expired: 4}}, // by the clock of outcome
		{"TTL row among records", []raw{row("", codec.KindTTL, elem(codec.KindTTL), codec.IntData(1), text("0"), text("k"))}, nil, nil, counts{record.Housekeeping: 1}},
	} {
		told.WriteString(formattest.Told(t, tt.name, func() format.Source { return openRows(t, tt.rows...) }))
		records, kinds, rows := outcome(t, openRows(t, tt.rows...), record.AllTypes)
		if !slices.Equal(records, tt.records) || !slices.Equal(kinds, tt.kinds) {
			t.Errorf("%s: records %q, findings %q", tt.name, records, kinds)
		}
		for c, n := range rows {
			if n != tt.counts[record.Class(c)] {
				t.Errorf("%s: %d rows %s, want %d", tt.name, n, record.Class(c), tt.counts[record.Class(c)])
			}
		}
		// By type: the same, every row once.
		var parts [record.NumClasses]int64
		var byType []string
		for _, typ := range record.AllTypes.Types() {
			recs, _, rows := outcome(t, openRows(t, tt.rows...), record.Of(typ))
			byType = append(byType, recs...)
			for i := range parts {
				parts[i] += rows[i]
			}
		}
		slices.Sort(byType)
		slices.Sort(records)
		if parts != rows || !slices.Equal(byType, records) {
			t.Errorf("%s by type: rows %v, want %v; records %q", tt.name, parts, rows, byType)
		}
	}
	formattest.CheckOutcomes(t, "testdata/damage.txt", told.String())
}

// TestSettle sets the class of the rows of unread records, including index rows.
func TestSettle(t *testing.T) {
	src := openRows(t,
		metaOf("a", codec.Value{Kind: codec.KindZSet, Size: 1}), row("a", codec.KindSort, elem(codec.KindSort),
			codec.FloatData(1), text("m")), row("a", codec.KindScore, elem(codec.KindScore, codec.FloatData(1)), text("m")),
		metaOf("b", codec.Value{Kind: codec.KindHash}), row("b", codec.KindField, elem(codec.KindField, text("v")), text("f")),
		row("b", codec.KindMember, elem(codec.KindMember), text("f")))
	env := testEnv(nil)
	r := formattest.RecordsOf(t, src, "0", record.AllTypes, format.Span{}, env)
	if n, err := r.Read(make([]record.Element, 1)); n != 0 || err != io.EOF {
		t.Errorf("read before the first record: %d, %v", n, err)
	}
	for _, c := range []record.Class{record.Filtered, record.Lost} {
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
		r.Settle(c)
	}
	if _, err := r.Next(); err != io.EOF {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	got := env.Ledger.Snapshot()["0"]
	if got.Rows[record.Filtered] != 3 || got.Rows[record.Lost] != 2 || got.Rows[record.Orphan] != 1 || got.Check() != nil {
		t.Errorf("%+v", got)
	}
	if _, err := src.Records(context.Background(), "nope", record.AllTypes, format.Span{}, env); err == nil {
		t.Error("an unknown database is read")
	}
}

// TestDatasetSweep flips every byte of every row of a small dataset: findings or records, never a panic, and
// a ledger that adds up.
func TestDatasetSweep(t *testing.T) {
	st, _ := write(t, kindRocksDB, sampleRecords()...)
	var rows []raw
	for _, ks := range st.Keyspaces() {
		if ks.Name() != "0" {
			continue
		}
		it, err := ks.Rows(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for {
			key, val, err := it.Next()
			if err == io.EOF {
				break
			}
			rows = append(rows, raw{bytes.Clone(key), bytes.Clone(val)})
		}
	}
	var told strings.Builder
	sum, dir := crc32.NewIEEE(), t.TempDir()
	sweep := func(change func(*raw)) {
		damaged := slices.Clone(rows)
		for i := range damaged {
			damaged[i] = raw{bytes.Clone(rows[i].key), bytes.Clone(rows[i].val)}
		}
		change(&damaged[0])
		sum.Write([]byte(formattest.Tell(t, openRows(t, damaged...), "0", record.AllTypes,
			&format.Env{Memory: 8 << 10, TempDir: dir, Deep: true}, 7)))
	}
	for n := range rows {
		first := rows[0]
		sum.Reset()
		for i := range first.key {
			for _, x := range []byte{1, 0x80, 0xFF} {
				sweep(func(r *raw) { r.key[i] ^= x })
			}
			sweep(func(r *raw) { r.key = r.key[:i] })
		}
		for i := range first.val {
			for _, x := range []byte{1, 0x80, 0xFF} {
				sweep(func(r *raw) { r.val[i] ^= x })
			}
			sweep(func(r *raw) { r.val = r.val[:i] })
		}
		rows = append(rows[1:], first)
		fmt.Fprintf(&told, "row %d: %08x\n\n", n, sum.Sum32())
	}
	formattest.CheckOutcomes(t, "testdata/sweep.txt", told.String())
}

// buried is a keyspace with tombstones of some keys, which its iterators skip.
type buried struct {
	store.Keyspace
	dead [][]byte
}

func (b *buried) Rows(lo, hi []byte) (store.Iterator, error) {
	it, err := b.Keyspace.Rows(lo, hi)
	return &buriedRows{Iterator: it, b: b, dead: b.dead}, err
}

type buriedRows struct {
	store.Iterator
	b    *buried
	dead [][]byte
	told func([]byte)
}

func (r *buriedRows) Watch(f func(key []byte)) { r.told = f }

func (r *buriedRows) Next() (key, value []byte, err error) {
	key, value, err = r.Iterator.Next()
	for len(r.dead) > 0 && (err != nil || r.b.Comparer().Compare(r.dead[0], key) < 0) {
		r.told(r.dead[0])
		r.dead = r.dead[1:]
	}
	return key, value, err
}

// TestBuriedCircles: integers of deleted rows count when a collection's order is judged, but only those in its
// kind of rows.
func TestBuriedCircles(t *testing.T) {
	rows := []raw{metaOf("h", codec.Value{Kind: codec.KindHash, Size: 1}),
		row("h", codec.KindField, elem(codec.KindField, text("v")), codec.IntData(-5)),
		metaOf("i", codec.Value{Kind: codec.KindSet, Size: 1}), row("i", codec.KindMember, elem(codec.KindMember), codec.IntData(7)), metaOf("j", codec.Value{Kind: codec.KindString}, text("v"))}
	dead := func(user string, k codec.Kind, n int64) []byte { return row(user, k, nil, codec.IntData(n)).key }
	for name, c := range map[string]struct {
		dead [][]byte
		want string
	}{
		"none":                    {nil, ""},
		"near":                    {[][]byte{dead("h", codec.KindField, 1<<62)}, ""},
		"far":                     {[][]byte{dead("h", codec.KindField, math.MaxInt64)}, "hash h: integers from -5 to 9223372036854775807, those of deleted rows among them, are 2^63 or more apart"},
		"before all that is left": {[][]byte{dead("i", codec.KindMember, math.MinInt64)}, "set i: integers from -9223372036854775808 to 7, those of deleted rows among them, are 2^63 or more apart"},
		"of another kind":         {[][]byte{dead("h", codec.KindMember, math.MaxInt64)}, ""},
		"of another key":          {[][]byte{dead("g", codec.KindField, math.MaxInt64), dead("j", codec.KindField, math.MinInt64)}, ""},
		"no integer":              {[][]byte{row("h", codec.KindField, nil, text("x")).key}, ""},
	} {
		src := openRows(t, rows...).(*source)
		src.spaces[0].Keyspace = &buried{src.spaces[0].Keyspace, c.dead}
		got := ""
		env := testEnv(func(f record.Finding) { got += fmt.Sprintf("%s %s: %s", f.Type, f.Key, f.Detail) })
		n := 0
		readRecords(t, src, "0", record.RedisTypes, format.Span{}, env, func(*record.Header, []record.Element) { n++ })
		if n != 3 || (c.want == "") != (got == "") || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %d records, %s", name, n, got)
		}
	}
}

// brokenStore returns errors at chosen places.
type brokenStore struct {
	store.Store
	ks store.Keyspace
}

func (b *brokenStore) Keyspaces() []store.Keyspace { return []store.Keyspace{b.ks} }

type brokenSpace struct {
	store.Keyspace
	after int
}

var errBroken = errors.New("broken")

func (b *brokenSpace) Rows(lo, hi []byte) (store.Iterator, error) {
	it, err := b.Keyspace.Rows(lo, hi)
	return &brokenIter{it, b.after}, err
}

type brokenIter struct {
	store.Iterator
	left int
}

func (b *brokenIter) Next() (key, val []byte, err error) {
	if b.left--; b.left < 0 {
		return nil, nil, errBroken
	}
	return b.Iterator.Next()
}

// TestStoreErrors makes the store fail at every row: every reader returns the error.
func TestStoreErrors(t *testing.T) {
	st, _ := write(t, kindRocksDB, sampleRecords()...)
	var ks store.Keyspace
	for _, k := range st.Keyspaces() {
		if k.Name() == "0" {
			ks = k
		}
	}
	for _, types := range []record.TypeSet{record.AllTypes, record.Of(record.String), record.Of(record.ZSet)} {
		for n := range st.Len("0") {
			b := &brokenStore{st, &brokenSpace{ks, n}}
			open := func(context.Context, string, *store.Options) (store.Store, error) { return b, nil }
			src, err := New().Open(context.Background(), "/d", &format.OpenOptions{Store: open, Kind: kindRocksDB})
			if err != nil {
				t.Fatal(err)
			}
			r, err := formattest.Walk(src.Records(context.Background(), "0", types, format.Span{}, testEnv(nil)))
			if err != nil {
				t.Fatal(err)
			}
			buf := make([]record.Element, 2)
			for err == nil {
				if _, err = r.Next(); err != nil {
					break
				}
				for err == nil {
					_, err = r.Read(buf)
				}
				if err == io.EOF {
					err = nil
				}
			}
			if !errors.Is(err, errBroken) {
				t.Errorf("%s, failing after %d rows: %v", types, n, err)
			}
			r.Close()
		}
	}
}

func TestUnusedRows(t *testing.T) {
	fs := memstore.New()
	st := fs.Dir("/d/rocksdb")
	for _, name := range []string{defaultCF, "0"} {
		if err := st.Keyspace(name, codec.Comparer()); err != nil {
			t.Fatal(err)
		}
		st.Put(name, codec.AppendKey(nil, nil, []byte("k"), codec.KindMeta), str(codec.IntData(1)))
	}
	src, err := New().Open(context.Background(), filepath.FromSlash("/d"),
		&format.OpenOptions{Store: fs.Open, Kind: kindRocksDB})
	if err != nil {
		t.Fatal(err)
	}
	records, kinds, rows := outcome(t, src, record.AllTypes)
	if len(records) != 1 || !slices.Equal(kinds, []string{"unused-rows invalid "}) || rows[record.Orphan] != 1 {
		t.Errorf("%q %q %v", records, kinds, rows)
	}
	if !strings.Contains(fmt.Sprint(src.Format().Name()), "ardb") || src.Types("0") != record.RedisTypes || src.Extra() != nil {
		t.Error("format")
	}
}
