// Package redis reads and writes RDB files: snapshots of Redis, Valkey and compatible servers. Package rdb has the
// layouts; this package turns files into sources and targets of records.
//
// Opening a file scans it once: items are delimited, counted and validated, and the checksum is verified. The scan
// yields the databases, their sizes, and the offsets of sections that can be read independently. Records come in file
// order unless the caller needs key order; then the encoded values are sorted by key, on disk if necessary, and decoded
// in that order.
package redis

import (
	"context"
	"fmt"
	"math"

	"kvferry/format"
	"kvferry/record"
	"kvferry/redis/rdb"
)

// Name is the name of the format in locations.
const Name = "rdb"

// Keyspace is the only keyspace of a database: its items.
const Keyspace = "rdb"

// rdbFormat is the format, with the version of its targets.
type rdbFormat struct {
	version rdb.Version
	base    bool // mark targets as the base of an append-only log
}

// New returns the format. Its targets have the version that most servers load.
func New() format.Format { return &rdbFormat{version: rdb.DefaultVersion} }

// NewBase returns a format whose targets are bases of append-only logs.
func NewBase(v rdb.Version) format.Format { return &rdbFormat{version: v, base: true} }

// WithVersion returns a format whose targets have one of rdb.Versions.
func WithVersion(version string) (format.Format, error) {
	v, err := rdb.ParseVersion(version)
	if err != nil {
		return nil, err
	}
	return &rdbFormat{version: v}, nil
}

// VersionOf returns the version of the targets of a format of this package.
func VersionOf(f format.Format) rdb.Version { return f.(*rdbFormat).version }

// TargetVersion returns the version of the targets, or "" for the usual one.
func (f *rdbFormat) TargetVersion() string {
	if f.version == rdb.DefaultVersion {
		return ""
	}
	return f.version.String()
}

// Name returns "rdb".
func (f *rdbFormat) Name() string { return Name }

// Detect checks the magic of a file.
func (f *rdbFormat) Detect(ev *format.Evidence) format.Verdict {
	if len(ev.Head) == 0 { // a directory
		return format.Verdict{}
	}
	if !rdb.IsRDB(ev.Head) {
		return format.Verdict{Why: []string{"the file does not begin with REDIS or VALKEY and a version"}}
	}
	return format.Verdict{Score: 100, Why: []string{fmt.Sprintf("the file begins with %q", ev.Head[:9])}}
}

// Limits describes the values that a file of the version can hold.
func (f *rdbFormat) Limits() format.Limits {
	return format.Limits{
		Place: format.InFile, Types: f.version.Types(), EmptyKey: true, MaxScore: math.Inf(1), AnyOrder: true,
		FieldExpiry: f.version.FieldExpiry(), StreamGroups: f.version.Number >= 9,
		Unowned: true, Opaque: Opaque(), Unheld: f.unheld(),
		Databases: "numbers from 0", Numbered: true,
		Detail: "dumps of Redis, Valkey, KeyDB and Dragonfly; written as RDB " + f.version.String() + " (" +
			f.version.Servers() + ")",
		ScoreDetail:  "any float64 but NaN",
		OtherDetails: []string{"compressed files (gzip, zstd) and standard input are unpacked to a temporary file"},
		Losses:       LossInfos(),
		Start: []string{"Set `dir` to `{dir}`, `dbfilename` to `{file}` and `appendonly` to `no`; afterwards `CONFIG SET appendonly yes` works as usual.",
			startDBs},
	}
}

const startDBs = "Set `databases` to {databases} or more."

// The kinds of values of type record.Other in files.
var (
	opaqueModule   = "module"
	opaqueArray    = rdb.NativeArray
	opaqueCron     = rdb.NativeCron
	opaqueDF       = rdb.NativeDF
	opaqueFunction = record.Library.String()
)

// Opaque names the kinds of values of type record.Other in files and servers.
func Opaque() []string {
	return []string{opaqueModule, opaqueArray, opaqueCron, opaqueDF, opaqueFunction}
}

// unheld names the opaque kinds that files of the version cannot hold.
func (f *rdbFormat) unheld() []string {
	if f.version.Functions() {
		return []string{opaqueArray, opaqueCron, opaqueDF}
	}
	return []string{opaqueArray, opaqueCron, opaqueDF, opaqueFunction}
}

// Open opens a file.
func (f *rdbFormat) Open(ctx context.Context, location string, o *format.OpenOptions) (format.Source, error) {
	return Open(ctx, f, location, o)
}

// Create starts a file.
func (f *rdbFormat) Create(ctx context.Context, location string, o *format.CreateOptions) (format.Target, error) {
	return create(f, location, o)
}

// LossInfos describes the kinds of losses specific to files and servers.
func LossInfos() []record.LossInfo {
	return []record.LossInfo{record.GroupProgress()}
}
