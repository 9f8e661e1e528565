package filter

import (
	"fmt"
	"math"
	"time"
)

// Selection says which records a command is about: by what the Filter sees, by expiry and by size. The
// zero Selection takes all that have not expired.
type Selection struct {
	Filter
	// KeepExpired takes records that have expired too.
	KeepExpired bool
	// ExpireFrom and ExpireTo bound the expiry, From <= expiry < To; nil is open. With either, records
	// that never expire are left out.
	ExpireFrom, ExpireTo *Moment
	// MinElements and MinBytes leave out smaller records. The bytes of a record are logical ones: those
	// of its key and of its elements.
	MinElements, MinBytes int64
}

// Validate says what cannot be meant by a command that works with a moment.
func (s *Selection) Validate(now time.Time) error {
	if w := s.window(now); w.lo >= w.hi {
		return fmt.Errorf("the earliest expiry asked for (--ttl-from) is not before the latest (--ttl-to)")
	}
	if s.MinElements < 0 || s.MinBytes < 0 {
		return fmt.Errorf("the least size of a record is negative")
	}
	return nil
}

// Everything reports whether all records are taken, apart from expired ones.
func (s *Selection) Everything() bool {
	return !s.Active() && s.ExpireFrom == nil && s.ExpireTo == nil && !s.Holds()
}

// Holds reports whether a record's elements decide about it: it is held until they have.
func (s *Selection) Holds() bool { return s.MinElements > 0 || s.MinBytes > 0 }

// RowsOnly reports whether the selection asks for nothing that a physical row does not show.
func (s *Selection) RowsOnly() bool {
	return s.ExpireFrom == nil && s.ExpireTo == nil && !s.Holds() && !s.KeepExpired
}

// Moment is a bound of expiries: a point in time, or one so far ahead of the moment that the command
// works with.
type Moment struct {
	At    time.Time
	Ahead time.Duration // counts when At is zero
}

func (m *Moment) unixMS(now time.Time) int64 {
	if m.At.IsZero() {
		return now.Add(m.Ahead).UnixMilli()
	}
	return m.At.UnixMilli()
}

// window is a span of expiries in Unix milliseconds, lo <= expiry < hi.
type window struct {
	open   bool // on both sides: also records that never expire
	lo, hi int64
}

// window returns the expiries that are selected by a command that works with a moment.
func (s *Selection) window(now time.Time) window {
	w := window{open: s.ExpireFrom == nil && s.ExpireTo == nil, lo: math.MinInt64, hi: math.MaxInt64}
	if s.ExpireFrom != nil {
		w.lo = s.ExpireFrom.unixMS(now)
	}
	if s.ExpireTo != nil {
		w.hi = s.ExpireTo.unixMS(now)
	}
	return w
}

func (w window) has(expireMS int64) bool {
	return w.open || expireMS != 0 && w.lo <= expireMS && expireMS < w.hi
}
