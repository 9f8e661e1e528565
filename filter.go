package kvferry

import (
	"regexp"
	"time"

	"kvferry/format"
	"kvferry/internal/filter"
	"kvferry/record"
)

// Filter selects records that satisfy all of its conditions. The zero Filter, and nil, select all that have not expired.
type Filter struct {
	// Types and Databases to select; none selects all.
	Types     []record.Type
	Databases []string
	// Match are glob patterns as those of Redis' KEYS; a key must match one of them.
	Match []string
	// Regex must match somewhere in the key; nil selects all.
	Regex *regexp.Regexp
	// Keys are the only keys to select; none selects all.
	Keys []string
	// Sample selects one key in so many, the same ones in every dataset; 0 and 1 select all.
	Sample uint64
	// KeepExpired selects records that have expired, too.
	KeepExpired bool
	// ExpireFrom and ExpireTo bound the expiry: from <= expiry < to; the zero time is open. With either, records
	// that never expire are left out.
	ExpireFrom, ExpireTo time.Time
	// MinElements and MinBytes leave out smaller records.
	MinElements, MinBytes int64
}

func (f *Filter) selection(now time.Time) (*filter.Selection, error) {
	sel := new(filter.Selection)
	if f == nil {
		return sel, nil
	}
	sel.Filter = filter.Filter{Types: record.Of(f.Types...), DBs: f.Databases, Match: f.Match, Regex: f.Regex, Sample: f.Sample}
	if len(f.Keys) > 0 {
		sel.Keys = make(map[string]struct{}, len(f.Keys))
		for _, k := range f.Keys {
			sel.Keys[k] = struct{}{}
		}
	}
	sel.KeepExpired, sel.MinElements, sel.MinBytes = f.KeepExpired, f.MinElements, f.MinBytes
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
