package ssdb_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/syndtr/goleveldb/leveldb"

	"kvferry/format"
	"kvferry/internal/testkit/formattest"
	"kvferry/internal/testkit/memstore"
	"kvferry/record"
	"kvferry/ssdb"
)

// now is the clock of the tests.
var now = time.UnixMilli(1_900_000_000_000)

// dataset is a dataset in memory.
type dataset struct {
	*formattest.Memory
	*memstore.Store // data
}

func newDataset(t testing.TB) *dataset {
	m := formattest.NewMemory(t, ssdb.New())
	m.Declare("data")
	return &dataset{m, m.Store("data")}
}

func (d *dataset) put(key, value []byte) { d.Store.Put("default", key, value) }
func (d *dataset) size(kind byte, name string, n int64) {
	d.put(ssdb.AppendSizeKey(nil, kind, []byte(name)), ssdb.AppendSize(nil, n))
}
func (d *dataset) score(name, member string, score int64) {
	d.put(ssdb.AppendScoreKey(nil, []byte(name), []byte(member)), ssdb.AppendScore(nil, score))
}
func (d *dataset) rank(name, member string, score int64) {
	d.put(ssdb.AppendRankKey(nil, []byte(name), score, []byte(member)), nil)
}
func (d *dataset) item(name string, seq uint64, value []byte) {
	d.put(ssdb.AppendItemKey(nil, []byte(name), seq), value)
}

// whole puts one healthy record of each type, called k, and a row of the binlog.
func whole(t testing.TB) *dataset {
	d := newDataset(t)
	d.put([]byte("\x01\x00\x00\x00\x00\x00\x00\x00\x05"), ssdb.AppendLog(nil, &ssdb.Log{Seq: 5, Type: 1, Cmd: 1, Key: []byte("kk")}))
	d.put([]byte("kk"), []byte("v"))
	d.expire("k", 4_000_000_000_000)
	d.size('Z', ssdb.ExpireList, 1)
	d.size('H', "k", 2)
	d.size('Z', "k", 2)
	d.size('Q', "k", 3)
	for i, name := range []string{"a", "b"} {
		d.put(ssdb.AppendFieldKey(nil, []byte("k"), []byte(name)), []byte(name))
		d.score("k", name, int64(i)-1)
		d.rank("k", name, int64(i)-1)
	}
	d.item("k", 2, ssdb.AppendSize(nil, ssdb.FirstItem))
	d.item("k", 3, ssdb.AppendSize(nil, ssdb.FirstItem+2))
	for i := range uint64(3) {
		d.item("k", ssdb.FirstItem+i, []byte{'1' + byte(i)})
	}
	return d
}

func (d *dataset) expire(key string, ms int64) {
	d.score(ssdb.ExpireList, key, ms)
	d.rank(ssdb.ExpireList, key, ms)
}

