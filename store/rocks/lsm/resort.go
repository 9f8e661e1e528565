package lsm

import (
	"errors"
	"fmt"
	"slices"

	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/blocks"
)

// resort checks whether the tables of the column family are in order, and sorts those that are not. It returns the
// ordered tables and one run for each of the others.
func (ks *Keyspace) resort(tables []*Table) (good []*Table, sorted []*Run, err error) {
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
		ks.Env.Report(record.Finding{Kind: "unordered-table", Severity: record.Warning, Keyspace: ks.name,
			Place:  record.Place{File: t.Name, Off: o.Off, Level: t.Level},
			Detail: fmt.Sprintf("the table is not in the order of %s and was sorted before reading: %v", ks.cmp.Name, o)})
		sorted = append(sorted, &Run{Tables: []*Table{s}})
	}
	return good, sorted, nil
}

// checkOrder walks a table. Its error is an OrderError if the table is whole but in disorder.
func (ks *Keyspace) checkOrder(t *Table) error {
	c := NewCursor(ks, []*Table{t}, nil)
	defer c.Close()
	for c.Next() {
		if _, err := ks.Env.KindOf(c.Tr); err != nil {
			return t.Fail(int64(c.handle.Off), "kind", err)
		}
	}
	return c.Err
}

// sortTable sorts a table's entries into a spool.
func (ks *Keyspace) sortTable(t *Table) (*Table, error) {
	s := NewSorter(ks, ks.Env.Memory/4)
	defer s.Close()
	scan := &tableScan{t: t}
	if ks.Env.Salvage {
		scan.pass = func(h blocks.Handle, sep []byte, err error) bool {
			if base.IsDamage(err) {
				ks.skipped(t, h, sep, err)
			}
			return base.IsDamage(err)
		}
	}
	scan.damaged = func(h blocks.Handle, err error) error {
		err = t.failBlock(h, err)
		if scan.pass == nil || !scan.pass(h, scan.walk.Separator(), err) {
			return base.BlockError(err)
		}
		return nil
	}
	scan.f = func(e *store.Entry) error {
		return s.Add(e.Key, base.Trailer(e.Seq, internalKind(e.Kind)), e.Value, Origin{0, uint64(e.Place.Off)})
	}
	if err := scan.run(); err != nil {
		return nil, err
	}
	out, err := s.Spool(t.Level, []string{t.Name}, ks.Env.Memory/64)
	if err == nil && out == nil {
		err = t.Fail(record.NoOffset, "rows", errors.New("none"))
	}
	return out, err
}

// internalKind is the kind of an entry in internal keys.
func internalKind(k store.Kind) byte {
	return [...]byte{base.KindPut, base.KindDelete, base.KindSingleDelete, base.KindMerge, base.KindRangeDelete}[k]
}

// Prepare loads the data that all iterators share: the range tombstones and, if orders are not trusted, the tables that
// need sorting.
func (ks *Keyspace) Prepare() error {
	ks.once.Do(func() { ks.err = ks.prepareOnce() })
	return ks.err
}

func (ks *Keyspace) prepareOnce() error {
	if err := ks.LogErr; err != nil {
		return err
	}
	tables, err := ks.readable()
	if err != nil {
		return err
	}
	ks.tombs = slices.Clone(ks.logTombs)
	for _, t := range tables {
		if t.err != nil {
			continue
		}
		ks.tombs = append(ks.tombs, t.info.Tombstones...)
		if !ks.Env.Resort && ks.cmp.Compare(t.First, t.Last) > 0 {
			return &store.OrderError{File: ks.Env.Manifest, Off: record.NoOffset, Keyspace: ks.name, Comparer: ks.cmp.Name,
				Prev: t.First, Next: t.Last}
		}
	}
	sortTombstones(ks.cmp.Compare, ks.tombs)
	ks.frags = fragments(ks.cmp.Compare, ks.tombs)
	var sorted []*Run
	if ks.Env.Resort {
		if tables, sorted, err = ks.resort(tables); err != nil {
			return err
		}
	}
	ks.All = slices.Concat(ks.logRuns, sorted, ks.makeRuns(tables))
	return nil
}
