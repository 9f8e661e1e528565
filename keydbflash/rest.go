package keydbflash

import (
	"strconv"
	"strings"

	"kvferry/internal/shared/dataset"
	"kvferry/internal/shared/versioned"
	"kvferry/record"
	"kvferry/store"
)

// indexOf returns the index family of a family of keys: the server numbers index families one higher.
func indexOf(family string) string {
	n, _ := strconv.Atoi(family)
	return strconv.Itoa(n+1) + expires
}

// familyOf returns the family of a database's keys.
func familyOf(db *versioned.Database) string { return db.Stores[0].Metas.Name() }

// settleRest makes each database count its index, and the first one also count the other families.
func (s *source) settleRest() {
	counted, indexes := map[string]bool{}, []store.Keyspace{}
	for _, db := range s.DBs {
		counted[familyOf(db)], counted[indexOf(familyOf(db))] = true, true
		if ks := s.families[indexOf(familyOf(db))]; ks != nil {
			indexes = append(indexes, ks)
		}
	}
	for _, ks := range s.store.Keyspaces() {
		if !counted[ks.Name()] {
			s.others = append(s.others, ks)
		}
	}
	others := s.others
	for _, db := range s.DBs {
		db.Stores[0].Layout.Rest = s.restOf(others)
		others = nil
	}
	s.others = append(s.others, indexes...)
}

// restOf counts the rows of the index of a database and of others, in a pass that reads strings.
func (s *source) restOf(others []store.Keyspace) func(*versioned.Pass) error {
	return func(p *versioned.Pass) error {
		if !p.Types().Has(record.String) {
			return nil
		}
		for _, ks := range others {
			rest := dataset.Rest{Keyspace: ks, Judge: func(raw, value []byte) (record.Class, error) {
				return record.Housekeeping, s.checkRest(ks.Name(), raw, value)
			}}
			if err := rest.Count(p.Env()); err != nil {
				return err
			}
		}
		return s.countIndex(p)
	}
}

// checkRest checks a row that belongs to no key.
func (s *source) checkRest(family string, raw, value []byte) error {
	number, isIndex := strings.CutSuffix(family, expires)
	switch {
	case family == familyDefault:
		_, err := s.dialect(familyDefault, newDialect).metadataRow(raw, value)
		return err
	case isIndex && dataset.IsNumber(number):
		_, _, err := decodeIndex(raw, value)
		return err
	}
	is, err := own(raw, value)
	if !is {
		err = record.Unknown(0, "family", family)
	}
	return err
}

// countIndex counts the rows of a database's index and, in a deep pass, finds rows without a key of their expiry.
func (s *source) countIndex(p *versioned.Pass) error {
	family, stale := p.Store().Metas.Name(), int64(0)
	ks := s.families[indexOf(family)]
	if ks == nil {
		return nil
	}
	rest := dataset.Rest{Keyspace: ks, Judge: func(raw, value []byte) (record.Class, error) {
		when, key, err := decodeIndex(raw, value)
		if err != nil || !p.Env().Deep {
			return record.Housekeeping, err
		}
		row, err := dataset.Get(p.Store().Metas.Keyspace, s.dialects[family].appendKey(nil, key))
		if err != nil {
			return record.Housekeeping, &dataset.ReadError{Err: err}
		}
		v, err := decodeValue(row)
		if _, first := v.expiry(); err != nil || first != max(when, 1) {
			stale++
		}
		return record.Housekeeping, nil
	}}
	err := rest.Count(p.Env())
	if stale > 0 {
		rest.Report(p.Env(), record.Finding{Kind: FindStaleTTL, Severity: record.Note,
			Detail: record.Count(stale, "row") + " of the index of expiries without a key of that expiry: harmless"})
	}
	return err
}

// findIndexRow looks for the index row of an expiring key, by which the server would delete it.
func (s *source) findIndexRow(p *versioned.Pass) (bool, error) {
	m, family := p.Meta(), p.Store().Metas.Name()
	if m.Fields.Lower == 0 || !p.Env().Deep || !s.dialects[family].slots {
		return true, nil
	}
	row, err := dataset.Get(s.family(indexOf(family)), appendIndex(nil, m.Fields.Lower, m.Key))
	if err == nil && row == nil {
		p.Remark(FindMissingTTL, record.Note, "not in the index of expiries: the server hides it once expired, and does not delete it")
	}
	return true, err
}

// Kinds of findings.
const (
	// FindSlot: the slot in a row's key is not the user key's slot.
	FindSlot = "slot-mismatch"
	// FindUnknownFamily: the server does not know a column family and does not start with it.
	FindUnknownFamily = "unknown-family"
	// FindSwapped: the rows that record SWAPDB contradict each other.
	FindSwapped = "swapped-databases"
	// FindUnclean: the server was killed, or still runs: data that was only in its memory is missing.
	FindUnclean = "unclean-shutdown"
	// FindStaleTTL: rows of the index of expiries without a key that has this expiry; the server leaves them behind.
	FindStaleTTL = "stale-ttl-rows"
	// FindMissingTTL: keys with an expiry that are not in the index: the server hides them once expired, and does not
	// delete them.
	FindMissingTTL = "missing-ttl-row"
	// FindScoreNaN: a score is not a number.
	FindScoreNaN = "score-nan"
	// FindStreamLength: the length of a stream is not the number of its entries.
	FindStreamLength = "stream-length"
)
