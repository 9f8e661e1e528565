package ardb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"kvferry/ardb/codec"
	"kvferry/ardb/merge"
	"kvferry/format"
	"kvferry/internal/disk"
	"kvferry/record"
	"kvferry/store"
)

// Kinds of stores, as locations and engine directories name them.
const (
	storeRocksDB = "rocksdb"
	storeLevelDB = "leveldb"
	storeLMDB    = "lmdb"
)

// defaultCF is RocksDB's own column family, and LevelDB's only keyspace.
const defaultCF = "default"

// source is an open dataset.
type source struct {
	format ardbFormat
	store  store.Store
	kind   string
	dir    string // of the engine
	spaces []*space
	// rest are the keyspaces that hold no namespace: TTL rows, directories, the unused default.
	rest []*space
	// circles says of collections what the store reported when it was opened: that their rows are in no order.
	// The names are raw keys up to and with the type byte.
	circles map[string]string
}

// space is a namespace, or what is beside them.
type space struct {
	db    string
	name  string // of the keyspace, for people
	label string // in the ledger
	ks    store.Keyspace
	ns    []byte // LevelDB: the encoded namespace that every key starts with
	named bool   // LevelDB: keys start with a namespace
	upper []byte // LevelDB: a key after all of the namespace
}

// open opens the dataset in dir, which is a data directory of the server or an engine's directory in it.
func open(ctx context.Context, f ardbFormat, dir string, o *format.OpenOptions) (*source, error) {
	engine, kind, err := engineDir(dir, o.Kind)
	if err != nil {
		return nil, err
	}
	s := &source{format: f, kind: kind, dir: engine}
	opts := o.Options
	opts.Merger = merge.Merger()
	opts.WALDir = o.WALDir
	opts.Comparers = []store.Comparer{codec.Comparer()}
	if kind == storeLevelDB {
		opts.Comparers = []store.Comparer{codec.LevelDBComparer()}
	}
	opts.Report = s.circular(o.Options.Report, kind == storeLevelDB)
	opts.Order = lmdbOrder
	if s.store, err = o.Store(ctx, engine, &opts); err != nil {
		return nil, held(err, kind)
	}
	if err := s.settle(ctx, o, &opts); err != nil {
		return nil, errors.Join(err, s.store.Close())
	}
	return s, nil
}

// held says what works with this server when it holds the database: BGSAVE writes no database.
func held(err error, kind string) error {
	var live *store.LiveError
	if errors.As(err, &live) {
		live.Instead = "stop the server, copy the directory and read the copy, or pass --allow-live"
		if kind == storeLMDB {
			live.Instead = "an LMDB file is changed in place, so nothing reads it safely meanwhile: stop the server and copy the directory, or " +
				"have it make a copy (SAVE backup writes save-lmdb-backup in its backup-dir), and read that"
		}
		return live
	}
	return err
}

// circular keeps what the store finds about the order of a collection, for when the collection is read, and
// passes its other findings on.
func (s *source) circular(report func(record.Finding), named bool) func(record.Finding) {
	s.circles = map[string]string{}
	return func(f record.Finding) {
		if _, end, ok := codec.SplitUser(f.Key, named); ok && f.Kind == record.FindCircularOrder {
			s.circles[circleOf(f.Keyspace, f.Key[:end], f.Key[end])] = f.Detail
		} else if report != nil {
			report(f)
		}
	}
}

// circleOf names the rows of a collection: keyspace, key with namespace, kind.
func circleOf(keyspace string, key []byte, kind byte) string {
	return keyspace + "\x00" + string(key) + string(kind)
}

// lmdbOrder is the order of a named database of LMDB: its directory of namespaces is in plain order.
func lmdbOrder(name string) *store.Comparer {
	if name == codec.LMDBNamespace {
		return nil
	}
	c := codec.Comparer()
	return &c
}

