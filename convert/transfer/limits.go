package transfer

import (
	"bytes"

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

// takeNames takes the names of strings, up to the first name that is taken, and returns their number.
func (x *task) takeNames(batch []record.Record) int {
	if len(batch) == 0 || x.isTaken(batch[0].Key) {
		return 0
	}
	n := 1
	for n < len(batch) && !bytes.Equal(batch[n-1].Key, batch[n].Key) {
		n++
	}
	x.takeName(batch[n-1].Key)
	return n
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
// all. If the record moves to a new name, what does not drop it counts there.
func (x *task) drops(moves bool) bool {
	if x.header.Type == record.Other && !x.Group.Has(record.Other) {
		x.lose(record.Loss{Kind: record.LossModule, Drops: true, Detail: "the target does not support it"})
		return true
	}
	dropped := false
	x.later = x.later[:0]
	for _, l := range x.target.Losses(&x.header) {
		dropped = dropped || l.Drops
		if moves && !l.Drops {
			continue
		}
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

// giveWay handles a record whose name is taken. If it exists in the target, which for most types takes an element, it is
// renamed or lost.
func (x *task) giveWay(r *record.Record, ends bool) {
	r.Hidden = !x.NewNames || ends
	if r.N == 0 && !(ends && x.keeps(0)) {
		return
	}
	x.open.taken = false
	if x.NewNames {
		x.takeNewName(r)
		return
	}
	r.Class, r.Skip = x.giveName(), true
	x.open.moved = r.Class == record.Copied
}

// takeNewName renames the current record where it is. The new name may be in use.
func (x *task) takeNewName(r *record.Record) {
	x.open.renamed, r.Hidden = true, false
	to := (&Rename{typ: r.Type, key: r.Key}).plain()
	x.lose(record.Loss{Kind: record.LossSameName, Detail: "written as " + record.Quote(to) + ", or with _ after it if that name is in use"})
	x.header.Key = to
	if x.drops(false) {
		r.Class = record.Lost
	}
	r.Header = x.header
}

// giveName counts the loss of the current record, whose name is taken, and returns the class of its rows.
func (x *task) giveName() record.Class {
	if x.Renames == nil {
		x.lose(record.Loss{Kind: record.LossSameName, Drops: true, Detail: "the target holds each name under one type only"})
		return record.Lost
	}
	to := newName(x.Renames, Rename{db: x.DB, typ: x.header.Type, key: x.header.Key})
	x.lose(record.Loss{Kind: record.LossSameName, Detail: "written as " + record.Quote(to)})
	return record.Copied
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
