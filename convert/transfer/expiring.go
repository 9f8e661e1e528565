package transfer

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"kvferry/convert/result"
	"kvferry/record"
)

// What was written to a server expires while the conversion goes on, and the server drops it: those records, and those fields
// of hashes, cannot be read back. Digests of what expires soon are therefore kept by the time until which all of it will
// have, so that the proof can leave it out on both sides.
const (
	// fineStep are the distances of these times up to fineUntil after a conversion began, and coarseStep up to coarseUntil.
	fineStep, fineUntil     = 10 * time.Minute, 48 * time.Hour
	coarseStep, coarseUntil = 6 * time.Hour, 32 * 24 * time.Hour
	// clockMargin is how far the clock of a server may be ahead.
	clockMargin = time.Minute
)

// Lapse tells the times until which records will have expired; nil when nothing expires meanwhile.
type Lapse struct{ began int64 }

// NewLapse returns that of a run into a server that began at a time.
func NewLapse(began time.Time) *Lapse { return &Lapse{began.UnixMilli()} }

// until is the time at which all records that expire with this one will have; 0 when that is not soon.
func (l *Lapse) until(ms int64) int64 {
	if l == nil || ms == 0 {
		return 0
	}
	up := func(step time.Duration) int64 {
		s := step.Milliseconds()
		return l.began + (ms-l.began+s-1)/s*s
	}
	switch after := ms - l.began; {
	case after <= 0:
		return l.began
	case after <= fineUntil.Milliseconds():
		return up(fineStep)
	case after <= coarseUntil.Milliseconds():
		return up(coarseStep)
	}
	return 0
}

// Gone is the time until which records are left out of a proof that reads what a server holds at a moment.
func (l *Lapse) Gone(at time.Time) int64 {
	return l.until(at.Add(clockMargin).UnixMilli())
}

// expiringDigests are digests by time and type.
type expiringDigests map[expiringKey]lapsing

type expiringKey struct {
	until int64
	typ   record.Type
}

// lapsing is what is gone at a time.
type lapsing struct {
	record.Digest
	fields int64
}

func (e expiringDigests) add(until int64, typ record.Type, d record.Digest, fields int64) {
	k := expiringKey{until, typ}
	sum := e[k]
	sum.Digest.Add(d)
	sum.fields += fields
	e[k] = sum
}

// lapse is what will be gone of a record at a time.
type lapse struct {
	until int64
	typ   record.Type
	lapsing
}

func (e expiringDigests) addAll(list []lapse) {
	for _, l := range list {
		e.add(l.until, l.typ, l.Digest, l.fields)
	}
}

// list orders them.
func (e expiringDigests) list(db string) []result.Expiring {
	var out []result.Expiring
	for k, d := range e {
		out = append(out, result.Expiring{Until: k.until, PartDigest: result.PartDigest{DB: db, Type: k.typ.String(), Digest: d.Digest}, Fields: d.fields})
	}
	slices.SortFunc(out, func(a, b result.Expiring) int {
		return cmp.Or(cmp.Compare(a.Until, b.Until), cmp.Compare(a.Type, b.Type))
	})
	return out
}

// expiringFields are the fields of one hash that expire soon, by the time until which they will have.
type expiringFields struct {
	by    map[int64]*fieldSum
	order []int64
	buf   []byte
}

type fieldSum struct {
	sum   record.Sum128
	count int64
}

// note takes fields of the current hash.
func (f *expiringFields) note(l *Lapse, elems []record.Element) {
	for i := range elems {
		until := l.until(elems[i].ExpireMS)
		if until == 0 {
			continue
		}
		if f.by == nil {
			f.by = map[int64]*fieldSum{}
		}
		at := f.by[until]
		if at == nil {
			at = new(fieldSum)
			f.by[until] = at
		}
		var sum record.Sum128
		sum, f.buf = record.ElementSum(f.buf, record.Hash, &elems[i])
		at.sum, at.count = at.sum.Add(sum), at.count+1
	}
}

// lapses appends what will be gone of the current record, whose digest is d, and when: first fields, one time after the other,
// then what is left of it.
func (x *task) lapses(out []lapse, d record.Digest) []lapse {
	whole := x.Lapse.until(x.header.ExpireMS)
	f := &x.fading
	f.order = slices.AppendSeq(f.order[:0], maps.Keys(f.by))
	slices.Sort(f.order)
	for _, until := range f.order {
		if whole != 0 && until >= whole {
			break
		}
		gone := f.by[until]
		x.hasher.Drop(gone.sum, gone.count)
		left := x.hasher.End(&x.header)
		d.Sub(left)
		out = append(out, lapse{until, record.Hash, lapsing{d, gone.count}})
		d = left
	}
	if whole != 0 && d.Records > 0 {
		out = append(out, lapse{whole, x.header.Type, lapsing{d, 0}})
	}
	clear(f.by)
	return out
}

// lasting leaves out of fields those that the proof does not compare.
func (p *prover) lasting(elems []record.Element) []record.Element {
	if p.Lapse == nil {
		return elems
	}
	n := 0
	for i := range elems {
		if until := p.Lapse.until(elems[i].ExpireMS); until == 0 || until > p.Gone {
			elems[n] = elems[i]
			n++
		}
	}
	return elems[:n]
}
