package record

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
)

// held is a record of a test.
type held struct {
	Header
	elems []Element
}

// cursor yields records in pieces of random sizes. It overwrites the memory of its views as soon as the contract allows.
type cursor struct {
	rand   *rand.Rand
	left   []held
	cur    held
	h      Header
	views  [][]byte
	rows   int64
	open   bool
	err    error // after the last record; nil: io.EOF
	closed bool
}

func (c *cursor) view(b []byte) []byte {
	v := bytes.Clone(b)
	c.views = append(c.views, v)
	return v
}

func (c *cursor) spoil() {
	for _, v := range c.views {
		for i := range v {
			v[i] = 0xEE
		}
	}
	c.views = nil
}

func (c *cursor) Next() (*Header, error) {
	if c.open {
		panic("Next before End")
	}
	c.spoil()
	if len(c.left) == 0 {
		if c.err != nil {
			return nil, c.err
		}
		return nil, io.EOF
	}
	c.cur, c.left, c.open = c.left[0], c.left[1:], true
	c.h, c.rows = c.cur.Header, int64(len(c.cur.elems))
	c.h.Key = bytes.Clone(c.cur.Key)
	return &c.h, nil
}

func (c *cursor) Heavy() bool { return c.rand.IntN(5) == 0 }

func (c *cursor) Read(dst []Element) (int, error) {
	c.spoil()
	if len(c.cur.elems) == 0 {
		return 0, io.EOF
	}
	n := min(len(dst), len(c.cur.elems), 1+c.rand.IntN(1+c.rand.IntN(60)))
	for i, e := range c.cur.elems[:n] {
		dst[i] = Element{Name: c.view(e.Name), Value: c.view(e.Value), Score: e.Score, ExpireMS: e.ExpireMS}
	}
	if c.cur.elems = c.cur.elems[n:]; len(c.cur.elems) == 0 && c.rand.IntN(2) == 0 {
		return n, io.EOF
	}
	return n, nil
}

var places = &Places{Meta: "m", Elems: "e", Index: "i"}

func (c *cursor) End(r *Record) error {
	c.open = false
	r.Rows = Rows{Of: places, Meta: 1, Elems: c.rows, Index: 2 * c.rows}
	return nil
}

func (c *cursor) Close() error { c.closed = true; return c.err }

// random returns sorted records. n is their number at most.
func random(r *rand.Rand, db string, n int) (out []held) {
	for range r.IntN(n + 1) {
		x := held{Header: Header{DB: db, Type: []Type{String, Hash, List, Stream}[r.IntN(4)],
			Key: []byte(fmt.Sprintf("%c%d", 'a'+r.IntN(26), r.IntN(30)))}}
		many := []int{0, 1, 3, 20, 300}[r.IntN(5)]
		if x.Type == String {
			many = 1
		}
		for i := range many {
			x.elems = append(x.elems, Element{Name: []byte(fmt.Sprint(i)),
				Value: bytes.Repeat([]byte{byte(i)}, r.IntN(1+r.IntN(3000)))})
		}
		out = append(out, x)
	}
	slices.SortStableFunc(out, func(a, b held) int { return Compare(&a.Header, &b.Header) })
	return slices.CompactFunc(out, func(a, b held) bool { return Compare(&a.Header, &b.Header) == 0 })
}

// reader returns a reader of records, some of which come whole.
func reader(r *rand.Rand, list []held) Reader {
	c := &cursor{rand: r, left: list}
	if r.IntN(2) == 0 {
		return Gather(c, nil)
	}
	return Gather(c, func(b *Batch) error {
		for len(c.left) > 0 && len(b.Records) < 4 && c.left[0].Type == String {
			x := Record{Header: c.left[0].Header, First: len(b.Elems), N: 1, Class: Copied,
				Rows: Rows{Of: places, Meta: 1, Elems: 1, Index: 2}}
			b.Records, b.Elems = append(b.Records, x), append(b.Elems, c.left[0].elems[0])
			c.left = c.left[1:]
		}
		return nil
	})
}

