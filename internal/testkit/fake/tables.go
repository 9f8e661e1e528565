package fake

import (
	"kvferry/internal/shared/dataset"
	"kvferry/record"
	"kvferry/store"
)

// Tables is a store of made-up tables with one keyspace, default.
type Tables struct {
	Listed  []store.File
	Entries []store.Entry
	// Damage is reported after the entries; it may be nil.
	Damage *record.Finding
	Report func(record.Finding)
}

func (s *Tables) Files() []store.File { return s.Listed }
func (s *Tables) Close() error        { return nil }
func (s *Tables) Keyspaces() []store.Keyspace {
	return []store.Keyspace{&tablesSpace{dataset.Absent("default"), s}}
}

type tablesSpace struct {
	dataset.Absent
	s *Tables
}

func (k *tablesSpace) Unordered(f func(*store.Entry) error) error {
	for i := range k.s.Entries {
		if err := f(&k.s.Entries[i]); err != nil {
			return err
		}
	}
	if k.s.Damage != nil {
		k.s.Report(*k.s.Damage)
	}
	return nil
}
