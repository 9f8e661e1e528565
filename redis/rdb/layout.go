package rdb

import (
	"fmt"
	"strings"

	"kvferry/record"
)

// Version is the version that a file is written in. REDIS0009 is what most servers load.
type Version struct {
	Number int
	Valkey bool
}

// DefaultVersion loads in Redis 5.0 and newer, Valkey, KeyDB and Dragonfly.
var DefaultVersion = Version{Number: 9}

// versions are those that can be written, with the oldest servers that load them.
var versions = []struct {
	name, servers string
	v             Version
}{
	{"6", "Redis 2.6", Version{Number: 6}},
	{"7", "Redis 3.2", Version{Number: 7}},
	{"8", "Redis 4.0", Version{Number: 8}},
	{"9", "Redis 5.0, Valkey, KeyDB, Dragonfly", Version{Number: 9}},
	{"10", "Redis 7.0, Valkey 7.2", Version{Number: 10}},
	{"11", "Redis 7.2, Valkey 7.2", Version{Number: 11}},
	{"12", "Redis 7.4, no Valkey", Version{Number: 12}},
	{"valkey80", "Valkey 9.0, no Redis", Version{Number: 80, Valkey: true}},
}

// Versions lists the names of the versions that can be written, the default first.
func Versions() []string {
	out := []string{DefaultVersion.String()}
	for _, v := range versions {
		if v.v != DefaultVersion {
			out = append(out, v.name)
		}
	}
	return out
}

// ParseVersion reads the name of a version.
func ParseVersion(s string) (Version, error) {
	for _, v := range versions {
		if v.name == s {
			return v.v, nil
		}
	}
	return Version{}, fmt.Errorf("RDB version %q cannot be written: want one of %s", s, strings.Join(Versions(), ", "))
}

// String is the name of the version.
func (v Version) String() string {
	if v.Valkey {
		return fmt.Sprintf("valkey%d", v.Number)
	}
	return fmt.Sprint(v.Number)
}

// Servers names the oldest servers that load the version.
func (v Version) Servers() string {
	for _, x := range versions {
		if x.v == v {
			return x.servers
		}
	}
	return ""
}

// header is what a file of the version begins with.
func (v Version) header() Header { return Header{Version: v.Number, Valkey: v.Valkey} }

// Types are the types of records that the version holds.
func (v Version) Types() record.TypeSet {
	t := record.RedisTypes
	if v.Number < 9 {
		t &^= record.Of(record.Stream)
	}
	if v.Number >= 8 {
		t |= record.Of(record.Other)
	}
	return t
}

// FieldExpiry reports whether the version holds expiries of fields.
func (v Version) FieldExpiry() bool { return v.Number >= 12 }

// Functions reports whether the version holds libraries of functions.
func (v Version) Functions() bool { return v.Number >= 10 }

// EntriesRead reports whether the version holds how many entries a group has read, and what was deleted of a stream.
func (v Version) EntriesRead() bool { return v.Number >= 10 }
