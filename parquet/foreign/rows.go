package foreign

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"kvferry/format"
	"kvferry/internal/sys/extsort"
	"kvferry/record"
)

// Rows are sorted by
//
//	+------------+-----------+-------------+---------------------------------------+
//	| s(db)      | type (1B) | s(key)      | field, member or index; "" if without |
//	+------------+-----------+-------------+---------------------------------------+
//
// where s is extsort.AppendEscaped. Equal rows keep the order of the files. The value is
//
//	+------------+-----------------+-------------------------------------------+-------+
//	| flags (1B) | expiry (varint) | expiry of the field (varint) or score (8B) | value |
//	+------------+-----------------+-------------------------------------------+-------+
//
// A row with a null where there must be a value has the flag odd, and after it the text of its finding. One whose score was
// rounded has the flag rounded, and its digits as the value.
const (
	flagSound   = 0
	flagOdd     = 1
	flagRounded = 2
)

// table is all rows of a type in a database.
type table struct {
	db  string
	typ record.Type
}

// append appends the beginning of the table's rows.
func (t table) append(dst []byte) []byte {
	return append(extsort.AppendEscaped(dst, []byte(t.db)), byte(t.typ))
}

// adder adds rows to a sorter.
type adder struct {
	s     *source
	to    *extsort.Sorter
	key   []byte
	value []byte
	part  []byte
}

// add adds a row.
func (a *adder) add(c *cells) error {
	t, err := a.s.tableOf(c)
	if err != nil {
		return err
	}
	a.key = t.append(a.key[:0])
	for _, r := range shapes[t.typ].needs {
		if c.null(r) {
			return a.odd(c, r)
		}
	}
	a.part = c.append(a.part[:0], roleKey)
	a.key = extsort.AppendEscaped(a.key, a.part)
	a.value = binary.AppendVarint(append(a.value[:0], flagSound), c.millis(roleExpire))
	switch t.typ {
	case record.Hash:
		a.key = c.append(a.key, roleField)
		a.value = binary.AppendVarint(a.value, c.millis(roleFieldExpire))
	case record.List:
		switch {
		case c.null(roleIndex) && a.s.m.has(roleIndex):
			return a.odd(c, roleIndex)
		case !c.null(roleIndex):
			a.key = binary.BigEndian.AppendUint64(a.key, uint64(c.at[roleIndex].Int())^1<<63)
		}
	case record.Set, record.ZSet:
		a.key = c.append(a.key, roleMember)
	}
	if t.typ == record.ZSet {
		score, exact, err := c.at[roleScore].Number()
		if err != nil {
			return a.odd(c, roleScore)
		}
		a.value = binary.BigEndian.AppendUint64(a.value, math.Float64bits(score))
		if !exact {
			a.value[0] = flagRounded
			a.value = c.append(a.value, roleScore)
		}
	}
	if t.typ != record.Set && t.typ != record.ZSet {
		a.value = c.append(a.value, roleValue)
	}
	return a.to.Add(0, a.key, a.value)
}

// odd adds a row without a needed value in its place, so that exactly one span counts it.
func (a *adder) odd(c *cells, r role) error {
	a.part = a.part[:0]
	if !c.null(roleKey) {
		a.part = c.append(a.part, roleKey)
	}
	a.key = extsort.AppendEscaped(a.key, a.part)
	a.value = fmt.Appendf(append(a.value[:0], flagOdd), "row %d of %s: column %q is null", c.row, c.name, a.s.m.columns[r])
	return a.to.Add(0, a.key, a.value)
}

// tableOf returns the table of a row.
func (s *source) tableOf(c *cells) (t table, err error) {
	t = table{"0", s.m.typ}
	for _, r := range []role{roleDB, roleType} {
		if !s.m.has(r) {
			continue
		}
		if c.null(r) {
			return t, fmt.Errorf("%s: row %d: column %q is null: a row needs a %s", c.name, c.row, s.m.columns[r], roleNames[r])
		}
		s.text[r] = c.append(s.text[r][:0], r)
	}
	if s.m.has(roleDB) {
		if string(s.text[roleDB]) != s.last.db {
			s.last.db = string(s.text[roleDB])
		}
		t.db = s.last.db
	}
	if !s.m.has(roleType) {
		return t, nil
	}
	if t.typ, err = record.ParseType(string(s.text[roleType])); err == nil && t.typ != s.last.typ {
		err = s.m.check(t.typ)
		s.last.typ = t.typ
	}
	if err != nil {
		err = fmt.Errorf("%s: row %d: column %q: %w", c.name, c.row, s.m.columns[roleType], err)
	}
	return t, err
}

// sort sorts all rows, once.
func (s *source) sort(ctx context.Context, e *format.Env) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sorter != nil {
		return nil
	}
	memory := cmp.Or(max(e.Memory, 0), record.DefaultMemory)
	sorter := extsort.New(extsort.Options{Memory: memory / 2, TempDir: e.TempDir})
	a := &adder{s: s, to: sorter}
	err := s.each(ctx, s.m.roles(), func(f *file, group int, err error) error { return s.damage(e, f, group, err) }, a.add)
	if err == nil {
		err = sorter.Prepare()
	}
	if err != nil {
		return errors.Join(err, sorter.Close())
	}
	s.sorter = sorter
	return nil
}

// damage reports damage with salvage, and returns other errors.
func (s *source) damage(e *format.Env, f *file, group int, err error) error {
	var c *record.CorruptError
	if !errors.As(err, &c) || !s.o.Salvage && !record.IsNewer(err) {
		return err
	}
	what := "the file is not read"
	if group >= 0 {
		what = fmt.Sprintf("rows of row group %d are missing from there on", group)
	}
	found := record.Finding{Kind: record.FindDamagedBlock, Severity: record.Error,
		Place: record.Place{File: f.name, Off: c.Off, Level: -1}, Detail: c.Reason() + "; " + what}
	if record.IsNewer(err) {
		found.Kind = record.FindNewer
	}
	if e.Report != nil {
		e.Report(found)
	}
	return nil
}