func same(t *testing.T, h *Header, elems []Element, want *held) {
	t.Helper()
	if h.DB != want.DB || Compare(h, &want.Header) != 0 || len(elems) != len(want.elems) {
		t.Fatalf("%s %s %q of %d elements, want %s %s %q of %d", h.DB, h.Type, h.Key, len(elems), want.DB, want.Type, want.Key,
			len(want.elems))
	}
	for i := range elems {
		e, w := &elems[i], &want.elems[i]
		if !bytes.Equal(e.Name, w.Name) || !bytes.Equal(e.Value, w.Value) || e.Score != w.Score {
			t.Fatalf("%q: element %d is %q, want %q", h.Key, i, e.Name, w.Name)
		}
	}
}

// TestReaders reads random records through Gather, nested Merges and Concat, and leaves out some of them.
func TestReaders(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 300 {
		var readers []Reader
		var want []held
		for i := range 1 + r.IntN(4) {
			list := random(r, fmt.Sprint(i), 12)
			want = append(want, list...)
			cut := len(list) / 2
			readers = append(readers, Concat(func() (Reader, error) {
				return reader(r, list[:cut]), nil
			}, func() (Reader, error) { return reader(r, list[cut:]), nil }))
		}
		slices.SortStableFunc(want, func(a, b held) int { return Compare(&a.Header, &b.Header) })
		var ledger Ledger
		w := Walk(Booked(Merge(readers[0], Merge(readers[1:]...)), &ledger))
		elems, rows := int64(0), map[Class]int64{}
		for i := range want {
			h, err := w.Next()
			if err != nil {
				t.Fatal(err)
			}
			n, class := int64(len(want[i].elems)), Copied
			elems += n
			if r.IntN(4) == 0 {
				if class = []Class{Filtered, Copied}[r.IntN(2)]; class == Filtered {
					w.Settle(class)
				}
				same(t, h, nil, &held{Header: want[i].Header})
				rows[class] += n
				continue
			}
			rows[class] += n
			same(t, h, readAll(t, w, r), &want[i])
		}
		if _, err := w.Next(); err != io.EOF || w.Close() != nil {
			t.Fatalf("after the last: %v", err)
		}
		got := ledger.Snapshot()
		m, e, x := got["m"], got["e"], got["i"]
		if m.Total() != int64(len(want)) || e.Rows[Copied] != rows[Copied] || e.Rows[Filtered] != rows[Filtered] ||
			x.Rows[Index] != 2*rows[Copied] || x.Rows[Filtered] != 2*rows[Filtered] || e.Total() != elems {
			t.Fatalf("%d records, %d elements, %v: the ledger has %+v", len(want), elems, rows, got)
		}
	}
}

func readAll(t *testing.T, w *Walker, r *rand.Rand) (out []Element) {
	dst := make([]Element, 1+r.IntN(100))
	for {
		if n, err := w.Read(nil); n != 0 || err != nil { // neither ends a record nor skips elements
			t.Fatalf("reading no elements: %d, %v", n, err)
		}
		n, err := w.Read(dst)
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range dst[:n] {
			e.Name, e.Value = bytes.Clone(e.Name), bytes.Clone(e.Value)
			out = append(out, e)
		}
	}
}

// TestGatherPacks checks that small records come many at once, and that an error comes after the records before it.
func TestGatherPacks(t *testing.T) {
	boom := errors.New("boom")
	var list []held
	for i := range 40 {
		list = append(list, held{Header{Type: Set, Key: []byte{byte(i)}}, []Element{{Name: []byte("m")}, {Name: []byte("n")}}})
	}
	c := &cursor{rand: rand.New(rand.NewPCG(1, 1)), left: list, err: boom}
	r, batches, n := Gather(c, nil), 0, 0
	for {
		b, err := r.Next()
		if err != nil {
			if err != boom || n != 40 || r.Close() != boom || !c.closed {
				t.Errorf("%v after %d records", err, n)
			}
			break
		}
		batches++
		for i := range b.Records {
			if b.Ends(i) {
				n++
			}
		}
	}
	if batches > 30 { // of which some begin with a record whose header came alone
		t.Errorf("%d batches", batches)
	}
	if _, err := r.Next(); err != boom {
		t.Errorf("after the error: %v", err)
	}
}

