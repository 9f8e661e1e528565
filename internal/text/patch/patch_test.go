package patch

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"unicode/utf16"

	"kvferry/internal/sys/bufpool"
	"kvferry/internal/text/jsonl"
	"kvferry/record"
)

// put is a record with its elements.
type put struct {
	h     record.Header
	elems []record.Element
}

func idOf(n byte) []byte { return append(make([]byte, 15), n) }

// puts returns records of every type that use every field.
func puts() []put {
	return []put{
		{record.Header{DB: "0", Type: record.String, Key: []byte("\xff\x00"), ExpireMS: 77}, []record.Element{{Value: []byte("v<&>\xfe")}}},
		{record.Header{DB: "0", Type: record.Hash, Key: []byte{}}, []record.Element{{Name: []byte("f"), Value: []byte{}}, {Name: []byte("g"), Value: []byte("v"), ExpireMS: 99}}},
		{record.Header{DB: "0", Type: record.List, Key: []byte("l")}, []record.Element{{Value: []byte("a")}, {Value: []byte("a")}}},
		{record.Header{DB: "12", Type: record.Set, Key: []byte("s")}, []record.Element{{Name: []byte("m")}}},
		{record.Header{DB: "12", Type: record.ZSet, Key: []byte("z")}, []record.Element{{Name: []byte("a"), Score: math.Inf(-1)}, {Name: []byte("b"), Score: 0.1}}},
		{record.Header{DB: "12", Type: record.Stream, Key: []byte("x"), Last: idOf(9), Added: 12, MaxDeleted: idOf(3)}, []record.Element{
			{Name: idOf(5), Value: record.AppendPair(record.AppendPair(nil, []byte("f"), []byte("v")), []byte("f"), []byte("\xff"))},
			{Kind: record.Group, Name: []byte("g"), Value: record.AppendGroup(nil, &record.GroupState{Last: idOf(5), Read: -1})},
			{Kind: record.Consumer, Name: []byte("g"), Value: record.AppendConsumer(nil, &record.ConsumerState{Name: []byte("c"), SeenMS: 5, ActiveMS: -1})},
			{Kind: record.Pending, Name: []byte("g"), Value: record.AppendPending(nil, &record.PendingEntry{ID: idOf(5), Consumer: []byte("c"), DeliveredMS: 7, Count: 2})},
			{Kind: record.Pending, Name: []byte("g"), Value: record.AppendPending(nil, &record.PendingEntry{ID: idOf(6), DeliveredMS: 7, Count: 2})},
		}},
		{record.Header{DB: "12", Type: record.Stream, Key: []byte("empty"), Last: idOf(1)}, nil},
		{record.Header{DB: "12", Type: record.Other, Key: []byte("FUNCTION f")}, []record.Element{{Name: []byte("ReJSON-RL"), Value: []byte("a key of that name")}}},
		{record.Header{DB: "12", Type: record.Other, Key: []byte("FUNCTION f"), Keyless: record.Library}, []record.Element{{Name: []byte("function"), Value: []byte("#!lua")}}},
	}
}

// file returns a patch with those records, an expiry and a deletion.
func file(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := NewWriter(&b, Head{From: "/data", To: "redis://h", NowMS: 5})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range puts() {
		if err := errors.Join(w.Put(&p.h, int64(len(p.elems))), w.Elements(p.elems)); err != nil {
			t.Fatal(err)
		}
	}
	h := record.Header{DB: "0", Type: record.Set, Key: []byte("e"), ExpireMS: 123}
	if err := errors.Join(w.Expire(&h), w.Delete(&h)); err != nil {
		t.Fatal(err)
	}
	h = record.Header{DB: "0", Type: record.Other, Key: []byte("MODULE_AUX e"), Keyless: record.ModuleAux}
	if err := w.Delete(&h); err != nil {
		t.Fatal(err)
	}
	counts, err := w.Close()
	if want := (Counts{int64(len(puts())), 1, 2}); err != nil || counts != want {
		t.Fatalf("%+v, %v", counts, err)
	}
	return b.Bytes()
}

