package kvrocks_test

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/internal/shared/hll"
	"kvferry/internal/testkit/formattest"
	"kvferry/kvrocks"
	"kvferry/kvrocks/codec"
	"kvferry/record"
)

// afterLarge yields records of each kind after a large record of the same type, whose buffers a writer frees.
type afterLarge struct {
	records []given
	at      int // of the next record
	read    bool
}

type given struct {
	h     record.Header
	value record.Element
}

func newAfterLarge(t *testing.T) *afterLarge {
	large := bytes.Repeat([]byte("large "), 60_000)
	hll, ok := hll.Dense(nil, []byte("HYLL\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x83\x7f\xfb"))
	if !ok {
		t.Fatal("no HyperLogLog")
	}
	r := new(afterLarge)
	add := func(typ record.Type, native string, e record.Element) {
		h := record.Header{DB: kvrocks.DefaultNamespace, Type: typ, Key: fmt.Appendf(nil, "key %02d", len(r.records)),
			Native: native, Len: 1, ByName: true}
		r.records = append(r.records, given{h, e})
	}
	pair := func(typ record.Type, native string, name, value []byte) {
		add(typ, native, record.Element{Name: name, Value: large})
		add(typ, native, record.Element{Name: name, Value: value})
	}
	for _, value := range [][]byte{hll, {}, []byte("v")} {
		add(record.String, "", record.Element{Value: large})
		add(record.String, "", record.Element{Value: value})
	}
	add(record.String, "", record.Element{Value: large})
	add(record.String, codec.KindBitmap.String(), record.Element{Value: []byte{0, 1, 2}})
	pair(record.Hash, "", []byte("f"), []byte("v"))
	pair(record.List, "", nil, []byte("v"))
	for _, doc := range [][]byte{fmt.Appendf(nil, "%q", large), []byte("{}")} {
		add(record.Other, "", record.Element{Name: []byte("kvrocks:" + codec.KindJSON.String()), Value: doc})
	}
	id := codec.StreamID{15: 1}
	for _, value := range [][]byte{large, []byte("v")} {
		add(record.Stream, "", record.Element{Name: id[:], Value: record.AppendPair(nil, []byte("f"), value)})
	}
	for i := range r.records {
		if h := &r.records[i].h; h.Type == record.Stream {
			h.Last, h.Added = id[:], 1
		}
	}
	return r
}

func (r *afterLarge) Next() (*record.Header, error) {
	if r.at == len(r.records) {
		return nil, io.EOF
	}
	r.at++
	r.read = false
	return &r.records[r.at-1].h, nil
}

func (r *afterLarge) Read(dst []record.Element) (int, error) {
	if r.read {
		return 0, io.EOF
	}
	r.read, dst[0] = true, r.records[r.at-1].value
	return 1, nil
}

func (r *afterLarge) Heavy() bool { return false }

func (r *afterLarge) End(*record.Record) error { return nil }

func (r *afterLarge) Close() error { return nil }

// TestAfterLarge: a record after a large value of its type is written like any other.
func TestAfterLarge(t *testing.T) {
	for _, cluster := range []bool{false, true} {
		dst := formattest.NewMemory(t, kvrocks.New()).Create(t, format.CreateOptions{TempDir: t.TempDir(), Now: fixtures.Clock,
			DBs: []string{kvrocks.DefaultNamespace}, Cluster: cluster})
		fillShard(t, dst, 0, kvrocks.DefaultNamespace, 0, record.Gather(newAfterLarge(t), nil))
		src := formattest.Finish(t, dst)
		kinds := checkWriter(t, src, cluster, "")
		if kinds[codec.KindHyperLogLog] != 1 || kinds[codec.KindBitmap] != 1 || kinds[codec.KindJSON] != 2 {
			t.Errorf("kinds %v", kinds)
		}
		checkClean(t, src, kvrocks.DefaultNamespace, 0, formattest.Sum(t, record.Gather(newAfterLarge(t), nil)))
	}
}
