package kvrocks_test

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"testing"
	"time"

	"kvferry/format"
	"kvferry/internal/testkit/formattest"
	"kvferry/internal/testkit/memstore"
	"kvferry/kvrocks"
	"kvferry/kvrocks/codec"
	"kvferry/record"
)

// rows plants rows of the key k with version 7 in the default namespace.
type rows struct{ *memstore.Store }

var nsName = []byte(kvrocks.DefaultNamespace)

func metaKey(key string) []byte {
	return codec.AppendMetaKey(nil, codec.MetaKey{Namespace: nsName, Slot: codec.NoSlot, Key: []byte(key)})
}

func (r rows) meta(kind codec.Kind, size uint64, extras []byte) {
	r.Put("metadata", metaKey("k"), codec.AppendMeta(nil,
		codec.Meta{Wide: true, Kind: kind, Version: 7, Size: size, Extras: extras}))
}

func subKey(version codec.Version, sub string) []byte {
	return codec.AppendSubKey(nil, codec.SubKey{Namespace: nsName, Slot: codec.NoSlot, Key: []byte("k"), Version: version,
		Sub: []byte(sub)})
}

func (r rows) sub(cf, sub, value string) { r.Put(cf, subKey(7, sub), []byte(value)) }

func be(n uint64) string { return string(binary.BigEndian.AppendUint64(nil, n)) }

func double(f float64) string { return string(codec.AppendDouble(nil, f)) }

func ends(head, tail uint64) []byte {
	return codec.AppendListEnds(nil, codec.ListEnds{Head: head, Tail: tail})
}

func state(first, last codec.StreamID) []byte {
	return codec.AppendStreamState(nil, codec.StreamState{LastGenerated: last, First: first, Last: last, Added: 1})
}

// grouped returns the state of a stream without entries that counts n consumer groups.
func grouped(n uint64) []byte { return codec.AppendStreamState(nil, codec.StreamState{Groups: n}) }

func hashState(persist uint64, lower, upper codec.UnixMillis) []byte {
	return codec.AppendHashState(nil, codec.HashState{Persist: persist, Lower: lower, Upper: upper})
}

var id1 = codec.StreamID{7: 1, 15: 1}

const pair = "\x01f\x01v"

