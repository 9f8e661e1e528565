package filter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"kvferry/format"
	"kvferry/record"
)

var now = time.Unix(1700000000, 0).UTC()

// listed is a record of n elements of the given size.
type listed struct {
	key    string
	typ    record.Type
	expire int64 // relative to now, in ms
	n      int
	size   int
}

// reader yields records. It overwrites the memory of its views as soon as the contract allows, and returns a few
// elements at a time.
type reader struct {
	left    []listed
	cur     listed
	at      int
	step    int
	h       record.Header
	scratch []byte
	settled map[string]record.Class
	next    func()
	closed  int
}

func (r *reader) Next() (*record.Header, error) {
	r.spoil()
	if r.next != nil {
		r.next()
	}
	if len(r.left) == 0 {
		return nil, io.EOF
	}
	r.cur, r.left, r.at = r.left[0], r.left[1:], 0
	r.h = record.Header{DB: "0", Type: r.cur.typ, Key: []byte(r.cur.key), Len: -1}
	if r.cur.expire != 0 {
		r.h.ExpireMS = now.UnixMilli() + r.cur.expire
		r.h.Expired = r.cur.expire < 0
	}
	return &r.h, nil
}

func (r *reader) spoil() {
	for i := range r.scratch {
		r.scratch[i] = 0xEE
	}
	r.scratch = nil
}

// value returns the value of element i.
func (l listed) value(i int) []byte {
	return bytes.Repeat([]byte(fmt.Sprintf("%07d,", i)), 1+l.size/8)[:l.size]
}

func (r *reader) Read(dst []record.Element) (int, error) {
	r.spoil()
	n := min(len(dst), r.step, r.cur.n-r.at)
	if n == 0 {
		return 0, io.EOF
	}
	for i := range n {
		r.scratch = append(r.scratch, r.cur.value(r.at+i)...)
	}
	for i := range n {
		dst[i] = record.Element{Value: r.scratch[i*r.cur.size : (i+1)*r.cur.size], Score: float64(r.at + i)}
	}
	r.at += n
	return n, nil
}

func (r *reader) Heavy() bool { return len(r.left)%7 == 3 }

func (r *reader) End(rec *record.Record) error { return nil }

func (r *reader) Close() error { r.closed++; return nil }

// settling notes the classes of records.
type settling struct {
	record.Reader
	to map[string]record.Class
}

func (s *settling) Next() (*record.Batch, error) {
	b, err := s.Reader.Next()
	if err == nil {
		for i := range b.Records {
			if r := &b.Records[i]; b.Ends(i) && r.Class != record.Copied {
				s.to[string(r.Key)] = r.Class
			}
		}
	}
	return b, err
}

// taken reads all records of a selection and checks that each is complete and in order.
func taken(t *testing.T, s *Selection, r *reader, memory int64, batch int) []string {
	t.Helper()
	r.settled = map[string]record.Class{}
	byKey := map[string]listed{}
	for _, l := range r.left {
		byKey[l.key] = l
	}
	out := record.Walk(&settling{s.Apply(context.Background(), record.Gather(r, nil),
		ApplyOptions{Now: now, Memory: memory, TempDir: t.TempDir()}), r.settled})
	dst := make([]record.Element, batch)
	var keys []string
	for {
		h, err := out.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, string(h.Key))
		cur := byKey[string(h.Key)]
		n := 0
		for {
			got, err := out.Read(dst)
			if err == io.EOF {
				break
			}
			if err != nil || got == 0 {
				t.Fatalf("%s: %d elements, %v", h.Key, got, err)
			}
			for _, e := range dst[:got] {
				if !bytes.Equal(e.Value, cur.value(n)) || e.Score != float64(n) {
					t.Fatalf("%s: element %d is %.20q, %v", h.Key, n, e.Value, e.Score)
				}
				n++
			}
		}
		if n != cur.n {
			t.Errorf("%s: %d elements, want %d", h.Key, n, cur.n)
		}
	}
	if err := out.Close(); err != nil || r.closed != 1 {
		t.Errorf("close: %v, closed %d times", err, r.closed)
	}
	return keys
}

