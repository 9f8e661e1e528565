package compare

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"kvferry/format"
	"kvferry/inspect"
	"kvferry/internal/pass/filter"
	"kvferry/record"
)

// Side is the side of a comparison that has a record or element.
type Side uint8

// Sides of a difference.
const (
	OnlyA   Side = iota // in A, missing in B
	OnlyB               // in B, missing in A
	Changed             // in both, but different
)

var sideNames = [...]string{"missing", "extra", "differs"}

// String returns the name as seen from B.
func (s Side) String() string { return sideNames[s] }

// Difference is one difference between A and B. Its pointers are valid until the called function
// returns.
type Difference struct {
	Side   Side
	DB     DBPair         // database of the record
	Header *record.Header // header of the record in A; in B for OnlyB
	What   What
	// Retyped is true if the side that lacks the record has its name under another type.
	Retyped bool
	// A and B are the element on each side; fields, members and ids are in Name. Index and IndexB are its positions
	// in the two lists; on a side without it, that of the item before which it is missing.
	A, B          *record.Element
	Index, IndexB int64
	// HeaderB is the header in B if both sides have the record.
	HeaderB *record.Header
}

// What is the part of a record in which the sides differ.
type What uint8

// The parts that can differ. A missing or extra Record is reported before its elements, which are
// reported only on request.
const (
	Record  What = iota // the whole record
	Expiry              // the expiry
	LastID              // the last generated id of a stream
	Element             // one element
)

// Options control a comparison.
type Options struct {
	// A and B select the same records; databases by their names in A.
	A, B *inspect.Scan
	// Map matches databases whose names differ.
	Map DBMap
	// Whole also reports every element of records that exist on one side only.
	Whole bool
	// Direct compares record by record without comparing fingerprints first.
	Direct bool
	// Tell is called for each difference, in order. An error ends the comparison.
	Tell func(*Difference) error
}

// Result sums up a comparison.
type Result struct {
	Equal bool `json:"equal"`
	// Seconds is true if expiries were compared in seconds, because one of the formats stores seconds.
	Seconds bool `json:"expiry_in_seconds"`
	// PlainZero is true if a score of -0 counted as 0, because servers store -0 as 0 in small sorted sets.
	PlainZero bool `json:"minus_zero_is_zero,omitempty"`
	// Fingerprints is true if no records were compared, because the fingerprints are equal.
	Fingerprints bool  `json:"by_fingerprint"`
	Alike        int64 `json:"records_alike"`    // in databases and types with equal fingerprints
	Records      int64 `json:"records_compared"` // pairs compared element by element
	Missing      int64 `json:"records_missing"`  // in A only
	Extra        int64 `json:"records_extra"`    // in B only
	Differing    int64 `json:"records_differing"`
	Differences  int64 `json:"differences"`
	// Stopped is true if Tell ended the comparison: there are more differences than counted.
	Stopped bool `json:"stopped"`
	// Renamed lists the databases that have another name in B.
	Renamed []DBNames `json:"renamed_databases,omitempty"`
	// Pairs lists the matched databases.
	Pairs []DBPair `json:"-"`
}

// Compared returns the number of records covered by the comparison, by fingerprint or one by one. It is 0 if the
// selection is empty on both sides.
func (r *Result) Compared() int64 { return r.Alike + r.Records + r.Missing + r.Extra }

// ErrEnough is returned by Tell to end a comparison without an error.
var ErrEnough = errors.New("enough differences")

// ErrExpected is returned by Tell for a difference that counts for nothing.
var ErrExpected = errors.New("an expected difference")

// Diff compares two datasets of any formats. It matches databases by the map, else by name, or because
// each side has only one.
func Diff(ctx context.Context, o *Options) (*Result, error) {
	d, pairs, err := prepareDiff(ctx, o)
	if err != nil {
		return nil, err
	}
	for _, p := range pairs {
		if err := d.database(ctx, p); errors.Is(err, ErrEnough) {
			d.res.Stopped = true
			break
		} else if err != nil {
			return nil, err
		}
	}
	d.res.Equal = d.res.Differences == 0 && !d.res.Stopped
	return &d.res, nil
}