// TestRoundTrip checks that a patch reads back as written, in batches of any size, and that unread elements are
// skipped.
func TestRoundTrip(t *testing.T) {
	for _, size := range []int{1, 2, 64} {
		r, err := NewReader(bytes.NewReader(file(t)))
		if err != nil || r.Head != (Head{Version, "/data", "redis://h", 5}) {
			t.Fatal(r.Head, err)
		}
		for i, want := range puts() {
			op, h, err := r.Next()
			if err != nil || op != Put {
				t.Fatal(op, err)
			}
			want.h.Len = int64(len(want.elems))
			if !reflect.DeepEqual(*h, want.h) {
				t.Errorf("%+v, want %+v", *h, want.h)
			}
			if size == 2 && i%2 == 0 {
				continue
			}
			var got []record.Element
			for batch := make([]record.Element, size); ; {
				n, err := r.Read(batch)
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, batch[:n]...)
			}
			if fmt.Sprint(got) != fmt.Sprint(want.elems) {
				t.Errorf("%s: %v, want %v", h.Type, got, want.elems)
			}
		}
		for _, want := range []Op{Expire, Delete} {
			op, h, err := r.Next()
			if err != nil || op != want || string(h.Key) != "e" || op == Expire && h.ExpireMS != 123 {
				t.Errorf("%s %+v, %v", op, h, err)
			}
		}
		if op, h, err := r.Next(); err != nil || op != Delete || h.Keyless != record.ModuleAux || string(h.Key) != "MODULE_AUX e" {
			t.Errorf("%s %+v, %v", op, h, err)
		}
		for range 2 {
			if _, _, err := r.Next(); err != io.EOF {
				t.Error(err)
			}
		}
		if r.Counts().Puts != int64(len(puts())) || len(r.Sum()) != 64 || r.Line() < 20 {
			t.Errorf("%+v, line %d", r.Counts(), r.Line())
		}
	}
}

// read reads a whole patch.
func read(b []byte) error {
	r, err := NewReader(bytes.NewReader(b))
	for batch := make([]record.Element, 3); err == nil; {
		var op Op
		if op, _, err = r.Next(); err != nil {
			break
		}
		for op == Put && err == nil {
			_, err = r.Read(batch)
			if err == io.EOF {
				err = nil
				break
			}
		}
	}
	if err == io.EOF {
		return nil
	}
	return err
}

