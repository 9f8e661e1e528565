package inspect

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"kvferry/format"
	"kvferry/internal/dataset"
	"kvferry/internal/disk"
	"kvferry/record"
	"kvferry/store"
)

// Stores records the stores that a source opens, because its format does not expose them.
type Stores struct {
	Root string // directory of the dataset
	mu   sync.Mutex
	list []StoreDir
}

// StoreDir is an open store and its directory relative to the dataset.
type StoreDir struct {
	Dir string
	store.Store
}

// Opener returns an opener that records the stores it opens and adds the store's directory to findings.
func (s *Stores) Opener(open store.Opener) store.Opener {
	return func(ctx context.Context, dir string, o *store.Options) (store.Store, error) {
		opts := *o
		rel := s.relative(dir)
		if report := o.Report; report != nil {
			opts.Report = func(f record.Finding) {
				f.Place.File = s.place(rel, f.Place.File)
				report(f)
			}
		}
		st, err := open(ctx, dir, &opts)
		if err != nil {
			return nil, err
		}
		s.add(StoreDir{rel, st})
		return &known{Store: st, of: s}, nil
	}
}

// known is a recorded store. Closing it removes the record: a format may open a store to look at it, or reopen it
// with other options.
type known struct {
	store.Store
	of *Stores
}

// Close closes the store.
func (k *known) Close() error {
	k.of.remove(k.Store)
	return k.Store.Close()
}

func (s *Stores) remove(st store.Store) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = slices.DeleteFunc(s.list, func(d StoreDir) bool { return d.Store == st })
}

func (s *Stores) add(d StoreDir) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, d)
}

// All returns the open stores.
func (s *Stores) All() []StoreDir {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]StoreDir(nil), s.list...)
}

// Files returns the number and size of the files of the open stores.
func (s *Stores) Files() (n int, bytes int64) {
	for _, st := range s.All() {
		for _, f := range st.Files() {
			n++
			bytes += f.Size
		}
	}
	return n, bytes
}

// relative makes a path within the dataset relative to it.
func (s *Stores) relative(path string) string {
	rel, err := filepath.Rel(s.Root, path)
	if err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return filepath.ToSlash(path)
	}
	return filepath.ToSlash(rel)
}

// file names a file relative to the dataset. A dataset that is one file has its path.
func (s *Stores) file(path string) string {
	if filepath.Clean(path) == filepath.Clean(s.Root) {
		return filepath.ToSlash(path)
	}
	return s.relative(path)
}

// place names a file relative to the dataset: some stores name them as they were opened, others relative
// to their own directory.
func (s *Stores) place(dir, file string) string {
	if file != "" && strings.HasPrefix(filepath.Clean(file), filepath.Clean(s.Root)+string(filepath.Separator)) {
		return s.relative(file)
	}
	return placed(dir, file)
}

// placed puts a store's directory before the name of one of its files.
func placed(dir, file string) string {
	if file == "" || filepath.IsAbs(file) {
		return file
	}
	return filepath.ToSlash(filepath.Join(dir, file))
}

// fileNames makes file names of stores relative to the dataset. nil leaves them unchanged.
type fileNames struct {
	stores *Stores
	dirs   map[owner]string // of stores
	only   string           // directory of the store, when there is but one
}

// names returns the file names of a source. A source may derive keyspaces that no store has; with several
// stores, their file names stay unchanged.
func (s *Stores) names(src format.Source) *fileNames {
	if s == nil {
		return nil
	}
	n := &fileNames{stores: s, dirs: make(map[owner]string)}
	all := s.All()
	if len(all) == 1 {
		n.only = all[0].Dir
	}
	owned := owners(src)
	for _, st := range all {
		for _, ks := range st.Keyspaces() {
			if of, ok := owned[ks]; ok {
				n.dirs[of] = st.Dir
			}
		}
	}
	return n
}

// of returns the name of a file that rows of a keyspace are in.
func (n *fileNames) of(db, keyspace, file string) string {
	if n == nil {
		return file
	}
	if dir, ok := n.dirs[owner{db, keyspace}]; ok {
		return n.stores.place(dir, file)
	}
	return n.stores.place(n.only, file)
}

// reporter returns a function that translates the file names of findings and calls report. Both may
// be nil.
func (n *fileNames) reporter(report func(record.Finding)) func(record.Finding) {
	if n == nil || report == nil {
		return report
	}
	return func(f record.Finding) {
		f.Place.File = n.of(f.DB, f.Keyspace, f.Place.File)
		report(f)
	}
}

// Named returns a source whose findings about rows name files relative to the dataset, like findings of stores. It
// implements only Source and Filed. A source that implements Filed has no stores and is returned unchanged.
func (s *Stores) Named(src format.Source) format.Source {
	if _, ok := src.(format.Filed); ok {
		return src
	}
	return &namedSource{src, s.names(src)}
}

// Files implements format.Filed.
func (s *namedSource) Files() (n int, bytes int64) { return s.names.stores.Files() }

