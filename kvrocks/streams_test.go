package kvrocks_test

import (
	"bytes"
	"context"
	"testing"

	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/internal/testkit/formattest"
	"kvferry/kvrocks"
	"kvferry/kvrocks/codec"
	"kvferry/record"
)

// rowsOf writes a record and returns the rows of each column family.
func rowsOf(t *testing.T, h record.Header, elems ...record.Element) map[string][]record.Element {
	t.Helper()
	dst := formattest.NewMemory(t, kvrocks.New()).Create(t,
		format.CreateOptions{TempDir: t.TempDir(), Now: fixtures.Clock, DBs: []string{kvrocks.DefaultNamespace}})
	w, err := formattest.One(dst.Shard(0, kvrocks.DefaultNamespace, record.Of(h.Type), 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	for _, do := range []func() error{func() error { return w.Begin(&h) }, func() error { return w.Write(elems) }, w.End,
		w.Close} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
	src, err := dst.Finish(context.Background())
	if err != nil || src == nil {
		t.Fatal(err)
	}
	out := map[string][]record.Element{}
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
			out[ks.Name] = append(out[ks.Name], record.Element{Name: bytes.Clone(key), Value: bytes.Clone(value)})
		}
		it.Close()
	}
	return out
}

// metaOf decodes the one metadata row.
func metaOf(t *testing.T, rows map[string][]record.Element) codec.Meta {
	t.Helper()
	if n := len(rows["metadata"]); n != 1 {
		t.Fatalf("%d rows of metadata", n)
	}
	m, err := codec.DecodeMeta(rows["metadata"][0].Value)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestWrittenStreams: the metadata has the ids of the entries in any order, counts at least the existing entries as
// added, and keeps the source's last id if it is above the entries.
func TestWrittenStreams(t *testing.T) {
	id := func(n byte) codec.StreamID { return codec.StreamID{7: 1, 15: n} }
	entry := func(n byte) record.Element {
		x := id(n)
		return record.Element{Name: x[:], Value: []byte(pair)}
	}
	last := id(9)
	for _, c := range []struct {
		h     record.Header
		elems []record.Element
		want  codec.StreamState
	}{
		{record.Header{}, []record.Element{entry(3), entry(2), entry(5), entry(4)}, codec.StreamState{Added: 4, First: id(2), Last: id(5), RecordedFirst: id(2), LastGenerated: id(5)}},
		{record.Header{ByName: true, Added: 2}, []record.Element{entry(2), entry(3), entry(5)}, codec.StreamState{Added: 3, First: id(2), Last: id(5), RecordedFirst: id(2), LastGenerated: id(5)}},
		{record.Header{Added: 7, Last: last[:], MaxDeleted: last[:]}, []record.Element{entry(2)},
			codec.StreamState{Added: 7, First: id(2), Last: id(2), RecordedFirst: id(2), LastGenerated: last, MaxDeleted: last}},
	} {
		c.h.DB, c.h.Type, c.h.Key = kvrocks.DefaultNamespace, record.Stream, []byte("k")
		m := metaOf(t, rowsOf(t, c.h, c.elems...))
		if s, err := codec.DecodeStreamState(m.Extras); err != nil || s != c.want || m.Size != uint64(len(c.elems)) {
			t.Errorf("%d entries: size %d, %+v, %v; want %+v", len(c.elems), m.Size, s, err, c.want)
		}
	}
}

// TestWrittenGroups: a group's lag counts entries added since its last read, if both are known; consumers own their
// pending entries.
func TestWrittenGroups(t *testing.T) {
	at := codec.StreamID{7: 1, 15: 2}
	for _, c := range []struct {
		added     uint64
		read      int64
		lag, want uint64
	}{{0, -1, 0, 3}, {0, 0, 3, 3}, {0, 2, 1, 3}, {0, 3, 0, 3}, {0, 5, 0, 3}, {10, 4, 6, 10}, {10, -1, 0, 10}, {2, 2, 1, 3}} {
		elems := make([]record.Element, 0, 8)
		for n := range byte(3) {
			elems = append(elems, record.Element{Name: bytes.Clone(append(at[:15:15], n+1)), Value: []byte(pair)})
		}
		name := []byte("g")
		elems = append(elems, record.Element{Kind: record.Group, Name: name,
			Value: record.AppendGroup(nil, &record.GroupState{Last: at[:], Read: c.read})},
			record.Element{Kind: record.Consumer, Name: name,
				Value: record.AppendConsumer(nil, &record.ConsumerState{Name: []byte("a"), SeenMS: 7, ActiveMS: -1})},
			record.Element{Kind: record.Consumer, Name: name,
				Value: record.AppendConsumer(nil, &record.ConsumerState{Name: []byte("b"), SeenMS: -3, ActiveMS: 5})},
			record.Element{Kind: record.Pending, Name: name, Value: record.AppendPending(nil,
				&record.PendingEntry{ID: at[:], Consumer: []byte("a"), DeliveredMS: 11, Count: 4})},
			record.Element{Kind: record.Group, Name: []byte("h"),
				Value: record.AppendGroup(nil, &record.GroupState{Last: make([]byte, 16), Read: c.read})})
		h := record.Header{DB: kvrocks.DefaultNamespace, Type: record.Stream, Key: []byte("k"), ByName: true, Added: c.added}
		rows := rowsOf(t, h, elems...)
		s, err := codec.DecodeStreamState(metaOf(t, rows).Extras)
		if err != nil || s.Added != c.want || s.Groups != 2 {
			t.Errorf("added %d, read %d: %+v, %v", c.added, c.read, s, err)
		}
		seen := 0
		for _, row := range rows["stream"] {
			k, err := codec.DecodeSubKey(row.Name, false)
			if err != nil {
				t.Fatal(err)
			}
			g, err := codec.DecodeGroupKey(k.Sub)
			if err != nil {
				continue // an entry
			}
			seen++
			switch string(g.Group) + string(g.Consumer) {
			case "g":
				if g.Kind == codec.KindPending {
					p, err := codec.DecodePending(row.Value)
					if err != nil || g.ID != at || p.Delivered != 11 || p.Count != 4 || string(p.Consumer) != "a" {
						t.Errorf("pending %x: %+v, %v", g.ID, p, err)
					}
					continue
				}
				if x, err := codec.DecodeGroup(row.Value); err != nil || x.Lag != c.lag || x.EntriesRead != c.read ||
					x.Consumers != 2 || x.Pending != 1 || x.LastDelivered != at {
					t.Errorf("added %d, read %d: %+v, %v; want a lag of %d", c.added, c.read, x, err, c.lag)
				}
			case "ga", "gb":
				want := map[string]codec.Consumer{"a": {Pending: 1, LastAttempt: 7}, "b": {LastSuccess: 5}}[string(g.Consumer)]
				if x, err := codec.DecodeConsumer(row.Value); err != nil || x != want {
					t.Errorf("consumer %s: %+v, %v", g.Consumer, x, err)
				}
			case "h":
				if x, err := codec.DecodeGroup(row.Value); err != nil || x.Lag != c.lag || x.Consumers != 0 || x.Pending != 0 {
					t.Errorf("the second group: %+v, %v", x, err)
				}
			}
		}
		if seen != 5 {
			t.Errorf("%d rows of groups", seen)
		}
	}
}

// TestWrittenBitmaps: the rows of a bitmap are whole segments without segments of zeros, and its size is in bytes.
func TestWrittenBitmaps(t *testing.T) {
	for _, n := range []int{1, codec.SegmentLen - 1, codec.SegmentLen, codec.SegmentLen + 1, 3 * codec.SegmentLen} {
		value := make([]byte, n)
		value[0], value[n-1] = 0x80, 0x80
		rows := rowsOf(t, record.Header{DB: kvrocks.DefaultNamespace, Type: record.String, Key: []byte("k"), Native: "bitmap"},
			record.Element{Value: value})
		if m := metaOf(t, rows); m.Kind != codec.KindBitmap || m.Size != uint64(n) {
			t.Errorf("%d bytes: %+v", n, m)
		}
		if got := rows["default"]; len(got) != min(2, (n+codec.SegmentLen-1)/codec.SegmentLen) {
			t.Errorf("%d bytes: %d segments", n, len(got))
		}
		for _, row := range rows["default"] {
			if len(row.Value) != codec.SegmentLen {
				t.Errorf("%d bytes: a segment of %d", n, len(row.Value))
			}
		}
	}
}