// planted lists faults and their expected findings.
var planted = []struct {
	name string
	do   func(r rows)
	want string // kinds found, but for notes
	lost bool   // the record is gone
}{
	{"nothing", func(r rows) { r.meta(codec.KindHash, 1, nil); r.sub("default", "f", "v") }, "", false},
	{"short metadata", func(r rows) { r.Put("metadata", metaKey("k"), []byte{0x82, 0}); r.sub("default", "f", "v") }, "short-value", true},
	{"no value", func(r rows) { r.Put("metadata", metaKey("k"), nil) }, "short-value", true},
	{"type 15", func(r rows) {
		r.Put("metadata", metaKey("k"), []byte("\x8f\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x07and more"))
		r.sub("default", "x", "y")
		r.Put("default", subKey(6, "x"), []byte("of the version before"))
	}, "newer", false},
	{"type 15, short", func(r rows) {
		r.Put("metadata", metaKey("k"), []byte("\x8f\x00\x00\x00\x00\x00\x00\x00\x00v"))
		r.sub("default", "x", "y")
	}, "newer", false},
	{"reserved flag", func(r rows) {
		for bit, key := range []string{"a", "b", "c"} {
			v := codec.AppendMeta(nil, codec.Meta{Wide: true, Kind: codec.KindString, Extras: []byte("v")})
			v[0] |= 0x10 << bit
			r.Put("metadata", metaKey(key), v)
		}
	}, "newer newer newer", true},
	{"a newer hash", func(r rows) {
		r.meta(codec.KindHash, 2, []byte{2})
		r.sub("default", "f", "v")
		r.sub("default", "g", "v")
	}, "newer", true},
	{"fields that expire", func(r rows) {
		r.meta(codec.KindHash, 4, hashState(1, 5, 9))
		r.sub("default", "a", be(0)+"va")
		r.sub("default", "b", be(9)+"vb")
		r.Put("default", subKey(6, "a"), []byte("short"))
	}, "", false},
	{"fields of earlier versions", func(r rows) {
		r.meta(codec.KindHash, 2, hashState(1, 5, 9))
		r.sub("default", "a", be(0)+"va")
		r.sub("default", "b", be(5)+"vb")
		for _, version := range []codec.Version{5, 6} {
			r.Put("default", subKey(version, "a"), []byte(be(0)+"of an earlier version"))
			r.Put("default", subKey(version, "b"), []byte(be(2)+"before the bounds"))
			r.Put("default", subKey(version, "c"), []byte(be(99)+"after them"))
		}
	}, "", false},
	{"fields that never expire", func(r rows) { r.meta(codec.KindHash, 2, hashState(2, 0, 0)); r.sub("default", "a", be(0)+"va") }, "count-mismatch", false},
	{"more fields than counted", func(r rows) {
		r.meta(codec.KindHash, 1, hashState(0, 5, 9))
		r.sub("default", "a", be(5)+"va")
		r.sub("default", "b", be(9)+"vb")
	}, "count-mismatch", false},
	{"field before the bounds", func(r rows) { r.meta(codec.KindHash, 1, hashState(0, 6, 9)); r.sub("default", "a", be(5)) }, "field-bounds", false},
	{"field after the bounds", func(r rows) { r.meta(codec.KindHash, 1, hashState(0, 6, 9)); r.sub("default", "a", be(10)) }, "field-bounds", false},
	{"bounds of nothing", func(r rows) { r.meta(codec.KindHash, 1, hashState(1, 6, 9)); r.sub("default", "a", be(0)) }, "field-bounds", false},
	{"short field", func(r rows) {
		r.meta(codec.KindHash, 2, hashState(2, 0, 0))
		r.sub("default", "a", be(0)+"va")
		r.sub("default", "b", "1234567")
	}, "count-mismatch short-value", false},
	{"all fields dropped", func(r rows) { r.meta(codec.KindHash, 3, hashState(0, 5, 9)) }, "", true},
	{"a newer set", func(r rows) { r.meta(codec.KindSet, 1, []byte{1}); r.sub("default", "m", "") }, "newer", true},
	{"a newer zset", func(r rows) {
		r.meta(codec.KindZSet, 1, []byte{1})
		r.sub("default", "m", double(1))
		r.sub("zset_score", double(1)+"m", "")
	}, "newer", true},
	{"a newer list", func(r rows) { r.meta(codec.KindList, 1, append(ends(5, 6), 0)); r.sub("default", be(5), "a") }, "newer", true},
	{"a newer stream", func(r rows) {
		r.meta(codec.KindStream, 1, append(state(id1, id1), 0))
		r.sub("stream", string(id1[:]), pair)
	}, "newer", true},
	{"a newer bitmap", func(r rows) { r.meta(codec.KindBitmap, 1, []byte{1}); r.sub("default", "0", "x") }, "newer", true},
	{"a newer sortedint", func(r rows) { r.meta(codec.KindSortedInt, 1, []byte{1}); r.sub("default", be(1), "") }, "newer", true},
	{"a newer filter", func(r rows) { r.meta(codec.KindBloom, 0, make([]byte, 21)) }, "newer", true},
	{"a newer t-digest", func(r rows) { r.meta(codec.KindTDigest, 0, make([]byte, 73)) }, "newer", true},
	{"a newer time series", func(r rows) { r.meta(codec.KindTimeSeries, 0, make([]byte, 31)) }, "newer", true},
	{"a newer document", func(r rows) { r.meta(codec.KindJSON, 0, []byte("\x02{}")) }, "newer", true},
	{"document", func(r rows) { r.meta(codec.KindJSON, 0, []byte("\x00{}")) }, "", false},
	{"document and more", func(r rows) { r.meta(codec.KindJSON, 0, []byte("\x00{}x")) }, "module-mismatch", false},
	{"rows of modules", func(r rows) {
		r.meta(codec.KindTimeSeries, 0, make([]byte, 30))
		r.sub("default", "\x00"+be(0), "\x00\x00\x00\x00\x00\x00\x00\x01"+be(0)+be(0)+be(1)+be(1)) // the server leaves samples
		r.sub("default", "\x00"+be(1), "\x00\x00\x00\x01\x00\x00\x00\x00")
		r.sub("default", "\x00"+be(2), "\x00\x00\x00\x00\x00\x00\x00\x00x")
		r.sub("default", "\x00"+be(3), "\x00\x00\x00\x00\x00\x00\x00\x01")
		r.sub("default", "\x01label", "any")
		r.sub("default", "\x02down", strings.Repeat("\x00", 27))
		r.sub("default", "\x02down more", strings.Repeat("\x00", 28))
		r.sub("default", "\x03", "")
	}, "newer newer newer newer short-value", false},
	{"rows of a t-digest", func(r rows) {
		r.meta(codec.KindTDigest, 0, append(make([]byte, 15), append([]byte{1, 0, 0, 0, 0, 0, 0, 0, 1}, make([]byte, 48)...)...))
		r.sub("default", "\x00", double(1))
		r.sub("default", "\x00x", double(1))
		r.sub("default", "\x01"+double(1)+"\x00\x00\x00\x00", double(1))
		r.sub("default", "\x01"+double(1)+"\x00\x00\x00\x01", double(1)+"x")
		r.sub("default", "\x02", "")
	}, "newer newer newer", false},
	{"row of propagate", func(r rows) {
		r.meta(codec.KindHash, 1, nil)
		r.sub("default", "f", "v")
		for _, key := range []string{"lua_func_lib_f", "script", "replication_id_", "replication_id_2"} {
			r.Put("propagate", []byte(key), []byte("v"))
		}
	}, "newer", false},
	{"cuckoo filter", func(r rows) {
		r.meta(codec.KindCuckoo, 0, make([]byte, 27))
		r.sub("default", "\x00\x00\x00\x00\x00\x00", "page")
	}, "", false},
	{"short list", func(r rows) { r.meta(codec.KindList, 1, []byte("short")) }, "short-value", true},
	{"HyperLogLog of another encoding", func(r rows) { r.meta(codec.KindHyperLogLog, 0, []byte{1}) }, "newer", true},
	{"size", func(r rows) { r.meta(codec.KindHash, 2, nil); r.sub("default", "f", "v") }, "count-mismatch", false},
	{"size 0", func(r rows) { r.meta(codec.KindHash, 0, nil); r.sub("default", "f", "v") }, "deleted-rows", true},
	{"set with a value", func(r rows) { r.meta(codec.KindSet, 1, nil); r.sub("default", "m", ""); r.sub("default", "n", "v") }, "newer", false},
	{"hole", func(r rows) {
		r.meta(codec.KindList, 3, ends(5, 8))
		r.sub("default", be(5), "a")
		r.sub("default", be(7), "c")
	}, "list-missing-index", false},
	{"tail missing", func(r rows) { r.meta(codec.KindList, 2, ends(5, 7)); r.sub("default", be(5), "a") }, "list-missing-index", false},
	{"stray", func(r rows) {
		r.meta(codec.KindList, 1, ends(5, 6))
		r.sub("default", be(5), "a")
		r.sub("default", be(9), "c")
	}, "list-outside-bounds", false},
	{"list size", func(r rows) { r.meta(codec.KindList, 2, ends(5, 6)); r.sub("default", be(5), "a") }, "count-mismatch", false},
	{"short index", func(r rows) {
		r.meta(codec.KindList, 1, ends(5, 6))
		r.sub("default", be(5), "a")
		r.sub("default", "x", "c")
	}, "bad-row-key", false},
	{"no row by score", func(r rows) { r.meta(codec.KindZSet, 1, nil); r.sub("default", "m", double(1)) }, "zset-missing-score-row", false},
	{"ghost", func(r rows) {
		r.meta(codec.KindZSet, 1, nil)
		r.sub("default", "m", double(1))
		r.sub("zset_score", double(1)+"m", "")
		r.sub("zset_score", double(2)+"n", "")
	}, "zset-missing-member-row", false},
	{"other score", func(r rows) {
		r.meta(codec.KindZSet, 1, nil)
		r.sub("default", "m", double(1))
		r.sub("zset_score", double(2)+"m", "")
	}, "zset-score-mismatch", false},
	{"short score", func(r rows) {
		r.meta(codec.KindZSet, 1, nil)
		r.sub("default", "m", double(1))
		r.sub("default", "n", "x")
		r.sub("zset_score", double(1)+"m", "")
	}, "short-value", false},
	{"not a number", func(r rows) {
		r.meta(codec.KindZSet, 1, nil)
		r.sub("default", "m", "\xff\xf8\x00\x00\x00\x00\x00\x01")
		r.sub("zset_score", "\xff\xf8\x00\x00\x00\x00\x00\x01m", "")
	}, "zset-bad-score", false},
	{"short row by score", func(r rows) {
		r.meta(codec.KindZSet, 1, nil)
		r.sub("default", "m", double(1))
		r.sub("zset_score", double(1)+"m", "")
		r.sub("zset_score", "x", "")
		r.sub("zset_score", double(3)+"m", "v")
	}, "bad-row-key newer", false},
	{"offset", func(r rows) { r.meta(codec.KindBitmap, 10, nil); r.sub("default", "7", "x") }, "bad-segment", false},
	{"segment behind the end", func(r rows) { r.meta(codec.KindBitmap, 10, nil); r.sub("default", "1024", "x") }, "bad-segment", false},
	{"segment at the end", func(r rows) { r.meta(codec.KindBitmap, 1024, nil); r.sub("default", "1024", "x") }, "bad-segment", false},
	{"long segment", func(r rows) { r.meta(codec.KindBitmap, 10, nil); r.sub("default", "0", strings.Repeat("x", 1025)) }, "bad-segment", false},
	{"HyperLogLog segment", func(r rows) {
		r.meta(codec.KindHyperLogLog, 0, []byte{0})
		r.sub("default", "16", "x")
		r.sub("default", "1", "x")
	}, "bad-segment bad-segment", false},
	{"filters", func(r rows) {
		r.meta(codec.KindBloom, 1, append([]byte{0, 2}, make([]byte, 18)...))
		r.sub("default", "\x00\x00", "")
	}, "module-mismatch", false},
	{"t-digest", func(r rows) {
		r.meta(codec.KindTDigest, 0, append(make([]byte, 23), append([]byte{1}, make([]byte, 48)...)...))
	}, "module-mismatch", false},
	{"entry", func(r rows) { r.meta(codec.KindStream, 1, state(id1, id1)); r.sub("stream", string(id1[:]), "\x09") }, "count-mismatch short-value", false},
	{"stream size", func(r rows) { r.meta(codec.KindStream, 2, state(id1, id1)); r.sub("stream", string(id1[:]), pair) }, "count-mismatch", false},
	{"last id", func(r rows) {
		r.meta(codec.KindStream, 1, state(codec.StreamID{}, codec.StreamID{}))
		r.sub("stream", string(id1[:]), pair)
	}, "stream-bounds stream-bounds", false},
	{"stream row", func(r rows) {
		r.meta(codec.KindStream, 0, state(codec.StreamID{}, codec.StreamID{}))
		r.sub("stream", "short", pair)
	}, "bad-row-key", false},
	{"consumer of no group", func(r rows) {
		r.meta(codec.KindStream, 0, state(codec.StreamID{}, codec.StreamID{}))
		r.sub("stream", string(
			codec.AppendGroupKey(nil, codec.GroupKey{Kind: codec.KindConsumer, Group: []byte("g"), Consumer: []byte("c")})),
			string(codec.AppendConsumer(nil, codec.Consumer{})))
	}, "stream-group-mismatch", false},
	{"consumers and pending entries", func(r rows) {
		r.meta(codec.KindStream, 0, grouped(1))
		r.sub("stream", string(codec.AppendGroupKey(nil, codec.GroupKey{Kind: codec.KindGroup, Group: []byte("g")})),
			string(codec.AppendGroup(nil, codec.Group{Consumers: 1})))
		r.sub("stream", string(codec.AppendGroupKey(nil, codec.GroupKey{Kind: codec.KindPending, Group: []byte("g"), ID: id1})),
			string(codec.AppendPending(nil, codec.Pending{Consumer: []byte("c")})))
	}, "stream-group-mismatch stream-group-mismatch", false},
	{"consumer groups", func(r rows) {
		r.meta(codec.KindStream, 0, grouped(2))
		r.sub("stream", string(codec.AppendGroupKey(nil, codec.GroupKey{Kind: codec.KindGroup, Group: []byte("g")})),
			string(codec.AppendGroup(nil, codec.Group{})))
	}, "stream-group-mismatch", false},
	{"consumers alone", func(r rows) {
		r.meta(codec.KindStream, 0, grouped(1))
		r.sub("stream", string(codec.AppendGroupKey(nil, codec.GroupKey{Kind: codec.KindGroup, Group: []byte("g")})),
			string(codec.AppendGroup(nil, codec.Group{Consumers: 1})))
	}, "stream-group-mismatch", false},
	{"value of a group", func(r rows) {
		r.meta(codec.KindStream, 0, state(codec.StreamID{}, codec.StreamID{}))
		r.sub("stream", string(codec.AppendGroupKey(nil, codec.GroupKey{Kind: codec.KindGroup, Group: []byte("g")})), "x")
	}, "short-value", false},
	{"namespace beyond the key", func(r rows) {
		r.meta(codec.KindHash, 1, nil)
		r.sub("default", "f", "v")
		r.Put("metadata", []byte("\xf0n"), nil)
	}, "bad-row-key", false},
	{"key length", func(r rows) {
		r.meta(codec.KindHash, 1, nil)
		r.sub("default", "f", "v")
		r.Put("default", append(codec.AppendNamespace(nil, kvrocks.DefaultNamespace), 0, 0, 9, 9, 'x'), nil)
	}, "bad-key-length", false},
	{"unknown family", func(r rows) {
		r.meta(codec.KindHash, 1, nil)
		r.sub("default", "f", "v")
		r.Put("foo", []byte("x"), nil)
	}, "unknown-family", false},
}

