package kvferry

import (
	"regexp"
	"time"

	"kvferry/format"
	"kvferry/internal/pass/filter"
	"kvferry/record"
)

// Filter selects records that satisfy all of its conditions. A zero or nil Filter selects all records that have not
// expired.
type Filter struct {
	// Types and Databases select some types and databases; empty selects all.
	Types     []record.Type
	Databases []string
	// Match holds glob patterns, as in the Redis command KEYS; a key must match one of them.
	Match []string
	// Exclude holds glob patterns; a key must match none of them.
	Exclude []string
	// Regex must match in the key; nil selects all.
	Regex *regexp.Regexp
	// Keys selects only these keys; empty selects all.
	Keys []string
	// Sample selects one key in Sample, the same keys in every dataset; 0 and 1 select all.
	Sample uint64
	// KeepExpired also selects expired records.
	KeepExpired bool
	// ExpireFrom and ExpireTo limit the expiry: from <= expiry < to; a zero time sets no limit. If either is
	// set, records that never expire are left out.
	ExpireFrom, ExpireTo time.Time
	// NoExpiry leaves out records that expire.
	NoExpiry bool
	// Func, if not nil, selects records by their headers, after the conditions above. It is called from several
	// goroutines, must return the same whenever it is called, and must not keep the header.
	Func func(*record.Header) bool
	// MinElements and MinBytes leave out smaller records, MaxBytes larger ones; 0: no limit. Bytes are those of the
	// key, fields, members and values, and 8 for each score.
	MinElements, MinBytes, MaxBytes int64
}

func (f *Filter) selection(now time.Time) (*filter.Selection, error) {
	sel := new(filter.Selection)
	if f == nil {
		return sel, nil
	}
	sel.Filter = filter.Filter{Types: record.Of(f.Types...), DBs: f.Databases, Match: f.Match, Exclude: f.Exclude, Regex: f.Regex,
		Sample: f.Sample, Where: f.Func}
	if len(f.Keys) > 0 {
		sel.Keys = make(map[string]struct{}, len(f.Keys))
		for _, k := range f.Keys {
			sel.Keys[k] = struct{}{}
		}
	}
	sel.KeepExpired, sel.NoExpiry = f.KeepExpired, f.NoExpiry
	sel.MinElements, sel.MinBytes, sel.MaxBytes = f.MinElements, f.MinBytes, f.MaxBytes
	sel.ExpireFrom, sel.ExpireTo = moment(f.ExpireFrom), moment(f.ExpireTo)
	if err := sel.Validate(now); err != nil {
		return nil, format.Usagef("%w", err)
	}
	return sel, nil
}

func moment(t time.Time) *filter.Moment {
	if t.IsZero() {
		return nil
	}
	return &filter.Moment{At: t}
}
