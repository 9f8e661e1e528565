package inspect

import (
	"context"
	"fmt"
	"testing"

	"kvferry/inspect/internal/fake"
	"kvferry/record"
)

func scanOf(s *fake.Source) *Scan { return &Scan{Source: s, Now: fake.Now} }

// keysOf reads what a scan selects: key and type, and the number of elements.
func keysOf(t *testing.T, s *Scan) []string {
	t.Helper()
	parts, err := s.Parts()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, p := range parts {
		v := &listVisitor{}
		if err := s.Visit(context.Background(), p, v); err != nil {
			t.Fatal(err)
		}
		out = append(out, v.keys...)
	}
	return out
}

type listVisitor struct {
	keys []string
	cur  []byte
}

func (v *listVisitor) Record(h *record.Header, e *Elements) error {
	v.cur = append(append(v.cur[:0], h.Key...), ':')
	batch, err := e.Next()
	for ; len(batch) > 0; batch, err = e.Next() {
		for _, e := range batch {
			v.cur = append(append(append(v.cur, ' '), e.Name...), e.Value...)
		}
	}
	v.keys = append(v.keys, string(v.cur))
	return err
}

func (v *listVisitor) Strings(batch []record.StringRecord) {
	for _, s := range batch {
		v.keys = append(v.keys, fmt.Sprintf("%s: %s", s.Key, s.Value))
	}
}

func (v *listVisitor) Merge() {}