// settle finds the namespaces. An LMDB file is opened a second time, sorted, when it is not in the
// comparator's order: the stock server searches it in byte order from its second run on.
func (s *source) settle(ctx context.Context, o *format.OpenOptions, opts *store.Options) error {
	if s.kind == storeLevelDB {
		return s.findNamespaces(opts)
	}
	if s.kind == storeLMDB && !opts.Resort {
		if err := s.checkOrder(); err != nil {
			var order *store.OrderError
			if !errors.As(err, &order) {
				return err
			}
			if opts.Report != nil {
				opts.Report(record.Finding{Kind: FindRowOrder, Severity: record.Warning, Keyspace: order.Keyspace,
					Place:  record.Place{File: filepath.Base(order.File), Off: order.Off, Level: -1},
					Detail: "the rows are not in the order of " + codec.ComparerName + ", as the stock server leaves them; all are sorted"})
			}
			opts.Resort = true
			sorted, err := o.Store(ctx, s.dir, opts)
			if err != nil {
				return err
			}
			if err := s.store.Close(); err != nil {
				return errors.Join(err, sorted.Close())
			}
			s.store = sorted
		}
	}
	s.listNamespaces()
	return nil
}

// checkOrder looks at every key of stores whose order is not vouched for by its name. Damage is left to
// those who read what is damaged: the rest can be read.
func (s *source) checkOrder() error {
	for _, ks := range s.store.Keyspaces() {
		c, ok := ks.(interface{ CheckOrder() error })
		if !ok {
			continue
		}
		var damage *record.CorruptError
		if err := c.CheckOrder(); err != nil && !errors.As(err, &damage) {
			return err
		}
	}
	return nil
}

// listNamespaces takes the keyspaces for namespaces, but for those that the server keeps for itself.
func (s *source) listNamespaces() {
	for _, ks := range s.store.Keyspaces() {
		sp := &space{name: ks.Name(), label: ks.Name(), ks: ks}
		switch name := ks.Name(); {
		case name == codec.TTLNamespace, name == codec.LMDBNamespace, name == defaultCF && s.kind == storeRocksDB, name == "" && s.kind == storeLMDB:
			s.rest = append(s.rest, sp)
		default:
			sp.db = name
			s.spaces = append(s.spaces, sp)
		}
	}
	slices.SortFunc(s.spaces, func(a, b *space) int { return strings.Compare(a.db, b.db) })
}

