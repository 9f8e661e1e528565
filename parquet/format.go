package parquet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"syscall"

	"kvferry/format"
	"kvferry/internal/sys/disk"
	"kvferry/parquet/foreign"
	"kvferry/record"
)

// parquetFormat is the Format.
type parquetFormat struct {
	mapping *foreign.Mapping // of files of other programs; nil: there are none
	home    string           // the database that clients of the dumped dataset start in
}

// New returns the format.
func New() format.Format { return parquetFormat{} }

// WithColumns returns the format for files of other programs, by what their columns are for (key=user_id).
// types are those that are read: one is the type of all rows.
func WithColumns(uses []string, types record.TypeSet) (format.Format, error) {
	m, err := foreign.ParseMapping(uses, types)
	return parquetFormat{mapping: m}, err
}

// SourceOptions returns the options that a source has, as a text.
func (f parquetFormat) SourceOptions() string {
	if f.mapping == nil {
		return ""
	}
	return f.mapping.String()
}

// Name returns "parquet".
func (parquetFormat) Name() string { return Name }

// noTarget is the reason why the format is no target of a conversion.
const noTarget = "kvferry dump --format parquet -o DIR writes it"

// Limits returns the limits of the format.
func (f parquetFormat) Limits() format.Limits {
	return format.Limits{
		Place: format.InTables, Types: record.AllTypes, EmptyKey: true, MaxScore: math.Inf(1), SameName: true, FieldsRead: true,
		FieldExpiry: true, StreamGroups: true, Unowned: true, NoTarget: noTarget,
		Opaque:    []string{"module", "array", "keydb-cron", "dragonfly", record.Library.String()},
		Databases: "as in the dumped dataset", DefaultDB: f.home, Detail: "directories of kvferry dump --format parquet",
		ScoreDetail: "any float64",
	}
}

// Detect looks for a manifest.
func (parquetFormat) Detect(ev *format.Evidence) format.Verdict {
	if ev.Head != nil {
		return format.Verdict{}
	}
	if _, err := disk.Lstat(disk.Join(ev.Dir, ManifestName)); err != nil {
		return format.Verdict{}
	}
	return format.Verdict{Score: 100, Why: []string{"there is a " + ManifestName}}
}

// Open opens a source.
func (f parquetFormat) Open(ctx context.Context, dir string, o *format.OpenOptions) (format.Source, error) {
	m, err := readManifest(dir)
	switch missing := errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR); {
	case missing && f.mapping != nil:
		return foreign.Open(ctx, f, dir, f.mapping, o)
	case missing:
		return nil, fmt.Errorf("%s: no %s, which is written last: the directory is not complete, or kvferry dump --format parquet did not write it; "+
			"to read files of other programs name their columns: --column key=NAME --column value=NAME", dir, ManifestName)
	case err != nil:
		return nil, err
	case f.mapping != nil:
		return nil, format.Usagef("%s: kvferry dump --format parquet wrote it: leave --column out", dir)
	}
	f.home = string(m.head.Home)
	s, err := open(f, dir, m, o)
	if err != nil {
		return nil, err // not a nil *source in an interface
	}
	return s, nil
}

// Create refuses: dump writes the format.
func (parquetFormat) Create(_ context.Context, location string, _ *format.CreateOptions) (format.Target, error) {
	return nil, fmt.Errorf("%s: %s", location, noTarget)
}