// TestPlanted: each fault is found, costs its own rows, and leaves a ledger that adds up; Describe decodes every row.
func TestPlanted(t *testing.T) {
	var told strings.Builder
	for _, c := range planted {
		t.Run(c.name, func(t *testing.T) {
			m := formattest.NewMemory(t, kvrocks.New())
			r := rows{m.Store("db")}
			for _, cf := range []string{"default", "metadata", "zset_score", "stream", "propagate"} {
				r.Keyspace(cf, bytewise)
			}
			c.do(r)
			r.Put("propagate", []byte("lua_f_x"), []byte("return 1"))
			var f formattest.Findings
			var l record.Ledger
			src := formattest.Open(t, m.Format, m.Dir, &format.OpenOptions{Store: m.FS.Open, Options: reportTo(&f)})
			got := formattest.Lines(t, formattest.Records(t, src, kvrocks.DefaultNamespace,
				&format.Env{Ledger: &l, Report: f.Report, Deep: true, TempDir: t.TempDir()}))
			formattest.CheckLedger(t, &l)
			f.All = slices.DeleteFunc(f.All, func(x record.Finding) bool { return x.Severity == record.Note })
			if kinds := strings.Join(f.Kinds(), " "); kinds != c.want {
				t.Errorf("found %q, want %q", kinds, c.want)
			}
			if lost := !bytes.Contains(got, []byte(`"key":"aw=="`)); lost != c.lost {
				t.Errorf("lost %v: %s", lost, got)
			}
			for _, x := range f.All {
				if _, ok := record.FindingKindOf(x.Kind); !ok {
					t.Errorf("kind %s is not described", x.Kind)
				}
			}
			describeAll(t, src)
			told.WriteString(formattest.Told(t, c.name, func() format.Source { return m.Open(t) }))
		})
	}
	formattest.CheckOutcomes(t, "testdata/damage.txt", told.String())
}

