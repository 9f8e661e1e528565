package state

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"kvferry/internal/testkit/formattest"
	"kvferry/internal/testkit/redistest"
	"kvferry/record"
)

// empty returns a state that is removed at the end of the test.
func empty(t *testing.T) *State {
	t.Helper()
	s, err := New(Options{TempDir: t.TempDir(), Memory: 8 << 10}) // small enough that not all rows are in memory
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// contents seals a state and reads all of it.
func contents(t *testing.T, s *State) map[string]string {
	t.Helper()
	if err := s.Seal(); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, db := range s.Databases() {
		r, err := formattest.Walk(s.Records(db, record.AllTypes, nil, nil, time.Now(), nil, nil))
		if err != nil {
			t.Fatal(err)
		}
		redistest.Read(t, out, r.Reader)
	}
	return out
}

// form is a record without an expiry.
func form(typ string, list ...string) string { return redistest.Form(typ, 0, list) }

func compare(t *testing.T, s *State, want map[string]string) {
	t.Helper()
	for _, d := range redistest.Diff(want, contents(t, s), 9) {
		t.Error(d)
	}
}

// TestKeys: keys of all types are stored, moved and removed, and databases are swapped and flushed.
func TestKeys(t *testing.T) {
	s := empty(t)
	list := s.Make(record.List)
	list.Push(false, []byte("a"))
	s.Store([]byte("l"), list)
	other := list.Copy()
	other.SetItem(0, []byte("b"))
	other.ExpireMS = 9_999_999_999_000
	s.StoreIn(3, []byte("l"), other)
	s.SetString([]byte("s"), []byte("v"), 0)
	s.SetString([]byte("t"), []byte("w"), 0)
	s.Store([]byte("copy"), s.Find([]byte("s")).Copy())
	s.Remove([]byte("t"))
	s.Store([]byte("empty"), s.Make(record.Set))
	s.Select(4)
	s.SetString([]byte("s"), []byte("v"), 0)
	s.Flush()
	if s.Swap(0, 7); s.Selected() != 4 || s.FindIn(7, []byte("s")) == nil || s.FindIn(0, []byte("s")) != nil || s.Find([]byte("s")) != nil {
		t.Error("the databases were not swapped")
	}
	compare(t, s, map[string]string{"7/l": form("list", "a"), "7/s": form("string", "v"), "7/copy": form("string", "v"), "3/l": redistest.Form("list", 9_999_999_999_000, []string{"b"})})
	if s.FlushAll(); len(contents(t, s)) != 0 {
		t.Error("keys are left")
	}
}

// TestStrings compares strings written at any offset with strings in memory.
func TestStrings(t *testing.T) {
	s := empty(t)
	v, want := s.Make(record.String), []byte{}
	for i, at := range []int{0, 5, 100, chunk - 3, 2, chunk, 5 * chunk, 3*chunk - 1, 70_000} {
		b := bytes.Repeat([]byte{byte('a' + i)}, 7+i*3000)
		if end := at + len(b); end > len(want) {
			want = append(want, make([]byte, end-len(want))...)
		}
		copy(want[at:], b)
		v.SetBytes(int64(at), b)
		if got := v.Content(); !bytes.Equal(got, want) || v.Len() != int64(len(want)) {
			t.Fatalf("write %d: %d bytes, want %d", i, len(got), len(want))
		}
		s.Store([]byte("s"), v)
		v = s.Find([]byte("s"))
	}
	for _, c := range [][2]int{{0, 1}, {chunk - 1, 2}, {chunk, 2 * chunk}, {len(want) - 2, 9}} {
		if got := v.Bytes(int64(c[0]), int64(c[1])); !bytes.Equal(got, want[c[0]:min(c[0]+c[1], len(want))]) {
			t.Errorf("%v: %d bytes", c, len(got))
		}
	}
	if v.Bytes(int64(len(want)), 1) != nil || (*Value)(nil).Content() != nil {
		t.Error("there are bytes behind the end")
	}
	long := bytes.Repeat([]byte("0123456789"), 5000)
	s.SetString([]byte("long"), long, 0)
	s.Store([]byte("copy"), s.Find([]byte("long")).Copy())
	v = s.Find([]byte("long"))
	v.SetBytes(0, []byte("x"))
	compare(t, s, map[string]string{"0/s": form("string", string(want)), "0/long": form("string", "x"+string(long[1:])), "0/copy": form("string", string(long))})
}

// TestLists compares a list with a list in memory.
func TestLists(t *testing.T) {
	s := empty(t)
	v, want := s.Make(record.List), []string{}
	for i := range 40 {
		elem := fmt.Sprint(i)
		switch i % 8 {
		case 0, 1, 2:
			v.Push(false, []byte(elem))
			want = append(want, elem)
		case 3, 4:
			v.Push(true, []byte(elem))
			want = slices.Insert(want, 0, elem)
		case 5:
			at := i % len(want)
			v.Insert(int64(at), []byte(elem))
			want = slices.Insert(want, at, elem)
		case 6:
			at := len(want) - 1
			v.Insert(int64(at), []byte(elem))
			want = slices.Insert(want, at, elem)
			v.SetItem(1, []byte("set"))
			want[1] = "set"
		case 7:
			if a, b := string(v.Pop(true)), string(v.Pop(false)); a != want[0] || b != want[len(want)-1] {
				t.Errorf("popped %s and %s of %s", a, b, want)
			}
			want = want[1 : len(want)-1]
		}
	}
	v.Trim(2, int64(len(want)-2))
	want = want[2 : len(want)-2]
	v.Drop(true, 1)
	v.Drop(false, 2)
	want = want[1 : len(want)-2]
	var got []string
	v.Items(func(elem []byte) bool {
		got = append(got, string(elem))
		return true
	})
	if !slices.Equal(got, want) || v.Len() != int64(len(want)) {
		t.Errorf("%s, want %s", got, want)
	}
	s.Store([]byte("l"), v)
	compare(t, s, map[string]string{"0/l": form("list", want...)})
	v.Drop(false, 1000)
	v.Items(func([]byte) bool { t.Error("an element is left"); return false })
}

// TestMembers: a field or member exists once.
func TestMembers(t *testing.T) {
	s := empty(t)
	set, hash, zset := s.Make(record.Set), s.Make(record.Hash), s.Make(record.ZSet)
	for _, m := range []string{"a", "b", "a", "", "c"} {
		set.AddMember([]byte(m))
		hash.SetField([]byte(m), Field{Value: []byte("of " + m)})
	}
	for _, v := range []*Value{set, hash} {
		if v.Remove([]byte("b")); v.Len() != 3 || v.Has([]byte("b")) || !v.Has([]byte("")) {
			t.Errorf("%s: %d elements", v.Type, v.Len())
		}
		v.Remove([]byte("none"))
	}
	var members []string
	set.Members(func(m []byte) bool { members = append(members, string(m)); return len(members) < 2 })
	if !slices.Equal(members, []string{"", "a"}) || (*Value)(nil).Has(nil) {
		t.Errorf("%q", members)
	}
	(*Value)(nil).Members(func([]byte) bool { t.Error("nothing has a member"); return false })
	stop := errors.New("stop")
	for name, err := range map[string]error{"a": nil, "c": stop, "none": nil} {
		if got := hash.ChangeField([]byte(name), func(f *Field) (bool, error) { f.ExpireMS = 9e12; return true, err }); got != err {
			t.Error(got)
		}
	}
	if f, ok := hash.Field([]byte("a")); !ok || f.ExpireMS != 9e12 || string(f.Value) != "of a" {
		t.Errorf("%+v", f)
	}
	if _, ok := hash.Field([]byte("b")); ok {
		t.Error("a field that was removed is there")
	}
	scores := map[string]float64{"a": 1, "b": -1, "c": math.Inf(-1), "d": math.Inf(1), "e": 0, "f": 0, "g": -2.5, "h": 3}
	for m := range scores {
		zset.SetScore([]byte(m), 7)
	}
	for m, score := range scores {
		zset.SetScore([]byte(m), score)
	}
	zset.SetScore([]byte("e"), math.Copysign(0, -1)) // it is 0 already
	zset.Remove([]byte("h"))
	zset.Remove([]byte("none"))
	var up, down, byName string
	zset.Ranked(false, func(x Scored) bool { up += string(x.Member); return x.Score == scores[string(x.Member)] })
	zset.Ranked(true, func(x Scored) bool { down += string(x.Member); return len(down) < 3 })
	zset.Scores(func(m []byte, score float64) bool { byName += string(m); return score == scores[string(m)] })
	if up != "cgbefad" || down != "daf" || byName != "abcdefg" || zset.Len() != 7 {
		t.Errorf("%s, backwards %s, by name %s", up, down, byName)
	}
	(*Value)(nil).Ranked(false, func(Scored) bool { t.Error("nothing has a member"); return false })
	if score, ok := zset.Score([]byte("g")); !ok || score != -2.5 {
		t.Error(score, ok)
	}
	s.Store([]byte("t"), set)
	s.Store([]byte("h"), hash)
	s.Store([]byte("z"), zset)
	compare(t, s, map[string]string{"0/t": form("set", "", "a", "c"), "0/h": form("hash", "=of ", "a=of a@9000000000000", "c=of c"),
		"0/z": form("zset", "a=1", "b=-1", "c=-Inf", "d=+Inf", "e=0", "f=0", "g=-2.5")})
}

// TestStreams adds and removes entries, groups, consumers and pending entries.
func TestStreams(t *testing.T) {
	s := empty(t)
	v := s.Make(record.Stream)
	packed := record.AppendPair(nil, []byte("f"), []byte("v"))
	for n := range uint64(5) {
		v.AddEntry(StreamID{1, n}, packed)
	}
	v.RemoveEntry(StreamID{1, 2})
	v.Last, v.Added, v.Deleted = StreamID{2, 0}, 6, StreamID{1, 2}
	var up, down []uint64
	v.Entries(false, func(id StreamID) bool { up = append(up, id.Seq); return true })
	v.Entries(true, func(id StreamID) bool { down = append(down, id.Seq); return len(down) < 2 })
	if !slices.Equal(up, []uint64{0, 1, 3, 4}) || !slices.Equal(down, []uint64{4, 3}) || v.HasEntry(StreamID{1, 2}) || !v.HasEntry(StreamID{1, 3}) || v.Len() != 4 {
		t.Error(up, down, v.Len())
	}
	if a, b := (StreamID{1, 2}), (StreamID{2, 1}); a.After(b) || !b.After(a) || a.After(a) || !(StreamID{1, 3}).After(a) {
		t.Error("ids do not follow each other")
	}
	g := v.NewGroup(StreamID{1, 1}, -1)
	v.SetGroup([]byte("g"), g)
	v.SetGroup([]byte("gone"), v.NewGroup(StreamID{}, 0))
	v.RemoveGroup([]byte("gone"))
	if g = v.Group([]byte("g")); v.Group([]byte("gone")) != nil || v.HasGroup([]byte("gone")) || !v.HasGroup([]byte("g")) || g.Last != (StreamID{1, 1}) || g.Read != -1 {
		t.Errorf("%+v", g)
	}
	for i, name := range []string{"a", "b"} {
		g.SetConsumer([]byte(name), Consumer{5, -1})
		g.SetPending(StreamID{1, uint64(i)}, Pending{DeliveredMS: 7, Count: 8, Consumer: []byte(name)})
	}
	g.SetPending(StreamID{1, 3}, Pending{Count: 9, None: true})
	g.SetPending(StreamID{1, 4}, Pending{Count: 9, None: true})
	if c, ok := g.Consumer([]byte("a")); !ok || c != (Consumer{5, -1}) {
		t.Errorf("%+v", c)
	}
	g.RemoveConsumer([]byte("a"))
	g.RemovePending(StreamID{1, 4})
	if p, ok := g.Pending(StreamID{1, 1}); !ok || p.Count != 8 || p.DeliveredMS != 7 || string(p.Consumer) != "b" || p.None {
		t.Errorf("%+v", p)
	}
	if _, ok := g.Pending(StreamID{1, 0}); ok {
		t.Error("an entry is pending of a consumer that is gone")
	}
	if _, ok := g.Consumer([]byte("a")); ok {
		t.Error("a consumer is there that was removed")
	}
	s.Store([]byte("x"), v)
	s.Store([]byte("y"), v.Copy())
	s.Store([]byte("none"), s.Make(record.Stream))
	entry := func(id string) string { return redistest.Entry(id, []string{"f", "v"}) }
	want := form("stream", entry("1-0"), entry("1-1"), entry("1-3"), entry("1-4"), "last=2-0 deleted=1-2 added=6", "group g last=1-1 read=-1", "consumer b", "pending 1-1 b 8", "pending 1-3  9")
	compare(t, s, map[string]string{"0/x": want, "0/y": want, "0/none": form("stream", "last=0-0 deleted=0-0 added=0")})
}

// TestPut: records of every type are read back unchanged.
func TestPut(t *testing.T) {
	id := func(n byte) []byte { return append(make([]byte, 15), n) }
	elems := map[record.Type][]record.Element{
		record.String: {{Value: []byte("v")}},
		record.Hash:   {{Name: []byte("f"), Value: []byte("v"), ExpireMS: 9_999_999_999_000}, {Name: []byte("g"), Value: []byte("w")}},
		record.List:   {{Value: []byte("a")}, {Value: []byte("b")}, {Value: []byte("a")}},
		record.Set:    {{Name: []byte("a")}, {Name: []byte("b")}},
		record.ZSet:   {{Name: []byte("a"), Score: 1.5}, {Name: []byte("b"), Score: -2}},
		record.Stream: {{Name: id(3), Value: record.AppendPair(nil, []byte("f"), []byte("v"))}, {Kind: record.Group, Name: []byte("g"), Value: record.AppendGroup(nil, &record.GroupState{Last: id(3), Read: 4})},
			{Kind: record.Consumer, Name: []byte("g"), Value: record.AppendConsumer(nil, &record.ConsumerState{Name: []byte("c"), SeenMS: 1, ActiveMS: 2})},
			{Kind: record.Pending, Name: []byte("g"), Value: record.AppendPending(nil, &record.PendingEntry{ID: id(3), Consumer: []byte("c"), DeliveredMS: 5, Count: 6})}},
		record.Other: {{Name: []byte("ReJSON-RL"), Value: []byte("raw")}},
	}
	s := empty(t)
	s.SetString([]byte("hash"), []byte("a key of the name"), 0)
	want := map[string]string{}
	for typ, list := range elems {
		h := record.Header{DB: "0", Type: typ, Key: []byte(typ.String()), ExpireMS: 9_999_999_999_000}
		if typ == record.Stream {
			h.Last, h.MaxDeleted, h.Added = id(9), id(2), 7
		}
		p := s.Put(&h)
		if err := errors.Join(p.Write(list), p.End()); err != nil {
			t.Fatal(err)
		}
		redistest.Read(t, want, record.Gather(&one{h: &h, list: list}, nil))
	}
	unknown := record.Header{DB: "0", Type: record.Stream, Key: []byte("unknown"), Last: id(9)}
	list := []record.Element{{Name: id(3), Value: record.AppendPair(nil, []byte("f"), []byte("v"))}, {Name: id(4), Value: record.AppendPair(nil, []byte("f"), []byte("v"))}}
	p := s.Put(&unknown)
	if err := errors.Join(p.Write(list), p.End()); err != nil {
		t.Fatal(err)
	}
	unknown.Added = 2 // as servers count an unknown number
	redistest.Read(t, want, record.Gather(&one{h: &unknown, list: list}, nil))
	skipped := s.Put(&record.Header{Type: record.ZSet, Key: []byte("nan")})
	if err := errors.Join(skipped.Write([]record.Element{{Name: []byte("a"), Score: math.NaN()}}), skipped.End()); err != nil {
		t.Fatal(err)
	}
	if len(want) != len(elems)+1 {
		t.Errorf("%d records", len(want))
	}
	compare(t, s, want)
}

// one is a reader of one record.
type one struct {
	h    *record.Header
	list []record.Element
	at   int
}

func (o *one) Next() (*record.Header, error) {
	if o.at++; o.at > 1 {
		return nil, io.EOF
	}
	return o.h, nil
}

func (o *one) Read(dst []record.Element) (int, error) {
	n := copy(dst, o.list)
	if o.list = o.list[n:]; n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (o *one) Heavy() bool { return false }

func (o *one) End(*record.Record) error { return nil }
func (o *one) Close() error             { return nil }

// TestRecords: a reader yields the requested types and span, and counts them by class; sizes and cuts match
// the content.
func TestRecords(t *testing.T) {
	s := empty(t)
	big := []byte(strings.Repeat("x", chunk))
	for i := range 1000 {
		s.SetString(fmt.Appendf(nil, "key%03d", i), big, 0)
	}
	v := s.Make(record.Set)
	v.AddMember([]byte("m"))
	v.ExpireMS = 5
	s.Store([]byte("key500s"), v)
	s.StoreIn(2, []byte("k"), v)
	if err := s.Seal(); err != nil {
		t.Fatal(err)
	}
	z := s.Sizes(0)
	if !slices.Equal(s.Databases(), []int{0, 2}) || z.Records[record.String] != 1000 || z.Records[record.Set] != 1 || z.Bytes[record.String] < 1000*chunk || s.Sizes(1) != nil {
		t.Fatalf("%v: %+v", s.Databases(), z)
	}
	if cuts := z.Split(4); len(cuts) != 3 || !slices.IsSortedFunc(cuts, bytes.Compare) {
		t.Errorf("%q", cuts)
	}
	if z.Split(1) != nil || (*Sizes)(nil).Split(9) != nil || len(z.Split(100)) > 4 {
		t.Error("it is cut where there is nothing to cut")
	}
	for _, c := range []struct {
		db     int
		types  record.TypeSet
		lo, hi string
		want   int64
	}{
		{0, record.AllTypes, "", "", 1001}, {0, record.Of(record.Set), "", "", 1}, {0, record.AllTypes, "key500", "key501", 2}, {0, record.Of(record.String), "key990", "", 10}, {9, record.AllTypes, "", "", 0},
	} {
		ledger := new(record.Ledger)
		var lo, hi []byte
		if c.hi != "" {
			hi = []byte(c.hi)
		}
		if c.lo != "" {
			lo = []byte(c.lo)
		}
		r, err := formattest.Walk(s.Records(c.db, c.types, lo, hi, time.UnixMilli(10), ledger, nil))
		if err != nil {
			t.Fatal(err)
		}
		n := int64(0)
		for {
			h, err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if n++; h.Expired != (h.Type == record.Set) || !h.ByName {
				t.Errorf("%s: %+v", h.Key, h)
			}
			r.Settle(record.Filtered)
		}
		if _, err := r.Read(make([]record.Element, 1)); err != io.EOF {
			t.Error(err)
		}
		if err := r.Close(); err != nil || n != c.want {
			t.Errorf("%+v: %d records, %v", c, n, err)
		}
	}
}
