package keydbflash

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"kvferry/internal/shared/dataset"
	"kvferry/internal/shared/findings"
	"kvferry/internal/shared/versioned"
	"kvferry/record"
	"kvferry/store"
)

// indexOf is the family with the index of a family of keys: the server counts those of indexes from one place later.
func indexOf(family string) string {
	n, _ := strconv.Atoi(family)
	return strconv.Itoa(n+1) + expires
}

// settleRest has each database count its index, and the first what belongs to none that has keys.
func (s *source) settleRest() {
	counted := map[string]bool{}
	for _, db := range s.DBs {
		family := db.Stores[0].Metas.Name()
		counted[family], counted[indexOf(family)] = true, true
		db.Stores[0].Layout.Rest = s.restOf(s.families[indexOf(family)])
	}
	for _, ks := range s.store.Keyspaces() {
		if !counted[ks.Name()] {
			s.others = append(s.others, ks)
		}
	}
	first := s.DBs[0].Stores[0]
	s.DBs[0].Stores[0].Layout.Rest = s.restOf(append(slices.Clone(s.others), s.families[indexOf(first.Metas.Name())])...)
	for _, db := range s.DBs {
		if ks := s.families[indexOf(db.Stores[0].Metas.Name())]; ks != nil {
			s.others = append(s.others, ks)
		}
	}
}

// restOf counts the rows of some families, in a pass that reads strings.
func (s *source) restOf(spaces ...store.Keyspace) func(*versioned.Pass) error {
	return func(p *versioned.Pass) error {
		if !p.Types().Has(record.String) {
			return nil
		}
		for _, ks := range spaces {
			if ks == nil {
				continue
			}
			r := rest{src: s, p: p, name: ks.Name(), limit: findings.Limit{Deep: p.Env().Deep}}
			if err := r.run(ks); err != nil {
				return err
			}
		}
		if p.Env().Deep {
			return s.checkCount(p)
		}
		return nil
	}
}

// rest walks a family that holds no keys.
type rest struct {
	src   *source
	p     *versioned.Pass
	name  string
	it    store.Iterator
	tally record.Tally
	limit findings.Limit
	stale int64
}

func (r *rest) run(ks store.Keyspace) (err error) {
	if r.it, err = ks.Rows(nil, nil); err != nil {
		return err
	}
	for err == nil {
		r.it.Tally(&r.tally)
		var raw, value []byte
		if raw, value, err = r.it.Next(); err == nil {
			err = r.row(raw, value)
		}
	}
	if err == io.EOF {
		err = nil
	}
	r.it.Tally(&r.tally)
	if r.stale > 0 {
		r.report(record.Finding{Kind: FindStaleTTL, Severity: record.Note,
			Detail: record.Plural(r.stale, "row") + " of the index of expiries without a key of that expiry: harmless"})
	}
	if r.limit.More() {
		r.report(r.limit.Rest())
	}
	r.p.Env().Ledger.Add(r.name, &r.tally)
	return errors.Join(err, r.it.Close())
}

// row classifies a row.
func (r *rest) row(raw, value []byte) error {
	err := r.judge(raw, value)
	if err == nil {
		r.tally.Rows[record.Housekeeping]++
		return r.follow(raw, value)
	}
	r.tally.Rows[record.Malformed]++
	if kind := findings.ValueKind(err); r.limit.Tell(kind) {
		r.report(record.Finding{Kind: kind, Severity: record.Error, Place: r.it.Place(), Detail: fmt.Sprintf("row %s: %v", record.Quote(raw), err)})
	}
	return nil
}

// judge says what is wrong with a row.
func (r *rest) judge(raw, value []byte) error {
	number, isIndex := strings.CutSuffix(r.name, expires)
	switch {
	case r.name == familyDefault:
		_, err := r.src.dialect(familyDefault, newDialect).metadataRow(raw, value)
		return err
	case isIndex && dataset.IsNumber(number):
		_, _, err := decodeIndex(raw, value)
		return err
	}
	is, err := own(raw, value)
	if !is {
		err = record.Unknown(0, "family", r.name)
	}
	return err
}

// follow looks for the key of a row of an index, when asked to.
func (r *rest) follow(raw, value []byte) error {
	family := r.p.Store().Metas.Name()
	if r.name != indexOf(family) || !r.p.Env().Deep {
		return nil
	}
	when, key, _ := decodeIndex(raw, value)
	row, err := r.src.get(family, r.src.dialects[family].appendKey(nil, key))
	if v, verr := decodeValue(row); err == nil && verr == nil {
		if _, first := v.expiry(); first == max(when, 1) {
			return nil
		}
	}
	r.stale++
	return err
}

func (r *rest) report(f record.Finding) {
	if e := r.p.Env(); e.Report != nil {
		f.Keyspace = r.name
		if f.Place.File == "" {
			f.Place.Level = -1
		}
		e.Report(f)
	}
}

// judge looks for the row of the index by which the server would delete an expiring key.
func (s *source) judge(p *versioned.Pass) (bool, error) {
	m, family := p.Meta(), p.Store().Metas.Name()
	if m.Fields.Lower == 0 || !p.Env().Deep || !s.dialects[family].slots {
		return true, nil
	}
	row, err := s.get(indexOf(family), appendIndex(nil, m.Fields.Lower, m.Key))
	if err == nil && row == nil {
		p.Remark(FindMissingTTL, record.Warning, "not in the index of expiries: the server hides it once expired, and does not delete it")
	}
	return true, err
}

// checkCount compares how many keys the server counted when it stopped with those there are.
func (s *source) checkCount(p *versioned.Pass) error {
	ks := &p.Store().Metas
	value, err := s.get(ks.Name(), []byte(rowCount))
	if err != nil || len(value) != 8 {
		return err
	}
	it, err := ks.Rows(nil, nil)
	if err != nil {
		return err
	}
	n := uint64(0)
	for err == nil {
		var raw, value []byte
		if raw, value, err = it.Next(); err == nil {
			if is, _ := own(raw, value); !is {
				n++
			}
		}
	}
	if says := binary.LittleEndian.Uint64(value); err == io.EOF && says != n {
		p.Report(ks, record.Finding{Kind: FindCountMismatch, Severity: record.Note, Place: record.Place{Level: -1},
			Detail: fmt.Sprintf("the server counted %d keys when it stopped, there are %d", says, n)})
	}
	if err == io.EOF {
		err = nil
	}
	return errors.Join(err, it.Close())
}
