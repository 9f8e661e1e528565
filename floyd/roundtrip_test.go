package floyd_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kvferry/fixtures"
	"kvferry/floyd"
	"kvferry/format"
	"kvferry/internal/testkit/formattest"
	"kvferry/internal/testkit/memstore"
	"kvferry/record"
	"kvferry/store"
)

// written are the classes of the rows that a target writes.
var written = []record.Class{record.Copied, record.Index}

func TestRoundTrip(t *testing.T) {
	o := fixtures.Options{DB: "0", Limits: floyd.New().Limits(), Expired: true}
	formattest.RoundTrips(t, floyd.New(), o, written...)
}

// TestRoundTripOnDisk uses RocksDB directories.
func TestRoundTripOnDisk(t *testing.T) {
	o := fixtures.Options{DB: "0", Limits: floyd.New().Limits()}
	read := func(types record.TypeSet) record.Reader {
		o := o
		o.Types = types
		return fixtures.Records(7, 200, o)
	}
	dst := formattest.CreateRocksDB(t, floyd.New(), filepath.Join(t.TempDir(), "new"), "0", "3")
	src := formattest.Fill(t, dst, 1<<20, read)
	formattest.CheckClean(t, src, 1<<20, read, written...)
	if src.Layout() != format.LayoutDB || !src.Sorted() || src.Format().Name() != "floyd" {
		t.Errorf("layout %v, sorted %v, format %s", src.Layout(), src.Sorted(), src.Format().Name())
	}
}

// TestInstances: keys are in the instances of their slots, for any number of instances, and are found there
// again.
func TestInstances(t *testing.T) {
	o := fixtures.Options{DB: "0", Limits: floyd.New().Limits()}
	for _, c := range []struct{ instances, slots int }{{1, 0}, {3, 0}, {8, 0}, {5, 16384}, {4, 1}, {3, 2000}, {3, 7}, {5, 1536}} {
		read := func(types record.TypeSet) record.Reader {
			o := o
			o.Types = types
			return fixtures.Records(3, 300, o)
		}
		m := formattest.NewMemory(t, floyd.New())
		dst := m.Create(t, format.CreateOptions{Instances: c.instances, Slots: c.slots, TempDir: t.TempDir()})
		src := formattest.Fill(t, dst, 0, read)
		var f formattest.Findings
		got := formattest.Sum(t, formattest.Records(t, src, "0", &format.Env{Report: f.Report, Now: fixtures.Clock}))
		formattest.CheckEqual(t, got, formattest.Sum(t, read(record.AllTypes)), false)
		f.CheckNone(t, record.Note)
		again := formattest.Open(t, m.Format, m.Dir,
			&format.OpenOptions{Store: m.FS.Open, Options: store.Options{Report: f.Report}})
		formattest.CheckEqual(t,
			formattest.Sum(t, formattest.Records(t, again, "0", &format.Env{Report: f.Report, Now: fixtures.Clock})), got, false)
		f.CheckNone(t, record.Warning)
		if n := len(src.Keyspaces()); n != 7*c.instances {
			t.Errorf("%d keyspaces, %d instances", n, c.instances)
		}
	}
	m := formattest.NewMemory(t, floyd.New())
	_, err := m.Format.Create(context.Background(), m.Dir, &format.CreateOptions{Create: m.FS.Create, Instances: 5000})
	if err == nil || !strings.Contains(err.Error(), "want 1 to 1024 instances") {
		t.Errorf("5000 instances: %v", err)
	}
}

// planted is a dataset of two instances with rows written by hand.
type planted struct {
	*formattest.Memory
	t testing.TB
}

func plant(t testing.TB) *planted { return plantIn(t, 2) }

func plantIn(t testing.TB, instances int) *planted {
	p := &planted{formattest.NewMemory(t, floyd.New()), t}
	dst := p.Create(t, format.CreateOptions{Instances: instances, Slots: 1}) // all keys belong to instance 0
	formattest.Finish(t, dst)
	return p
}

func (p *planted) put(instance int, cf string, key, value []byte) {
	p.Store(fmt.Sprint(instance)).Put(cf, key, value)
}