// scan returns a scan of the second side with its own names for the databases to select.
func (m DBMap) scan(s *inspect.Scan) (*inspect.Scan, error) {
	out, sel := *s, *s.Selected()
	var err error
	sel.DBs, err = m.Second(sel.DBs)
	out.Selection = &sel
	return &out, err
}

// prepareDiff matches the databases and returns those to compare record by record.
func prepareDiff(ctx context.Context, o *Options) (*differ, []dbPair, error) {
	d := &differ{o: o, a: o.A}
	a, b := o.A.Source.Format().Limits(), o.B.Source.Format().Limits()
	d.res.Seconds = a.Seconds || b.Seconds
	d.res.PlainZero = a.Place == format.OnServer || b.Place == format.OnServer
	if err := o.Map.fits(o.A.Source.Databases(), o.B.Source.Databases(),
		DBNames{"the first dataset", "the second dataset"}); err != nil {
		return nil, nil, err
	}
	var err error
	d.dbs = o.Map.numbered(o.A.Source.Databases(), o.B.Source.Databases(), a, b)
	if d.b, err = d.dbs.scan(o.B); err != nil {
		return nil, nil, err
	}
	exact := a.WholeScores && b.WholeScores
	d.a, d.b = alike(d.a, d.res.PlainZero, exact), alike(d.b, d.res.PlainZero, exact)
	pairs, err := d.match()
	if err != nil {
		return nil, nil, err
	}
	if !o.Direct {
		if pairs, err = d.unequal(ctx, pairs); err != nil {
			return nil, nil, err
		}
		d.res.Fingerprints = len(pairs) == 0
	}
	d.begin(pairs)
	return d, pairs, nil
}

// alike returns a scan that makes datasets of different formats comparable: strings are read in Redis's form, -0 is
// hashed as 0 if one side is a server, and scores are compared exactly if both sides have integers.
func alike(s *inspect.Scan, plainZero, exact bool) *inspect.Scan {
	out := *s
	out.PlainZero, out.ExactScores, out.RedisStrings = plainZero, exact, true
	return &out
}

// dbPair is a database on both sides and the types to compare.
type dbPair struct {
	DBPair
	both record.TypeSet // types of either side
}

// match pairs the databases of the two sides.
func (d *differ) match() ([]dbPair, error) {
	as, bs := someDBs(d.a), someDBs(d.b)
	if len(as)+len(bs) == 0 && len(d.a.Selected().DBs) > 0 {
		have := slices.Concat(d.a.Source.Databases(), d.b.Source.Databases())
		slices.SortFunc(have, record.CompareNames)
		return nil, &filter.NoDatabaseError{DB: d.a.Selected().DBs[0], Have: slices.Compact(have), Of: "either dataset"}
	}
	pairs, err := d.dbs.pairs(as, bs)
	if err != nil {
		return nil, err
	}
	var out []dbPair
	for _, names := range pairs {
		p := dbPair{DBPair: names}
		if p.InA {
			p.both |= d.a.Types(p.A)
		}
		if p.InB {
			p.both |= d.b.Types(p.B)
		}
		if p.InA && p.InB && p.A != p.B {
			d.res.Renamed = append(d.res.Renamed, p.DBNames)
		}
		out = append(out, p)
	}
	d.res.Pairs = pairs
	return out, nil
}

// someDBs returns the selected databases; unlike SelectDBs it accepts missing ones.
func someDBs(s *inspect.Scan) (out []string) {
	for _, db := range s.Source.Databases() {
		if s.Selected().DB(db) {
			out = append(out, db)
		}
	}
	return out
}

// differ runs a comparison.
type differ struct {
	o    *Options
	a, b *inspect.Scan
	dbs  DBMap  // the given one, and the numbers of names
	db   DBPair // the databases being compared
	res  Result
	past [2][]byte // the key of the record before the head of each side

	windows [2]window // of lists
	aligner aligner
}

