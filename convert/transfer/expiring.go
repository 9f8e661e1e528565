package transfer

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"kvferry/convert/result"
	"kvferry/internal/text/jsonl"
	"kvferry/record"
)

// A server drops records and hash fields that expire during a conversion, so they cannot be read back. Tasks keep a
// digest of the records that expire soon for each time step. The proof subtracts the steps that have passed and
// leaves those records out of the data it reads.
const (
	// Expiry times are rounded up to multiples of fineStep until fineUntil after the start, then of coarseStep until
	// coarseUntil. Later ones do not count as soon.
	fineStep, fineUntil     = 10 * time.Minute, 48 * time.Hour
	coarseStep, coarseUntil = 6 * time.Hour, 32 * 24 * time.Hour
	// clockMargin is the assumed maximum lead of a server's clock.
	clockMargin = time.Minute
)

// Lapse rounds expiry times to steps. A nil Lapse means that no record expires during the conversion.
type Lapse struct{ began int64 }

// NewLapse returns the steps of a conversion into a server that started at began.
func NewLapse(began time.Time) *Lapse { return &Lapse{began.UnixMilli()} }

// until returns the step that an expiry belongs to; 0 if the record does not expire soon.
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

// Gone returns the last step to leave out of a proof that reads a server at a time.
func (l *Lapse) Gone(at time.Time) int64 {
	return l.until(at.Add(clockMargin).UnixMilli())
}

// expiringDigests holds digests by step and type.
type expiringDigests map[expiringKey]lapsing

type expiringKey struct {
	until int64
	typ   record.Type
}

// lapsing is the data that expires in a step.
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

// lapse is the part of one record that expires in a step.
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

// list returns the digests in order.
func (e expiringDigests) list(db string) []result.Expiring {
	var out []result.Expiring
	for k, d := range e {
		out = append(out, result.Expiring{Until: k.until,
			PartDigest: result.PartDigest{DB: jsonl.Text(db), Type: k.typ.String(), Digest: d.Digest}, Fields: d.fields})
	}
	slices.SortFunc(out, func(a, b result.Expiring) int {
		return cmp.Or(cmp.Compare(a.Until, b.Until), cmp.Compare(a.Type, b.Type))
	})
	return out
}

// expiringFields collects the fields of one hash that expire soon, by step.
type expiringFields struct {
	by    map[int64]*fieldSum
	order []int64
	buf   []byte
}

type fieldSum struct {
	sum   record.Sum128
	count int64
}

// note adds fields of the current hash.
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

// lapses appends the steps in which the record just hashed, whose digest is d, loses data: first its fields, step by
// step, then the rest.
func (x *task) lapses(out []lapse, h *record.Header, d record.Digest) []lapse {
	whole := x.Lapse.until(h.ExpireMS)
	f := &x.fading
	f.order = slices.AppendSeq(f.order[:0], maps.Keys(f.by))
	slices.Sort(f.order)
	for _, until := range f.order {
		if whole != 0 && until >= whole {
			break
		}
		gone := f.by[until]
		x.hasher.Drop(gone.sum, gone.count)
		left := x.hasher.End(h)
		d.Sub(left)
		out = append(out, lapse{until, record.Hash, lapsing{d, gone.count}})
		d = left
	}
	if whole != 0 && d.Records > 0 {
		out = append(out, lapse{whole, h.Type, lapsing{d, 0}})
	}
	clear(f.by)
	return out
}

// lasting drops the fields that the proof leaves out.
func (p *prover) lasting(elems []record.Element) []record.Element {
	n := 0
	for i := range elems {
		if until := p.Lapse.until(elems[i].ExpireMS); until == 0 || until > p.Gone {
			elems[n] = elems[i]
			n++
		}
	}
	return elems[:n]
}