// hash puts a hash of one field.
func (p *planted) hash(instance int, key string, version floyd.Version, field, value string) {
	p.put(instance, "default", floyd.AppendMetaKey(nil, floyd.MetaKey{Key: []byte(key)}),
		floyd.AppendMeta(nil, floyd.Meta{Type: record.Hash, Count: 1, Version: version}))
	p.put(instance, "hash_data_cf", floyd.AppendDataKey(nil,
		floyd.DataKey{Key: []byte(key), Version: version, Name: []byte(field)}), []byte(value))
}

func suffixed(value string) string { return value + strings.Repeat("\x00", 24) }

// read returns the records as text, the kinds of findings and the classes of rows.
func (p *planted) read() (records, kinds []string, l *record.Ledger) {
	var f formattest.Findings
	l = new(record.Ledger)
	src := formattest.Open(p.t, p.Format, p.Dir, &format.OpenOptions{Store: p.FS.Open, Options: store.Options{Report: f.Report}})
	r := formattest.Records(p.t, src, "0", &format.Env{Ledger: l, Report: f.Report, Deep: true})
	for {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			p.t.Fatal(err)
		}
		text := fmt.Sprintf("%s %q", h.Type, h.Key)
		elems := make([]record.Element, 5)
		for {
			n, err := r.Read(elems)
			if err != nil {
				break
			}
			for _, e := range elems[:n] {
				text += fmt.Sprintf(" %q=%q", e.Name, e.Value)
			}
		}
		records = append(records, text)
	}
	if err := r.Close(); err != nil {
		p.t.Fatal(err)
	}
	formattest.CheckLedger(p.t, l)
	return records, f.Kinds(), l
}

func (p *planted) want(records, kinds []string) {
	p.t.Helper()
	gotRecords, gotKinds, _ := p.read()
	if !slices.Equal(gotRecords, records) {
		p.t.Errorf("records %q, want %q", gotRecords, records)
	}
	// the few keys fit some number
	gotKinds = slices.DeleteFunc(gotKinds, func(kind string) bool { return kind == floyd.FindSlots })
	if !slices.Equal(gotKinds, kinds) {
		p.t.Errorf("findings %q, want %q", gotKinds, kinds)
	}
}

// TestShortHashValue: HINCRBY of 4.0.0 omits the suffix.
func TestShortHashValue(t *testing.T) {
	p := plant(t)
	p.hash(0, "h", 1, "n", "42")
	p.hash(0, "i", 1, "n", suffixed("42"))
	p.want([]string{`hash "h" "n"="42"`, `hash "i" "n"="42"`}, []string{})
}

// TestWrongInstance: a key in a wrong instance is read and reported; if the right instance has it too, it is
// read once.
func TestWrongInstance(t *testing.T) {
	p := plant(t)
	for i := range 4 { // enough to determine the number of slots
		p.hash(0, fmt.Sprint("a", i), 1, "f", suffixed("v"))
	}
	p.hash(1, "a1", 1, "f", suffixed("old"))
	p.hash(1, "b", 1, "f", suffixed("v"))
	p.want([]string{`hash "a0" "f"="v"`, `hash "a1" "f"="v"`, `hash "a2" "f"="v"`, `hash "a3" "f"="v"`, `hash "b" "f"="v"`},
		[]string{floyd.FindWrongInstance, floyd.FindWrongInstance})
}

// TestWrongInstanceOfAnySlots: a key in a wrong instance is found for any number of slots.
func TestWrongInstanceOfAnySlots(t *testing.T) {
	for _, c := range []struct{ slots, instances int }{{2000, 3}, {7, 3}, {1536, 5}, {16384, 3}, {1, 2}} {
		p := plantIn(t, c.instances)
		for i := range 300 {
			key := fmt.Sprint("key", i)
			at := floyd.Slot([]byte(key), c.slots) % c.instances
			if i == 77 {
				at = (at + 1) % c.instances
			}
			p.hash(at, key, 1, "f", suffixed("v"))
		}
		records, kinds, _ := p.read()
		kinds = slices.DeleteFunc(kinds, func(kind string) bool { return kind == floyd.FindSlots })
		if len(records) != 300 || !slices.Equal(kinds, []string{floyd.FindWrongInstance}) {
			t.Errorf("%+v: %d records, %q", c, len(records), kinds)
		}
	}
}