// describeAll decodes all rows.
func describeAll(t *testing.T, src format.Source) {
	t.Helper()
	for _, ks := range src.Keyspaces() {
		it, err := ks.Rows(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for {
			key, value, err := it.Next()
			if err != nil {
				break
			}
			row := src.Describe(ks.DB, ks.Name, key, value)
			if len(row.Fields) == 0 {
				t.Errorf("%s %q: nothing is told", ks.Name, key)
			}
			for n := range value { // a value that is cut off is told too
				src.Describe(ks.DB, ks.Name, key, value[:n])
			}
			for n := range key {
				src.Describe(ks.DB, ks.Name, key[:n], value)
			}
		}
		it.Close()
	}
}

// TestSlots: a row whose slot is not its key's slot is reported, and so is a row without a slot.
func TestSlots(t *testing.T) {
	m := formattest.NewMemory(t, kvrocks.New())
	r := rows{m.Store("db")}
	value := codec.AppendMeta(nil, codec.Meta{Wide: true, Kind: codec.KindString, Extras: []byte("v")})
	for _, key := range []string{"a", "b", "c"} {
		r.Put("metadata", codec.AppendMetaKey(nil,
			codec.MetaKey{Namespace: nsName, Slot: codec.Slot([]byte(key)), Key: []byte(key)}), value)
	}
	r.Put("metadata", codec.AppendMetaKey(nil, codec.MetaKey{Namespace: nsName, Slot: 7, Key: []byte("d")}), value)
	r.Put("metadata", codec.AppendNamespace(nil, kvrocks.DefaultNamespace), value)
	r.Put("default", codec.AppendSubKey(nil, codec.SubKey{Namespace: nsName, Slot: 7, Key: []byte("d"), Version: 1}), nil)
	var f formattest.Findings
	var l record.Ledger
	src := m.Open(t)
	if src.Sorted() {
		t.Error("a node of a cluster is sorted")
	}
	got := formattest.Lines(t, formattest.Records(t, src, kvrocks.DefaultNamespace,
		&format.Env{Ledger: &l, Report: f.Report, Now: time.Unix(1, 0)}))
	if n := bytes.Count(got, []byte("\n")); n != 3 {
		t.Errorf("%d records: %s", n, got)
	}
	formattest.CheckLedger(t, &l)
	if kinds := strings.Join(f.Kinds(), " "); kinds != "bad-row-key slot-mismatch slot-mismatch" {
		t.Errorf("found %s", kinds)
	}
	describeAll(t, src)
}
