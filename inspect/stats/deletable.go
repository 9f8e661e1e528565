package stats

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"slices"
	"strings"

	"kvferry/internal/pass/filter"
	"kvferry/record"
)

// Deletable is data that its owner may not need.
type Deletable struct {
	Why     string // expired, garbage, no-expiry or duplicates
	DB      string // "" if it is in several
	Pattern []byte // of the keys, for no-expiry; the first key, for duplicates
	Records int64  // rows, for garbage
	Of      int64  // all records with the pattern, for no-expiry
	Bytes   int64  // logical; on disk, for garbage; 0: unknown
	Command []string
}

const (
	// mostDeletable is the number of patterns, and of values, that are listed.
	mostDeletable = 5
	// expiringOf is the least number of records of a pattern that otherwise expires: of so many, one may have no expiry.
	expiringOf = 10
)

// deletable lists data that its owner may not need.
func (v *counter) deletable(a *About, s *Result) []Deletable {
	var out []Deletable
	if e := s.Expiry[0]; e.Records > 0 {
		out = append(out, Deletable{Why: "expired", Records: e.Records, Bytes: e.Bytes,
			Command: a.command("keys", "--expired", "keep", "--ttl-to", "0s")})
	}
	return slices.Concat(out, a.wasted(s.Garbage), a.lasting(v.places.to), a.duplicates(&v.values))
}

// command returns a command with the filters that it does not have itself. It leaves out --key-file.
func (a *About) command(words ...string) []string {
	words = slices.Insert(slices.Insert(words, 1, string(a.Location)), 0, "kvferry")
	own := words
	for _, name := range filter.Names() {
		if name != filter.KeyFile && !slices.Contains(own, "--"+name) {
			words = append(words, a.Filters.Words(name)...)
		}
	}
	return words
}

// in returns the flag for a database, if there are several.
func (a *About) in(db string) []string {
	if len(a.Facts.Databases) < 2 {
		return nil
	}
	return []string{"--db", filter.Conditions{"db": {db}}.Values("db")[0]}
}

// lasting lists records that never expire with prefixes whose records otherwise do.
func (a *About) lasting(t *tree) (out []Deletable) {
	var visit func(db string, parts []KeyPath, n *node)
	visit = func(db string, parts []KeyPath, n *node) {
		if n.own != nil {
			all, never := n.own.Sum(), n.own.Never()
			if never.Records > 0 && all.Records >= expiringOf && never.Records <= all.Records/expiringOf {
				pattern, _ := a.pattern(parts, n.own)
				out = append(out, Deletable{Why: "no-expiry", DB: db, Pattern: pattern, Records: never.Records,
					Bytes: never.Bytes, Of: all.Records, Command: a.command(
						append([]string{"keys", "--no-expiry", "--match", glob(pattern)}, a.in(db)...)...)})
			}
		}
		for _, p := range n.parts() {
			visit(db, append(slices.Clip(parts), p), n.at(p))
		}
	}
	for db, n := range t.roots {
		visit(db, nil, n)
	}
	slices.SortFunc(out, func(x, y Deletable) int {
		return cmp.Or(cmp.Compare(y.Bytes, x.Bytes), cmp.Compare(x.DB, y.DB), slices.Compare(x.Pattern, y.Pattern))
	})
	return out[:min(len(out), mostDeletable)]
}

// glob returns a pattern for --match of the keys with a pattern. Keys of other patterns may match it, too.
func glob(pattern []byte) string {
	var b strings.Builder
	for _, c := range pattern {
		switch c {
		case '#', '*':
			c = '*'
		case '?', '[', '\\':
			b.WriteByte('\\')
		}
		b.WriteByte(c)
	}
	return b.String()
}

// duplicates lists values that several strings have.
func (a *About) duplicates(v *values) (out []Deletable) {
	all := v.twins()
	for _, t := range all[:min(len(all), mostDeletable)] {
		d := Deletable{Why: "duplicates", Pattern: t.keys[0].Key, Records: t.count, Bytes: t.spare(),
			Command: []string{"kvferry", "get", string(a.Location), "--type", "string"}}
		if t.keys[0].DB == t.keys[1].DB {
			d.DB = t.keys[0].DB
			d.Command = append(d.Command, a.in(d.DB)...)
		}
		for _, k := range t.keys {
			d.Command = append(d.Command, keyWord(k.Key))
		}
		out = append(out, d)
	}
	return out
}

// keyWord formats a key as an argument of a command.
func keyWord(key []byte) string {
	if bytes.HasPrefix(key, []byte("-")) {
		return "hex:" + hex.EncodeToString(key)
	}
	return filter.KeyText(key)
}

// wasted sums up the garbage rows.
func (a *About) wasted(lines []Garbage) (out []Deletable) {
	d := Deletable{Why: "garbage", Command: a.command("dump", "--dead", "--keys-only")}
	for i := range lines {
		d.Bytes += lines[i].Freed
		d.Records += max(0, lines[i].Entries-lines[i].Live()-lines[i].Rows[record.Expired])
	}
	if d.Records > 0 {
		out = append(out, d)
	}
	return out
}