// TestWrongInstances: a key in several wrong instances is read from the first.
func TestWrongInstances(t *testing.T) {
	p := plantIn(t, 3)
	for i := range 4 {
		p.hash(0, fmt.Sprint("a", i), 1, "f", suffixed("v"))
	}
	p.hash(1, "b", 1, "f", suffixed("first"))
	p.hash(2, "b", 1, "f", suffixed("second"))
	p.want([]string{`hash "a0" "f"="v"`, `hash "a1" "f"="v"`, `hash "a2" "f"="v"`, `hash "a3" "f"="v"`, `hash "b" "f"="first"`},
		[]string{floyd.FindWrongInstance, floyd.FindWrongInstance})
}

// TestOtherTypes: rows of an earlier type of a key are garbage.
func TestOtherTypes(t *testing.T) {
	p := plant(t)
	p.hash(0, "k", 5, "f", suffixed("v"))
	p.put(0, "set_data_cf", floyd.AppendDataKey(nil, floyd.DataKey{Key: []byte("k"), Version: 5, Name: []byte("m")}),
		[]byte(suffixed("")))
	p.put(0, "hash_data_cf", floyd.AppendDataKey(nil, floyd.DataKey{Key: []byte("k"), Version: 4, Name: []byte("old")}),
		[]byte(suffixed("v")))
	p.want([]string{`hash "k" "f"="v"`}, []string{"orphan-rows"})
}

// TestTruncatedKeys checks rows of keys with a NUL before their end, as the engine truncates them.
func TestTruncatedKeys(t *testing.T) {
	p := plant(t)
	whole, cut := []byte("a\x00"), floyd.AppendMetaKey(nil, floyd.MetaKey{Key: []byte("b\x00")})
	p.put(0, "default", floyd.AppendMetaKey(nil, floyd.MetaKey{Key: whole}),
		floyd.AppendStringValue(nil, floyd.StringValue{Bytes: []byte("whole")}))
	p.put(0, "default", append(floyd.AppendMetaKey(nil, floyd.MetaKey{Key: whole}), "xyz"...),
		floyd.AppendStringValue(nil, floyd.StringValue{Bytes: []byte("cut")}))
	p.put(0, "default", append(slices.Clone(cut), "xy"...),
		floyd.AppendMeta(nil, floyd.Meta{Type: record.Set, Count: 1, Version: 9}))
	p.put(0, "set_data_cf", append(floyd.AppendDataKey(nil,
		floyd.DataKey{Key: []byte("b\x00"), Version: 9, Name: []byte("member")}), "zz"...), []byte(suffixed("")))
	p.want([]string{`string "a\x00" ""="whole"`, `set "b\x00" "member"=""`}, []string{"colliding-keys", floyd.FindTruncatedKey})
}

// TestTimes: seconds of 4.0.0, milliseconds of 4.0.1, and the HyperLogLog's milliseconds without a flag.
func TestTimes(t *testing.T) {
	for in, want := range map[floyd.Time]int64{0: 0, 1700000000: 1700000000000, 1700000000123 | 1<<63: 1700000000123,
		1700000000123: 1700000000123} {
		if got := in.UnixMilli(); got != want {
			t.Errorf("%x is %d, want %d", uint64(in), got, want)
		}
	}
	for ms, want := range map[int64]floyd.Time{0: 0, 5: 5 | 1<<63, -7: 1 | 1<<63} {
		if got := floyd.TimeOf(ms); got != want {
			t.Errorf("%d ms is %x, want %x", ms, uint64(got), uint64(want))
		}
	}
}