// TestApplyWeighs checks records around each limit: of a batch, of memory, of the selection.
func TestApplyWeighs(t *testing.T) {
	var all []listed
	for _, n := range []int{0, 1, 2, 63, 64, 65, 127, 128, 129, 1000} {
		for _, size := range []int{0, 10, 1000} {
			all = append(all, listed{key: fmt.Sprintf("%d×%d", n, size), typ: record.List, n: n, size: size})
		}
	}
	for _, s := range []Selection{{MinElements: 1}, {MinElements: 64}, {MinElements: 65}, {MinElements: 129}, {MinBytes: 4},
		{MinBytes: 640}, {MinBytes: 64_000}, {MinBytes: 640_000, MinElements: 2}, {MinBytes: 1 << 40},
		{MaxBytes: 4}, {MaxBytes: 653}, {MaxBytes: 64_007}, {MaxBytes: 1 << 40}, {MinBytes: 640, MaxBytes: 20_000}, {MinElements: 65, MaxBytes: 1300}} {
		for _, step := range []int{1, 7, 1000} {
			var want []string
			for _, l := range all {
				size := int64(len(l.key) + l.n*l.size)
				if int64(l.n) >= s.MinElements && size >= s.MinBytes && (s.MaxBytes == 0 || size <= s.MaxBytes) {
					want = append(want, l.key)
				}
			}
			r := &reader{left: all, step: step}
			if got := taken(t, &s, r, 8<<10, 1+step%50); !slices.Equal(got, want) {
				t.Errorf("%+v: took %q, want %q", s, got, want)
			}
			for _, l := range all {
				class, settled := r.settled[l.key]
				if settled == slices.Contains(want, l.key) || settled && class != record.Filtered {
					t.Errorf("%+v: %s is settled as %v, %v", s, l.key, class, settled)
				}
			}
		}
	}
}

// TestBytesOfScores checks that a set's member counts as much as a list's item, and that a score counts 8 bytes more.
func TestBytesOfScores(t *testing.T) {
	for typ, want := range map[record.Type]int{record.List: 0, record.ZSet: 1} {
		r := &reader{left: []listed{{key: "k", typ: typ, n: 2, size: 10}}, step: 9}
		if got := taken(t, &Selection{MinBytes: 1 + 20 + 16}, r, 0, 9); len(got) != want {
			t.Errorf("%s: took %q", typ, got)
		}
	}
}

func TestApplySettles(t *testing.T) {
	all := []listed{{key: "dead", typ: record.Set, expire: -1, n: 1}, {key: "soon", typ: record.Set, expire: 1000, n: 1},
		{key: "late", typ: record.Set, expire: 5000, n: 1}, {key: "never", typ: record.Set, n: 1}, {key: "list", typ: record.List, n: 1}}
	sets := Filter{Types: record.Of(record.Set)}
	for _, c := range []struct {
		s    Selection
		want string // by key: c copied, f filtered, e expired
	}{
		{Selection{}, "ecccc"},
		{Selection{KeepExpired: true}, "ccccc"},
		{Selection{Filter: sets}, "ecccf"},
		{Selection{ExpireFrom: &Moment{Ahead: time.Second}}, "eccff"},
		{Selection{ExpireTo: &Moment{Ahead: 5 * time.Second}}, "ecfff"},
		{Selection{ExpireTo: &Moment{At: now.Add(5 * time.Second)}, KeepExpired: true}, "ccfff"},
		{Selection{MinElements: 2}, "effff"},
		{Selection{MaxBytes: 4}, "eccfc"},
		{Selection{NoExpiry: true}, "effcc"},
		{Selection{NoExpiry: true, KeepExpired: true, MaxBytes: 4}, "ffffc"},
		{Selection{Filter: sets, MinElements: 1, KeepExpired: true}, "ccccf"},
	} {
		r := &reader{left: all, step: 5}
		keys := taken(t, &c.s, r, 0, 5)
		got := ""
		for _, l := range all {
			class, settled := r.settled[l.key]
			if !settled && slices.Contains(keys, l.key) {
				class = record.Copied
			}
			got += class.String()[:1]
		}
		if got != c.want {
			t.Errorf("%+v: %s, want %s", c.s, got, c.want)
		}
	}
}

// batches is a reader of these batches.
type batches []*record.Batch

func (r *batches) Next() (*record.Batch, error) {
	if len(*r) == 0 {
		return nil, io.EOF
	}
	b := (*r)[0]
	*r = (*r)[1:]
	return b, nil
}

func (r *batches) Close() error { return nil }