// unequal computes the fingerprints of both sides and returns the databases and types that differ.
func (d *differ) unequal(ctx context.Context, pairs []dbPair) ([]dbPair, error) {
	fa, err := inspect.Fingerprint(ctx, d.a)
	if err != nil {
		return nil, fmt.Errorf("first dataset: %w", err)
	}
	fb, err := inspect.Fingerprint(ctx, d.b)
	if err != nil {
		return nil, fmt.Errorf("second dataset: %w", d.o.Map.Hint(err))
	}
	a, b := fa.Parts(), fb.Parts()
	var out []dbPair
	for _, p := range pairs {
		left := p
		left.both = 0
		for _, t := range p.both.Types() {
			var da, db record.Digest
			if p.InA {
				da = a[record.Part{DB: p.A, Type: t}]
			}
			if p.InB {
				db = b[record.Part{DB: p.B, Type: t}]
			}
			if da.Equal(db, d.res.Seconds) {
				d.res.Alike += da.Records
			} else {
				left.both |= record.Of(t)
			}
		}
		if left.both != 0 {
			out = append(out, left)
		}
	}
	return out, nil
}

// begin starts the step that compares record by record.
func (d *differ) begin(pairs []dbPair) {
	var total int64
	for _, p := range pairs {
		if p.InA {
			total += d.a.Source.Size(p.A, p.both&d.a.Types(p.A))
		}
		if p.InB {
			total += d.b.Source.Size(p.B, p.both&d.b.Types(p.B))
		}
	}
	d.a.Meter.Begin("compare", total, 0, len(pairs))
}

// database compares one database by merging.
func (d *differ) database(ctx context.Context, p dbPair) error {
	d.db, d.past = p.DBPair, [2][]byte{}
	return merge(ctx, d, p, openSide, d.step)
}

// step compares the heads of a and b and moves past them. If c < 0, only a has the record; if c > 0, only b has it.
func (d *differ) step(c int, a, b *side) error {
	switch {
	case c < 0:
		return d.single(a, b, OnlyA)
	case c > 0:
		return d.single(b, a, OnlyB)
	}
	before := d.res.Differences
	d.past[0] = record.KeepKey(d.past[0], a.head.Key)
	d.past[1] = record.KeepKey(d.past[1], b.head.Key)
	err := d.pair(a, b)
	if d.res.Differences > before {
		d.res.Differing++
	}
	d.res.Records++
	a.head, b.head = nil, nil
	return err
}

// tell reports a difference and counts it, unless Tell has returned ErrEnough or ErrExpected.
func (d *differ) tell(x *Difference) error {
	err := d.o.Tell(x)
	switch {
	case errors.Is(err, ErrExpected):
		return nil
	case !errors.Is(err, ErrEnough):
		d.res.Differences++
	}
	return err
}

// single reports a record that exists on one side only.
func (d *differ) single(s, other *side, which Side) error {
	h := s.head
	s.head = nil
	retyped := d.past[1-which] != nil && bytes.Equal(d.past[1-which], h.Key) ||
		other.head != nil && bytes.Equal(other.head.Key, h.Key)
	d.past[which] = record.KeepKey(d.past[which], h.Key)
	told := d.res.Differences
	if err := d.tell(&Difference{Side: which, DB: d.db, Header: h, What: Record, Retyped: retyped}); err != nil ||
		d.res.Differences == told {
		return err
	}
	if which == OnlyA {
		d.res.Missing++
	} else {
		d.res.Extra++
	}
	if !d.o.Whole {
		return nil
	}
	x := Difference{Side: which, DB: d.db, Header: h, What: Element}
	for {
		e, err := s.peek()
		if err != nil || e == nil {
			return err
		}
		x.A, x.B = e, nil
		if which == OnlyB {
			x.A, x.B = nil, e
		}
		if err := d.o.Tell(&x); err != nil {
			return err
		}
		x.Index, x.IndexB = x.Index+1, x.IndexB+1
		s.nextRecord()
	}
}