// TestBounds: the upper half of a list's bounds is meaningless.
func TestBounds(t *testing.T) {
	want := floyd.ListMeta{Count: 1, Version: 2, Left: 7, Right: 9, Ctime: 3, Expiry: 4}
	b := floyd.AppendListMeta(nil, want)
	copy(b[25:33], "garbage!")
	copy(b[41:49], "garbage!")
	if got, err := floyd.DecodeListMeta(b); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestHyperLogLog: the mark of a HyperLogLog is kept.
func TestHyperLogLog(t *testing.T) {
	p := plant(t)
	registers := bytes.Repeat([]byte{1}, 1<<17)
	p.put(0, "default", floyd.AppendMetaKey(nil, floyd.MetaKey{Key: []byte("h")}),
		floyd.AppendStringValue(nil, floyd.StringValue{Bytes: registers, HyperLogLog: true}))
	p.put(0, "default", floyd.AppendMetaKey(nil, floyd.MetaKey{Key: []byte("s")}),
		floyd.AppendStringValue(nil, floyd.StringValue{Bytes: registers}))
	src := p.Open(t)
	fs := memstore.New()
	dst := formattest.Create(t, floyd.New(), p.Dir+"/new",
		&format.CreateOptions{Create: fs.Create, Reopen: &format.OpenOptions{Store: fs.Open}, Instances: 1})
	r := formattest.Records(t, src, "0", &format.Env{})
	to, err := dst.Shard(0, "0", record.AllTypes, 0)
	if err != nil {
		t.Fatal(err)
	}
	w := &formattest.OneByOne{Writer: to}
	elems := make([]record.Element, 1)
	for {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		n, rerr := r.Read(elems)
		notes := 0
		kept := dst.ElementLosses(h, elems[:n], func(record.Loss) { notes++ })
		if err := w.Begin(h); err != nil || rerr != nil {
			t.Fatal(err, rerr)
		}
		if w.Write(kept) != nil || w.End() != nil {
			t.Fatal("not written")
		}
		if want := map[string]int{"h": 0, "s": 1}[string(h.Key)]; notes != want || (h.Native == "hyperloglog") != (want == 0) {
			t.Errorf("%s: %d notes, native %q", h.Key, notes, h.Native)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	back := formattest.Finish(t, dst)
	again := formattest.Records(t, back, "0", &format.Env{})
	for _, want := range []string{"hyperloglog", ""} {
		if h, err := again.Next(); err != nil || h.Native != want {
			t.Errorf("native %q, %v", h.Native, err)
		}
	}
	again.Close()
	r.Close()
}

// TestLosses checks the parts of records that Pika 4.0 cannot hold.
func TestLosses(t *testing.T) {
	dst := formattest.NewMemory(t, floyd.New()).Create(t, format.CreateOptions{})
	defer dst.Abort()
	for _, c := range []struct {
		h    record.Header
		want string
	}{
		{record.Header{Type: record.String, Key: []byte("a\x00b")}, "inner-nul!"},
		{record.Header{Type: record.String, Key: []byte("\x00b")}, "inner-nul!"},
		{record.Header{Type: record.String, Key: []byte("a\x00b\x00")}, ""},
		{record.Header{Type: record.String, Key: []byte("\x00")}, ""},
		{record.Header{Type: record.Hash, Key: []byte("k"), Len: math.MaxInt32}, ""},
		{record.Header{Type: record.Hash, Key: []byte("k"), Len: math.MaxInt32 + 1}, "too-many-elements!"},
		{record.Header{Type: record.List, Key: []byte("k"), Len: math.MaxInt32 + 1}, ""},
		{record.Header{Type: record.String, Key: []byte("k"), Len: math.MaxInt32 + 1}, ""},
		{record.Header{Type: record.Stream, Key: []byte("k"), ExpireMS: 1}, "stream-expiry ms=0"},
		{record.Header{Type: record.Stream, Key: []byte("k")}, ""},
		{record.Header{Type: record.Hash, Key: []byte("k"), ExpireMS: 5}, ""},
		{record.Header{Type: record.Hash, Key: []byte("k"), ExpireMS: -5}, "expiry-ms? ms=1"},
	} {
		if got := formattest.Losses(t, dst, c.h); got != c.want {
			t.Errorf("%s %q: %q, want %q", c.h.Type, c.h.Key, got, c.want)
		}
	}
	if d := dst.Losses(&record.Header{Key: []byte("\x00abc")})[0].Detail; d != "Pika 4.0 does not write the 3 bytes of the key after its last NUL" {
		t.Error(d)
	}
}

// TestSlots: slots match the engine's: zlib's CRC-32 of the tag or the key.
func TestSlots(t *testing.T) {
	// 123456789 is the check value of CRC-32: cbf43926.
	for key, want := range map[string]uint32{"123456789": 0xcbf43926, "x{123456789}y": 0xcbf43926, "{}123456789": 0} {
		if got := floyd.Slot([]byte(key), 1<<31-1); got != int(want%(1<<31-1)) {
			t.Errorf("%s: slot %d, want %d", key, got, want%(1<<31-1))
		}
	}
	if floyd.Slot([]byte("{123456789"), 1<<31-1) == floyd.Slot([]byte("123456789"), 1<<31-1) {
		t.Error("a tag without an end counts as one")
	}
}
