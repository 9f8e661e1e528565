package rdb

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"testing"

	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/record"
	"kvferry/redis/rdb/crc64"
)

// limitsOf is what a version holds.
func limitsOf(v Version) format.Limits {
	return format.Limits{Types: v.Types() &^ record.Of(record.Other), EmptyKey: true, FieldExpiry: v.FieldExpiry(), StreamGroups: true}
}

// coder encodes records and decodes them again.
type coder struct {
	t        *testing.T
	e        Encoder
	d        Decoder
	h        record.Header
	want     record.Hasher
	got      record.Hasher
	types    map[Type]int
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
		value = append(appendLen(bytes.Clone(c.prefix), v.Count), append(c.spilt, v.Body...)...)
	}
	var in input
	in.reset(value, 0)
	if in.skipValue(v.Type, c.e.Version.Valkey); in.err != nil || in.left() != 0 {
		c.t.Errorf("%s of type %s: skipped %d of %d: %v", c.h.Type, v.Type.Name(c.e.Version.Valkey), in.offset(), len(value), in.err)
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
	for _, v := range versions {
		t.Run(v.name, func(t *testing.T) {
			c := &coder{t: t, types: map[Type]int{}, e: Encoder{Version: v.v, Memory: 1 << 20, TempDir: t.TempDir()}}
			c.e.Spill = func(_ Type, part []byte) error {
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
					if err := fixtures.Pump(c, fixtures.Records(seed, records, fixtures.Options{Limits: limitsOf(v.v), MaxElements: most})); err != nil {
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
	for _, v := range versions {
		e := Encoder{Version: v.v, Memory: 1 << 20, TempDir: t.TempDir()}
		for _, typ := range []record.Type{record.String, record.Hash, record.List, record.Set, record.ZSet} {
			e.Begin(&record.Header{Type: typ, Key: []byte("k"), Len: -1})
			if value, ok, err := e.End(); ok || err != nil {
				t.Errorf("%s, %s: %+v, %v", v.name, typ, value, err)
			}
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}

// encodedFiles are small files of all encodings that are written.
func encodedFiles(t testing.TB) (out [][]byte) {
	for _, v := range versions {
		e := Encoder{Version: v.v, TempDir: t.TempDir()}
		w := &fileWriter{e: &e, b: AppendHead(nil, v.v, 1)}
		w.b = AppendDatabase(w.b, v.v, 0, 9, 1)
		if err := fixtures.Pump(w, fixtures.Records(5, 14, fixtures.Options{Limits: limitsOf(v.v), Short: true, MaxElements: 4})); err != nil {
			t.Fatal(err)
		}
		w.b = AppendEOF(w.b)
		if v.v.Number >= 5 {
			w.b = binary.LittleEndian.AppendUint64(w.b, crc64.Update(0, w.b))
		}
		if _, _, err := walk(w.b); err != nil {
			t.Fatal(v.name, err)
		}
		out = append(out, w.b)
	}
	return out
}

// fileWriter appends keys to a file in memory.
type fileWriter struct {
	e *Encoder
	h record.Header
	b []byte
}

func (w *fileWriter) Begin(h *record.Header) error {
	w.h = *h
	w.e.Begin(h)
	return nil
}
func (w *fileWriter) Write(elems []record.Element) error { return w.e.Elements(elems) }
func (w *fileWriter) End() error {
	v, ok, err := w.e.End()
	if ok {
		w.b = v.Append(AppendKey(w.b, v.Type, w.h.Key, w.h.ExpireMS))
	}
	return err
}
func (w *fileWriter) Close() error { return nil }
func (w *fileWriter) Abort()       {}
