package live

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"kvferry/format"
	"kvferry/record"
	files "kvferry/redis"
)

// Name is what the format is called. Locations have addresses instead.
const Name = "redis"

// Format is a server of Redis or Valkey.
type Format struct{ options *format.ServerOptions }

// New returns the format.
func New() *Format { return new(Format) }

// With returns the format with what servers are reached with.
func (f *Format) With(o *format.ServerOptions) format.Format { return &Format{o} }

// Name returns "redis".
func (*Format) Name() string { return Name }

// Detect finds nothing: an address says what it is.
func (*Format) Detect(*format.Evidence) format.Verdict { return format.Verdict{} }

// Work is the address with what cannot stand in the name of a file left out.
func (*Format) Work(location string) (string, error) {
	a, err := parseAddress(location)
	if err != nil {
		return "", err
	}
	name := "redis-" + strings.Map(func(r rune) rune {
		if strings.ContainsRune(`:/\[]`, r) {
			return '-'
		}
		return r
	}, strings.TrimPrefix(a.host, "/"))
	if a.db >= 0 {
		name += fmt.Sprintf("-%d", a.db)
	}
	return name, nil
}

// Same reports whether the address is that of another server of the same cluster.
func (*Format) Same(location, earlier string) bool {
	var s start
	a, err := parseAddress(location)
	return err == nil && a.cluster && json.Unmarshal([]byte(earlier), &s) == nil && slices.Contains(s.Members, a.host)
}

// location is the address as it was given.
func (a *address) location() string {
	s := a.shown
	if a.user != "" {
		s = strings.Replace(s, "://", "://"+a.user+"@", 1)
	}
	switch {
	case a.db >= 0 && a.network == "unix":
		s += fmt.Sprintf("?db=%d", a.db)
	case a.db >= 0:
		s += fmt.Sprintf("/%d", a.db)
	}
	return s
}

// Limits says that a server holds all but what its version does not know, which a target finds out.
func (*Format) Limits() format.Limits {
	return format.Limits{
		Place:        format.OnServer,
		Types:        record.AllTypes,
		EmptyKey:     true,
		FieldExpiry:  true,
		StreamGroups: true,
		Unowned:      true,
		Opaque:       files.Opaque(),
		Unheld:       files.Opaque(), // functions before Redis 7.0, the others on all servers
		Whole:        true,
		Losses:       files.LossInfos(),
		Databases:    "any number; of a cluster, 0",
		Numbered:     true,
		Layout:       format.LayoutFlat,
		Detail:       "servers of Redis 2.6 to 8 and Valkey: redis://host:port/db, rediss://, unix:///path, redis+cluster://",
		ScoreDetail:  "-0 becomes 0 in small sorted sets; kvferry treats them as equal",
	}
}
