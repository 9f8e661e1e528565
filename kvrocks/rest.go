package kvrocks

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"

	"kvferry/format"
	"kvferry/internal/shared/versioned"
	"kvferry/kvrocks/codec"
	"kvferry/record"
	"kvferry/store"
)

// countStrays counts the rows of namespaces without metadata, and of column families without records. Only a pass that
// reads strings does, so they are counted once.
func (s *source) countStrays(p *versioned.Pass) error {
	if !p.Types().Has(record.String) {
		return nil
	}
	for _, name := range codec.RecordFamilies {
		r := rest{src: s, env: p.Env(), name: name, records: true}
		if err := r.run(s.family(name)); err != nil {
			return err
		}
	}
	for _, ks := range s.rest {
		r := rest{src: s, env: p.Env(), name: ks.Name()}
		if err := r.run(ks); err != nil {
			return err
		}
	}
	return nil
}

// rest walks the rows outside the namespaces with metadata.
type rest struct {
	src     *source
	env     *format.Env
	name    string
	records bool // it holds records
	it      store.Iterator
	tally   record.Tally
	lost    map[string]int64 // rows by namespace without metadata
	kept    map[string]int64 // rows that are not converted, by description
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

// row classifies a row; it seeks past rows of namespaces with metadata.
func (r *rest) row(key []byte) error {
	if !r.records {
		r.tally.Rows[record.Housekeeping]++
		what, known := codec.LeftBehind(r.name, key)
		if what != "" {
			r.kept[what]++
		}
		if !known {
			r.report(record.FindNewer, record.Error, fmt.Sprintf("row %s is not known; kvferry does not read it", record.Quote(key)))
		}
		return nil
	}
	for _, db := range r.src.DBs {
		if l := db.Stores[0].Layout; bytes.HasPrefix(key, l.From) {
			r.it.Tally(new(record.Tally)) // their own passes count them
			if l.To == nil {
				return io.EOF
			}
			return r.it.SeekGE(l.To)
		}
	}
	ns, _, err := codec.SplitNamespace(key)
	if err == nil && r.name != codec.FamilyMetadata {
		r.tally.Rows[record.Orphan]++
		r.lost[string(ns)]++
		return nil
	}
	r.tally.Rows[record.Malformed]++
	r.report(FindBadRowKey, record.Error, fmt.Sprintf("row %s: %v", record.Quote(key), err))
	return nil
}

// summary reports the counted rows.
func (r *rest) summary() {
	for _, ns := range slices.Sorted(maps.Keys(r.lost)) {
		r.report(FindOrphanRows, record.Note, fmt.Sprintf("rows of namespace %q, which has no metadata: %d; compaction removes them", ns, r.lost[ns]))
	}
	for _, what := range slices.Sorted(maps.Keys(r.kept)) {
		r.report(FindLeftBehind, record.Note, fmt.Sprintf("%s: %d", what, r.kept[what]))
	}
}

func (r *rest) report(kind string, sev record.Severity, detail string) {
	if r.env.Report != nil {
		r.env.Report(record.Finding{Kind: kind, Severity: sev, Keyspace: r.name, Place: record.Place{Level: -1}, Detail: detail})
	}
}