// TestApplyStrings checks that whole strings are filtered side by side.
func TestApplyStrings(t *testing.T) {
	for _, c := range []struct {
		s       Selection
		skipped string
		classes string // by key
	}{
		{s: Selection{}, skipped: "a expired d expired ", classes: "eccec"},
		{s: Selection{KeepExpired: true}, classes: "ccccc"},
		{s: Selection{Filter: Filter{Match: []string{"[acde]"}}}, skipped: "a expired b filtered d expired ", classes: "efcec"},
		{s: Selection{Filter: Filter{DBs: []string{"1"}}}, skipped: "a expired b filtered c filtered d expired e filtered ", classes: "effef"},
		{s: Selection{ExpireFrom: &Moment{Ahead: time.Second}, KeepExpired: true}, skipped: "a filtered b filtered d filtered e filtered ", classes: "ffcff"},
		{s: Selection{MinBytes: 2}, skipped: "a expired d expired b filtered e filtered ", classes: "efcef"},
		{s: Selection{Filter: Filter{Types: record.Of(record.Set)}, KeepExpired: true}, skipped: "a filtered b filtered c filtered d filtered e filtered ", classes: "fffff"},
	} {
		at := now.UnixMilli()
		all := new(record.Batch)
		for i, expire := range []int64{1, 0, at + 2000, 2, 0} {
			h := record.Header{DB: "0", Type: record.String, Key: []byte{byte('a' + i)}, ExpireMS: expire,
				Expired: expire != 0 && expire < at}
			all.Records = append(all.Records, record.Record{Header: h, First: i, N: 1, Class: record.Copied})
			all.Elems = append(all.Elems, record.Element{})
		}
		all.Elems[2].Value = []byte("v")
		skipped := ""
		o := ApplyOptions{Now: now, TempDir: t.TempDir(), Skipped: func(h *record.Header, c record.Class) {
			skipped += fmt.Sprintf("%s %s ", h.Key, c)
		}}
		r := c.s.Apply(context.Background(), &batches{all}, o)
		b, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		classes := ""
		for i := range b.Records {
			classes += b.Records[i].Class.String()[:1]
		}
		if skipped != c.skipped || classes != c.classes {
			t.Errorf("%+v: skipped %s, classes %s", c.s, skipped, classes)
		}
		if _, err := r.Next(); err != io.EOF || r.Close() != nil {
			t.Error(err)
		}
	}
}

// TestApplyDropsFields checks that expired fields are taken out, and that a hash without others has expired.
func TestApplyDropsFields(t *testing.T) {
	past, ahead := now.UnixMilli()-1, now.UnixMilli()+1000
	field := func(ms int64) record.Element { return record.Element{ExpireMS: ms} }
	hash := func(from, n int) record.Record {
		return record.Record{Header: record.Header{Type: record.Hash, Key: []byte("h")}, First: from, N: n, Class: record.Copied}
	}
	dropped := 0
	o := ApplyOptions{Now: now, Fields: func(_ *record.Header, n int) { dropped += n }}
	whole := &record.Batch{Records: []record.Record{hash(0, 3), hash(3, 2), hash(5, 1)}, More: true,
		Elems: []record.Element{field(past), field(ahead), field(0), field(past), field(past), field(past)}}
	r := new(Selection).Apply(context.Background(), &batches{whole}, o)
	b, err := r.Next()
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"2 copied 1", "0 expired 2", "0 copied 1"} {
		if x := &b.Records[i]; fmt.Sprintf("%d %s %d", x.N, x.Class, x.Gone) != want {
			t.Errorf("hash %d: %d fields, %s, %d gone; want %s", i, x.N, x.Class, x.Gone, want)
		}
	}
	if dropped != 3 || b.Elems[0].ExpireMS != ahead {
		t.Errorf("%d fields dropped", dropped)
	}
}

// TestWanted checks that what is wanted is what is not left out.
func TestWanted(t *testing.T) {
	if new(Selection).Wanted(now) == nil || (&Selection{KeepExpired: true}).Wanted(now) != nil {
		t.Error("what all is wanted by")
	}
	wanted := (&Selection{Filter: Filter{Match: []string{"a*"}}}).Wanted(now)
	for h, want := range map[*record.Header]bool{{Key: []byte("a1")}: true, {Key: []byte("b")}: false,
		{Key: []byte("a2"), Expired: true}: false} {
		if wanted(h) != want {
			t.Errorf("%s, expired %t", h.Key, h.Expired)
		}
	}
}

// TestApplyIsCancelled checks that reading ends with its context, even inside a record.
func TestApplyIsCancelled(t *testing.T) {
	boom := errors.New("boom")
	for _, s := range []Selection{{Filter: Filter{Match: []string{"nothing"}}}, {MinElements: 9}, {MinElements: 1 << 40}} {
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(boom)
		r := &reader{left: []listed{{key: "giant", n: 1 << 40}}, step: 1}
		_, err := s.Apply(ctx, record.Gather(r, nil), ApplyOptions{Now: now, TempDir: t.TempDir()}).Next()
		if !errors.Is(err, boom) {
			t.Errorf("%+v: %v", s, err)
		}
	}
}

