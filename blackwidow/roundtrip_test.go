package blackwidow_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"testing"

	"kvferry/blackwidow"
	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/record"
	"kvferry/store/rocksfile"
)

func randomOptions() fixtures.Options {
	return fixtures.Options{DB: "0", Limits: blackwidow.New().Limits(), Expired: true}
}

// fill writes records by type, as conversions do, and returns the target's own reading.
func fill(t testing.TB, dst format.Target, memory int64, read func(record.TypeSet) record.Reader) format.Source {
	t.Helper()
	for n, group := range dst.Groups() {
		shard(t, dst, n, group, memory, read(group))
	}
	return finish(t, dst)
}

func shard(t testing.TB, dst format.Target, n int, group record.TypeSet, memory int64, r record.Reader) {
	t.Helper()
	w, err := dst.Shard(n, "0", group, memory)
	if err != nil {
		t.Fatal(err)
	}
	if err := fixtures.Pump(w, r); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func finish(t testing.TB, dst format.Target) format.Source {
	t.Helper()
	src, err := dst.Finish(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { src.Close() })
	return src
}

func sum(t testing.TB, r record.Reader) *record.Fingerprint {
	t.Helper()
	f, err := fixtures.Sum(r)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// checkEqual compares fingerprints; blackwidow keeps seconds.
func checkEqual(t testing.TB, got, want *record.Fingerprint) {
	t.Helper()
	for _, p := range got.Diff(want, true) {
		t.Errorf("database %s, %s: read back %+v, wrote %+v", p.DB, p.Type, got.Parts()[p], want.Parts()[p])
	}
	if len(want.Parts()) == 0 {
		t.Error("nothing was written")
	}
}

// checkClean reads everything and compares it with what was written: no row is garbage, nothing is found.
func checkClean(t testing.TB, src format.Source, memory int64, read func(record.TypeSet) record.Reader) {
	t.Helper()
	var want record.Fingerprint
	for _, typ := range src.Types("0").Types() {
		want.Merge(sum(t, read(record.Of(typ))))
	}
	var l record.Ledger
	var f findings
	env := &format.Env{Now: fixtures.Clock, Memory: memory, TempDir: t.TempDir(), Ledger: &l, Report: f.report, Deep: true}
	checkEqual(t, sum(t, records(t, src, "0", env)), &want)
	checkLedger(t, &l)
	for name, tally := range l.Snapshot() {
		if n := tally.Rows[record.Copied] + tally.Rows[record.Index]; n != tally.Total() {
			t.Errorf("%s: %s", name, classes(&l, name))
		}
	}
	for _, x := range f.all {
		t.Errorf("finding %+v", x)
	}
}

// TestRoundTrip writes random records and reads them back, with plenty of memory and with so little that
// everything that can spill does.
func TestRoundTrip(t *testing.T) {
	for seed := range uint64(12) {
		for _, memory := range []int64{0, 32 << 10} {
			t.Run(fmt.Sprintf("seed %d memory %d", seed, memory), func(t *testing.T) {
				read := func(types record.TypeSet) record.Reader {
					o := randomOptions()
					o.Types = types
					return fixtures.Records(seed, 60, o)
				}
				m := newMemory(t)
				dst := m.create(t, format.CreateOptions{TempDir: t.TempDir(), Version: int32(seed)})
				checkClean(t, fill(t, dst, memory, read), memory, read)
			})
		}
	}
}

// lengths are those of the keys of manyLengths: more than lanes may be open, some of which rank otherwise
// as bytes than as numbers.
func lengths() []int {
	var out []int
	for n := range 90 {
		out = append(out, n)
	}
	return append(out, 255, 256, 257, 511, 512, 513, 65536, 70000)
}

// manyLengths reads records of keys of many lengths, three of each, in order: the keys are n times 'a', 'b'
// and 'c'. The empty key comes once.
type manyLengths struct {
	types  []record.Type
	byName bool
	keys   [][]byte
	at     int
	left   int
	h      record.Header
}

func newManyLengths(types record.TypeSet, byName bool) *manyLengths {
	m := &manyLengths{types: types.Types(), byName: byName, keys: [][]byte{{}}}
	for _, letter := range []string{"a", "b", "c"} {
		for _, n := range lengths()[1:] {
			m.keys = append(m.keys, bytes.Repeat([]byte(letter), n))
		}
	}
	return m
}

func (m *manyLengths) Next() (*record.Header, error) {
	if m.at == len(m.keys)*len(m.types) {
		return nil, io.EOF
	}
	m.h = record.Header{DB: "0", Type: m.types[m.at%len(m.types)], Len: 3, ByName: m.byName, Key: m.keys[m.at/len(m.types)]}
	m.at++
	m.left = 3
	if m.h.Type == record.String {
		m.left = 1
	}
	return &m.h, nil
}

func (m *manyLengths) Read(dst []record.Element) (int, error) {
	if m.left == 0 {
		return 0, io.EOF
	}
	order := m.left
	if m.byName {
		order = 9 - m.left
	}
	text := fmt.Appendf(nil, "%d of %d", order, len(m.h.Key))
	e := record.Element{}
	switch m.h.Type {
	case record.String, record.List:
		e.Value = text
	case record.Hash:
		e.Name, e.Value = text, text[:2]
	case record.Set:
		e.Name = text
	case record.ZSet:
		e.Name, e.Score = text, float64(m.left*len(m.h.Key))/7
	}
	dst[0] = e
	m.left--
	return 1, nil
}

func (m *manyLengths) Settle(record.Class) {}

func (m *manyLengths) Close() error { return nil }

// TestRoundTripOnDisk goes through RocksDB directories and through more key lengths than lanes may be open.
func TestRoundTripOnDisk(t *testing.T) {
	for _, byName := range []bool{true, false} {
		read := func(types record.TypeSet) record.Reader { return newManyLengths(types, byName) }
		dst, err := blackwidow.New().Create(context.Background(), filepath.Join(t.TempDir(), "new"), &format.CreateOptions{
			Create: rocksfile.Create, Reopen: &format.OpenOptions{Store: rocksfile.Open}, TempDir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		src := fill(t, dst, 1<<20, read)
		checkClean(t, src, 1<<20, read)
		if src.Size("0", record.AllTypes) == 0 {
			t.Error("size 0")
		}
	}
}

// oneZSet is a zset of n members whose scores fall.
type oneZSet struct{ n, at int }

func (z *oneZSet) Next() (*record.Header, error) {
	if z.at > 0 {
		return nil, io.EOF
	}
	return &record.Header{DB: "0", Type: record.ZSet, Key: []byte("z"), Len: int64(z.n)}, nil
}

func (z *oneZSet) Read(dst []record.Element) (int, error) {
	if z.at == z.n {
		return 0, io.EOF
	}
	dst[0] = record.Element{Name: fmt.Appendf(nil, "member:%08d", (z.at*7919)%z.n), Score: float64(-z.at) / 3}
	z.at++
	return 1, nil
}

func (z *oneZSet) Settle(record.Class) {}

func (z *oneZSet) Close() error { return nil }

// A zset beyond the memory is sorted on disk, by member and by score.
func TestLargeZSet(t *testing.T) {
	m := newMemory(t)
	dst := m.create(t, format.CreateOptions{TempDir: t.TempDir()})
	const n = 50000
	shard(t, dst, 0, record.Of(record.ZSet), 256<<10, &oneZSet{n: n})
	src := finish(t, dst)
	var f findings
	got := sum(t, records(t, src, "0", &format.Env{Report: f.report}))
	checkEqual(t, got, sum(t, &oneZSet{n: n}))
	if len(f.all) > 0 {
		t.Errorf("found %+v", f.all[0])
	}
}

// oneRecord is a record given as a header and its elements.
type oneRecord struct {
	h     record.Header
	elems []record.Element
	done  bool
}

func (r *oneRecord) Next() (*record.Header, error) {
	if r.done {
		return nil, io.EOF
	}
	r.done = true
	return &r.h, nil
}

func (r *oneRecord) Read(dst []record.Element) (int, error) {
	if len(r.elems) == 0 {
		return 0, io.EOF
	}
	n := copy(dst, r.elems)
	r.elems = r.elems[n:]
	return n, nil
}

func (r *oneRecord) Settle(record.Class) {}

func (r *oneRecord) Close() error { return nil }

// Rows are what the engine would have written.
func TestWrittenRows(t *testing.T) {
	m := newMemory(t)
	dst := m.create(t, format.CreateOptions{TempDir: t.TempDir(), Version: 7})
	k := []byte("k")
	name := func(n string, score float64) record.Element { return record.Element{Name: []byte(n), Score: score} }
	for n, r := range []*oneRecord{
		{h: record.Header{Type: record.String, Key: k, ExpireMS: 1}, elems: []record.Element{{Value: []byte("v")}}},
		{h: record.Header{Type: record.Hash, Key: k}, elems: []record.Element{{Name: []byte("f"), Value: []byte("v")}}},
		{h: record.Header{Type: record.List, Key: k, ExpireMS: 1700000000001}, elems: []record.Element{{Value: []byte("x")}, {Value: []byte("y")}}},
		{h: record.Header{Type: record.Set, Key: k, ExpireMS: -1}},
		{h: record.Header{Type: record.ZSet, Key: k}, elems: []record.Element{
			name("c", 0), name("b", math.Copysign(0, -1)), name("a", math.Inf(1)), name("d", -1<<53-2)}},
	} {
		shard(t, dst, n, record.Of(r.h.Type), 0, r)
	}
	src := finish(t, dst)
	want := map[string][]string{
		"strings/default": {`6b = 7601000000`},
		"hashes/default":  {`6b = 010000000700000000000000`},
		"hashes/data_cf":  {`010000006b0700000066 = 76`},
		"lists/default":   {`6b = 02000000000000000700000001f15365ffffffffffffff7f0200000000000080`},
		"lists/data_cf":   {`010000006b070000000000000000000080 = 78`, `010000006b070000000100000000000080 = 79`},
		"sets/default":    nil,
		"sets/member_cf":  nil,
		"zsets/default":   {`6b = 040000000700000000000000`},
		"zsets/data_cf": {`010000006b0700000061 = 000000000000f07f`, `010000006b0700000062 = 0000000000000080`,
			`010000006b0700000063 = 0000000000000000`, `010000006b0700000064 = 01000000000040c3`},
		"zsets/score_cf": {`010000006b0700000001000000000040c364 = `, `010000006b07000000000000000000008062 = `,
			`010000006b07000000000000000000000063 = `, `010000006b07000000000000000000f07f61 = `},
	}
	for _, ks := range src.Keyspaces() {
		var got []string
		it, err := ks.Rows(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for {
			key, value, err := it.Next()
			if err == io.EOF {
				break
			}
			got = append(got, fmt.Sprintf("%x = %x", key, value))
		}
		if fmt.Sprint(got) != fmt.Sprint(want[ks.Name]) {
			t.Errorf("%s:\ngot  %q\nwant %q", ks.Name, got, want[ks.Name])
		}
		delete(want, ks.Name)
	}
	for name := range want {
		t.Errorf("no keyspace %s", name)
	}
}
