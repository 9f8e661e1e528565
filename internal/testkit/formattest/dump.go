package formattest

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strconv"
	"testing"

	"kvferry/internal/text/jsonl"
	"kvferry/record"
)

// readerOf returns a Reader as it is, or the one below a Walker.
func readerOf(of any) record.Reader {
	if w, ok := of.(*record.Walker); ok {
		return w.Reader
	}
	return of.(record.Reader)
}

// Lines renders all records of a Reader or a Walker that have not expired in the form of `kvferry dump --encode base64`.
func Lines(t testing.TB, of any) []byte {
	t.Helper()
	r := readerOf(of)
	out, err := dump(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return out
}

func dump(reader record.Reader) ([]byte, error) {
	r := record.Walk(reader)
	var out []byte
	enc := jsonl.Encoder{Base64: true}
	for {
		h, err := r.Next()
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		if h.Expired {
			r.Settle(record.Expired)
			continue
		}
		start, typ := len(out), h.Type
		var count int
		if out, count, err = appendElements(enc.AppendBegin(out, h), &enc, r); err != nil {
			return nil, err
		}
		if count == 0 && typ != record.Stream {
			out = out[:start]
			continue
		}
		out = enc.AppendEnd(out)
	}
}

// appendElements reads in batches of seven, so that most records take several batches and end within one.
func appendElements(out []byte, enc *jsonl.Encoder, r *record.Walker) (_ []byte, count int, err error) {
	elems := make([]record.Element, 7)
	for {
		n, err := r.Read(elems)
		if err == io.EOF {
			return out, count, nil
		}
		if err != nil {
			return nil, 0, err
		}
		for i := range elems[:n] {
			if out, err = enc.AppendElement(out, &elems[i]); err != nil {
				return nil, 0, err
			}
		}
		count += n
	}
}

// Head is the part of a dump line before the value.
type Head struct {
	DB, Type, Key string
	ExpireMS      int64 `json:"expire_at_ms"`
}

// SplitLine decodes a line of a dump up to its value, which may be long and stays encoded.
func SplitLine(l []byte) (h Head, value []byte, err error) {
	head, value, ok := bytes.Cut(l, []byte(`,"value":`)) // cannot match inside a string, where quotes are escaped
	if ok {
		head = append(bytes.Clone(head), '}')
	}
	if err := json.Unmarshal(head, &h); err != nil {
		return h, nil, fmt.Errorf("line %.200s: %w", l, err)
	}
	return h, value, nil
}

// line is one record of a dump.
type line struct {
	Head
	raw, value []byte
}

func split(data []byte) ([]line, error) {
	var out []line
	for _, l := range bytes.Split(bytes.TrimSpace(data), []byte("\n")) {
		if len(l) == 0 {
			continue
		}
		h, value, err := SplitLine(l)
		if err != nil {
			return nil, err
		}
		out = append(out, line{h, l, value})
	}
	return out, nil
}

// parsed is a record with its scores as numbers.
type parsed struct {
	Head
	Value any
}

// parse decodes a line. It converts scores to the bits of a float64, as engines write the same number in several
// ways.
func (l *line) parse() (x parsed, err error) {
	if err = json.Unmarshal(l.raw, &x); err == nil && x.Type == record.ZSet.String() {
		err = parseScores(&x)
	}
	if err != nil {
		err = fmt.Errorf("line %.200s: %w", l.raw, err)
	}
	return x, err
}

// diff describes the difference between two lines; "" if they are equal. It parses lines only if their bytes differ.
func (l *line) diff(want *line) (string, error) {
	if l.Head == want.Head && bytes.Equal(l.value, want.value) {
		return "", nil
	}
	g, err := l.parse()
	w, werr := want.parse()
	if err := cmp.Or(err, werr); err != nil || reflect.DeepEqual(g, w) {
		return "", err
	}
	return fmt.Sprintf("got  %.300v\nwant %.300v", g, w), nil
}

func parseScores(x *parsed) error {
	pairs, _ := x.Value.([]any)
	for _, pair := range pairs {
		p, ok := pair.([]any)
		if !ok || len(p) != 2 {
			return fmt.Errorf("%v is no member and score", pair)
		}
		score, err := strconv.ParseFloat(fmt.Sprint(p[1]), 64)
		if err != nil {
			return err
		}
		p[1] = math.Float64bits(score)
	}
	return nil
}

// CompareLines compares two dumps record by record. Truth files are ordered by type first, dumps by key.
func CompareLines(t testing.TB, got, want []byte) {
	t.Helper()
	g, err := split(got)
	w, werr := split(want)
	if err := cmp.Or(err, werr); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(w, func(a, b line) int {
		return cmp.Or(cmp.Compare(a.DB, b.DB), bytes.Compare(decode(a.Key), decode(b.Key)), typeOf(a.Type)-typeOf(b.Type))
	})
	for i := range min(len(g), len(w)) {
		diff, err := g[i].diff(&w[i])
		if err != nil {
			t.Fatal(err)
		}
		if diff != "" {
			t.Fatalf("record %d:\n%s", i, diff)
		}
	}
	if len(g) != len(w) {
		t.Fatalf("%d records, want %d", len(g), len(w))
	}
}

func decode(s string) []byte {
	b, _ := base64.StdEncoding.DecodeString(s)
	return b
}

func typeOf(name string) int {
	t, _ := record.ParseType(name)
	return int(t)
}
