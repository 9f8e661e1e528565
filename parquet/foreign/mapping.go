// Package foreign reads Parquet files of other programs as records, by a mapping of their columns: a
// warehouse's export becomes a dataset.
//
// A row is a string, or an element of a collection. Rows come in any order: the rows of all files are sorted
// first, by database, type, key and field, member or index (rows.go).
package foreign

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"kvferry/format"
	"kvferry/internal/text/suggest"
	"kvferry/record"
)

// role is the use of a column.
type role uint8

const (
	roleDB role = iota
	roleType
	roleKey
	roleExpire
	roleIndex
	roleField
	roleValue
	roleMember
	roleScore
	roleFieldExpire
	numRoles
)

// roleNames are the names of the columns that dump --format parquet writes.
var roleNames = [numRoles]string{"db", "type", "key", "expire_at", "index", "field", "value", "member", "score", "field_expire_at"}

// Uses lists what a column can be used for.
func Uses() []string { return roleNames[:] }

// shape lists the columns that rows of a type need, and those that they may have. Each may have a database, a
// type and an expiry.
type shape struct{ needs, may []role }

var shapes = map[record.Type]shape{
	record.String: {needs: []role{roleKey, roleValue}},
	record.Hash:   {needs: []role{roleKey, roleField, roleValue}, may: []role{roleFieldExpire}},
	record.List:   {needs: []role{roleKey, roleValue}, may: []role{roleIndex}},
	record.Set:    {needs: []role{roleKey, roleMember}},
	record.ZSet:   {needs: []role{roleKey, roleMember, roleScore}},
}

// has reports whether a type has a use for a role.
func (s *shape) has(r role) bool {
	return r == roleDB || r == roleType || r == roleExpire || slices.Contains(s.needs, r) || slices.Contains(s.may, r)
}

// Mapping assigns columns to uses.
type Mapping struct {
	columns [numRoles]string // by use; may be empty
	typ     record.Type      // of all rows, if no column has it
}

// ParseMapping parses the values of --column, such as key=user_id. A single type in types is the type of all rows.
func ParseMapping(pairs []string, types record.TypeSet) (*Mapping, error) {
	m := &Mapping{}
	for _, pair := range pairs {
		name, column, ok := strings.Cut(pair, "=")
		r := slices.Index(roleNames[:], name)
		switch {
		case !ok || column == "":
			return nil, format.Usagef("--column %s: write what the column is for and its name, such as key=user_id", pair)
		case r < 0:
			return nil, format.Usagef("--column %s: %s", pair, suggest.Unknown("use of a column", name, roleNames[:]))
		case m.columns[r] != "":
			return nil, format.Usagef("--column %s: %s is given twice", pair, name)
		}
		m.columns[r] = column
	}
	if m.columns[roleKey] == "" {
		return nil, format.Usagef("--column: name the column of keys: --column key=NAME")
	}
	if m.has(roleType) {
		return m, nil
	}
	if list := types.Types(); len(list) == 1 {
		m.typ = list[0]
	} else {
		m.typ = m.guess()
	}
	return m, m.check(m.typ)
}

func (m *Mapping) has(r role) bool { return m.columns[r] != "" }

// guess returns the type that has the columns.
func (m *Mapping) guess() record.Type {
	switch {
	case m.has(roleField):
		return record.Hash
	case m.has(roleScore):
		return record.ZSet
	case m.has(roleMember):
		return record.Set
	case m.has(roleIndex):
		return record.List
	}
	return record.String
}

// check refuses a type whose columns are not mapped, or, if it is the only one, columns that it has no use for.
func (m *Mapping) check(t record.Type) error {
	s, ok := shapes[t]
	if !ok {
		return format.Usagef("%s: rows of files of other programs are strings, hashes, lists, sets or sorted sets", t)
	}
	for _, r := range s.needs {
		if !m.has(r) {
			return format.Usagef("rows of type %s need --column %s=NAME", t, roleNames[r])
		}
	}
	for r := range numRoles {
		if !s.has(r) && m.has(r) && !m.has(roleType) {
			return format.Usagef("--column %s=%s: type %s has none", roleNames[r], m.columns[r], t)
		}
	}
	return nil
}

// String returns the mapping in one order.
func (m *Mapping) String() string {
	parts := map[string]string{"type": cmp.Or(m.columns[roleType], "("+m.typ.String()+")")}
	for r, column := range m.columns {
		if column != "" {
			parts[roleNames[r]] = column
		}
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		out = append(out, fmt.Sprintf("%s=%s", name, parts[name]))
	}
	return strings.Join(out, ",")
}
