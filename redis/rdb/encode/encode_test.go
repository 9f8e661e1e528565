package encode

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/record"
	"kvferry/redis/rdb"
	"kvferry/redis/rdb/pack"
)

// versions returns those that can be written.
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

// limitsOf is what a version holds.
func limitsOf(v rdb.Version) format.Limits {
	return format.Limits{Types: v.Types() &^ record.Of(record.Other), EmptyKey: true, FieldExpiry: v.FieldExpiry(), StreamGroups: true}
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
	elements []record.Element
	spilt    []byte // parts that the encoder handed on
	prefix   []byte
}

func (c *coder) Begin(h *record.Header) error {
	c.h = *h
	c.want.Begin(h)
	c.e.Begin(h)
	c.spilt = c.spilt[:0]
	return nil
}

func (c *coder) Write(elems []record.Element) error {
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
	s := rdb.Section(bytes.NewReader(file), rdb.Header{Version: c.e.Version.Number, Valkey: c.e.Version.Valkey}, 0, 0, int64(len(file)))
	if it, err := s.Next(); err != nil || it.To-it.From != int64(len(value)) {
		c.t.Errorf("%s of type %s: %d bytes are skipped as %+v: %v", c.h.Type, v.Type.Name(c.e.Version.Valkey), len(value), it, err)
	}
	var h record.Header
	if err := c.d.Begin(v.Type, c.e.Version.Valkey, value, 0, &h); err != nil {
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
			return fmt.Errorf("%s: %w", v.Type.Name(c.e.Version.Valkey), err)
		}
		c.got.Elements(dst[:n])
	}
	want, got := c.want.End(&c.h), c.got.End(&h)
	if want != got {
		c.t.Errorf("%s of type %s, key %q: %+v, want %+v", c.h.Type, v.Type.Name(c.e.Version.Valkey), c.h.Key, got, want)
	}
	return nil
}

func (c *coder) Close() error { return c.e.Close() }
func (c *coder) Abort()       {}

// What is encoded in any version decodes to the same records, in every encoding that the version has.
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
					if err := fixtures.Pump(c, fixtures.Records(seed, records, fixtures.Options{Limits: limitsOf(v), MaxElements: most})); err != nil {
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

// TestVersions: what small collections and streams are written as.
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
