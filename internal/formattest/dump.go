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

	"kvferry/internal/jsonl"
	"kvferry/record"
)

// Lines renders all records that are not expired as `kvferry dump --encode base64` does.
func Lines(t testing.TB, r record.Reader) []byte {
	t.Helper()
	out, err := dump(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return out
}

func dump(r record.Reader) ([]byte, error) {
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

// appendElements reads in batches of seven, so that most records take several and end within one.
func appendElements(out []byte, enc *jsonl.Encoder, r record.Reader) (_ []byte, count int, err error) {
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

// line is one record of a dump, with scores as numbers.
type line struct {
	DB, Type, Key string
	ExpireMS      int64 `json:"expire_at_ms"`
	Value         any
}

// parse reads a dump. Scores become the bits of numbers: engines write the same number in several ways.
func parse(data []byte) ([]line, error) {
	var out []line
	for _, l := range bytes.Split(bytes.TrimSpace(data), []byte("\n")) {
		if len(l) == 0 {
			continue
		}
		var x line
		if err := json.Unmarshal(l, &x); err != nil {
			return nil, fmt.Errorf("line %.200s: %w", l, err)
		}
		if x.Type == record.ZSet.String() {
			if err := parseScores(&x); err != nil {
				return nil, fmt.Errorf("line %.200s: %w", l, err)
			}
		}
		out = append(out, x)
	}
	return out, nil
}

func parseScores(x *line) error {
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

// CompareLines compares two dumps record by record. Truth files go by type first, dumps by key.
func CompareLines(t testing.TB, got, want []byte) {
	t.Helper()
	g, err := parse(got)
	if err != nil {
		t.Fatal(err)
	}
	w, err := parse(want)
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(w, func(a, b line) int {
		return cmp.Or(cmp.Compare(a.DB, b.DB), bytes.Compare(decode(a.Key), decode(b.Key)), typeOf(a.Type)-typeOf(b.Type))
	})
	for i := range min(len(g), len(w)) {
		if !reflect.DeepEqual(g[i], w[i]) {
			t.Fatalf("record %d:\ngot  %.300v\nwant %.300v", i, g[i], w[i])
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