// TestDamage checks that a patch that was truncated or changed anywhere is refused.
func TestDamage(t *testing.T) {
	whole := file(t)
	if err := read(whole); err != nil {
		t.Fatal(err)
	}
	last := bytes.LastIndexByte(whole[:len(whole)-1], '\n') + 1
	for n := range whole {
		if n < last || n < len(whole)-1 {
			if err := read(whole[:n]); err == nil {
				t.Errorf("cut at %d: no error", n)
			}
		}
		changed := bytes.Clone(whole)
		changed[n] ^= 1
		if err := read(changed); err == nil && n < last {
			t.Errorf("byte %d changed: no error", n)
		}
	}
	for text, want := range map[string]string{
		"":                                  "not a patch",
		"{}\n":                              "not a patch",
		`{"kvferry_patch":2}` + "\n":        "version 2",
		string(whole) + "x":                 "something follows",
		swap(whole, `"puts":9`, `"puts":7`): "the number of operations differs",
		swap(whole, `"op":"expire"`, `"op":"expires"`):               "is not known",
		swap(whole, `"type":"zset"`, `"type":"zzet"`):                "line",
		swap(whole, `"field":"f",`, ``):                              "not one of its type",
		swap(whole, `"score":"0.1"`, `"score":"x"`):                  "line",
		swap(whole, `"member":"m"`, `"field":"m"`):                   "not one of its type",
		swap(whole, `"id":"0-5"`, `"id":"5"`):                        "is no id",
		swap(whole, `,"deliveries":2`, ``):                           "not one of its type",
		swap(whole, `,"active_at_ms":-1`, ``):                        "not one of its type",
		swap(whole, `,"entries_read":-1`, ``):                        "not one of its type",
		swap(whole, `"native":"function",`, ``):                      "not one of its type",
		swap(whole, `"key":"l",`, ``):                                "want op, db, type and key",
		swap(whole, `"keyless":"function"`, `"keyless":"fun"`):       `keyless: "fun" has no key`,
		swap(whole, `"key":"l",`, `"key":"l","keyless":"function",`): "a list has a key",
		swap(whole, `"key":"l","expire_at_ms":0,`, `"key":"l",`):     "want expire_at_ms and len",
		swap(whole, `"key":"e","expire_at_ms":123`, `"key":"e"`):     "want expire_at_ms",
		swap(whole, `,"last_id":"0-1"`, ``):                          "is no id",
		head(whole) + `{"op":"set","value":"v"}` + "\n":              "an element without a record",
	} {
		if err := read([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.300s: %v, want %s", text, err, want)
		}
	}
}

func swap(whole []byte, from, to string) string { return strings.Replace(string(whole), from, to, 1) }

func head(whole []byte) string { return string(whole[:bytes.IndexByte(whole, '\n')+1]) }

// TestWriteDamage checks that malformed elements are refused.
func TestWriteDamage(t *testing.T) {
	w, err := NewWriter(io.Discard, Head{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Put(&record.Header{Type: record.Stream, Last: []byte("short")}, 0); err == nil {
		t.Error("an id that is short")
	}
	for kind := range record.Pending + 1 {
		if err := w.Elements([]record.Element{{Kind: kind, Name: []byte("g"), Value: []byte{200}}}); err == nil {
			t.Errorf("kind %d: no error", kind)
		}
	}
}

func FuzzReader(f *testing.F) {
	f.Add(file(f))
	f.Fuzz(func(t *testing.T, b []byte) { _ = read(b) }) // must not panic
}

// TestLongLines checks that lines of large values, which are written in pieces, have the same form as others.
func TestLongLines(t *testing.T) {
	long := bytes.Repeat([]byte("text \"value\":\"\" <\u202eé"), bufpool.Piece/8)
	binary := append([]byte{0xff}, long...)
	for _, v := range [][]byte{long, binary} {
		for _, p := range []struct {
			typ record.Type
			el  record.Element
		}{
			{record.String, record.Element{Value: v}},
			{record.Hash, record.Element{Name: []byte(`"value":""`), Value: v, ExpireMS: 5}},
			{record.List, record.Element{Value: v}},
			{record.Other, record.Element{Name: []byte("native"), Value: v}},
			{record.Stream, record.Element{Name: idOf(5), Value: record.AppendPair(record.AppendPair(nil, []byte("f"), v), v, nil)}},
		} {
			var got, want bytes.Buffer
			w := Writer{both: &got, typ: p.typ}
			l := line{Op: set}
			if err := errors.Join(w.long(&p.el), l.encodeElement(p.typ, &p.el), newLines(&want).Encode(&l)); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got.Bytes(), want.Bytes()) {
				t.Errorf("%s: %.90q, want %.90q", p.typ, got.Bytes(), want.Bytes())
			}
		}
	}
	var b bytes.Buffer
	w, err := NewWriter(&b, Head{})
	if err != nil {
		t.Fatal(err)
	}
	h := record.Header{DB: "0", Type: record.List, Key: []byte("l")}
	if err := errors.Join(w.Put(&h, 2), w.Elements([]record.Element{{Value: long}, {Value: []byte("small")}})); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := NewReader(&b)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.Next(); err != nil {
		t.Fatal(err)
	}
	var elems [4]record.Element
	if n, err := r.Read(elems[:]); err != nil || n != 1 || !bytes.Equal(elems[0].Value, long) {
		// large elements are read one at a time
		t.Error(n, err)
	}
	if n, err := r.Read(elems[:]); err != nil || n != 1 || string(elems[0].Value) != "small" {
		t.Error(n, err)
	}
	if _, _, err := r.Next(); err != io.EOF {
		t.Error(err) // the checksum must cover all pieces
	}
	bad := record.Element{Name: idOf(5), Value: bytes.Repeat([]byte{0xff}, bufpool.Piece+1)}
	if err := (&Writer{both: &b, typ: record.Stream}).long(&bad); err == nil {
		t.Error("an entry of half a pair is written")
	}
}

// TestLongTexts checks that text decoded in pieces equals text decoded at once, in any escaping.
func TestLongTexts(t *testing.T) {
	units := []string{"a", "\"", "\\", "\\u", "ü", "中", "\U0001f600", "\n", "\x01", "\u202e", "/"}
	escapes := make([]string, len(units))
	for i, unit := range units {
		for _, u := range utf16.Encode([]rune(unit)) { // a character may need two escapes
			escapes[i] += fmt.Sprintf(`\u%04x`, u)
		}
	}
	rnd := rand.New(rand.NewPCG(1, 2)) // the first ones repeat one character, the others mix all
	for i := range 15 {
		var b, escaped []byte
		for n := i; len(b) < 2*bufpool.Piece; {
			b, escaped = append(b, units[n%len(units)]...), append(escaped, escapes[n%len(units)]...)
			if i >= len(units) {
				n = rnd.IntN(len(units))
			}
		}
		for j, form := range [][]byte{marshal(t, jsonl.Text(b)), marshal(t, jsonl.Text("\xff"+string(b))),
			[]byte(`"` + string(escaped) + `"`)} {
			var want jsonl.Text
			if err := json.Unmarshal(form, &want); err != nil {
				t.Fatal(err)
			}
			got, err := oneLine(fmt.Sprintf(`{"op":"set","field":%s,"member":"short","value":%s}`, form, form))
			if err != nil || string(got.bytesOf(got.Field)) != string(want) || string(got.bytesOf(got.Value)) != string(want) ||
				string(got.bytesOf(got.Member)) != "short" || len(got.lines.line) > 4*bufpool.Piece {
				t.Fatalf("form %d of %.50q: %v, or other text", j, b, err)
			}
		}
	}
	long := strings.Repeat("long", bufpool.Piece)
	for bad, want := range map[string]string{
		`{"value":"` + long + "\xff" + long + `"}`:                  "neither UTF-8",
		`{"value":"` + long + "\xff" + `"}`:                         "neither UTF-8",
		`{"value":"` + long + "\x01" + long + `"}`:                  "neither UTF-8",
		`{"value":"` + long + `\x"}`:                                "neither UTF-8",
		`{"value":{"base64":"` + long + `?` + long + `"}}`:          "nor base64",
		`{"value":{"base64":"` + long + `a"}}`:                      "nor base64",
		`{"value":{"other":"` + long + `"}}`:                        "cannot unmarshal",
		`{"value":{"base64": "` + long + `"}}`:                      "cannot unmarshal",
		`{"value":["` + long + `"]}`:                                "cannot unmarshal",
		`{"op":"` + long + `"}`:                                     "cannot unmarshal",
		`{"` + long + `":5}`:                                        "invalid",
		`{"value":"` + long + `","member":[` + "\r0]}":              "carriage return",
		`{"value":[` + "\r0]}":                                      "carriage return",
		`{"value":"` + long:                                         "EOF",
		strings.Repeat(" ", 5*bufpool.Piece) + `{"value":"` + "\r}": "carriage return",
	} {
		if _, err := oneLine(bad); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %s", bad, err, want)
		}
	}
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// oneLine reads a single line.
func oneLine(text string) (*line, error) {
	in := lines{in: bufio.NewReaderSize(strings.NewReader(text+"\n"), 64<<10), sum: sha256.New()}
	if !strings.HasSuffix(text, "}") {
		in.in = bufio.NewReaderSize(strings.NewReader(text), 64<<10)
	}
	b, _, err := in.next()
	l := &line{lines: &in}
	if err == nil {
		err = json.Unmarshal(b, l)
	}
	return l, err
}

// TestLongNames checks that long keys, fields and members are read as written, and that large elements are read one
// at a time.
func TestLongNames(t *testing.T) {
	long := func(c string) []byte { return bytes.Repeat([]byte(c), 5*bufpool.Piece) }
	pairs := record.AppendPair(record.AppendPair(nil, long("f"), long("v")), []byte("g"), long("\xff"))
	for typ, elems := range map[record.Type][]record.Element{
		record.Hash:   {{Name: []byte("a"), Value: []byte("b")}, {Name: long("n"), Value: long("v"), ExpireMS: 7}, {Name: []byte("z"), Value: long("\xfe")}},
		record.ZSet:   {{Name: long("m"), Score: 1.5}, {Name: long("n"), Score: 2}},
		record.Set:    {{Name: long("m")}, {Name: []byte("x")}},
		record.Stream: {{Name: idOf(1), Value: pairs}, {Name: idOf(2), Value: pairs}},
	} {
		var b bytes.Buffer
		w, err := NewWriter(&b, Head{})
		h := record.Header{DB: "0", Type: typ, Key: long("k")}
		if typ == record.Stream {
			h.Last = idOf(9)
		}
		err = errors.Join(err, w.Put(&h, int64(len(elems))), w.Elements(elems), w.Delete(&h))
		if _, e := w.Close(); err != nil || e != nil {
			t.Fatal(err, e)
		}
		r, err := NewReader(&b)
		if err != nil {
			t.Fatal(err)
		}
		_, got, err := r.Next()
		if err != nil || !bytes.Equal(got.Key, h.Key) {
			t.Fatalf("%s: another key, or %v", typ, err)
		}
		var dst [8]record.Element
		for len(elems) > 0 {
			n, err := r.Read(dst[:])
			if err != nil || n > len(elems) || n == len(elems) && n > 1 {
				t.Fatalf("%s: %d elements, %v", typ, n, err)
			}
			if !reflect.DeepEqual(dst[:n], elems[:n]) {
				t.Errorf("%s: other elements", typ)
			}
			elems = elems[n:]
		}
		if op, got, err := r.Next(); err != nil || op != Delete || !bytes.Equal(got.Key, h.Key) {
			t.Errorf("%s: %s of another key, or %v", typ, op, err)
		}
		if _, _, err := r.Next(); err != io.EOF {
			t.Error(err)
		}
	}
}

// endless is an endless line that counts the bytes read.
type endless struct{ read int }

func (e *endless) Read(b []byte) (int, error) {
	clear(b)
	e.read += len(b)
	return len(b), nil
}

// TestNoLine checks that at most the length of a header is read from a file that is not a patch.
func TestNoLine(t *testing.T) {
	var in endless
	if _, err := NewReader(&in); err == nil || !strings.Contains(err.Error(), "not a patch") || in.read > 64<<10 {
		t.Errorf("%d bytes read: %v", in.read, err)
	}
}
