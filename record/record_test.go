package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestTypeNames(t *testing.T) {
	for _, typ := range AllTypes.Types() {
		got, err := ParseType(typ.String())
		if err != nil || got != typ {
			t.Errorf("ParseType(%q) = %v, %v", typ, got, err)
		}
	}
	if _, err := ParseType("zsets"); err == nil || !strings.Contains(err.Error(), `"zsets"`) {
		t.Errorf("ParseType of an unknown name: %v", err)
	}
	if s := Type(NumTypes).String(); s != "type(8)" {
		t.Errorf("the type after the last prints %s", s)
	}
	if s := Type(99).String(); s != "type(99)" {
		t.Errorf("Type(99) prints %s", s)
	}
	if s := Of(ZSet, String).String(); s != "string,zset" {
		t.Errorf("set prints %s", s)
	}
	if n := len(AllTypes.Types()); n != 7 {
		t.Errorf("%d types", n)
	}
}

func TestClassAndSeverityNames(t *testing.T) {
	seen := map[string]bool{}
	for c := Malformed; int(c) < NumClasses; c++ {
		if name := c.String(); name == "" || seen[name] {
			t.Errorf("class %d is named %q", c, name)
		}
		seen[c.String()] = true
	}
	for s := Note; s <= Error; s++ {
		if got, err := ParseSeverity(s.String()); err != nil || got != s {
			t.Errorf("ParseSeverity(%q) = %v, %v", s, got, err)
		}
	}
	if _, err := ParseSeverity("x"); err == nil {
		t.Error("a severity named x")
	}
	if Class(NumClasses).String() != "class(11)" || Class(77).String() != "class(77)" || Severity(9).String() != "severity(9)" || (Error+1).String() != "severity(3)" {
		t.Error("unknown values print", Class(77), Severity(9))
	}
}

func TestCorruptErrorSaysWhatIsKnown(t *testing.T) {
	short := Short(7, "version", 4, 2)
	short.Format, short.Keyspace, short.Key = "blackwidow", "hashes/data_cf", []byte("\x03\x00")
	want := `blackwidow hashes/data_cf key "\x03\x00": offset 7: version: need 4 bytes, have 2: too short`
	if short.Error() != want {
		t.Errorf("got  %s\nwant %s", short, want)
	}
	if !errors.Is(short, ErrShort) {
		t.Error("does not unwrap to ErrShort")
	}
	file := &CorruptError{File: "000012.sst", Off: 99, Err: errors.New("checksum")}
	if file.Error() != "000012.sst: offset 99: checksum" {
		t.Errorf("got %s", file)
	}
	bare := &CorruptError{Off: 1, Err: io.ErrUnexpectedEOF}
	if bare.Error() != "offset 1: unexpected EOF" {
		t.Errorf("got %s", bare)
	}
	whole := &CorruptError{File: "000012.sst", Off: NoOffset, Field: "file size", Err: errors.New("3 bytes")}
	whole.Shift(7)
	if whole.Error() != "000012.sst: file size: 3 bytes" {
		t.Errorf("without an offset: %s", whole)
	}
	first := &CorruptError{File: "000012.sst", Err: errors.New("checksum")}
	if first.Error() != "000012.sst: offset 0: checksum" {
		t.Errorf("at the beginning: %s", first)
	}
	if first.Shift(7); first.Off != 7 {
		t.Errorf("shifted to %d", first.Off)
	}
	if a, b := whole.Place("a"), first.Place("b"); a != (Place{File: "a", Off: NoOffset, Level: -1}) || b != (Place{File: "b", Off: 7, Level: -1}) {
		t.Errorf("places %+v and %+v", a, b)
	}
	for place, want := range map[Place]string{
		{File: "a", Level: -1}:                `{"file":"a","offset":0,"level":-1}`,
		{File: "a", Off: NoOffset, Level: 2}:  `{"file":"a","level":2}`,
		{File: "a", Off: 7, Level: 1, Seq: 5}: `{"file":"a","offset":7,"level":1,"seq":5}`,
		{Level: -1}:                           `{"level":-1}`,
	} {
		b, err := json.Marshal(place)
		if err != nil || string(b) != want {
			t.Errorf("%+v is %s, %v", place, b, err)
		}
		var back Place
		if err := json.Unmarshal(b, &back); err != nil || back != place {
			t.Errorf("%s is %+v, %v", b, back, err)
		}
	}
	if q := Quote(make([]byte, 65)); !strings.HasSuffix(q, `"…`) || strings.Count(q, `\x00`) != 64 {
		t.Errorf("a long key prints as %s", q)
	}
}

