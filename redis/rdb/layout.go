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
func (v Version) FieldExpiry() bool { return v.Number >= FieldsVersion }

// FieldsVersion is the first version of Redis with expiries of fields.
const FieldsVersion = 12

// Functions reports whether the version supports function libraries.
func (v Version) Functions() bool { return v.Number >= 10 }

// EntriesRead reports whether the version stores the entries read by a group, and the deletions of a stream.
func (v Version) EntriesRead() bool { return v.Number >= 10 }

// headerLen is the length of the magic and the version: REDIS0011, VALKEY080.
const headerLen = 9

// Header is the header of a file, with facts about the server that wrote it.
type Header struct {
	Version   int
	Valkey    bool
	Dragonfly bool // detected from AUX fields
	templates *templates
}

// String returns the encoded header.
func (h Header) String() string {
	if h.Valkey {
		return fmt.Sprintf("VALKEY%03d", h.Version)
	}
	return fmt.Sprintf("REDIS%04d", h.Version)
}

// HasChecksum reports whether a checksum follows the items.
func (h Header) HasChecksum() bool { return h.Valkey || h.Version >= firstChecksum }

// firstChecksum is the first Redis RDB version with a checksum.
const firstChecksum = 5

// IsRDB reports whether head starts an RDB file.
func IsRDB(head []byte) bool {
	_, err := ParseHeader(head)
	return err == nil
}

// ParseHeader parses a header of any version.
func ParseHeader(b []byte) (Header, error) {
	if len(b) < headerLen {
		return Header{}, record.Short(0, "header", headerLen, len(b))
	}
	var h Header
	digits := b[5:headerLen]
	switch {
	case string(b[:6]) == "VALKEY":
		h.Valkey, digits = true, b[6:headerLen]
	case string(b[:5]) != "REDIS":
		return h, &record.CorruptError{Field: "header", Err: fmt.Errorf("%q is not the header of an RDB file", b[:headerLen])}
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return h, &record.CorruptError{Field: "header", Err: fmt.Errorf("%q is not a version", digits)}
		}
		h.Version = 10*h.Version + int(c-'0')
	}
	return h, nil
}