// waiting is a Holder that notes its calls.
type waiting struct{ calls string }

func (w *waiting) Release() error { w.calls += "-"; return nil }
func (w *waiting) Reload() error  { w.calls += "+"; return nil }

// once yields one batch.
type once struct{ b *Batch }

func (o *once) Next() (*Batch, error) {
	if o.b == nil {
		return nil, io.EOF
	}
	b := o.b
	o.b = nil
	return b, nil
}
func (o *once) Close() error { return nil }

// TestMergeReleases checks that batches that wait are freed, and loaded before they are returned.
func TestMergeReleases(t *testing.T) {
	var held [2]waiting
	var readers []Reader
	for i, keys := range []string{"ac", "bd"} {
		b := &Batch{Held: &held[i]}
		for _, k := range keys {
			b.Records = append(b.Records, Record{Header: Header{Key: []byte(string(k))}, Class: Copied})
		}
		readers = append(readers, &once{b})
	}
	m, keys := Merge(readers...), ""
	for b, err := m.Next(); err == nil; b, err = m.Next() {
		for _, r := range b.Records {
			keys += string(r.Key)
		}
	}
	if keys != "abcd" || held[0].calls != "+-+" || held[1].calls != "-+-+" {
		t.Errorf("%s, %q", keys, held)
	}
}

// TestMergeMany checks that equal records come in the order of the readers, and errors are passed on.
func TestMergeMany(t *testing.T) {
	one := func(db string) Reader {
		return &once{&Batch{Records: []Record{{Header: Header{DB: db, Key: []byte("k")}, Class: Copied}}}}
	}
	m := Walk(MergeBy(func(_, _ *Header) int { return 0 }, one("0"), one("1"), one("2")))
	for _, want := range []string{"0", "1", "2"} {
		if h, err := m.Next(); err != nil || h.DB != want {
			t.Fatalf("%+v, %v; want %s", h, err, want)
		}
	}
	boom := errors.New("boom")
	if _, err := Merge(one("0"), Gather(&cursor{err: boom}, nil)).Next(); err != boom {
		t.Errorf("Next: %v", err)
	}
	if err := Merge(one("0"), Gather(&cursor{err: boom}, nil)).Close(); !errors.Is(err, boom) {
		t.Errorf("Close: %v", err)
	}
	if r := one("0"); Merge(r) != r {
		t.Error("a single reader is wrapped")
	}
	if _, err := Merge().Next(); err != io.EOF {
		t.Errorf("no reader: %v", err)
	}
}

// TestConcat checks that readers are opened one after the other and closed at their end.
func TestConcat(t *testing.T) {
	boom, r := errors.New("boom"), rand.New(rand.NewPCG(1, 2))
	a, b := &cursor{rand: r, left: []held{{Header: Header{Key: []byte("z")}}}}, &cursor{rand: r, err: boom}
	opened := 0
	open := func(c *cursor) func() (Reader, error) {
		return func() (Reader, error) { opened++; return Gather(c, nil), nil }
	}
	c := Walk(Concat(open(a), open(b), open(a)))
	if h, err := c.Next(); err != nil || string(h.Key) != "z" || opened != 1 || a.closed {
		t.Errorf("%+v, %v, %d opened", h, err, opened)
	}
	if _, err := c.Next(); err != boom || !a.closed || opened != 2 || c.Close() != boom || c.Close() != nil {
		t.Errorf("%v, %d opened", err, opened)
	}
	if _, err := Concat(func() (Reader, error) { return nil, boom }).Next(); err != boom {
		t.Errorf("open: %v", err)
	}
}

