// Package filter selects the records that a command works on: by database, type, key, expiry and size.
package filter

import (
	"regexp"
	"slices"

	"kvferry/format"
	"kvferry/internal/text/suggest"
	"kvferry/record"
)

// Filter passes the records that satisfy all of its conditions. The zero Filter passes everything.
type Filter struct {
	// Types to pass; 0 passes all.
	Types record.TypeSet
	// DBs to pass, by name; an empty list passes all.
	DBs []string
	// Match are glob patterns in the syntax of Redis' KEYS. A key must match one of them.
	Match []string
	// Exclude are patterns in the same syntax. A key must match none of them.
	Exclude []string
	// Regex must match somewhere in the key; nil passes all.
	Regex *regexp.Regexp
	// Keys, if not nil, are the only keys to pass.
	Keys map[string]struct{}
	// Range, if not nil, holds the only keys to pass.
	Range *format.Span
	// Sample passes one key in n, the same keys in every dataset; 0 and 1 pass all.
	Sample uint64
	// Where, if not nil, must return true. It is called from several goroutines and must return the same each time.
	Where func(*record.Header) bool
}

// Type reports whether records of a type can pass.
func (f *Filter) Type(t record.Type) bool { return f.Types == 0 || f.Types.Has(t) }

// DB reports whether records of a database can pass.
func (f *Filter) DB(name string) bool { return len(f.DBs) == 0 || slices.Contains(f.DBs, name) }

// Key reports whether records with a key can pass. It does not allocate.
func (f *Filter) Key(key []byte) bool {
	if f.Keys != nil {
		if _, ok := f.Keys[string(key)]; !ok {
			return false
		}
	}
	if f.Range != nil && !f.Range.Has(key) || len(f.Match) > 0 && !matches(f.Match, key) || matches(f.Exclude, key) {
		return false
	}
	if f.Regex != nil && !f.Regex.Match(key) {
		return false
	}
	return f.Sample <= 1 || record.HashBytes(key).Lo%f.Sample == 0
}

// ByKey reports whether the filter can exclude a record by its key.
func (f *Filter) ByKey() bool {
	return len(f.Match) > 0 || len(f.Exclude) > 0 || f.Regex != nil || f.Keys != nil || f.Range != nil || f.Sample > 1
}

func matches(patterns []string, key []byte) bool {
	for _, pattern := range patterns {
		if Glob(pattern, key) {
			return true
		}
	}
	return false
}

// Header reports whether a record passes.
func (f *Filter) Header(h *record.Header) bool {
	return f.Type(h.Type) && f.DB(h.DB) && f.Key(h.Key) && (f.Where == nil || f.Where(h))
}

// Active reports whether the filter can exclude any record.
func (f *Filter) Active() bool {
	return f.Types != 0 || len(f.DBs) > 0 || f.ByKey() || f.Where != nil
}

// SelectDBs returns the databases that pass, in their order. It returns an error if a requested database is missing.
func (f *Filter) SelectDBs(have []string) ([]string, error) {
	for _, db := range f.DBs {
		if !slices.Contains(have, db) {
			return nil, &NoDatabaseError{DB: db, Have: have, Of: "the source"}
		}
	}
	var out []string
	for _, db := range have {
		if f.DB(db) {
			out = append(out, db)
		}
	}
	return out, nil
}

// NoDatabaseError means that a dataset does not have a database that was requested.
type NoDatabaseError struct {
	DB   string
	Have []string
	Of   string // owner of the databases in Have
}

func (e *NoDatabaseError) Error() string {
	return suggest.Missing("database", e.DB, e.Of, e.Have)
}
