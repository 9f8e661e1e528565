package ardb

import (
	"bytes"
	"fmt"

	"kvferry/ardb/codec"
	"kvferry/record"
	"kvferry/store"
)

// watch makes the pass track the integers of deleted rows, which some iterators pass within their collection.
func (p *pass) watch() {
	w, ok := p.it.(store.Watched)
	number := p.sp.Keyspace.Comparer().Wrapping
	if !ok || number == nil {
		return
	}
	w.Watch(func(key []byte) {
		if !p.inside || len(key) <= len(p.prefix) || !bytes.HasPrefix(key, p.prefix) ||
			codec.Kind(key[len(p.prefix)]) != codec.ElementKind(p.head.Type) {
			return
		}
		if n, ok := number.Number(key); ok {
			p.gone = p.gone.With(n)
		}
	})
}

// circular reports a collection whose rows the comparator cannot order, as found in the logs or in the rows read.
func (p *pass) circular() {
	detail := ""
	if len(p.src.circles) > 0 {
		detail = p.src.circles[circleOf(p.sp.Keyspace.Name(), p.prefix, byte(codec.ElementKind(p.head.Type)))]
	}
	r, deleted := p.ints, ""
	if p.gone.Any && r.Span() < 1<<63 {
		r, deleted = r.With(p.gone.Min).With(p.gone.Max), ", those of deleted rows among them,"
	}
	if detail == "" && r.Span() >= 1<<63 {
		detail = fmt.Sprintf("integers from %d to %d%s are 2^63 or more apart, which %s orders in a circle: the server may show "+
			"rows that were deleted and miss others; kvferry reads the newest row of each key", r.Min, r.Max, deleted,
			codec.ComparerName)
	}
	if detail != "" && p.env.Report != nil {
		p.due = append(p.due, record.Finding{Kind: record.FindCircularOrder, Severity: record.Warning, DB: p.sp.DB,
			Type: p.head.Type, Keyspace: p.sp.Name, Key: bytes.Clone(p.head.Key), Place: record.Place{Level: -1}, Detail: detail})
	}
}