// TestBooks checks the classes of the rows of records that lost elements.
func TestBooks(t *testing.T) {
	rows := Rows{Of: places, Meta: 1, Elems: 10, Index: 10}
	for _, c := range []struct {
		r    Record
		want string // meta, elements, index
	}{
		{Record{Class: Copied}, "copied 1, copied 10, index 10"},
		{Record{Class: Lost, Lost: 3}, "lost 1, lost 10, lost 10"},
		{Record{Class: Copied, Lost: 3, Gone: 2}, "copied 1, expired 2 lost 3 copied 5, lost 3 index 7"},
		{Record{Class: Skipped, Lost: 3, Gone: 9}, "skipped 1, expired 9 lost 1, lost 3 skipped 7"},
		{Record{Class: Expired, Gone: 10}, "expired 1, expired 10, expired 10"},
	} {
		var b Books
		var l Ledger
		c.r.Rows = rows
		b.Add(&c.r)
		b.Add(&Record{Class: Copied}) // without rows
		b.Close(&l)
		got := ""
		for _, name := range []string{"m", "e", "i"} {
			for class, n := range l.Snapshot()[name].Rows {
				if n != 0 {
					got += fmt.Sprintf(" %s %d", Class(class), n)
				}
			}
			got += ","
		}
		if got = got[1 : len(got)-1]; got != slices.Concat([]string{c.want})[0] {
			t.Errorf("%+v: %s, want %s", c.r, got, c.want)
		}
		b.Close(nil)
	}
}

// lines is a Sink that notes its calls.
type lines struct {
	text string
	fail string
}

func (l *lines) note(s string) error {
	l.text += s
	if s == l.fail {
		return errors.New(s)
	}
	return nil
}
func (l *lines) Begin(h *Header) error      { return l.note("(" + string(h.Key)) }
func (l *lines) Elements(e []Element) error { return l.note(fmt.Sprint(len(e))) }
func (l *lines) End() error                 { return l.note(")") }

// TestFeeder checks what a Sink gets of records that are out, that go on, and that are out at their end.
func TestFeeder(t *testing.T) {
	elems := make([]Element, 3)
	rec := func(key string, n int, c Class) Record {
		return Record{Header: Header{Key: []byte(key), Type: String}, N: n, Class: c}
	}
	first := &Batch{Records: []Record{rec("a", 1, Copied), rec("b", 1, Lost), rec("c", 3, Copied), rec("d", 0, Copied)},
		Elems: elems, More: true}
	hidden := rec("e", 1, Copied)
	hidden.Hidden = true
	for _, c := range []struct {
		rest *Batch
		want string
	}{
		{&Batch{Records: []Record{rec("d", 2, Copied)}, Elems: elems, Cont: true}, "(a1)(c3)(d2)"},
		{&Batch{Records: []Record{rec("d", 0, Expired)}, Cont: true}, "(a1)(c3)(d)"},
		{&Batch{Records: []Record{hidden}, Elems: elems}, "(a1)(c3)(d"},
	} {
		var f Feeder
		var l lines
		if err := errors.Join(f.Feed(first, &l, nil), f.Feed(c.rest, &l, nil)); err != nil || l.text != c.want {
			t.Errorf("%s, %v; want %s", l.text, err, c.want)
		}
	}
	var f Feeder
	n := 0
	l := lines{}
	if err := f.Feed(first, &l, func(_ *Batch, from, some int) error { n += some; return nil }); err != nil || n != 1 ||
		l.text != "(c3)(d" {
		t.Errorf("%s and %d strings, %v", l.text, n, err)
	}
	for _, fail := range []string{"(a", "1", ")"} {
		if err := new(Feeder).Feed(first, &lines{fail: fail}, nil); err == nil || err.Error() != fail {
			t.Errorf("%s: %v", fail, err)
		}
	}
}