// FilesOf returns the number and size of the files of a source: its own, or those of its stores.
func (s *Stores) FilesOf(src format.Source) (n int, bytes int64) {
	if f, ok := src.(format.Filed); ok {
		return f.Files()
	}
	return s.Files()
}

type namedSource struct {
	format.Source
	names *fileNames
}

// Records returns the records of the source.
func (s *namedSource) Records(ctx context.Context, db string, t record.TypeSet, span format.Span, e *format.Env) (record.Reader, error) {
	env := *e
	env.Report = s.names.reporter(e.Report)
	return s.Source.Records(ctx, db, t, span, &env)
}

// owner is the database that a keyspace of a store belongs to, and its name there.
type owner struct{ db, name string }

// owners are those of the keyspaces that a source lists.
func owners(src format.Source) map[store.Keyspace]owner {
	out := make(map[store.Keyspace]owner)
	for _, k := range src.Keyspaces() {
		out[k.Keyspace] = owner{k.DB, k.Name}
	}
	return out
}

// standIns opens stores that cannot be opened as empty ones, so that the rest of a dataset can be
// verified, and reports why.
type standIns struct {
	stores *Stores
	report func(record.Finding)
	// unread is called with the directory of each, relative to the dataset.
	unread func(dir string)
	// keyspaces returns the keyspaces of the store at a directory, as far as known.
	keyspaces func(dir string) []format.KeyspaceEvidence
}

func (s *standIns) opener(open store.Opener) store.Opener {
	return func(ctx context.Context, dir string, o *store.Options) (store.Store, error) {
		st, err := open(ctx, dir, o)
		switch {
		case err == nil:
			return st, nil
		case ctx.Err() != nil, !Unreadable(dir, err):
			return nil, err
		}
		s.report(s.finding(dir, err))
		s.unread(s.stores.relative(dir))
		return s.empty(dir, o), nil
	}
}

// Unreadable reports whether an error of opening the store at dir means that it is damaged, which Verify
// reports. Other errors mean that it does not exist, is in use or cannot be accessed.
func Unreadable(dir string, err error) bool {
	var live *store.LiveError
	return !errors.As(err, &live) && !disk.IsAccess(err) && !isAbsent(dir) && (!errors.Is(err, store.ErrNotStore) || wasStore(dir))
}

// finding turns the error of opening a store into a finding.
func (s *standIns) finding(dir string, err error) record.Finding {
	f := record.Finding{Kind: record.FindUnreadableStore, Severity: record.Error, Detail: err.Error(),
		Place: record.Place{File: s.stores.relative(dir), Off: record.NoOffset, Level: -1}}
	var missing *store.MissingError
	var c *record.CorruptError
	switch {
	case errors.Is(err, store.ErrNotStore):
		f.Kind, f.Place.File = record.FindMissingFile, placed(f.Place.File, "CURRENT")
	case errors.As(err, &missing):
		f.Kind, f.Place.File, f.Detail = record.FindMissingFile, s.stores.file(missing.File), missing.Why()
	case errors.As(err, &c) && c.File != "":
		f.Kind, f.Place = record.FindDamagedFile, c.Place(s.stores.file(c.File))
		f.Detail = c.Reason()
	}
	return f
}

// isAbsent reports whether a directory does not exist; the format decides whether it should.
func isAbsent(dir string) bool {
	_, err := disk.Stat(dir)
	return errors.Is(err, fs.ErrNotExist)
}

// wasStore reports whether there was a database where no CURRENT is: other files of an engine are left, or a file is in the
// place of the directory.
func wasStore(dir string) bool {
	st, err := disk.Stat(dir)
	if err != nil || !st.IsDir() {
		return err == nil
	}
	entries, err := disk.ReadDir(dir)
	return err == nil && slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return isEngines(e.Name()) })
}

// isEngines reports whether RocksDB or LevelDB calls a file so.
func isEngines(name string) bool {
	switch filepath.Ext(name) {
	case ".sst", ".ldb", ".log":
		return true
	}
	return strings.HasPrefix(name, "MANIFEST-") || strings.HasPrefix(name, "OPTIONS-") || slices.Contains([]string{"IDENTITY", "LOCK", "LOG"}, name)
}

// empty returns a store without rows that has the keyspaces of the one at dir.
func (s *standIns) empty(dir string, o *store.Options) store.Store {
	out := new(emptyStore)
	evidence := []format.KeyspaceEvidence{{Name: "default", Comparer: store.Bytewise.Name}}
	if found := s.keyspaces(dir); len(found) > 0 {
		evidence = found
	}
	for _, k := range evidence {
		ks := &emptyKeyspace{dataset.Absent(k.Name), &store.Bytewise}
		for i := range o.Comparers {
			if o.Comparers[i].Name == k.Comparer {
				ks.cmp = &o.Comparers[i]
			}
		}
		out.keyspaces = append(out.keyspaces, ks)
	}
	return out
}