func TestLedgerAddsUp(t *testing.T) {
	var l, m Ledger
	tally := Tally{Entries: 10, Visible: 4, Superseded: 2, Tombstones: 1, RangeDeleted: 2, Folded: 1}
	tally.Rows[Copied], tally.Rows[Stale] = 3, 1
	l.Add("hashes/data_cf", &tally)
	m.Merge(&l)
	m.Merge(&l)
	if got := m.Snapshot()["hashes/data_cf"]; got.Entries != 20 || got.Rows[Copied] != 6 || got.Folded != 2 {
		t.Errorf("merged twice: %+v", got)
	}
	if err := m.Check(); err != nil {
		t.Errorf("sound ledger: %v", err)
	}
	tally.Rows[Copied]++
	l.Add("bad", &tally)
	if err := l.Check(); err == nil || !strings.Contains(err.Error(), "ledger of bad: 5 rows classified, 4 rows read") {
		t.Errorf("a row too many: %v", err)
	}
	tally.Rows[Copied]--
	tally.Entries++
	if err := tally.Check(); err == nil || !strings.Contains(err.Error(), "10 entries explained, 11 entries read") {
		t.Errorf("an entry too many: %v", err)
	}
	(*Ledger)(nil).Add("x", &tally)
}

// list is a Reader of headers only.
type list struct {
	headers []Header
	settled []Class
	err     error
	closed  bool
	read    bool
}

func (l *list) Next() (*Header, error) {
	if len(l.headers) == 0 {
		if l.err != nil {
			return nil, l.err
		}
		return nil, io.EOF
	}
	h := l.headers[0]
	l.headers, l.read = l.headers[1:], false
	return &h, nil
}

func (l *list) Read(dst []Element) (int, error) {
	if l.read {
		return 0, io.EOF
	}
	l.read = true
	dst[0] = Element{}
	return 1, nil
}
func (l *list) Settle(c Class) { l.settled = append(l.settled, c) }
func (l *list) Close() error   { l.closed = true; return l.err }

