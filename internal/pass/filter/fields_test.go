package filter

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"kvferry/record"
)

// pieces yields hashes in the batches that a text describes: each word is a piece of a record, its key and a letter for
// each field. e is one that has expired, n one that expires now, k one that is kept. + goes on in the next batch.
type pieces struct {
	words []string
	cont  bool
	seen  []*record.Record
}

func (p *pieces) Next() (*record.Batch, error) {
	if len(p.words) == 0 {
		return nil, io.EOF
	}
	key, fields, _ := strings.Cut(p.words[0], "=")
	fields, more := strings.CutSuffix(fields, "+")
	b := &record.Batch{Cont: p.cont, More: more,
		Records: []record.Record{{Header: record.Header{DB: "0", Type: record.Hash, Key: []byte(key)}, N: len(fields),
			Class: record.Copied}}}
	for _, f := range fields {
		e := record.Element{Name: []byte(string(f)), Value: bytes.Repeat([]byte("x"), 10)}
		switch f {
		case 'e':
			e.ExpireMS = now.UnixMilli() - 1
		case 'n':
			e.ExpireMS = now.UnixMilli()
		}
		b.Elems = append(b.Elems, e)
	}
	if p.cont && len(p.seen) > 0 { // as readers keep what is settled about a record that goes on
		was := p.seen[len(p.seen)-1]
		x := &b.Records[0]
		x.Class, x.Gone, x.Skip, x.Hidden = was.Class, was.Gone, was.Skip, was.Hidden
	}
	p.seen = append(p.seen, &b.Records[0])
	p.words, p.cont = p.words[1:], more
	return b, nil
}

func (p *pieces) Close() error { return nil }

// TestExpiredFields: a hash whose fields have all expired has expired itself, in however many pieces it comes; a field
// that expires now has not expired.
func TestExpiredFields(t *testing.T) {
	for text, want := range map[string]string{
		"a=k": "a=k", "a=ekn": "a=kn 1 gone", "a=ee": "a= expired 2 gone", "a=ee b=k": "a= expired 2 gone, b=k", "a=k b=e c=k": "a=k, b= expired 1 gone, c=k",
		"a=k+ a=e": "a=k, a= 1 gone", "a=e+ a=k": "a=, a=k 1 gone", "a=e+ a=e": "a=, a= expired 2 gone", "a=k+ a=e+ a=e": "a=k, a=, a= 2 gone", "a=k+ a=e b=e+ b=e": "a=k, a= 1 gone, b=, b= expired 2 gone",
	} {
		told := ""
		r := new(Selection).Apply(context.Background(), &pieces{words: strings.Fields(text)},
			ApplyOptions{Now: now, Fields: func(h *record.Header, n int) { told += fmt.Sprintf("%s %d ", h.Key, n) }})
		var got []string
		for {
			b, err := r.Next()
			if err == io.EOF {
				break
			}
			x, line := &b.Records[0], ""
			for _, e := range b.Of(0) {
				line += string(e.Name)
			}
			line = string(x.Key) + "=" + line
			if x.Class != record.Copied {
				line += " " + x.Class.String()
			}
			if b.Ends(0) && x.Gone > 0 {
				line += fmt.Sprintf(" %d gone", x.Gone)
			}
			got = append(got, line)
		}
		if lines := strings.Join(got, ", "); lines != want || strings.Count(told, " ")/2 != strings.Count(want, "gone") {
			t.Errorf("%s: %s, want %s; told %s", text, lines, want, told)
		}
	}
}

// TestSpooledSettles: what a caller settles about a record whose first elements come from a spool holds for its last ones.
func TestSpooledSettles(t *testing.T) {
	for name, settle := range map[string]func(r *record.Record){
		"hidden": func(r *record.Record) { r.Hidden = true }, "skipped": func(r *record.Record) { r.Skip = true }, "lost": func(r *record.Record) { r.Class = record.Lost },
	} {
		r := (&Selection{MinBytes: 21}).Apply(context.Background(), &pieces{words: strings.Fields("a=k+ a=k+ a=k b=kk+ b=kk")},
			ApplyOptions{Now: now, TempDir: t.TempDir()})
		var first *record.Record
		for {
			b, err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			x := &b.Records[0]
			if b.Begins(0) {
				settle(x)
				copied := *x
				first = &copied
			}
			if b.Ends(0) && b.Cont && string(x.Key) == "a" &&
				(x.Hidden != first.Hidden || x.Class != first.Class && !x.Out() || x.Skip != first.Skip && !x.Out()) {
				t.Errorf("%s: %s ends with %+v, began with %+v", name, x.Key, x, first)
			}
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}
