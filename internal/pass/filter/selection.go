package filter

import (
	"fmt"
	"math"
	"time"
)

// Selection selects the records a command works on: by a Filter, by expiry and by size. The zero Selection selects
// all records that have not expired.
type Selection struct {
	Filter
	// KeepExpired selects expired records, too.
	KeepExpired bool
	// ExpireFrom and ExpireTo bound the expiry, From <= expiry < To; nil is open. With either, records that never
	// expire are excluded.
	ExpireFrom, ExpireTo *Moment
	// NoExpiry excludes records that expire.
	NoExpiry bool
	// MinElements and MinBytes exclude smaller records, and MaxBytes larger ones; 0: no limit. The size of a record is
	// its logical size: the bytes of its key and its elements (see record.Measure).
	MinElements, MinBytes, MaxBytes int64
}

// Validate returns an error if the selection is contradictory as of now.
func (s *Selection) Validate(now time.Time) error {
	if w := s.window(now); w.lo >= w.hi {
		return fmt.Errorf("the earliest expiry asked for (--ttl-from) is not before the latest (--ttl-to)")
	}
	switch {
	case s.NoExpiry && (s.ExpireFrom != nil || s.ExpireTo != nil):
		return fmt.Errorf("--no-expiry selects keys without expiry, so it does not go with --ttl-from and --ttl-to")
	case s.MinElements < 0 || s.MinBytes < 0:
		return fmt.Errorf("the least size of a record is negative")
	case s.MaxBytes < 0:
		return fmt.Errorf("the largest size of a record is negative")
	case s.MaxBytes > 0 && s.MaxBytes < s.MinBytes:
		return fmt.Errorf("the least size of a record (--min-bytes %d) is above the largest (--max-bytes %d)", s.MinBytes,
			s.MaxBytes)
	}
	return nil
}

// Everything reports whether all records are selected, except expired ones.
func (s *Selection) Everything() bool {
	return !s.Active() && !s.byExpiry() && !s.Holds()
}

// Holds reports whether records are selected by size. Then the elements of a record are buffered until its size is
// known.
func (s *Selection) Holds() bool { return s.MinElements > 0 || s.MinBytes > 0 || s.MaxBytes > 0 }

// byExpiry reports whether the expiry of a record can exclude it.
func (s *Selection) byExpiry() bool { return s.ExpireFrom != nil || s.ExpireTo != nil || s.NoExpiry }

// RowsOnly reports whether a physical row is enough to evaluate the selection.
func (s *Selection) RowsOnly() bool {
	return !s.byExpiry() && !s.Holds() && !s.KeepExpired
}

// Moment is a bound of expiries: a point in time, or an offset from the time of the command.
type Moment struct {
	At    time.Time
	Ahead time.Duration // used if At is zero
}

func (m *Moment) unixMS(now time.Time) int64 {
	if m.At.IsZero() {
		return now.Add(m.Ahead).UnixMilli()
	}
	return m.At.UnixMilli()
}

// window is a range of expiries in Unix milliseconds, lo <= expiry < hi.
type window struct {
	open   bool // no bounds: includes records that never expire
	never  bool // only records that never expire
	lo, hi int64
}

// window returns the selected expiries as of now.
func (s *Selection) window(now time.Time) window {
	w := window{open: !s.byExpiry(), never: s.NoExpiry, lo: math.MinInt64, hi: math.MaxInt64}
	if s.ExpireFrom != nil {
		w.lo = s.ExpireFrom.unixMS(now)
	}
	if s.ExpireTo != nil {
		w.hi = s.ExpireTo.unixMS(now)
	}
	return w
}

func (w window) has(expireMS int64) bool {
	if w.open || expireMS == 0 {
		return w.open || w.never
	}
	return !w.never && w.lo <= expireMS && expireMS < w.hi
}
