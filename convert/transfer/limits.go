package transfer

import (
	"bytes"
	"io"
	"slices"

	"kvferry/format"
	"kvferry/record"
)

// isTaken reports whether the previous record has the same name and keeps it.
func (x *task) isTaken(key []byte) bool {
	return !x.SameName && x.hasLast && bytes.Equal(x.lastKey, key)
}

// takeName gives a name to the current record.
func (x *task) takeName(key []byte) {
	if !x.SameName {
		x.lastKey, x.hasLast = append(x.lastKey[:0], key...), true
	}
}

// keeps reports whether the current record exists in the target with count elements. Only a stream may be empty.
func (x *task) keeps(count int64) bool {
	return count > 0 || x.header.Type == record.Stream && !(x.NoBlankStream && isZero(x.header.Last))
}

func isZero(id []byte) bool { return bytes.Count(id, []byte{0}) == len(id) }

// fit drops from a batch the data that the target's limits exclude, and counts it as losses.
func (x *task) fit(batch []record.Element) []record.Element {
	switch {
	case x.header.Type == record.Hash && !x.FieldExpiry:
		for i := range batch {
			if batch[i].ExpireMS != 0 {
				batch[i].ExpireMS = 0
				x.lose(record.Loss{Kind: record.LossFieldExpiry, Detail: "field " + record.Quote(batch[i].Name)})
			}
		}
	case x.header.Type == record.Stream && !x.StreamGroups:
		return x.entries(batch)
	case x.header.Type == record.Stream && x.orphans.limit >= 0:
		return x.orphans.leaveOut(batch, x.lose)
	}
	return batch
}

// entries drops consumer groups, which follow the entries of a stream. Each group is a loss, together with its
// consumers and pending entries.
func (x *task) entries(batch []record.Element) []record.Element {
	for i := range batch {
		if batch[i].Kind == record.Entry {
			continue
		}
		for j := range batch[i:] {
			if e := &batch[i+j]; e.Kind == record.Group {
				x.lose(record.Loss{Kind: record.LossStreamGroups, Drops: true, Detail: "group " + record.Quote(e.Name)})
			} else {
				x.lost++
			}
		}
		return batch[:i]
	}
	return batch
}

// drops counts the losses of the current record's header and reports whether the target cannot hold the record at
// all.
func (x *task) drops() bool {
	if x.header.Type == record.Other && !x.Group.Has(record.Other) {
		x.lose(record.Loss{Kind: record.LossModule, Drops: true, Detail: "the target does not support it"})
		return true
	}
	dropped := false
	x.later = x.later[:0]
	for _, l := range x.target.Losses(&x.header) {
		dropped = dropped || l.Drops
		if x.header.Type == record.Other && !l.Drops {
			x.later = append(x.later, l)
			continue
		}
		x.lose(l)
	}
	if dropped {
		return true
	}
	if !x.Group.Has(x.header.Type) {
		x.lose(record.Loss{Kind: x.header.Type.String(), Drops: true, Detail: "the target has no such type"})
		return true
	}
	return false
}

// keyspacesOf lists the keyspaces of a database that hold rows of a record.
func keyspacesOf(src format.Source, db string, h *record.Header) []string {
	var out []string
	for _, r := range src.Where(db, h.Key) {
		if r.Type == h.Type || r.Type == 0 {
			out = append(out, r.Keyspace)
		}
	}
	return out
}

// taken handles the current record, whose name is taken: it is renamed, lost or, without elements, ignored.
func (x *task) taken() error {
	something, err := x.something()
	if err == nil && something {
		x.reader.Settle(x.giveName())
	}
	return err
}

// giveName counts the loss of the current record, whose name is taken, and returns the class of its rows.
func (x *task) giveName() record.Class {
	if x.Renames == nil {
		x.lose(record.Loss{Kind: record.LossSameName, Drops: true, Detail: "the target holds each name under one type only"})
		return record.Lost
	}
	to := newName(x.Renames, Rename{db: x.DB, typ: x.header.Type, key: x.header.Key})
	x.lose(record.Loss{Kind: record.LossSameName, Detail: "written as " + record.Quote(to)})
	if x.dropsAs(to) {
		return record.Lost // counted when renamedReader returns the record
	}
	return record.Copied
}

// something reports whether the current record exists in the target. Most types need an element.
func (x *task) something() (bool, error) {
	n, err := x.reader.Read(x.batch[:1])
	if err == io.EOF {
		return x.keeps(0), nil
	}
	return n > 0, err
}

// dropsAs reports whether the target cannot hold the current record under a name.
func (x *task) dropsAs(name []byte) bool {
	h := x.header
	h.Key = name
	return slices.ContainsFunc(x.target.Losses(&h), func(l record.Loss) bool { return l.Drops })
}

// lose counts a loss of the current record. A module value may arrive in several pieces; only the first counts.
func (x *task) lose(l record.Loss) {
	if l.Kind == record.LossModule {
		if x.opaque {
			x.lost++
			return
		}
		x.opaque = true
	}
	x.losses.Add(l, x.DB, &x.header)
	if l.Drops {
		x.lost++
	}
	if !l.Note && !x.Allows(l.Kind) {
		x.Refused.Store(true)
	}
}
