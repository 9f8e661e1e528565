package rocksfile

import (
	"errors"
	"fmt"

	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/blocks"
)

// resort reads tables of the column family to see whether they are in order, and sorts those
// that are not. It returns the tables that can be trusted and a run for each of the others.
func (ks *keyspace) resort(tables []*table) (good []*table, sorted []*sortedRun, err error) {
	for _, t := range tables {
		err := ks.checkOrder(t)
		var o *store.OrderError
		if err == nil {
			good = append(good, t)
			continue
		}
		if !errors.As(err, &o) {
			return nil, nil, err
		}
		s, err := ks.sortTable(t)
		if err != nil {
			return nil, nil, err
		}
		ks.env.report(record.Finding{Kind: "unordered-table", Severity: record.Warning, Keyspace: ks.name,
			Place:  record.Place{File: t.name, Off: o.Off, Level: t.level},
			Detail: fmt.Sprintf("the table is not in the order of %s and was sorted before reading: %v", ks.cmp.Name, o)})
		sorted = append(sorted, &sortedRun{tables: []*table{s}, level: t.level})
	}
	return good, sorted, nil
}

// checkOrder walks a table. Its error is an OrderError when the table is whole but in disorder.
func (ks *keyspace) checkOrder(t *table) error {
	c := newCursor(ks, []*table{t}, nil)
	defer c.close()
	for c.next() {
		if _, err := kindOf(c.tr); err != nil {
			return t.fail(int64(c.handle.Off), "kind", err)
		}
	}
	return c.err
}

// sortTable sorts a table's entries into a spool.
func (ks *keyspace) sortTable(t *table) (*table, error) {
	s := newEntrySorter(ks, ks.env.memory/4)
	defer s.close()
	scan := &tableScan{t: t}
	if ks.env.salvage {
		scan.pass = func(h blocks.Handle, sep []byte, err error) bool {
			if base.IsDamage(err) {
				ks.skipped(t, h, sep, err)
			}
			return base.IsDamage(err)
		}
	}
	scan.damaged = func(h blocks.Handle, err error) error {
		err = t.fail(int64(h.Off), fieldBlock, err)
		if scan.pass == nil || !scan.pass(h, scan.walk.Separator(), err) {
			return base.BlockError(err)
		}
		return nil
	}
	scan.f = func(e *store.Entry) error {
		return s.add(e.Key, base.Trailer(e.Seq, internalKind(e.Kind)), e.Value, origin{0, uint64(e.Place.Off)})
	}
	if err := scan.run(); err != nil {
		return nil, err
	}
	out, err := s.spool(t.level, []string{t.name}, ks.env.memory/64)
	if err == nil && out == nil {
		err = t.fail(record.NoOffset, "rows", errors.New("none"))
	}
	return out, err
}

// internalKind is the kind of an entry in internal keys.
func internalKind(k store.Kind) byte {
	return [...]byte{base.KindPut, base.KindDelete, base.KindSingleDelete, base.KindMerge, base.KindRangeDelete}[k]
}