// show reads all records as "type key=elements", with the kinds of findings and the classes of rows.
func (d *dataset) show(t *testing.T) (records, kinds, rows string) {
	t.Helper()
	var l record.Ledger
	var f formattest.Findings
	src := d.Open(t)
	r := formattest.Records(t, src, "0", &format.Env{Now: now, Ledger: &l, Report: f.Report, Memory: 1 << 20})
	var out []string
	for {
		h, err := r.Next()
		if err != nil {
			break
		}
		out = append(out, shown(t, h, r))
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	formattest.CheckLedger(t, &l)
	return strings.Join(slices.DeleteFunc(out, func(s string) bool { return s == "" }), " "),
		strings.Join(slices.Compact(f.Kinds()), " "), formattest.Classes(&l, "data")
}

// findings reads all records and returns what is found.
func (d *dataset) findings(t *testing.T) []record.Finding {
	t.Helper()
	var f formattest.Findings
	r := formattest.Records(t, d.Open(t), "0", &format.Env{Now: now, Report: f.Report, Memory: 1 << 20})
	var err error
	for err == nil {
		_, err = r.Next()
	}
	if err = errors.Join(err, r.Close()); !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	return f.All
}

// shown formats a record; "" means no elements.
func shown(t *testing.T, h *record.Header, r *record.Walker) string {
	t.Helper()
	text := h.Type.String() + " " + string(h.Key) + "="
	if h.ExpireMS != 0 {
		text = fmt.Sprintf("%s@%d", text, h.ExpireMS)
	}
	var elems [2]record.Element
	some := false
	for {
		n, err := r.Read(elems[:])
		if err != nil {
			break
		}
		for _, e := range elems[:n] {
			some = true
			switch h.Type {
			case record.ZSet:
				text += fmt.Sprintf("%s:%.0f,", e.Name, e.Score)
			case record.Hash:
				text += fmt.Sprintf("%s:%s,", e.Name, e.Value)
			default:
				text += string(e.Value) + ","
			}
		}
	}
	if !some {
		return ""
	}
	return text
}

const healthy = "string k=@4000000000000v, hash k=a:a,b:b, list k=1,2,3, zset k=a:-1,b:0,"

func TestDamage(t *testing.T) {
	del := func(d *dataset, key []byte) { d.Store.Delete("default", key) }
	k := []byte("k")
	for _, c := range []struct {
		name    string
		change  func(d *dataset)
		records string // "" is healthy; a line of old>new changes it
		kinds   string
	}{
		{"nothing", func(*dataset) {}, "", ""},
		{"no sizes", func(d *dataset) {
			for _, kind := range []byte("HQZ") {
				del(d, ssdb.AppendSizeKey(nil, kind, k))
			}
		}, "", "count-mismatch"},
		{"sizes too small", func(d *dataset) { d.size('H', "k", 1); d.size('Q', "k", -4) }, "", "count-mismatch"},
		{"a size of 9 bytes", func(d *dataset) { d.put([]byte("Hk"), make([]byte, 9)) }, "", "count-mismatch newer"},
		{"a size of 4 bytes", func(d *dataset) { d.put([]byte("Zk"), make([]byte, 4)) }, "", "count-mismatch short-value"},
		{"a size without a name", func(d *dataset) { d.put([]byte("H"), make([]byte, 8)) }, "", "bad-row-key"},
		{"names without sizes before and after", func(d *dataset) {
			d.put(ssdb.AppendFieldKey(nil, []byte("a"), k), k)
			d.put(ssdb.AppendFieldKey(nil, []byte("zz"), k), k)
			d.put(ssdb.AppendFieldKey(nil, []byte("b"), k), k)
		}, "string k>hash a=k:k, hash b=k:k, string k;zset k=a:-1,b:0,>zset k=a:-1,b:0, hash zz=k:k,", "count-mismatch"},
		{"a size without rows", func(d *dataset) { d.size('H', "e", 2) }, "", "count-mismatch"},
		{"a field of no separator", func(d *dataset) { d.put([]byte("h\x01k-a"), nil) }, "", "bad-row-key"},
		{"a name beyond the key", func(d *dataset) { d.put([]byte("h\x09k=a"), nil) }, "", "bad-key-length"},
		{"a member left over", func(d *dataset) { d.put([]byte("s\x01k\x01cc"), []byte("1")) }, "", "newer"},
		{"a score that is none", func(d *dataset) { d.put([]byte("s\x01k\x01a"), []byte("x")) },
			"zset k=a:-1,b:0,>zset k=b:0,a:-1,", "bad-value zset-missing-member-row"},
		{"no row by member", func(d *dataset) { del(d, ssdb.AppendScoreKey(nil, k, []byte("a"))) },
			"zset k=a:-1,b:0,>zset k=b:0,a:-1,", "zset-missing-member-row"},
		{"no rows by member", func(d *dataset) {
			del(d, ssdb.AppendScoreKey(nil, k, []byte("a")))
			del(d, ssdb.AppendScoreKey(nil, k, []byte("b")))
			del(d, []byte("Zk"))
		}, "", "count-mismatch zset-missing-member-row"},
		{"no row by score", func(d *dataset) { del(d, ssdb.AppendRankKey(nil, k, 0, []byte("b"))) }, "", "zset-missing-score-row"},
		{"another score", func(d *dataset) { d.score("k", "a", 7) }, "a:-1>a:7", "zset-score-mismatch"},
		{"two rows by score of a member that has none", func(d *dataset) { d.rank("k", "cc", 3); d.rank("k", "cc", 4) },
			"b:0,>b:0,cc:4,", "count-mismatch zset-missing-member-row"},
		{"a sign that is wrong", func(d *dataset) { d.put([]byte("z\x01k-\x00\x00\x00\x00\x00\x00\x00\x05=a"), nil) }, "", "bad-row-key"},
		{"a sign of another byte", func(d *dataset) { d.put([]byte("z\x01kx\x00\x00\x00\x00\x00\x00\x00\x05=a"), nil) }, "", "bad-row-key"},
		{"a hash of the name of the list of expiries", func(d *dataset) {
			d.put(ssdb.AppendFieldKey(nil, []byte(ssdb.ExpireList), k), k)
			d.size('H', ssdb.ExpireList, 1)
		}, "zset k=a:-1,b:0,>zset k=a:-1,b:0, hash " + ssdb.ExpireList + "=k:k,", ""},
		{"a value by score", func(d *dataset) { d.put(ssdb.AppendRankKey(nil, k, 0, []byte("b")), []byte("x")) }, "", "newer zset-missing-score-row"},
		{"a score beyond 2^53", func(d *dataset) {
			d.score("k", "c", 1<<53+1)
			d.rank("k", "c", 1<<53+1)
			d.size('Z', "k", 3)
		}, "b:0,>b:0,c:9007199254740992,", "score-precision"},
		{"a hole", func(d *dataset) { del(d, ssdb.AppendItemKey(nil, k, ssdb.FirstItem+1)) }, "1,2,3,>1,3,", "count-mismatch list-missing-index"},
		{"a queue of the empty name, and no sizes", func(d *dataset) {
			for _, name := range []string{"", "a"} {
				d.item(name, 2, ssdb.AppendSize(nil, ssdb.FirstItem))
				d.item(name, 3, ssdb.AppendSize(nil, ssdb.FirstItem))
				d.item(name, ssdb.FirstItem, []byte("x"))
			}
			del(d, []byte("Qk"))
		}, "string k=>list =x, list a=x, string k=", "count-mismatch"},
		{"items outside", func(d *dataset) {
			d.item("k", ssdb.FirstItem-1, k)
			d.item("k", ssdb.FirstItem+3, k)
		}, "", "list-outside-bounds"},
		{"no front", func(d *dataset) { del(d, ssdb.AppendItemKey(nil, k, 2)) }, " list k=1,2,3,>", "list-bounds"},
		{"no back", func(d *dataset) { del(d, ssdb.AppendItemKey(nil, k, 3)) }, " list k=1,2,3,>", "list-bounds"},
		{"a front of 7 bytes", func(d *dataset) { d.item("k", 2, make([]byte, 7)) }, " list k=1,2,3,>", "list-bounds short-value"},
		{"a back of 9 bytes", func(d *dataset) { d.item("k", 3, make([]byte, 9)) }, " list k=1,2,3,>", "list-bounds newer"},
		{"a number that no item has", func(d *dataset) { d.item("k", 9, k) }, "", "newer"},
		{"an expiry of no string", func(d *dataset) { d.expire("n", 1); d.size('Z', ssdb.ExpireList, 2) }, "", "stale-ttl-rows"},
		{"an expiry that never fires", func(d *dataset) {
			del(d, ssdb.AppendRankKey(nil, []byte(ssdb.ExpireList), 4_000_000_000_000, k))
		}, "", "zset-missing-score-row"},
		{"an expiry that is only by time", func(d *dataset) {
			del(d, ssdb.AppendScoreKey(nil, []byte(ssdb.ExpireList), k))
		}, "@4000000000000v>v", "zset-missing-member-row"},
		{"an expiry in seconds", func(d *dataset) {
			del(d, ssdb.AppendRankKey(nil, []byte(ssdb.ExpireList), 4_000_000_000_000, k))
			d.expire("k", 1_999_999_999)
		}, "@4000000000000v>@1999999999000v", ""},
		{"a wrong count of expiries", func(d *dataset) { d.size('Z', ssdb.ExpireList, 9) }, "", "count-mismatch"},
		{"an unknown kind", func(d *dataset) { d.put([]byte("x"), k) }, "", "newer"},
		{"a kind below all", func(d *dataset) { d.put([]byte{0}, k) }, "", "newer"},
		{"a longer number in the binlog", func(d *dataset) { d.put(make([]byte, 10), k); d.put(append([]byte{1}, make([]byte, 9)...), k) }, "", "newer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := whole(t)
			c.change(d)
			want := healthy
			for _, change := range strings.Split(c.records, ";") {
				if from, to, ok := strings.Cut(change, ">"); ok {
					if !strings.Contains(want, from) {
						t.Fatalf("%q is not in %q", from, want)
					}
					want = strings.Replace(want, from, to, 1)
				}
			}
			records, kinds, rows := d.show(t)
			if records != want || kinds != c.kinds {
				t.Errorf("records %q\nwant    %q\nfindings %q, want %q (rows %s)", records, want, kinds, c.kinds, rows)
			}
		})
	}
}