func TestMergeOrdersByKeyThenType(t *testing.T) {
	a := &list{headers: []Header{{Key: []byte("a"), Type: Hash}, {Key: []byte("b"), Type: Hash}, {Key: []byte("d"), Type: Hash}}}
	b := &list{headers: []Header{{Key: []byte("b"), Type: String}, {Key: []byte("c"), Type: String}}}
	m := Merge(a, b)
	var got []string
	for {
		h, err := m.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s:%s", h.Key, h.Type))
		if h.Type == String {
			m.Settle(Filtered)
		}
		if n, err := m.Read(make([]Element, 4)); n != 1 || err != nil {
			t.Fatalf("Read = %d, %v", n, err)
		}
		if n, err := m.Read(make([]Element, 4)); n != 0 || err != io.EOF {
			t.Fatalf("second Read = %d, %v", n, err)
		}
	}
	want := []string{"a:hash", "b:string", "b:hash", "c:string", "d:hash"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if len(b.settled) != 2 || len(a.settled) != 0 {
		t.Errorf("settled %v and %v", a.settled, b.settled)
	}
	if err := m.Close(); err != nil || !a.closed || !b.closed {
		t.Errorf("Close: %v, closed %v %v", err, a.closed, b.closed)
	}
	if n, err := m.Read(make([]Element, 1)); n != 0 || err != io.EOF {
		t.Errorf("Read after the end = %d, %v", n, err)
	}
}

// runner is a list that implements StringRunner for some of its strings.
type runner struct {
	list
	current *Header
	unread  bool
	some    func(n int) int
}

func (l *runner) Next() (*Header, error) {
	h, err := l.list.Next()
	l.current, l.unread = h, err == nil
	return h, err
}

func (l *runner) Strings(bound []byte) (batch []StringRecord, err error) {
	if !l.unread || l.current.Type != String {
		return nil, errors.New("no string is current")
	}
	l.unread = false
	for h := l.current; ; h = &l.headers[0] {
		batch = append(batch, StringRecord{DB: h.DB, Key: h.Key})
		if len(batch) > 1 {
			l.headers = l.headers[1:]
		}
		if len(l.headers) == 0 || l.headers[0].Type != String {
			break
		}
	}
	n := 1 + UpTo(batch[1:], bound)
	n = l.some(n)
	for _, s := range slices.Backward(batch[n:]) {
		l.headers = slices.Insert(l.headers, 0, Header{DB: s.DB, Type: String, Key: s.Key})
	}
	return batch[:n], nil
}

// TestMergeStrings checks that strings come in batches or one by one, from readers with and without batches, in the
// same order.
func TestMergeStrings(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	several := 0
	for range 500 {
		var readers []Reader
		var want []Header
		for i := range 2 + r.IntN(4) {
			var headers []Header
			for range r.IntN(12) {
				headers = append(headers, Header{DB: fmt.Sprint(i), Key: []byte{byte('a' + r.IntN(20))}, Type: []Type{String, String, Hash}[r.IntN(3)]})
			}
			slices.SortStableFunc(headers, func(a, b Header) int { return Compare(&a, &b) })
			headers = slices.CompactFunc(headers, func(a, b Header) bool { return Compare(&a, &b) == 0 })
			want = append(want, headers...)
			if i%2 == 0 {
				readers = append(readers, &runner{list: list{headers: headers}, some: func(n int) int { return 1 + r.IntN(n) }})
			} else {
				readers = append(readers, &list{headers: headers})
			}
		}
		slices.SortStableFunc(want, func(a, b Header) int { return Compare(&a, &b) })
		inner := Merge(readers[1:]...) // a merged reader can be merged again
		m := Merge(readers[0], inner).(StringReader)
		var got []Header
		for len(got) < len(want) {
			if r.IntN(3) > 0 {
				batch, err := m.NextStrings()
				if err != nil {
					t.Fatal(err)
				}
				for _, s := range batch {
					got = append(got, Header{DB: s.DB, Key: s.Key, Type: String})
				}
				if several += max(0, len(batch)-1); len(batch) > 0 {
					continue
				}
			}
			h, err := m.Next()
			if err != nil {
				t.Fatal(err)
			}
			if n, err := m.Read(make([]Element, 1)); n != 1 || err != nil {
				t.Fatalf("%s: %d, %v", h.Key, n, err)
			}
			got = append(got, *h)
		}
		for i := range want {
			if got[i].DB != want[i].DB || Compare(&got[i], &want[i]) != 0 {
				t.Fatalf("record %d: %+v, want %+v", i, got[i], want[i])
			}
		}
		if batch, err := m.NextStrings(); len(batch) > 0 || err != io.EOF {
			t.Fatalf("after the last: %v, %v", batch, err)
		}
	}
	if several == 0 {
		t.Error("strings came one by one")
	}
}

// TestUpTo checks the number of keys below a bound. A key equal to the bound is excluded.
func TestUpTo(t *testing.T) {
	batch := []StringRecord{{Key: []byte("b")}, {Key: []byte("d")}, {Key: []byte("f")}}
	for bound, want := range map[string]int{"": 0, "b": 0, "c": 1, "d": 1, "e": 2, "f": 2, "f\x00": 3} {
		if got := UpTo(batch, []byte(bound)); got != want {
			t.Errorf("up to %q: %d, want %d", bound, got, want)
		}
	}
	if UpTo(batch, nil) != 3 || UpTo(nil, []byte("x")) != 0 {
		t.Error("without a bound, or without strings")
	}
}

// TestMergeMany checks that random readers are merged in order, and equal records in the order of the readers.
func TestMergeMany(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		var readers []Reader
		var want []Header
		for i := range 1 + r.IntN(6) {
			l := &list{}
			for range r.IntN(8) {
				l.headers = append(l.headers, Header{DB: fmt.Sprint(i), Key: []byte{byte('a' + r.IntN(6))}, Type: []Type{String, Hash}[r.IntN(2)]})
			}
			slices.SortStableFunc(l.headers, func(a, b Header) int { return Compare(&a, &b) })
			readers, want = append(readers, l), append(want, l.headers...)
		}
		slices.SortStableFunc(want, func(a, b Header) int { return Compare(&a, &b) })
		m := MergeBy(Compare, readers...)
		for i := range want {
			if h, err := m.Next(); err != nil || h.DB != want[i].DB || Compare(h, &want[i]) != 0 {
				t.Fatalf("record %d: %+v, %v; want %+v", i, h, err, want[i])
			}
		}
		if _, err := m.Next(); err != io.EOF {
			t.Fatalf("after the last: %v", err)
		}
	}
}

