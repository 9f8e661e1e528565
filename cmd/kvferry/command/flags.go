package command

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"kvferry/format"
	"kvferry/internal/pass/filter"
	"kvferry/record"
)

// sizeFlag is a number of bytes: 512MiB, 64k, 1000000.
type sizeFlag int64

var sizeUnits = []struct {
	suffix string
	bytes  float64
}{
	{"kib", 1 << 10}, {"mib", 1 << 20}, {"gib", 1 << 30}, {"tib", 1 << 40},
	{"kb", 1e3}, {"mb", 1e6}, {"gb", 1e9}, {"tb", 1e12},
	{"k", 1 << 10}, {"m", 1 << 20}, {"g", 1 << 30}, {"t", 1 << 40}, {"b", 1}, {"", 1},
}

// Set parses a size: KiB, MiB, GiB and single letters are powers of 1024, KB, MB, GB of 1000.
func (f *sizeFlag) Set(s string) error {
	lower := strings.ToLower(strings.TrimSpace(s))
	for _, u := range sizeUnits {
		digits, ok := strings.CutSuffix(lower, u.suffix)
		if !ok {
			continue
		}
		n, ok := sizeIn(strings.TrimSpace(digits), u.bytes)
		if !ok {
			break
		}
		*f = sizeFlag(n)
		return nil
	}
	return errors.New("want a number of bytes such as 512MiB")
}

// sizeIn converts a number of units to whole bytes. It returns false if the number is invalid or out of range.
func sizeIn(digits string, unit float64) (int64, bool) {
	n, err := strconv.ParseFloat(digits, 64)
	ok := err == nil && n >= 0 && n*unit <= math.MaxInt64/2 // false for NaN
	return int64(n * unit), ok
}

// Type names the flag's values in help texts.
func (f *sizeFlag) Type() string { return "size" }

// String writes the size in the largest unit that divides it.
func (f *sizeFlag) String() string {
	n := int64(*f)
	for _, u := range []struct {
		shift uint
		name  string
	}{{30, "GiB"}, {20, "MiB"}, {10, "KiB"}} {
		if n != 0 && n%(1<<u.shift) == 0 {
			return fmt.Sprintf("%d%s", n>>u.shift, u.name)
		}
	}
	return strconv.FormatInt(n, 10)
}

// typesFlag is a set of types, joined by commas or repeated.
type typesFlag record.TypeSet

// Set adds types.
func (f *typesFlag) Set(s string) error {
	for _, name := range strings.Split(s, ",") {
		t, err := parseType(strings.TrimSpace(name))
		if err != nil {
			return err
		}
		*f |= typesFlag(record.Of(t))
	}
	return nil
}

// Type names the flag's values in help texts.
func (f *typesFlag) Type() string { return "types" }

func (f *typesFlag) suggest(soFar string) ([]string, bool) {
	return suggestNext(typeNames(), soFar), true
}

// String writes the types joined by commas.
func (f *typesFlag) String() string { return record.TypeSet(*f).String() }

// timeFlag is a time: RFC 3339, a date, or Unix seconds. The zero value means not given.
type timeFlag struct{ time.Time }

// Set parses a time.
func (f *timeFlag) Set(s string) error {
	if n, err := strconv.ParseFloat(s, 64); err == nil && math.Abs(n) < 1e12 {
		f.Time = time.UnixMilli(int64(math.Round(n * 1000))).UTC()
		return nil
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		t, err = time.Parse(time.DateOnly, s)
	}
	if err != nil || t.IsZero() {
		return errors.New("want a time such as 2023-11-14T22:13:20Z, a date (its start in UTC), or Unix seconds")
	}
	f.Time = t.UTC()
	return nil
}

// Type names the flag's values in help texts.
func (f *timeFlag) Type() string { return "time" }

// String formats the time as RFC 3339.
func (f *timeFlag) String() string {
	if f.IsZero() {
		return ""
	}
	return f.Format(time.RFC3339Nano)
}

// momentFlag is a time, or a duration from the command's own time. The zero value means not given.
type momentFlag struct{ moment *filter.Moment }

// Set parses a time or a duration.
func (f *momentFlag) Set(s string) error {
	if d, ok := parseDuration(s); ok {
		f.moment = &filter.Moment{Ahead: d}
		return nil
	}
	var t timeFlag
	if err := t.Set(s); err != nil || t.IsZero() {
		return errors.New("want a time (RFC 3339 or Unix seconds), a date (its start in UTC), or how far ahead (90m, 12h, 7d)")
	}
	f.moment = &filter.Moment{At: t.Time}
	return nil
}

// Type names the flag's values in help texts.
func (f *momentFlag) Type() string { return "time" }

// String formats the moment as a user would give it.
func (f *momentFlag) String() string {
	switch {
	case f.moment == nil:
		return ""
	case f.moment.At.IsZero():
		return f.moment.Ahead.String()
	}
	return f.moment.At.Format(time.RFC3339Nano)
}

// parseDuration parses a Go duration, or a number of days such as 7d.
func parseDuration(s string) (time.Duration, bool) {
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.ParseFloat(days, 64)
		ns := n * float64(24*time.Hour)
		return time.Duration(ns), err == nil && math.Abs(ns) < math.MaxInt64
	}
	d, err := time.ParseDuration(s)
	return d, err == nil
}

// rangeFlag is a range of keys, FROM..TO.
type rangeFlag struct{ span *format.Span }

// Set parses a range.
func (f *rangeFlag) Set(s string) (err error) {
	f.span, err = filter.ParseRange(s)
	return err
}

// Type names the flag's values in help texts.
func (f *rangeFlag) Type() string { return "range" }

// String formats the range as a user would give it.
func (f *rangeFlag) String() string {
	if f.span == nil {
		return ""
	}
	return filter.RangeText(f.span)
}
