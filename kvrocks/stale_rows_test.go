package kvrocks_test

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strings"
	"testing"

	"kvferry/format"
	"kvferry/internal/testkit/formattest"
	"kvferry/kvrocks"
	"kvferry/kvrocks/codec"
	"kvferry/record"
)

// only opens a database with only the rows planted by do.
func only(t *testing.T, do func(rows)) format.Source {
	t.Helper()
	m := formattest.NewMemory(t, kvrocks.New())
	r := rows{m.Store("db")}
	for _, cf := range []string{"default", "metadata", "zset_score", "stream", "propagate"} {
		r.Keyspace(cf, bytewise)
	}
	do(r)
	return formattest.Open(t, m.Format, m.Dir, &format.OpenOptions{Store: m.FS.Open})
}

// TestGreatestDeleted: a stream keeps the greatest id that was deleted from it, if any.
func TestGreatestDeleted(t *testing.T) {
	for _, id := range []codec.StreamID{{}, {7: 3, 15: 9}} {
		src := only(t, func(r rows) {
			r.meta(
				codec.KindStream, 0, codec.AppendStreamState(nil, codec.StreamState{LastGenerated: id, MaxDeleted: id, Added: 1}))
		})
		r := formattest.Records(t, src, kvrocks.DefaultNamespace, &format.Env{TempDir: t.TempDir()})
		h, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		want := id[:]
		if h.Type != record.Stream || (h.MaxDeleted == nil) != (id == codec.StreamID{}) ||
			h.MaxDeleted != nil && !bytes.Equal(h.MaxDeleted, want) {
			t.Errorf("%s, greatest deleted %x, want %x", h.Type, h.MaxDeleted, want)
		}
		r.Close()
	}
}

