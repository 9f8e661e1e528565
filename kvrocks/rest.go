package kvrocks

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"kvferry/format"
	"kvferry/kvrocks/codec"
	"kvferry/record"
	"kvferry/store"
)

// countRest counts the rows that are of no namespace with metadata, and the column families that hold no records.
func (s *source) countRest(e *format.Env) error {
	for i, ks := range s.roles {
		r := rest{src: s, env: e, role: role(i), name: roleNames[i]}
		if err := r.run(ks); err != nil {
			return err
		}
	}
	for _, ks := range s.rest {
		r := rest{src: s, env: e, role: numRoles, name: ks.Name()}
		if err := r.run(ks); err != nil {
			return err
		}
	}
	return nil
}

// rest walks what is beside the namespaces.
type rest struct {
	src   *source
	env   *format.Env
	role  role // numRoles: none
	name  string
	it    store.Iterator
	tally record.Tally
	lost  map[string]int64 // rows by namespaces that have no metadata
	kept  map[string]int64 // rows that stay behind, by what they are
}

func (r *rest) run(ks store.Keyspace) (err error) {
	if r.it, err = ks.Rows(nil, nil); err != nil {
		return err
	}
	r.lost, r.kept = map[string]int64{}, map[string]int64{}
	for err == nil {
		r.it.Tally(&r.tally)
		var key []byte
		if key, _, err = r.it.Next(); err == nil {
			err = r.row(key)
		}
	}
	if err == io.EOF {
		err = nil
	}
	r.it.Tally(&r.tally)
	r.summary()
	if r.tally != (record.Tally{}) {
		r.env.Ledger.Add(r.name, &r.tally)
	}
	if cerr := r.it.Close(); err == nil {
		err = cerr
	}
	return err
}

// row classifies a row; those of namespaces are jumped over.
func (r *rest) row(key []byte) error {
	if r.role == numRoles {
		r.tally.Rows[record.Housekeeping]++
		if what := r.behind(key); what != "" {
			r.kept[what]++
		}
		return nil
	}
	for _, sp := range r.src.spaces {
		if bytes.HasPrefix(key, sp.prefix) {
			r.it.Tally(new(record.Tally)) // their own passes count them
			if sp.upper == nil {
				return io.EOF
			}
			return r.it.SeekGE(sp.upper)
		}
	}
	ns, _, err := codec.SplitNamespace(key)
	if err == nil && r.role != roleMeta {
		r.tally.Rows[record.Orphan]++
		r.lost[string(ns)]++
		return nil
	}
	r.tally.Rows[record.Malformed]++
	r.report(FindBadRowKey, record.Error, fmt.Sprintf("row %s: %v", record.Quote(key), err))
	return nil
}

// behind says what a row of a column family without records is that the server does not make again; "" for
// others.
func (r *rest) behind(key []byte) string {
	switch {
	case r.name == codec.FamilySearch:
		return "rows of search indexes (make them anew with FT.CREATE)"
	case r.name != codec.FamilyPropagate:
		return ""
	case string(key) == "__namespace_keys__":
		return "table of namespace tokens (NAMESPACE ADD gives them anew)"
	case strings.HasPrefix(string(key), "lua_f_"):
		return "scripts (SCRIPT LOAD)"
	case strings.HasPrefix(string(key), "lua_lib_code_"):
		return "function libraries (FUNCTION LOAD)"
	}
	return ""
}

// summary reports what was counted.
func (r *rest) summary() {
	for _, ns := range slices.Sorted(maps.Keys(r.lost)) {
		r.report(FindOrphanRows, record.Note, fmt.Sprintf("rows of namespace %q, which has no metadata: %d; compaction removes them", ns, r.lost[ns]))
	}
	for _, what := range slices.Sorted(maps.Keys(r.kept)) {
		r.report(FindLeftBehind, record.Note, fmt.Sprintf("%d %s", r.kept[what], what))
	}
}

func (r *rest) report(kind string, sev record.Severity, detail string) {
	if r.env.Report != nil {
		r.env.Report(record.Finding{Kind: kind, Severity: sev, Keyspace: r.name, Place: record.Place{Level: -1}, Detail: detail})
	}
}
