package rdb_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"testing"

	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/record"
	"kvferry/redis/rdb"
	"kvferry/redis/rdb/crc64"
	"kvferry/redis/rdb/encode"
)

// encodedFiles are small files of all encodings that kvferry writes.
func encodedFiles(t testing.TB) (out [][]byte) {
	for _, name := range rdb.Versions() {
		v, err := rdb.ParseVersion(name)
		if err != nil {
			t.Fatal(err)
		}
		e := encode.Encoder{Version: v, TempDir: t.TempDir()}
		w := &fileWriter{e: &e, b: rdb.AppendHead(nil, v, 1)}
		w.b = rdb.AppendDatabase(w.b, v, 0, 9, 1)
		if err := fixtures.Pump(w, fixtures.Records(5, 14,
			fixtures.Options{Limits: format.Limits{Types: v.Types() &^ record.Of(record.Other), EmptyKey: true,
				FieldExpiry: v.FieldExpiry(), StreamGroups: true}, Short: true, MaxElements: 4})); err != nil {
			t.Fatal(err)
		}
		w.b = rdb.AppendEOF(w.b)
		if v.Number >= 5 {
			w.b = binary.LittleEndian.AppendUint64(w.b, crc64.Update(0, w.b))
		}
		if _, _, err := walk(w.b); err != nil {
			t.Fatal(name, err)
		}
		out = append(out, w.b)
	}
	return out
}

// fileWriter appends keys to a file in memory.
type fileWriter struct {
	e *encode.Encoder
	h record.Header
	b []byte

	feed record.Feeder
}

// Write implements record.Writer.
func (w *fileWriter) Write(b *record.Batch) error { return w.feed.Feed(b, w, nil) }

func (w *fileWriter) Begin(h *record.Header) error {
	w.h = *h
	w.e.Begin(h)
	return nil
}
func (w *fileWriter) Elements(elems []record.Element) error { return w.e.Elements(elems) }
func (w *fileWriter) End() error {
	v, ok, err := w.e.End()
	if ok {
		w.b = v.Append(rdb.AppendKey(w.b, v.Type, w.h.Key, w.h.ExpireMS))
	}
	return err
}
func (w *fileWriter) Close() error { return nil }
func (w *fileWriter) Abort()       {}

// TestSlotImport skips the state of a Valkey slot import: a name and ranges of slots.
func TestSlotImport(t *testing.T) {
	v, err := rdb.ParseVersion("valkey80")
	if err != nil {
		t.Fatal(err)
	}
	ranges := func(n, most int) []byte {
		b := rdb.AppendLen(rdb.AppendString(append(rdb.AppendHead(nil, v, 1), 243), []byte("job")), uint64(n))
		for i := range most {
			b = append(b, byte(i), byte(i+1))
		}
		return b
	}
	for _, n := range []int{0, 1, 20} {
		b := rdb.AppendEOF(ranges(n, n))
		b = binary.LittleEndian.AppendUint64(b, crc64.Update(0, b))
		s, err := rdb.NewScanner(bytes.NewReader(b), 0, int64(len(b)))
		if err != nil {
			t.Fatal(err)
		}
		var ops []rdb.Op
		for err == nil {
			var it *rdb.Item
			if it, err = s.Next(); err == nil && it.Op != rdb.OpAux {
				ops = append(ops, it.Op)
			}
		}
		if err != io.EOF || fmt.Sprint(ops) != fmt.Sprint([]rdb.Op{rdb.OpSlotImport, rdb.OpEOF}) {
			t.Errorf("%d ranges: %v, %v", n, ops, err)
		}
	}
	for b, want := range map[string]string{
		string(ranges(2, 1)):    "slots",
		string(ranges(200, 20)): "slots: 200 do not fit into",
	} {
		if _, _, err := walk([]byte(b)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d bytes: %v, want %s", len(b), err, want)
		}
	}
}
