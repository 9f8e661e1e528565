package compare

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"kvferry/format"
	"kvferry/internal/pass/filter"
	"kvferry/internal/text/jsonl"
	"kvferry/internal/text/suggest"
)

// DBNames are the names of one database on the two sides of a comparison.
type DBNames struct{ A, B string }

// String formats the names like the command line.
func (n DBNames) String() string { return n.A + "=" + n.B }

// MarshalJSON encodes the names as an object.
func (n DBNames) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		A jsonl.Text `json:"a"`
		B jsonl.Text `json:"b"`
	}{jsonl.Text(n.A), jsonl.Text(n.B)})
}

// DBMap matches databases whose names differ. A name occurs once per side.
type DBMap []DBNames

// Add adds a pair of names. It returns an error if the map already has one of them.
func (m *DBMap) Add(n DBNames) error {
	for _, other := range *m {
		if other.A == n.A || other.B == n.B {
			return &DBMapError{fmt.Sprintf("%s and %s: a database can be compared with only one other", other, n)}
		}
	}
	*m = append(*m, n)
	return nil
}

// DBMapError means that a map does not match the databases.
type DBMapError struct{ text string }

func (e *DBMapError) Error() string { return e.text }

// Second translates database names of the first side to the second side.
func (m DBMap) Second(dbs []string) ([]string, error) {
	out := slices.Clone(dbs)
	for i, db := range dbs {
		if at := slices.IndexFunc(m, func(n DBNames) bool { return n.A == db }); at >= 0 {
			out[i] = m[at].B
			continue
		}
		for _, n := range m {
			if n.B == db {
				return nil,
					&DBMapError{fmt.Sprintf("%s: --db %s selects by the names on the first side: use --db %s", n, db, n.A)}
			}
		}
	}
	return out, nil
}

// fits returns an error if a name does not exist on its side. called names the sides for the error.
func (m DBMap) fits(as, bs []string, called DBNames) error {
	for _, n := range m {
		if !slices.Contains(as, n.A) {
			return missing(n, n.A, called.A, as)
		}
		if !slices.Contains(bs, n.B) {
			return missing(n, n.B, called.B, bs)
		}
	}
	return nil
}

// numbered adds to the map the databases that have names on one side and numbers on the other, as a conversion
// numbers them.
func (m DBMap) numbered(as, bs []string, a, b format.Limits) DBMap {
	if a.Numbered == b.Numbered {
		return m
	}
	out, names, limits := slices.Clone(m), as, a
	if a.Numbered {
		names, limits = bs, b
	}
	for i, number := range format.Numbers(names, limits) {
		n := DBNames{names[i], number}
		if a.Numbered {
			n = DBNames{number, names[i]}
		}
		if n.A != n.B && slices.Contains(as, n.A) && slices.Contains(bs, n.B) {
			_ = out.Add(n) // the given map comes first
		}
	}
	return out
}

func missing(n DBNames, name, side string, have []string) error {
	return &DBMapError{fmt.Sprintf("%s: %s", n, suggest.Missing("database", name, side, have))}
}

// Hint adds to a missing-database error of the second side that the database may have another name there.
func (m DBMap) Hint(err error) error {
	var none *filter.NoDatabaseError
	if errors.As(err, &none) && !slices.ContainsFunc(m, func(n DBNames) bool { return n.B == none.DB }) {
		return fmt.Errorf("%w; if it has another name there: --map-db %s=NAME", err, none.DB)
	}
	return err
}

// DBPair is a database on the two sides of a comparison. It may exist on one side only.
type DBPair struct {
	DBNames
	InA, InB bool
}

// String returns the name in A, followed by the name in B in brackets if it differs.
func (p DBPair) String() string {
	switch {
	case !p.InA:
		return p.B
	case !p.InB || p.A == p.B:
		return p.A
	}
	return p.A + " (" + p.B + ")"
}

// pairs matches databases by the map, else by name, or because each side has only one. The result lists the databases
// of the first side, then those only on the second. A database only on the second side must not share its name with a
// database of the first that the map matches elsewhere.
func (m DBMap) pairs(as, bs []string) ([]DBPair, error) {
	if len(as) == 1 && len(bs) == 1 {
		return []DBPair{{DBNames{as[0], bs[0]}, true, true}}, nil
	}
	second, taken := make(map[string]string), make(map[string]bool)
	for _, n := range m {
		second[n.A], taken[n.B] = n.B, true
	}
	var out []DBPair
	matched := make(map[string]bool)
	for _, a := range as {
		p := DBPair{DBNames: DBNames{A: a}, InA: true}
		if b, mapped := second[a]; mapped {
			p.B, p.InB = b, slices.Contains(bs, b)
		} else if !taken[a] {
			p.B, p.InB = a, slices.Contains(bs, a)
		}
		if p.InB {
			matched[p.B] = true
		}
		out = append(out, p)
	}
	for _, b := range bs {
		if matched[b] {
			continue
		}
		if slices.Contains(as, b) {
			return nil, &DBMapError{fmt.Sprintf("%s: database %q of the second side has no counterpart in the first: map it too, or leave it out with --db",
				DBNames{b, second[b]}, b)}
		}
		out = append(out, DBPair{DBNames: DBNames{B: b}, InB: true})
	}
	return out, nil
}