// TestQueueBounds: items outside of the bounds are leftovers if the size agrees with the bounds, and an error if not.
func TestQueueBounds(t *testing.T) {
	for size, want := range map[int64]record.Severity{3: record.Warning, 4: record.Error, -1: record.Error} {
		d := whole(t)
		d.item("k", ssdb.FirstItem+3, []byte("x"))
		d.size('Q', "k", size)
		if size < 0 {
			d.Store.Delete("default", []byte("Qk"))
		}
		all := d.findings(t)
		i := slices.IndexFunc(all, func(f record.Finding) bool { return f.Kind == "list-outside-bounds" })
		if i < 0 {
			t.Fatalf("size %d: no such finding among %+v", size, all)
		}
		got := all[i]
		bounds := fmt.Sprintf("the front is %d and the back %d; the server does not show 1 item", ssdb.FirstItem,
			ssdb.FirstItem+2)
		if got.Severity != want || !strings.HasPrefix(got.Detail, bounds) {
			t.Errorf("size %d: %s: %s", size, got.Severity, got.Detail)
		}
	}
}

// TestMembersOfOtherLengths: rows by member are in the order of their lengths first. A fault of one is not taken for one of
// the others, and members that only have a row by score follow in that order.
func TestMembersOfOtherLengths(t *testing.T) {
	members := []string{"b", "aa", "c", "abc", "bb", "z", "ab", "\xff"}
	for _, c := range []struct {
		change func(d *dataset)
		want   string // findings
		lone   string // members at the end
	}{
		{func(d *dataset) { d.Store.Delete("default", ssdb.AppendRankKey(nil, []byte("m"), 1, []byte("aa"))) }, "zset-missing-score-row aa", ""},
		{func(d *dataset) { d.Store.Delete("default", ssdb.AppendRankKey(nil, []byte("m"), 5, []byte("z"))) }, "zset-missing-score-row z", ""},
		{func(d *dataset) { d.score("m", "abc", 9) }, "zset-score-mismatch abc", ""},
		{func(d *dataset) { d.rank("m", "c", 9) }, "zset-score-mismatch c", ""},
		{func(d *dataset) {
			for _, member := range []string{"aaa", "y", "cc", "a"} {
				d.rank("m", member, 9)
			}
			d.size('Z', "m", int64(len(members)+4))
		}, "zset-missing-member-row a, zset-missing-member-row y, zset-missing-member-row cc, zset-missing-member-row aaa", "a:9,y:9,cc:9,aaa:9,"},
	} {
		d := newDataset(t)
		d.size('Z', "m", int64(len(members)))
		for i, member := range members {
			d.score("m", member, int64(i))
			d.rank("m", member, int64(i))
		}
		c.change(d)
		var got []string
		for _, f := range d.findings(t) {
			member := strings.Fields(f.Detail[strings.Index(f.Detail, "member \""):])[1]
			got = append(got, f.Kind+" "+strings.Trim(member, "\","))
		}
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("found %s, want %s", text, c.want)
		}
		records, _, _ := d.show(t)
		if !strings.HasSuffix(records, c.lone) || strings.Count(records, ":") != len(members)+strings.Count(c.lone, ":") {
			t.Errorf("records %s, want %s at the end", records, c.lone)
		}
	}
}

