// Package redis is the format of RDB files: dumps of Redis, Valkey and servers that are like them. Package rdb has the
// layouts; here files become sources and targets of records.
//
// A file is skipped once when it is opened: its items are cut, counted and checked, its checksum is compared. That
// gives the databases, their sizes, and the offsets at which sections of it can be read on their own. Records come in
// the order of the file when nobody needs another one; otherwise the encoded values are sorted by key, on disk when
// they are many, and decoded in that order.
package redis

import (
	"context"
	"fmt"
	"math"

	"kvferry/format"
	"kvferry/record"
	"kvferry/redis/rdb"
)

// Name is what locations call the format.
const Name = "rdb"

// Keyspace is the one keyspace of a database: its items.
const Keyspace = "rdb"

// rdbFormat is the format, and the version that its targets are written in.
type rdbFormat struct {
	version rdb.Version
	base    bool // of an append-only log, and says so
}

// New returns the format. Its targets have the version that most servers load.
func New() format.Format { return &rdbFormat{version: rdb.DefaultVersion} }

// NewBase returns the format whose targets are bases of append-only logs.
func NewBase(v rdb.Version) format.Format { return &rdbFormat{version: v, base: true} }

// WithVersion returns the format whose targets have a version, which rdb.Versions lists.
func WithVersion(version string) (format.Format, error) {
	v, err := rdb.ParseVersion(version)
	if err != nil {
		return nil, err
	}
	return &rdbFormat{version: v}, nil
}

// VersionOf returns the version that targets of a format of this package are written in.
func VersionOf(f format.Format) rdb.Version { return f.(*rdbFormat).version }

// Name returns "rdb".
func (f *rdbFormat) Name() string { return Name }

// Detect looks for the magic of a file.
func (f *rdbFormat) Detect(ev *format.Evidence) format.Verdict {
	if len(ev.Head) == 0 { // a directory
		return format.Verdict{}
	}
	if !rdb.IsRDB(ev.Head) {
		return format.Verdict{Why: []string{"the file does not begin with REDIS or VALKEY and a version"}}
	}
	return format.Verdict{Score: 100, Why: []string{fmt.Sprintf("the file begins with %q", ev.Head[:9])}}
}

// Limits says what a file of the version holds.
func (f *rdbFormat) Limits() format.Limits {
	return format.Limits{
		Place: format.InFile, Types: f.version.Types(), EmptyKey: true, MaxScore: math.Inf(1), Whole: true, AnyOrder: true,
		FieldExpiry: f.version.FieldExpiry(), StreamGroups: f.version.Number >= 9,
		Unowned: true, Opaque: Opaque(), Unheld: f.unheld(),
		Databases: "numbers from 0", Numbered: true,
		Detail:       "dumps of Redis, Valkey, KeyDB and Dragonfly; written as RDB " + f.version.String() + " (" + f.version.Servers() + ")",
		ScoreDetail:  "any but NaN",
		OtherDetails: []string{"compressed files (gzip, zstd) and standard input are unpacked to a temporary file"},
		Losses:       LossInfos(),
	}
}

// The kinds of values of type record.Other in files.
var (
	opaqueModule   = "module"
	opaqueArray    = rdb.NativeArray
	opaqueCron     = rdb.NativeCron
	opaqueDF       = rdb.NativeDF
	opaqueFunction = record.Library.String()
)

// Opaque names the kinds of values of type record.Other that files and servers may have.
func Opaque() []string {
	return []string{opaqueModule, opaqueArray, opaqueCron, opaqueDF, opaqueFunction}
}

// unheld names those of them that files of the version do not hold.
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

// LossInfos describes the kinds of losses that only files and servers have.
func LossInfos() []record.LossInfo {
	return []record.LossInfo{record.GroupProgress()}
}
