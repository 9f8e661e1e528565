package dataset

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"kvferry/format"
	"kvferry/internal/sys/disk"
	"kvferry/record"
	"kvferry/store"
)

// OpenStore opens the store in a directory of a dataset; it returns nil if the store does not exist.
func OpenStore(ctx context.Context, root, rel string, o *format.OpenOptions) (store.Store, error) {
	opts := o.Options
	if o.WALDir != "" {
		opts.WALDir = filepath.Join(o.WALDir, rel)
	}
	dir := disk.Join(root, rel)
	st, err := o.Store(ctx, dir, &opts)
	if err != nil {
		if isAbsent(dir, err) {
			return nil, nil
		}
		return nil, err
	}
	return st, nil
}

// Passed reports whether the store of a type, in a directory of a dataset, exists and should be skipped.
func Passed(root, rel, db string, t record.Type, o *format.OpenOptions) bool {
	return PassedAll(root, rel, db, record.Of(t), o)
}

// PassedAll is Passed for a store of several types.
func PassedAll(root, rel, db string, t record.TypeSet, o *format.OpenOptions) bool {
	return !isEmpty(disk.Join(root, rel)) && Unwanted(root, rel, db, t, o)
}

// Unwanted reports whether the store of some types, in a directory of a dataset, should be skipped. If so, its absence
// is no finding.
func Unwanted(root, rel, db string, t record.TypeSet, o *format.OpenOptions) bool {
	return o.Pass != nil && o.Pass(db, t, disk.Join(root, rel))
}

// isAbsent reports whether the error of opening a directory means that it does not exist or is empty; a directory with
// files but without a database is damaged, not absent.
func isAbsent(dir string, err error) bool {
	if !errors.Is(err, store.ErrNotStore) && !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	return isEmpty(dir)
}

// isEmpty reports whether a directory does not exist or has no entries.
func isEmpty(dir string) bool {
	entries, err := disk.ReadDir(dir)
	return len(entries) == 0 && (err == nil || errors.Is(err, fs.ErrNotExist))
}

// Closed reports whether a directory of a dataset cannot be read for lack of permission, so its existence is unknown.
func Closed(root, rel string) bool {
	_, err := disk.ReadDir(disk.Join(root, rel))
	return errors.Is(err, fs.ErrPermission)
}

// FindMissingStore is the kind of finding for an absent store.
const FindMissingStore = "missing-store"

// ReportMissing reports the missing stores of a database, unless they would be skipped.
func ReportMissing(root, db string, missing []Lack, o *format.OpenOptions) {
	var dirs []string
	for _, m := range missing {
		if !Unwanted(root, m.Dir, db, record.Of(m.Type), o) {
			dirs = append(dirs, m.Dir)
		}
	}
	if len(dirs) > 0 {
		Report(o, record.Finding{Kind: FindMissingStore, Severity: record.Error, DB: db, Detail: strings.Join(dirs, ", ") +
			" not found; the engine always has all five, so data may have been left behind"})
	}
}

// Lack is an absent store: its directory in the dataset, and the type of its records.
type Lack struct {
	Dir  string
	Type record.Type
}

// ReportGaps reports the missing databases of LayoutDB: a database with a higher number exists, or its directory, one
// of dirs, is empty. Missing databases at the end are undetectable if their directories are missing too. Unwanted
// databases are not reported.
func (s *Source[S]) ReportGaps(o *format.OpenOptions, root string, dirs []string) {
	var missing []string
	var one string     // the missing database, if it is only one
	var next, n uint64 // the first unseen number; the directory's number
	gap := func(end uint64) {
		if next < end && !Unwanted(root, rangeOf(next, next), strconv.FormatUint(next, 10), record.AllTypes, o) {
			missing, one = append(missing, rangeOf(next, end-1)), ""
			if len(missing) == 1 && end == next+1 {
				one = strconv.FormatUint(next, 10)
			}
		}
	}
	for _, dir := range dirs {
		name := strings.TrimPrefix(dir, "db")
		n, _ = strconv.ParseUint(name, 10, 64) // larger numbers become the largest uint64
		n = min(n, math.MaxUint64-1)
		if s.Database(name) != nil {
			gap(n)
			next = n + 1
		}
	}
	gap(n + 1)
	if len(missing) > 0 {
		Report(o, record.Finding{Kind: FindMissingStore, Severity: record.Warning, DB: one, Detail: fmt.Sprintf("no database in %s; Pika has a database for every number "+
			"up to the last, so data may have been left behind: bring the missing databases back; if they were left out on purpose, "+
			"as by convert --db, read the other databases with --db %s", strings.Join(missing, ", "), s.some())})
	}
}

// rangeOf names the directories of some databases in a row.
func rangeOf(first, last uint64) string {
	if first == last {
		return fmt.Sprint("db", first)
	}
	return fmt.Sprintf("db%d to db%d", first, last)
}

// some lists the databases in the form of --db, the first maxNamed if they are many.
func (s *Source[S]) some() string {
	names := s.Databases()
	if len(names) > maxNamed {
		return strings.Join(names[:maxNamed], ",") + ",…"
	}
	return strings.Join(names, ",")
}

// maxNamed is the number of databases that a finding names.
const maxNamed = 8

// Report reports a finding about the dataset itself.
func Report(o *format.OpenOptions, f record.Finding) {
	if o.Options.Report != nil {
		f.Place.Level = -1
		o.Options.Report(f)
	}
}

// OpenOnly opens the only store of a dataset, which lies in a subdirectory of dir or in dir itself. want describes the
// database in the error for a directory that holds none.
func OpenOnly(ctx context.Context, dir, sub, want string, o *format.OpenOptions) (store.Store, error) {
	st, err := OpenStore(ctx, dir, sub, o)
	if st == nil && err == nil {
		st, err = OpenStore(ctx, dir, "", o)
	}
	if errors.Is(err, store.ErrNotStore) || st == nil && err == nil {
		return nil, fmt.Errorf("%s: not a %s: %w", dir, want, store.ErrNotStore)
	}
	if err != nil {
		return nil, err
	}
	return st, nil
}

// ReadPast calls probe with a store that is opened with Salvage if err is damage that o does not skip. What probe reads
// tells of the whole database, whereas damage costs itself only: it ends the passes that meet it.
func ReadPast(err error, o *format.OpenOptions, open func(*format.OpenOptions) (store.Store, error),
	probe func(store.Store) error) error {
	var block *store.BlockError
	if o.Options.Salvage || !errors.As(err, &block) {
		return err
	}
	past := *o
	past.Options.Salvage = true
	past.Options.Report = func(f record.Finding) {
		if f.Severity >= record.Error { // others were reported when the store was opened without
			Report(o, f)
		}
	}
	st, err := open(&past)
	if err != nil {
		return err
	}
	return errors.Join(probe(st), st.Close())
}

// Subdirs lists the entries of a directory whose names are accepted, in the order of their numbers; none if the
// directory does not exist.
func Subdirs(dir string, accept func(string) bool) ([]string, error) {
	entries, err := disk.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if accept(e.Name()) {
			out = append(out, e.Name())
		}
	}
	slices.SortFunc(out, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	return out, nil
}