// TestLargeValues: values that SSDB's tools cannot read are a note, of a source and of a target.
func TestLargeValues(t *testing.T) {
	d := whole(t)
	large := make([]byte, 128<<20)
	d.put([]byte("kk"), large)
	d.put(ssdb.AppendFieldKey(nil, []byte("k"), []byte("a")), large)
	d.item("k", ssdb.FirstItem, large)
	d.put([]byte("kl"), large[1:])
	all := d.findings(t)
	for _, f := range all {
		if f.Kind != ssdb.FindLargeValue || f.Severity != record.Note || string(f.Key) != "k" {
			t.Errorf("finding %+v", f)
		}
	}
	if len(all) != 3 {
		t.Errorf("%d findings", len(all))
	}
	dst := formattest.NewMemory(t, ssdb.New()).Create(t, format.CreateOptions{DBs: []string{"0"}, TempDir: t.TempDir()})
	defer dst.Abort()
	for _, typ := range []record.Type{record.String, record.Hash, record.List} {
		var got []record.Loss
		elems := []record.Element{{Name: []byte("f"), Value: large}, {Name: []byte("g"), Value: large[1:]}}
		kept := dst.ElementLosses(&record.Header{Type: typ}, elems, func(l record.Loss) { got = append(got, l) })
		if len(kept) != 2 || len(got) != 1 || got[0].Kind != ssdb.FindLargeValue || !got[0].Note {
			t.Errorf("%s: %+v", typ, got)
		}
	}
	batch := []record.Record{{Header: record.Header{Key: []byte("a")}, N: 1},
		{Header: record.Header{Key: []byte("b")}, First: 1, N: 1}}
	if n := dst.Unchanged(batch, []record.Element{{Value: large[1:]}, {Value: large}}); n != 1 {
		t.Errorf("%d strings are written without a look at their losses", n)
	}
}

