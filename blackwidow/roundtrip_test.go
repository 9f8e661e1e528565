package blackwidow_test

import (
	"fmt"
	"io"
	"math"
	"path/filepath"
	"testing"

	"kvferry/blackwidow"
	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/internal/testkit/formattest"
	"kvferry/record"
)

// written are the classes of the rows that a target writes.
var written = []record.Class{record.Copied, record.Index}

func TestRoundTrip(t *testing.T) {
	o := fixtures.Options{DB: "0", Limits: blackwidow.New().Limits(), Expired: true}
	formattest.RoundTrips(t, blackwidow.New(), o, written...)
}

// lengths are key lengths: more than the lanes that may be open, and with a different order as bytes and as
// numbers.
func lengths() []int {
	var out []int
	for n := range 90 {
		out = append(out, n)
	}
	return append(out, 255, 256, 257, 511, 512, 513, 65536, 70000)
}

// TestRoundTripOnDisk uses RocksDB directories and more key lengths than lanes may be open.
func TestRoundTripOnDisk(t *testing.T) {
	for _, byName := range []bool{true, false} {
		read := func(types record.TypeSet) record.Reader { return formattest.NewLengths(lengths(), types, byName) }
		src := formattest.Fill(t, onDisk(t, filepath.Join(t.TempDir(), "new")), 1<<20, read)
		formattest.CheckClean(t, src, 1<<20, read, written...)
		if src.Size("0", record.AllTypes) == 0 {
			t.Error("size 0")
		}
	}
}

// oneZSet is a zset of n members with descending scores.
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

func (z *oneZSet) Heavy() bool { return false }

func (z *oneZSet) End(*record.Record) error { return nil }

func (z *oneZSet) Close() error { return nil }

// TestLargeZSet: a zset larger than the memory is sorted on disk, by member and by score.
func TestLargeZSet(t *testing.T) {
	m := newMemory(t)
	dst := m.Create(t, format.CreateOptions{TempDir: t.TempDir()})
	const n = 50000
	formattest.Shard(t, dst, 0, record.Of(record.ZSet), 256<<10, record.Gather(&oneZSet{n: n}, nil))
	src := formattest.Finish(t, dst)
	var f formattest.Findings
	got := formattest.Sum(t, formattest.Records(t, src, "0", &format.Env{Report: f.Report}))
	formattest.CheckEqual(t, got, formattest.Sum(t, record.Gather(&oneZSet{n: n}, nil)), true)
	if len(f.All) > 0 {
		t.Errorf("found %+v", f.All[0])
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

func (r *oneRecord) Heavy() bool { return false }

func (r *oneRecord) End(*record.Record) error { return nil }

func (r *oneRecord) Close() error { return nil }

// TestWrittenRows: the rows equal the engine's.
func TestWrittenRows(t *testing.T) {
	m := newMemory(t)
	dst := m.Create(t, format.CreateOptions{TempDir: t.TempDir(), Version: 7})
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
		formattest.Shard(t, dst, n, record.Of(r.h.Type), 0, record.Gather(r, nil))
	}
	src := formattest.Finish(t, dst)
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