// findNamespaces jumps from namespace to namespace of a LevelDB database.
func (s *source) findNamespaces(opts *store.Options) (err error) {
	spaces := s.store.Keyspaces()
	if len(spaces) != 1 {
		return fmt.Errorf("%s: %d keyspaces, a LevelDB database of Ardb has one", s.dir, len(spaces))
	}
	ks := spaces[0]
	it, err := ks.Rows(nil, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	s.rest = []*space{{name: defaultCF, label: defaultCF, ks: ks, named: true}}
	for {
		key, _, err := it.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		d, n := codec.SplitData(key)
		next, ok := codec.AfterNamespace(d)
		if n == 0 || !ok || string(d.Text) == codec.TTLNamespace {
			if n > 0 && ok {
				err = it.SeekGE(next)
			}
			if err != nil {
				return err
			}
			continue
		}
		s.spaces = append(s.spaces, s.namespace(ks, d, next, opts))
		if err := it.SeekGE(next); err != nil {
			return err
		}
	}
	slices.SortFunc(s.spaces, func(a, b *space) int { return strings.Compare(a.db, b.db) })
	return nil
}

func (s *source) namespace(ks store.Keyspace, d codec.Data, upper []byte, opts *store.Options) *space {
	db := string(codec.AppendServed(nil, d))
	if d.Tag == codec.TagInt {
		db = "int:" + db
		if opts.Report != nil {
			opts.Report(record.Finding{Kind: FindIntNamespace, Severity: record.Note, DB: db, Keyspace: defaultCF,
				Detail: "MOVE wrote this namespace as an integer, so that no client can select it; it is read as database " + db})
		}
	}
	return &space{db: db, name: defaultCF, label: defaultCF + "/" + db, ks: ks, ns: codec.AppendData(nil, d), named: true, upper: upper}
}

// engineDir finds the engine's directory and which engine it is.
func engineDir(dir, kind string) (engine, found string, err error) {
	kinds := []string{storeRocksDB, storeLevelDB, storeLMDB}
	if kind != "" {
		kinds = []string{kind}
	}
	if k := storeIn(dir); k != "" {
		if kind == "" {
			kind = k
		}
		return dir, kind, nil
	}
	var at []string
	for _, k := range kinds {
		if sub := filepath.Join(dir, k); storeIn(sub) != "" {
			at = append(at, k)
		}
	}
	switch len(at) {
	case 0:
		if kind != "" { // stores that are no files
			return filepath.Join(dir, kind), kind, nil
		}
		return "", "", fmt.Errorf("%s: no rocksdb, leveldb or lmdb directory of Ardb here: %w", dir, store.ErrNotStore)
	case 1:
		return filepath.Join(dir, at[0]), at[0], nil
	}
	return "", "", fmt.Errorf("%s: holds the engines %s: name the directory of one", dir, strings.Join(at, " and "))
}

// storeIn says which engine the files of a directory are of, "" when there are none.
func storeIn(dir string) string {
	if exists(dir, "data.mdb") {
		return storeLMDB
	}
	if !exists(dir, "CURRENT") {
		return ""
	}
	if exists(dir, "IDENTITY") || matches(dir, "OPTIONS-*") || matches(dir, "*.sst") && !matches(dir, "*.ldb") {
		return storeRocksDB
	}
	return storeLevelDB
}

func exists(dir, name string) bool {
	_, err := disk.Stat(filepath.Join(dir, name))
	return err == nil
}

func matches(dir, pattern string) bool {
	entries, err := disk.ReadDir(dir)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		ok, err := filepath.Match(pattern, e.Name())
		return ok && err == nil
	})
}

// Format returns the format.
func (s *source) Format() format.Format { return s.format }

// Layout is flat: all databases are in one store.
func (s *source) Layout() format.Layout { return format.LayoutFlat }

// Databases are the namespaces.
func (s *source) Databases() []string {
	out := make([]string, len(s.spaces))
	for i, sp := range s.spaces {
		out[i] = sp.db
	}
	return out
}

// Sorted is true: an LMDB file in another order has been opened sorted.
func (s *source) Sorted() bool { return true }

// Types are all: a namespace holds every type.
func (s *source) Types(string) record.TypeSet { return record.RedisTypes }

// Extra files there are none.
func (s *source) Extra() []string { return nil }

// Close closes the store.
func (s *source) Close() error { return s.store.Close() }

// RedisString moves the mark of a HyperLogLog's stale count to where Redis has it.
func (s *source) RedisString(dst, value []byte) []byte { return merge.RedisString(dst, value) }

// Describe decodes one raw row.
func (s *source) Describe(_, keyspace string, key, value []byte) format.Row {
	return codec.Describe(keyspace, key, value, s.kind == storeLevelDB)
}

func (s *source) space(db string) (*space, error) {
	for _, sp := range s.spaces {
		if sp.db == db {
			return sp, nil
		}
	}
	return nil, fmt.Errorf("%s: no namespace %q: have %q", s.dir, db, s.Databases())
}

// bounds returns the raw range of a span.
func (sp *space) bounds(s format.Span) (lo, hi []byte) {
	if sp.named || s.Lo != nil {
		lo = codec.Bound(sp.ns, s.Lo)
	}
	if s.Hi != nil {
		return lo, codec.Bound(sp.ns, s.Hi)
	}
	return lo, sp.upper
}

// holds reports whether a raw key is of the space, which on LevelDB shares its keyspace.
func (sp *space) holds(raw []byte) bool {
	if !sp.named {
		return true
	}
	d, n := codec.SplitData(raw)
	own, _ := codec.SplitData(sp.ns)
	return n > 0 && (bytes.Equal(raw[:n], sp.ns) || d.Compare(&own) == 0)
}