// TestConcat checks that readers are opened one after the other and closed at their end.
func TestConcat(t *testing.T) {
	a, b := &list{headers: []Header{{Key: []byte("z")}}}, &list{headers: []Header{{Key: []byte("a")}}}
	opened := 0
	open := func(l *list) func() (Reader, error) {
		return func() (Reader, error) { opened++; return l, nil }
	}
	c := Concat(open(a), open(&list{}), open(b))
	c.Settle(Lost)
	if n, err := c.Read(make([]Element, 1)); n != 0 || err != io.EOF || opened != 0 {
		t.Fatalf("before the first: %d, %v, %d opened", n, err, opened)
	}
	for i, want := range []string{"z", "a"} {
		h, err := c.Next()
		if err != nil || string(h.Key) != want || opened != 1+2*i || a.closed != (i > 0) {
			t.Fatalf("record %d: %+v, %v, %d opened", i, h, err, opened)
		}
		if n, err := c.Read(make([]Element, 1)); n != 1 || err != nil {
			t.Fatalf("Read = %d, %v", n, err)
		}
		c.Settle(Lost)
	}
	if _, err := c.Next(); err != io.EOF || !b.closed || len(b.settled) != 1 || c.Close() != nil {
		t.Errorf("the end: %v, closed %v, settled %v", err, b.closed, b.settled)
	}
	boom := errors.New("boom")
	fails := func() (Reader, error) { return nil, boom }
	if _, err := Concat(fails).Next(); err != boom {
		t.Errorf("open: %v", err)
	}
	broken := Concat(open(&list{err: boom}))
	if _, err := broken.Next(); err != boom || broken.Close() != boom {
		t.Errorf("Next: %v", err)
	}
}

// stringList is a list that returns several strings at once, up to the next header of another type.
type stringList struct{ list }

func (l *stringList) NextStrings() (batch []StringRecord, err error) {
	for len(l.headers) > 0 && l.headers[0].Type == String {
		h, _ := l.Next()
		batch = append(batch, StringRecord{Key: h.Key, ExpireMS: h.ExpireMS, Expired: h.Expired})
	}
	if len(batch) == 0 && len(l.headers) == 0 {
		return nil, io.EOF
	}
	return batch, nil
}

// TestConcatStrings checks that strings are returned in batches if a reader can, and other records one by one.
func TestConcatStrings(t *testing.T) {
	a := &stringList{list{headers: []Header{{Type: String, Key: []byte("a")}, {Type: String, Key: []byte("b")}, {Type: Set, Key: []byte("c")}}}}
	b := &list{headers: []Header{{Type: String, Key: []byte("d")}}}
	opens := []func() (Reader, error){}
	for _, r := range []Reader{a, b, &stringList{list{headers: []Header{{Type: String, Key: []byte("e")}}}}} {
		opens = append(opens, func() (Reader, error) { return r, nil })
	}
	r := Concat(opens...).(StringReader)
	got := ""
	batch, err := r.NextStrings()
	for ; err == nil; batch, err = r.NextStrings() {
		for _, s := range batch {
			got += string(s.Key)
		}
		if len(batch) == 0 {
			h, err := r.Next()
			if err != nil {
				t.Fatal(err)
			}
			got += " one " + string(h.Key)
		}
		got += ";"
	}
	if err != io.EOF || got != "ab; one c; one d; one e;" || !a.closed || !b.closed {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := Concat(func() (Reader, error) { return nil, io.ErrNoProgress }).(StringReader).NextStrings(); err != io.ErrNoProgress {
		t.Errorf("open: %v", err)
	}
}

func TestMergePassesErrorsOn(t *testing.T) {
	boom := errors.New("boom")
	m := Merge(&list{}, &list{err: boom})
	if _, err := m.Next(); !errors.Is(err, boom) {
		t.Errorf("Next: %v", err)
	}
	if err := m.Close(); !errors.Is(err, boom) {
		t.Errorf("Close: %v", err)
	}
	one := &list{}
	if Merge(one) != Reader(one) {
		t.Error("a single reader is wrapped")
	}
}

// TestStringBytes checks that the size of a batch counts keys and values.
func TestStringBytes(t *testing.T) {
	batch := []StringRecord{{Key: []byte("key"), Value: []byte("value")}, {Key: []byte("k")}, {Value: []byte("v")}}
	if n := StringBytes(batch); n != 10 {
		t.Errorf("%d bytes, want 10", n)
	}
}
