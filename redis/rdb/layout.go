package rdb

import (
	"fmt"
	"strings"

	"kvferry/record"
)

// Version is the RDB version of a file. Most servers load REDIS0009.
type Version struct {
	Number int
	Valkey bool
}

// DefaultVersion loads in Redis 5.0 and newer, Valkey, KeyDB and Dragonfly.
var DefaultVersion = Version{Number: 9}

// versions lists the writable versions with the oldest servers that load them.
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

// Versions lists the names of the writable versions, the default first.
func Versions() []string {
	out := []string{DefaultVersion.String()}
	for _, v := range versions {
		if v.v != DefaultVersion {
			out = append(out, v.name)
		}
	}
	return out
}

// ParseVersion parses the name of a version.
func ParseVersion(s string) (Version, error) {
	for _, v := range versions {
		if v.name == s {
			return v.v, nil
		}
	}
	return Version{}, fmt.Errorf("RDB version %q cannot be written: want one of %s", s, strings.Join(Versions(), ", "))
}

// String returns the name of the version.
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

// header returns the file header of the version.
func (v Version) header() Header { return Header{Version: v.Number, Valkey: v.Valkey} }

// Types returns the record types that the version supports.
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

// FieldExpiry reports whether the version supports field expiry.
func (v Version) FieldExpiry() bool { return v.Number >= 12 }

// Functions reports whether the version supports function libraries.
func (v Version) Functions() bool { return v.Number >= 10 }

// EntriesRead reports whether the version stores the entries read by a group, and the deletions of a stream.
func (v Version) EntriesRead() bool { return v.Number >= 10 }