// TestRows: each row has its class.
func TestRows(t *testing.T) {
	d := whole(t)
	if _, _, rows := d.show(t); rows != "housekeeping=4 index=2 copied=13" {
		t.Errorf("rows %s", rows)
	}
	m := d.Memory.Store("meta")
	m.Put("default", ssdb.AppendFieldKey(nil, []byte("key_range"), []byte("kv_s")), []byte("a"))
	m.Put("default", []byte("new.slave.status|1"), []byte("x"))
	if _, kinds, _ := d.show(t); kinds != "left-behind" {
		t.Errorf("findings %s", kinds)
	}
}

// TestDead finds deleted rows on disk, of names without live rows.
func TestDead(t *testing.T) {
	dir := t.TempDir()
	db, err := leveldb.OpenFile(filepath.Join(dir, "data"), nil)
	if err != nil {
		t.Fatal(err)
	}
	d := whole(t)
	d.item("", ssdb.FirstItem, []byte("x"))
	d.put([]byte("kalive"), nil)
	d.put(ssdb.AppendFieldKey(nil, []byte("h"), []byte("f")), []byte("v"))
	var keys [][]byte
	it, err := d.Store.Keyspaces()[0].Rows(nil, nil)
	for err == nil {
		var key, value []byte
		if key, value, err = it.Next(); err == nil {
			keys = append(keys, bytes.Clone(key))
			if err := db.Put(key, value, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, key := range keys {
		if string(key) == "kalive" {
			continue
		}
		if err := db.Delete(key, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Put(ssdb.AppendFieldKey(nil, []byte("h"), []byte("g")), nil, nil); err != nil { // h exists again
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	src := openDir(t, dir).(format.Undead)
	dbs, err := src.DeadDatabases()
	if err != nil || !slices.Equal(dbs, []string{"0"}) {
		t.Fatalf("%q, %v", dbs, err)
	}
	var told []string
	r, err := formattest.Walk(src.DeadRecords(context.Background(), "0", record.AllTypes, format.Span{}, &format.Env{Now: now},
		func(key []byte, typ record.Type, _ string) { told = append(told, typ.String()+" "+string(key)) }))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var got []string
	for {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, shown(t, h, r))
	}
	slices.Sort(told)
	want := "list =x, " + strings.Replace(healthy, "@4000000000000", "", 1)
	if text := strings.Join(got, " "); text != want || strings.Join(told, ",") != "hash k,list ,list k,string k,zset k" {
		t.Errorf("records %q, told of %q", text, told)
	}
}

// TestDamageSweep: no prefix and no flipped byte of any row makes reading panic, and each row stays in one class.
func TestDamageSweep(t *testing.T) {
	for _, row := range rows {
		for _, part := range []string{"key", "value"} {
			b := unhex(t, map[string]string{"key": row.key, "value": row.value}[part])
			formattest.EachDamage(b, func(damaged []byte) {
				d := whole(t)
				if part == "key" {
					d.put(damaged, unhex(t, row.value))
				} else {
					d.put(unhex(t, row.key), damaged)
				}
				if records, _, _ := d.show(t); !strings.Contains(records, "hash k=a:a,b:b,") {
					t.Errorf("%x: %s", damaged, records)
				}
			})
		}
	}
}
