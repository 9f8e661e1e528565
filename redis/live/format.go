package live

import (
	"encoding/json"
	"slices"

	"kvferry/format"
	"kvferry/record"
	files "kvferry/redis"
	"kvferry/redis/live/server"
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

// Work returns a file name for the address.
func (*Format) Work(location string) (string, error) {
	a, err := server.ParseAddress(location)
	if err != nil {
		return "", err
	}
	return a.FileName(), nil
}

// IsAddress reports whether a location is a server address.
func IsAddress(location string) bool { return server.IsAddress(location) }

// Same reports whether the address is another server of the same cluster.
func (*Format) Same(location, earlier string) bool {
	var s start
	a, err := server.ParseAddress(location)
	return err == nil && a.Cluster && json.Unmarshal([]byte(earlier), &s) == nil && slices.Contains(s.Members, a.Host)
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
		Databases:    "any number; in a cluster 0, or the cluster-databases of Valkey 9 and later",
		Numbered:     true,
		Layout:       format.LayoutFlat,
		Detail:       "servers of Redis 2.6 to 8 and Valkey: redis://host:port/db, rediss://, unix:///path, redis+cluster://",
		ScoreDetail:  "-0 becomes 0 in small sorted sets; kvferry treats them as equal",
	}
}
