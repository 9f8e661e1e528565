package encode

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"testing"

	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/record"
	"kvferry/redis/rdb"
	"kvferry/redis/rdb/pack"
)

// versions returns the writable versions.
func versions(t testing.TB) (out []rdb.Version) {
	t.Helper()
	for _, name := range rdb.Versions() {
		v, err := rdb.ParseVersion(name)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, v)
	}
	return out
}

// limitsOf returns the limits of a version.
func limitsOf(v rdb.Version) format.Limits {
	return format.Limits{Types: v.Types() &^ record.Of(record.Other), EmptyKey: true, FieldExpiry: v.FieldExpiry(),
		StreamGroups: true}
}

// coder encodes records and decodes them again.
type coder struct {
	t        *testing.T
	e        Encoder
	d        rdb.Decoder
	h        record.Header
	want     record.Hasher
	got      record.Hasher
	types    map[rdb.Type]int
	feed     record.Feeder
	elements []record.Element
	spilt    []byte // parts passed to Spill
	prefix   []byte
}

func (c *coder) Begin(h *record.Header) error {
	c.h = *h
	c.want.Begin(h)
	c.e.Begin(h)
	c.spilt = c.spilt[:0]
	return nil
}

// Write implements record.Writer.
func (c *coder) Write(b *record.Batch) error { return c.feed.Feed(b, c, nil) }

func (c *coder) Elements(elems []record.Element) error {
	elems = append(c.elements[:0], elems...)
	for i := range elems {
		if elems[i].Kind == record.Group && !c.e.Version.EntriesRead() {
			g, _ := record.DecodeGroup(elems[i].Value)
			g.Read = -1
			elems[i].Value = record.AppendGroup(nil, &g)
		}
	}
	c.want.Elements(elems)
	return c.e.Elements(elems)
}

func (c *coder) End() error {
	v, ok, err := c.e.End()
	if err != nil || !ok {
		return err
	}
	c.types[v.Type]++
	value := v.Append(nil)
	if v.Spilt {
		value = append(rdb.AppendLen(bytes.Clone(c.prefix), v.Count), append(c.spilt, v.Body...)...)
	}
	file := append(rdb.AppendKey(nil, v.Type, nil, 0), value...)
	s := rdb.Section(bytes.NewReader(file), rdb.Header{Version: c.e.Version.Number, Valkey: c.e.Version.Valkey}, 0, 0,
		int64(len(file)))
	if it, err := s.Next(); err != nil || it.To-it.From != int64(len(value)) {
		c.t.Errorf("%s of type %s: %d bytes are skipped as %+v: %v", c.h.Type,
			v.Type.Name(rdb.Header{Valkey: c.e.Version.Valkey}), len(value), it, err)
	}
	var h record.Header
	if err := c.d.Begin(v.Type, rdb.Header{Valkey: c.e.Version.Valkey}, value, 0, &h); err != nil {
		return err
	}
	h.Key, h.ExpireMS = c.h.Key, c.h.ExpireMS
	c.got.Begin(&h)
	dst := make([]record.Element, 7)
	for {
		n, err := c.d.Read(dst)
		if err == io.EOF {
			break
		}
		if err != nil {
			return fmt.Errorf("%s: %w", v.Type.Name(rdb.Header{Valkey: c.e.Version.Valkey}), err)
		}
		c.got.Elements(dst[:n])
	}
	want, got := c.want.End(&c.h), c.got.End(&h)
	if want != got {
		c.t.Errorf("%s of type %s, key %q: %+v, want %+v", c.h.Type, v.Type.Name(rdb.Header{Valkey: c.e.Version.Valkey}), c.h.Key,
			got, want)
	}
	return nil
}

func (c *coder) Close() error { return c.e.Close() }
func (c *coder) Abort()       {}

