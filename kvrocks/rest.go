package kvrocks

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"kvferry/internal/shared/dataset"
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
		if err := s.countLost(p, s.family(name)); err != nil {
			return err
		}
	}
	for _, ks := range s.rest {
		kept := map[string]int64{} // rows that are not converted, by description
		rest := dataset.Rest{Keyspace: ks, Judge: func(raw, _ []byte) (record.Class, error) {
			what, known := codec.LeftBehind(ks.Name(), raw)
			if !known {
				return record.Malformed, record.Unknown(0, "key", record.Quote(raw))
			}
			if what != "" {
				kept[what]++
			}
			return record.Housekeeping, nil
		}}
		if err := rest.Count(p.Env()); err != nil {
			return err
		}
		for _, what := range slices.Sorted(maps.Keys(kept)) {
			rest.Report(p.Env(), record.Finding{Kind: FindLeftBehind, Severity: record.Note,
				Detail: fmt.Sprintf("%s: %d", what, kept[what])})
		}
	}
	return nil
}

// countLost counts the rows of namespaces without metadata in a column family of records.
func (s *source) countLost(p *versioned.Pass, family store.Keyspace) error {
	lost := map[string]int64{} // by namespace
	rest := dataset.Rest{Keyspace: family, Jump: s.pastNamespace, Judge: func(raw, _ []byte) (record.Class, error) {
		ns, _, err := codec.SplitNamespace(raw)
		if err != nil {
			return record.Malformed, &dataset.KindError{Kind: FindBadRowKey, Err: err}
		}
		lost[string(ns)]++
		return record.Orphan, nil
	}}
	err := rest.Count(p.Env())
	for _, ns := range slices.Sorted(maps.Keys(lost)) {
		rest.Report(p.Env(), record.Finding{Kind: FindOrphanRows, Severity: record.Note,
			Detail: fmt.Sprintf("rows of namespace %q, which has no metadata: %d; compaction removes them", ns, lost[ns])})
	}
	return err
}

// pastNamespace returns the first raw key after the rows of a namespace with metadata.
func (s *source) pastNamespace(raw []byte) (next []byte, ok bool) {
	for _, db := range s.DBs {
		if l := db.Stores[0].Layout; bytes.HasPrefix(raw, l.From) {
			return l.To, true
		}
	}
	return nil, false
}