// TestDeadTypes: the type of rows without metadata is inferred; older versions and consumer groups do not count.
func TestDeadTypes(t *testing.T) {
	index := func(n int64) string { return be(uint64(codec.FirstIndex + n)) }
	const expiry = 2_500_000_000_000
	group := string(codec.AppendGroupKey(nil, codec.GroupKey{Kind: codec.KindGroup, Group: []byte("g")}))
	for want, do := range map[string]func(rows){
		`"type":"zset","key":"aw==","expire_at_ms":0,"value":[["bQ==","1.5"]]`:          func(r rows) { r.sub("default", "m", double(1.5)); r.sub("zset_score", double(1.5)+"m", "") },
		`"type":"hash","key":"aw==","expire_at_ms":0,"value":[["Zg==","P/gAAAAAAAA="]]`: func(r rows) { r.sub("default", "f", "\x3f\xf8\x00\x00\x00\x00\x00\x00") },
		`"type":"hash","key":"aw==","expire_at_ms":0,"value":[["YQ==","dmE="],["Yg==","dmI=",2500000000000]]`: func(r rows) {
			r.sub("default", "a", be(0)+"va")
			r.sub("default", "b", be(expiry)+"vb")
		},
		`"type":"set","key":"aw==","expire_at_ms":0,"value":["Zg==","bQ=="]`: func(r rows) { r.sub("default", "f", ""); r.sub("default", "m", "") },
		`"type":"list","key":"aw==","expire_at_ms":0,"value":["YQ==","Yg=="]`: func(r rows) {
			r.sub("default", index(0), "a")
			r.sub("default", index(1), "b")
			r.Put("default", subKey(6, index(0)), []byte("of the version before"))
		},
		`"type":"stream","key":"aw==","expire_at_ms":0`: func(r rows) {
			r.sub("stream", string(id1[:]), pair)
			r.sub("stream", group, string(codec.AppendGroup(nil, codec.Group{})))
		},
	} {
		dead := only(t, do).(format.Undead)
		if dbs, err := dead.DeadDatabases(); err != nil || len(dbs) != 1 || dbs[0] != kvrocks.DefaultNamespace {
			t.Errorf("namespaces %q, %v", dbs, err)
		}
		r, err := formattest.Walk(dead.DeadRecords(context.Background(), kvrocks.DefaultNamespace, record.AllTypes, format.Span{},
			&format.Env{Now: goldenNow, TempDir: t.TempDir()}, func([]byte, record.Type, string) {}))
		if err != nil {
			t.Fatal(err)
		}
		if got := string(formattest.Lines(t, r)); strings.Count(got, "\n") != 1 || !strings.Contains(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestStaleEntries: rows of an earlier, deleted stream precede the rows of the current stream and are not part of it.
func TestStaleEntries(t *testing.T) {
	src := only(t, func(r rows) {
		r.meta(codec.KindStream, 1, state(id1, id1))
		for i := range 3 {
			r.Put("stream", subKey(6, be(1)+be(uint64(i+1))), []byte(pair))
		}
		r.sub("stream", string(id1[:]), pair)
	})
	var l record.Ledger
	var f formattest.Findings
	got := string(formattest.Lines(
		t, formattest.Records(t, src, kvrocks.DefaultNamespace, &format.Env{TempDir: t.TempDir(), Ledger: &l, Report: f.Report})))
	if strings.Count(got, "1-1") != 1 || strings.Contains(got, "1-2") {
		t.Errorf("%s", got)
	}
	formattest.CheckLedger(t, &l)
	f.CheckNone(t, record.Note)
}

// TestDescribeByMetadata: the kind of a row depends on the metadata of its key.
func TestDescribeByMetadata(t *testing.T) {
	for kind, want := range map[codec.Kind]string{codec.KindHash: "hash field", codec.KindSet: "set member", codec.KindZSet: "zset member"} {
		src := only(t, func(r rows) { r.meta(kind, 1, nil); r.sub("default", "m", double(1)) })
		for _, ks := range src.Keyspaces() {
			if !strings.HasSuffix(ks.Name, "default") {
				continue
			}
			got := formattest.ShowRow(src.Describe(ks.DB, ks.Name, subKey(7, "m"), []byte(double(1))))
			if !strings.HasPrefix(got, want) {
				t.Errorf("%s, want a %s", got, want)
			}
		}
	}
}

// TestStaleModuleRows: any number of rows of an earlier, deleted value is skipped: a batch without elements is not the
// end.
func TestStaleModuleRows(t *testing.T) {
	src := only(t, func(r rows) {
		r.meta(codec.KindBloom, 1, append([]byte{0, 1}, append(make([]byte, 14), 0, 0, 0, 1)...))
		for i := range 200 {
			r.Put("default", subKey(6, be(uint64(i))), []byte("old"))
		}
		r.sub("default", "\x00\x00", "v")
	})
	r := formattest.Records(t, src, kvrocks.DefaultNamespace, &format.Env{TempDir: t.TempDir()})
	defer r.Close()
	if _, err := r.Next(); err != nil {
		t.Fatal(err)
	}
	total := 0
	for dst := make([]record.Element, 10); ; {
		n, err := r.Read(dst)
		if err == io.EOF {
			break
		}
		if n == 0 || err != nil {
			t.Fatalf("%d elements, %v", n, err)
		}
		total += n
	}
	if total != 2 { // the metadata and one row
		t.Errorf("%d elements", total)
	}
}

// TestSpacesToTheEnd: namespaces are found up to the largest possible name, after which no key exists.
func TestSpacesToTheEnd(t *testing.T) {
	end := strings.Repeat("\xff", 255)
	src := only(t, func(r rows) {
		for _, ns := range []string{"a", "ab", end} {
			for _, key := range []string{"k", "\xff"} {
				r.Put("metadata", codec.AppendMetaKey(nil, codec.MetaKey{Namespace: []byte(ns), Slot: codec.NoSlot,
					Key: []byte(key)}), codec.AppendMeta(nil, codec.Meta{Kind: codec.KindString, Extras: []byte("v")}))
			}
		}
	})
	if got := src.Databases(); !slices.Equal(got, []string{"a", "ab", end}) {
		t.Errorf("namespaces %q", got)
	}
}
