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
	"kvferry/internal/sys/disk"
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

// Opening holds the options with which a source is opened, or opened again.
type Opening struct {
	// Wrap wraps the opener of the source's stores.
	Wrap    func(store.Opener) store.Opener
	Report  func(record.Finding)
	Resort  bool // sort tables whose rows are out of order
	Salvage bool // skip unreadable tables and blocks
}

// Opener returns an opener that records the stores it opens and adds the store's directory to findings.
func (s *Stores) Opener(open store.Opener) store.Opener {
	return func(ctx context.Context, dir string, o *store.Options) (store.Store, error) {
		opts := *o
		rel := s.Relative(dir)
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

// known is a recorded store. Closing it removes the record: a format may open a store only to probe it, or reopen it
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

// Data returns the size of what has rows in the open stores, with the bytes that were cut off.
func (s *Stores) Data() (bytes int64) {
	for _, st := range s.All() {
		for _, f := range st.Files() {
			if f.Kind != "manifest" && f.Kind != "current" {
				bytes += f.Size + f.Lacks
			}
		}
	}
	return bytes
}

// DataOf returns the size of what has rows in a store that cannot be opened: its tables and logs, or the file itself.
func DataOf(dir string) (bytes int64) {
	entries, err := disk.ReadDir(dir)
	if err != nil {
		st, err := disk.Stat(dir)
		if err == nil && st.Mode().IsRegular() {
			return st.Size()
		}
		return 0
	}
	for _, e := range entries {
		switch info, err := e.Info(); filepath.Ext(e.Name()) {
		case ".sst", ".ldb", ".log", ".blob", ".mdb":
			if err == nil && info.Mode().IsRegular() {
				bytes += info.Size()
			}
		}
	}
	return bytes
}

// Relative makes a path within the dataset relative to it.
func (s *Stores) Relative(path string) string {
	rel, err := filepath.Rel(s.Root, path)
	if err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return filepath.ToSlash(path)
	}
	return filepath.ToSlash(rel)
}

// File names a file relative to the dataset. A dataset that is one file has its path.
func (s *Stores) File(path string) string {
	if filepath.Clean(path) == filepath.Clean(s.Root) {
		return filepath.ToSlash(path)
	}
	return s.Relative(path)
}

// place names a file relative to the dataset. Some stores report paths as they were opened, others relative to their
// own directory.
func (s *Stores) place(dir, file string) string {
	if file != "" && strings.HasPrefix(filepath.Clean(file), filepath.Clean(s.Root)+string(filepath.Separator)) {
		return s.Relative(file)
	}
	return Placed(dir, file)
}

// Placed prefixes the name of a store's file with the store's directory.
func Placed(dir, file string) string {
	if file == "" || filepath.IsAbs(file) || disk.IsMounted(file) {
		return file
	}
	return filepath.ToSlash(disk.Join(dir, file))
}

// FileNames translates file names of stores into names relative to the dataset. nil leaves them unchanged.
type FileNames struct {
	stores *Stores
	dirs   map[Owner]string // directories of stores, by keyspace
	only   string           // directory of the store, if there is only one
}

// Names returns the file names of a source. A source may list keyspaces that no store has; if it has several stores,
// their file names stay unchanged.
func (s *Stores) Names(src format.Source) *FileNames {
	if s == nil {
		return nil
	}
	n := &FileNames{stores: s, dirs: make(map[Owner]string)}
	all := s.All()
	if len(all) == 1 {
		n.only = all[0].Dir
	}
	owned := Owners(src)
	for _, st := range all {
		for _, ks := range st.Keyspaces() {
			if of, ok := owned[ks]; ok {
				n.dirs[of] = st.Dir
			}
		}
	}
	return n
}

// Of returns the dataset-relative name of a file with rows of a keyspace.
func (n *FileNames) Of(db, keyspace, file string) string {
	if n == nil {
		return file
	}
	if dir, ok := n.dirs[Owner{db, keyspace}]; ok {
		return n.stores.place(dir, file)
	}
	return n.stores.place(n.only, file)
}

// reporter returns a function that translates the file names of findings and calls report. Both may
// be nil.
func (n *FileNames) reporter(report func(record.Finding)) func(record.Finding) {
	if n == nil || report == nil {
		return report
	}
	return func(f record.Finding) {
		f.Place.File = n.Of(f.DB, f.Keyspace, f.Place.File)
		report(f)
	}
}

// Named returns a source whose findings about rows name files relative to the dataset, like findings of stores. It
// implements only Source and Filed. A source that implements Filed has no stores and is returned unchanged.
func (s *Stores) Named(src format.Source) format.Source {
	if _, ok := format.As[format.Filed](src); ok {
		return src
	}
	return &namedSource{src, s.Names(src)}
}

// Files implements format.Filed.
func (s *namedSource) Files() (n int, bytes int64) { return s.names.stores.Files() }

// FilesOf returns the number and size of the files of a source: its own, or those of its stores.
func (s *Stores) FilesOf(src format.Source) (n int, bytes int64) {
	if f, ok := format.As[format.Filed](src); ok {
		return f.Files()
	}
	return s.Files()
}

type namedSource struct {
	format.Source
	names *FileNames
}

// Unwrap returns the source itself.
func (s *namedSource) Unwrap() format.Source { return s.Source }

// Records returns the records of the source.
func (s *namedSource) Records(ctx context.Context, db string, t record.TypeSet, span format.Span,
	e *format.Env) (record.Reader, error) {
	env := *e
	env.Report = s.names.reporter(e.Report)
	return s.Source.Records(ctx, db, t, span, &env)
}

// Owner is the database of a store's keyspace, and its name in that database.
type Owner struct{ DB, Name string }

// Owners returns the owner of each keyspace that a source lists.
func Owners(src format.Source) map[store.Keyspace]Owner {
	out := make(map[store.Keyspace]Owner)
	for _, k := range src.Keyspaces() {
		out[k.Keyspace] = Owner{k.DB, k.Name}
	}
	return out
}

// Unreadable reports whether an error of opening the store at dir means damage, which verify reports. Other errors
// mean that the store does not exist, is in use or cannot be accessed.
func Unreadable(dir string, err error) bool {
	var live *store.LiveError
	return !errors.As(err, &live) && !disk.IsAccess(err) && !isAbsent(dir) &&
		(!errors.Is(err, store.ErrNotStore) || wasStore(dir))
}

// isAbsent reports whether a directory does not exist; the format decides whether it should.
func isAbsent(dir string) bool {
	_, err := disk.Stat(dir)
	return errors.Is(err, fs.ErrNotExist)
}

// wasStore reports whether dir held a database before CURRENT was lost: it contains other files of an engine, or dir
// itself is a file.
func wasStore(dir string) bool {
	st, err := disk.Stat(dir)
	if err != nil || !st.IsDir() {
		return err == nil
	}
	entries, err := disk.ReadDir(dir)
	return err == nil && slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return isEngines(e.Name()) })
}

// isEngines reports whether a file name is RocksDB's or LevelDB's.
func isEngines(name string) bool {
	switch filepath.Ext(name) {
	case ".sst", ".ldb", ".log":
		return true
	}
	return strings.HasPrefix(name, "MANIFEST-") || strings.HasPrefix(name, "OPTIONS-") ||
		slices.Contains([]string{"IDENTITY", "LOCK", "LOG"}, name)
}