// TestApplyIsFree checks that without conditions the reader is returned.
func TestApplyIsFree(t *testing.T) {
	r := record.Gather(&reader{}, nil)
	if got := (&Selection{KeepExpired: true}).Apply(context.Background(), r, ApplyOptions{}); got != r {
		t.Error("a selection of everything wraps the reader")
	}
}

func TestValidate(t *testing.T) {
	hour, day := &Moment{Ahead: time.Hour}, &Moment{At: now.Add(24 * time.Hour)}
	for _, s := range []Selection{{ExpireFrom: hour, ExpireTo: hour}, {ExpireFrom: day, ExpireTo: hour}, {MinBytes: -1},
		{MinElements: -1}} {
		if s.Validate(now) == nil {
			t.Errorf("%+v is valid", s)
		}
	}
	s := Selection{ExpireFrom: hour, ExpireTo: day}
	if err := s.Validate(now); err != nil {
		t.Error(err)
	}
	if s.Validate(now.Add(23*time.Hour)) == nil {
		t.Error("a window that has closed is valid")
	}
	if err := (&Selection{ExpireFrom: day}).Validate(now); err != nil {
		t.Error(err)
	}
}

// TestTexts checks that each condition has a text under its own name, and other values have another text.
func TestTexts(t *testing.T) {
	keys := func(names ...string) map[string]struct{} {
		m := map[string]struct{}{}
		for _, n := range names {
			m[n] = struct{}{}
		}
		return m
	}
	pairs := map[string][2]Selection{
		"type":         {{Filter: Filter{Types: record.Of(record.Set)}}, {Filter: Filter{Types: record.Of(record.List)}}},
		"db":           {{Filter: Filter{DBs: []string{"1"}}}, {Filter: Filter{DBs: []string{"1", "2"}}}},
		"exclude":      {{Filter: Filter{Exclude: []string{"a b"}}}, {Filter: Filter{Exclude: []string{"a", "b"}}}},
		"match":        {{Filter: Filter{Match: []string{"a b"}}}, {Filter: Filter{Match: []string{"a", "b"}}}},
		"regex":        {{Filter: Filter{Regex: regexp.MustCompile("a")}}, {Filter: Filter{Regex: regexp.MustCompile("b")}}},
		"key-file":     {{Filter: Filter{Keys: keys("a", "b")}}, {Filter: Filter{Keys: keys("a", "c")}}},
		"range":        {{Filter: Filter{Range: &format.Span{Lo: []byte("a")}}}, {Filter: Filter{Range: &format.Span{Hi: []byte("a")}}}},
		"sample":       {{Filter: Filter{Sample: 2}}, {Filter: Filter{Sample: 3}}},
		"ttl-from":     {{ExpireFrom: &Moment{Ahead: time.Second}}, {ExpireFrom: &Moment{Ahead: time.Second + time.Millisecond}}},
		"ttl-to":       {{ExpireTo: &Moment{At: now}}, {ExpireTo: &Moment{At: now.Add(time.Hour)}}},
		"min-bytes":    {{MinBytes: 1}, {MinBytes: 2}},
		"max-bytes":    {{MaxBytes: 1}, {MaxBytes: 2}},
		"no-expiry":    {{NoExpiry: true}, {}},
		"min-elements": {{MinElements: 1}, {MinElements: 2}},
	}
	for _, name := range Names() {
		pair := pairs[name]
		a, b := pair[0].Conditions(now).Texts(), pair[1].Conditions(now).Texts()
		if len(a) != 1 || len(b) > 1 || len(b) == 0 && name != NoExpiry || a[name] == "" || a[name] == b[name] {
			t.Errorf("%s: %q and %q", name, a, b)
		}
		if pair[0].Everything() {
			t.Errorf("%s: takes everything", name)
		}
		delete(pairs, name)
	}
	if len(pairs) > 0 {
		t.Errorf("Names lacks %v", pairs)
	}
	if got := (&Selection{Filter: Filter{Keys: keys("b", "a")}}).Conditions(now).Texts()["key-file"]; !strings.HasPrefix(got, "2 keys, digest ") {
		t.Errorf("key-file %q", got)
	}
	// An absolute and a relative form of the same time have the same text.
	a := Selection{ExpireFrom: &Moment{Ahead: 90 * time.Minute}}
	b := Selection{ExpireFrom: &Moment{At: now.Add(90 * time.Minute)}}
	if x, y := a.Conditions(now).Texts()["ttl-from"], b.Conditions(now).Texts()["ttl-from"]; x != y || x != "2023-11-14T23:43:20Z" {
		t.Errorf("%q and %q", x, y)
	}
	if len((&Selection{KeepExpired: true}).Conditions(now).Texts()) > 0 {
		t.Error("everything has a text")
	}
}
