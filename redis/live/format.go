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

// Name is the name of the format. Locations use addresses instead.
const Name = "redis"

// Format is a Redis or Valkey server.
type Format struct{ options *format.ServerOptions }

// New returns the format.
func New() *Format { return new(Format) }

// With returns the format with these connection options.
func (f *Format) With(o *format.ServerOptions) format.Format { return &Format{o} }

// Name returns "redis".
func (*Format) Name() string { return Name }

// Detect always returns the zero Verdict: an address identifies a server.
func (*Format) Detect(*format.Evidence) format.Verdict { return format.Verdict{} }

// Work returns a file name for the address: characters not allowed in file names are replaced.
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

// Same reports whether the address is another server of the same cluster.
func (*Format) Same(location, earlier string) bool {
	var s start
	a, err := parseAddress(location)
	return err == nil && a.cluster && json.Unmarshal([]byte(earlier), &s) == nil && slices.Contains(s.Members, a.host)
}

// location rebuilds the address without a password.
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

// Limits describes the newest server. A target reports the losses of older versions once it is connected.
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
		Losses:       files.LossInfos(),
		Databases:    "any number; of a cluster, 0",
		Numbered:     true,
		Layout:       format.LayoutFlat,
		Detail:       "servers of Redis 2.6 to 8 and Valkey: redis://host:port/db, rediss://, unix:///path, redis+cluster://",
		ScoreDetail:  "-0 becomes 0 in small sorted sets; kvferry treats them as equal",
	}
}