// A record encoded in any version decodes to the same record, in every encoding of the version.
func TestRoundTrips(t *testing.T) {
	for _, v := range versions(t) {
		t.Run(v.String(), func(t *testing.T) {
			c := &coder{t: t, types: map[rdb.Type]int{}, e: Encoder{Version: v, Memory: 1 << 20, TempDir: t.TempDir()}}
			c.e.Spill = func(_ rdb.Type, part []byte) error {
				if len(c.spilt) == 0 && (len(part) == 0 || len(part) == 8) {
					c.prefix = bytes.Clone(part)
					return nil
				}
				c.spilt = append(c.spilt, part...)
				return nil
			}
			records := 120
			if testing.Short() {
				records = 40
			}
			for _, most := range []int{0, 3000} {
				for seed := range uint64(2) {
					err := fixtures.Pump(c, fixtures.Records(seed, records,
						fixtures.Options{Limits: limitsOf(v), MaxElements: most}))
					if err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestNoElements: a record without elements has no value.
func TestNoElements(t *testing.T) {
	for _, v := range versions(t) {
		e := Encoder{Version: v, Memory: 1 << 20, TempDir: t.TempDir()}
		for _, typ := range []record.Type{record.String, record.Hash, record.List, record.Set, record.ZSet} {
			e.Begin(&record.Header{Type: typ, Key: []byte("k"), Len: -1})
			if value, ok, err := e.End(); ok || err != nil {
				t.Errorf("%s, %s: %+v, %v", v.String(), typ, value, err)
			}
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestVersions: the types of small collections and streams.
func TestVersions(t *testing.T) {
	for name, want := range map[string]struct {
		packing pack.Kind
		stream  rdb.Type
	}{
		"6": {pack.Ziplist, rdb.TypeStream}, "9": {pack.Ziplist, rdb.TypeStream}, "10": {pack.Listpack, rdb.TypeStream2},
		"11": {pack.Listpack, rdb.TypeStream3}, "12": {pack.Listpack, rdb.TypeStream3}, "valkey80": {pack.Listpack, rdb.TypeStream3},
	} {
		v, err := rdb.ParseVersion(name)
		if err != nil {
			t.Fatal(err)
		}
		if packing(v) != want.packing || streamType(v) != want.stream {
			t.Errorf("%s: packing %v, streams %v", name, packing(v), streamType(v))
		}
	}
}

// encoded returns the value of a record.
func encoded(t *testing.T, typ record.Type, elems ...record.Element) Value {
	t.Helper()
	v, err := rdb.ParseVersion("11")
	if err != nil {
		t.Fatal(err)
	}
	e := Encoder{Version: v, Memory: 1 << 20, TempDir: t.TempDir()}
	defer e.Close()
	e.Begin(&record.Header{Type: typ, Key: []byte("k"), Len: -1, Last: make([]byte, 16)})
	if err := e.Elements(elems); err != nil {
		t.Fatal(err)
	}
	value, ok, err := e.End()
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	return value
}

// TestPacked: values are packed up to the limits of servers.
func TestPacked(t *testing.T) {
	for n, want := range map[int]rdb.Type{maxPackedBytes: rdb.TypeHashListpack, maxPackedBytes + 1: rdb.TypeHash} {
		v := encoded(t, record.Hash, record.Element{Name: []byte("f"), Value: make([]byte, n)})
		if v.Type != want || maxPackedBytes != 64 {
			t.Errorf("a value of %d bytes: type %s", n, v.Type.Name(rdb.Header{}))
		}
	}
}

// entry is a stream entry with one field.
func entry(n byte, field string, value []byte) record.Element {
	id := append(make([]byte, 15), n)
	return record.Element{Name: id, Value: record.AppendPair(nil, []byte(field), value)}
}

// TestStreamNodes: a stream node holds 4 KiB.
func TestStreamNodes(t *testing.T) {
	for size, nodes := range map[int]byte{1500: 1, 1900: 1, 2100: 2, 3000: 2} {
		v := encoded(t, record.Stream, entry(1, "f", make([]byte, size)), entry(2, "f", make([]byte, size)))
		if b := v.Append(nil); b[0] != nodes {
			t.Errorf("two entries of %d bytes are in %d nodes, want %d", size, b[0], nodes)
		}
	}
}

// TestEntryCounts: an entry ends with the number of its items, which servers use to iterate backwards.
func TestEntryCounts(t *testing.T) {
	for field, want := range map[string]byte{
		"f":     4, // flags, two parts of the id, a value
		"other": 6, // and the number of fields, and the field
	} {
		v := encoded(t, record.Stream, entry(1, "f", []byte("v")), entry(2, field, []byte("w")))
		b := v.Append(nil)
		at := bytes.LastIndexByte(b, 0xff) // the end of the listpack
		if at < 2 || b[at-2] != want || b[at-1] != 1 {
			t.Errorf("an entry of %s counts %x, want %d", field, b[max(at-2, 0):at], want)
		}
	}
}

// TestOrderOf: the integers are ordered like their scores.
func TestOrderOf(t *testing.T) {
	scores := []float64{math.Inf(-1), -math.MaxFloat64, -3, -2, -1.5, -0.5, -math.SmallestNonzeroFloat64, 0,
		math.SmallestNonzeroFloat64, 0.5, 1.5, 2, 3, math.MaxFloat64, math.Inf(1)}
	for i := range len(scores) - 1 {
		if a, b := orderOf(scores[i]), orderOf(scores[i+1]); a >= b {
			t.Errorf("%g is %x, %g is %x", scores[i], a, scores[i+1], b)
		}
	}
}

// TestSmallSets: small sets are packed from RDB version 11 on (Redis 7.2).
func TestSmallSets(t *testing.T) {
	for number, want := range map[int]rdb.Type{10: rdb.TypeSet, 11: rdb.TypeSetListpack, 12: rdb.TypeSetListpack} {
		e := Encoder{Version: rdb.Version{Number: number}}
		e.Begin(&record.Header{Type: record.Set, Len: 1})
		if err := e.Elements([]record.Element{{Name: []byte("member")}}); err != nil {
			t.Fatal(err)
		}
		if v, ok, err := e.End(); err != nil || !ok || v.Type != want {
			t.Errorf("version %d: type %s, %v", number, v.Type.Name(rdb.Header{}), err)
		}
	}
}

// TestLargeItems: an item that fills a list node is a plain node of its own, like in the server.
func TestLargeItems(t *testing.T) {
	for size, want := range map[int]byte{maxNode - 1: rdb.NodePacked, maxNode: rdb.NodePlain, maxNode + 1: rdb.NodePlain} {
		v := encoded(t, record.List, record.Element{Value: make([]byte, size)})
		if b := v.Append(nil); b[0] != 1 || b[1] != want {
			t.Errorf("an item of %d bytes: %d nodes of kind %d, want %d", size, b[0], b[1], want)
		}
	}
}

// TestSpillFails: after a failed spill, no more of the value is written.
func TestSpillFails(t *testing.T) {
	full, calls := errors.New("no space"), 0
	e := Encoder{Version: rdb.Version{Number: 11}, Spill: func(rdb.Type, []byte) error {
		if calls++; calls == 1 {
			return full
		}
		return nil
	}}
	e.Begin(&record.Header{Type: record.List, Len: -1})
	var err error
	for i := 0; i < 4*maxBody && err == nil; i += maxNode {
		err = e.Elements([]record.Element{{Value: make([]byte, maxNode)}})
	}
	if err != full || calls != 1 {
		t.Errorf("%v after %d calls", err, calls)
	}
}

// TestStreamEnds: a stream without a last id ends at the id of its last entry.
func TestStreamEnds(t *testing.T) {
	v := encoded(t, record.Stream, entry(1, "f", []byte("v")), entry(7, "f", []byte("v")))
	var d rdb.Decoder
	var h record.Header
	if err := d.Begin(v.Type, rdb.Header{}, v.Append(nil), 0, &h); err != nil {
		t.Fatal(err)
	}
	for dst, err := make([]record.Element, 7), error(nil); err == nil; _, err = d.Read(dst) {
	}
	if want := append(make([]byte, 15), 7); !bytes.Equal(h.Last, want) {
		t.Errorf("the last id is %x, want %x", h.Last, want)
	}
}

// TestOrderOfCalls: elements outside of a record are rejected, before Begin and after End.
func TestOrderOfCalls(t *testing.T) {
	e := &Encoder{Version: rdb.DefaultVersion}
	elems := []record.Element{{Name: []byte("a")}}
	if err := e.Elements(elems); err == nil {
		t.Error("elements before Begin were taken")
	}
	if _, _, err := e.End(); err == nil {
		t.Error("End before Begin gave a value")
	}
	e.Begin(&record.Header{Type: record.Set})
	if err := e.Elements(elems); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := e.End(); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if err := e.Elements(elems); err == nil {
		t.Error("elements after End were taken")
	}
	if _, _, err := e.End(); err == nil {
		t.Error("a second End gave a value")
	}
}
