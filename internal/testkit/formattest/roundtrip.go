package formattest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"testing"

	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/record"
)

// Fill writes records to database 0 group by group, like convert, and returns the finished target reopened as a
// source. Each shard may use memory bytes.
func Fill(t testing.TB, dst format.Target, memory int64, read func(record.TypeSet) record.Reader) format.Source {
	t.Helper()
	for n, group := range dst.Groups() {
		Shard(t, dst, n, group, memory, read(group))
	}
	return Finish(t, dst)
}

// Shard writes records to a shard of database 0.
func Shard(t testing.TB, dst format.Target, n int, group record.TypeSet, memory int64, r record.Reader) {
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

// OneByOne writes records piece by piece: the header, each Write and the end.
type OneByOne struct {
	record.Writer
	head record.Kept
}

// One wraps the result of Target.Shard.
func One(w record.Writer, err error) (*OneByOne, error) { return &OneByOne{Writer: w}, err }

// Begin starts a record.
func (w *OneByOne) Begin(h *record.Header) error {
	w.head.Keep(h)
	return w.piece(nil, false, true)
}

// Write appends elements.
func (w *OneByOne) Write(elems []record.Element) error { return w.piece(elems, true, true) }

// End ends the record.
func (w *OneByOne) End() error { return w.piece(nil, true, false) }

func (w *OneByOne) piece(elems []record.Element, cont, more bool) error {
	one := record.Record{Header: w.head.Header, N: len(elems), Class: record.Copied}
	return w.Writer.Write(&record.Batch{Records: []record.Record{one}, Elems: elems, Cont: cont, More: more})
}

// Walk wraps the result of Source.Records.
func Walk(r record.Reader, err error) (*record.Walker, error) {
	if err != nil {
		return nil, err
	}
	return record.Walk(r), nil
}

// Finish completes a target and returns it reopened as a source.
func Finish(t testing.TB, dst format.Target) format.Source {
	t.Helper()
	src, err := dst.Finish(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { src.Close() })
	return src
}

// Sum computes the fingerprint of all records of a Reader or a Walker and closes it.
func Sum(t testing.TB, of any) *record.Fingerprint {
	t.Helper()
	f, err := fixtures.Sum(readerOf(of))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// CheckEqual compares fingerprints; seconds compares expiries in seconds.
func CheckEqual(t testing.TB, got, want *record.Fingerprint, seconds bool) {
	t.Helper()
	for _, p := range got.Diff(want, seconds) {
		t.Errorf("database %s, %s: read back %+v, wrote %+v", p.DB, p.Type, got.Parts()[p], want.Parts()[p])
	}
	if len(want.Parts()) == 0 {
		t.Error("nothing was written")
	}
}

// CheckClean reads database 0, with and without Deep, and checks that the records equal those written, the ledger
// adds up, all rows are in the given classes, and no finding is reported.
func CheckClean(t testing.TB, src format.Source, memory int64, read func(record.TypeSet) record.Reader, classes ...record.Class) {
	t.Helper()
	var want record.Fingerprint
	for _, types := range format.Together(src, "0", src.Types("0")) {
		want.Merge(Sum(t, read(types)))
	}
	for _, deep := range []bool{false, true} {
		var l record.Ledger
		var f Findings
		env := &format.Env{Now: fixtures.Clock, Memory: memory, TempDir: t.TempDir(), Ledger: &l, Report: f.Report, Deep: deep}
		CheckEqual(t, Sum(t, Records(t, src, "0", env)), &want, src.Format().Limits().Seconds)
		CheckLedger(t, &l)
		CheckClasses(t, &l, classes...)
		f.CheckNone(t, record.Note)
	}
	CheckSettled(t, src)
}

// CheckSettled fails the test unless the rows of records that are lost are counted as such. It loses every third one.
func CheckSettled(t testing.TB, src format.Source) {
	t.Helper()
	var l record.Ledger
	r := Records(t, src, "0", &format.Env{Now: fixtures.Clock, TempDir: t.TempDir(), Ledger: &l})
	lost := int64(0)
	for n := 0; ; n++ {
		if _, err := r.Next(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if n%3 == 0 {
			r.Settle(record.Lost)
			lost++
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	CheckLedger(t, &l)
	for _, tally := range l.Snapshot() {
		lost -= tally.Rows[record.Lost]
	}
	if lost > 0 {
		t.Errorf("%d lost records have no lost row", lost)
	}
}

// CheckClasses fails the test if the ledger has rows of other classes.
func CheckClasses(t testing.TB, l *record.Ledger, classes ...record.Class) {
	t.Helper()
	for name, tally := range l.Snapshot() {
		rest := tally.Total()
		for _, c := range classes {
			rest -= tally.Rows[c]
		}
		if rest != 0 {
			t.Errorf("%s: %s", name, Classes(l, name))
		}
	}
}

// RoundTrips writes random records to memory and reads them back, with much memory and with so little that all
// buffers spill. Rows must be in the given classes.
func RoundTrips(t *testing.T, f format.Format, o fixtures.Options, classes ...record.Class) {
	for seed := range uint64(12) {
		for _, memory := range []int64{0, 32 << 10} {
			t.Run(fmt.Sprintf("seed %d memory %d", seed, memory), func(t *testing.T) {
				read := func(types record.TypeSet) record.Reader {
					o := o
					o.Types = types
					return fixtures.Records(seed, 60, o)
				}
				dst := NewMemory(t, f).Create(t, format.CreateOptions{TempDir: t.TempDir(), Version: int32(seed)})
				src := Fill(t, dst, memory, read)
				CheckClean(t, src, memory, read, classes...)
				if seed == 1 && memory == 0 {
					CheckLookups(t, src, "0")
				}
			})
		}
	}
}

// lengths is a cursor of records with keys of many lengths, with three elements each, in key order. A key is a
// repeated 'a', 'b' or 'c'; the empty key occurs once.
type lengths struct {
	types  []record.Type
	byName bool
	keys   [][]byte
	at     int
	left   int
	h      record.Header
	text   []byte
}

// NewLengths returns a reader with keys of the given ascending lengths, and elements in ascending or descending order
// of names.
func NewLengths(sizes []int, types record.TypeSet, byName bool) record.Reader {
	m := &lengths{types: types.Types(), byName: byName}
	for _, letter := range []string{"a", "b", "c"} {
		for _, n := range sizes {
			if n > 0 || letter == "a" {
				m.keys = append(m.keys, bytes.Repeat([]byte(letter), n))
			}
		}
	}
	return record.Gather(m, nil)
}

// Next moves to the next record.
func (m *lengths) Next() (*record.Header, error) {
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

// Read returns one element.
func (m *lengths) Read(dst []record.Element) (int, error) {
	if m.left == 0 {
		return 0, io.EOF
	}
	order := m.left
	if m.byName {
		order = 9 - m.left
	}
	m.text = fmt.Appendf(m.text[:0], "%d of %d %.1s", order, len(m.h.Key), m.h.Key)
	e := record.Element{}
	switch m.h.Type {
	case record.String, record.List:
		e.Value = m.text
	case record.Hash:
		e.Name, e.Value = m.text, m.text[:2]
	case record.Set:
		e.Name = m.text
	case record.ZSet:
		e.Name, e.Score = m.text, float64(m.left*len(m.h.Key))/7
	}
	dst[0] = e
	m.left--
	return 1, nil
}

// Heavy implements record.Cursor.
func (m *lengths) Heavy() bool { return false }

// End is a no-op.
func (m *lengths) End(*record.Record) error { return nil }

// Close is a no-op.
func (m *lengths) Close() error { return nil }
