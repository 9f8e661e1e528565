package ardb

import (
	"context"
	"errors"
	"fmt"
	"math/bits"

	"kvferry/ardb/codec"
	"kvferry/format"
	"kvferry/internal/shared/dataset"
	"kvferry/record"
	"kvferry/store"
)

// source is an open dataset.
type source struct {
	format ardbFormat
	store  store.Store
	kind   string
	dir    string // of the engine
	spaces []*space
	// rest are the keyspaces that hold no namespace: TTL rows, directories, the unused default.
	rest []*space
	// circles maps collections to the circular order that the store reported on opening. The keys are raw keys
	// up to and including the type byte.
	circles map[string]string
}

// Open opens a source.
func (f ardbFormat) Open(ctx context.Context, dir string, o *format.OpenOptions) (format.Source, error) {
	s, err := open(ctx, f, dir, o)
	if err != nil {
		return nil, err // not a nil *source in an interface
	}
	return s, nil
}

// open opens the dataset in dir, which is a data directory of the server or an engine's directory in it.
func open(ctx context.Context, f ardbFormat, dir string, o *format.OpenOptions) (*source, error) {
	home, kind, err := engineOf(dir, o.Kind)
	if err != nil {
		return nil, err
	}
	s := &source{format: f, kind: kind, dir: home}
	opts := o.Options
	opts.Merger = Merger()
	opts.WALDir = o.WALDir
	opts.Comparers = []store.Comparer{codec.Comparer()}
	if kind == kindLevelDB {
		opts.Comparers = []store.Comparer{codec.LevelDBComparer()}
	}
	opts.Report = s.circular(o.Options.Report, kind == kindLevelDB)
	opts.Order = lmdbOrder
	if s.store, err = o.Store(ctx, home, &opts); err != nil {
		return nil, unopenedError(err, dir, home, kind)
	}
	if err := s.openNamespaces(ctx, dir, o, &opts); err != nil {
		return nil, errors.Join(err, s.store.Close())
	}
	return s, nil
}

// circular records the store's findings about circular collections until the collections are read, and
// forwards all other findings.
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

// circleOf returns the map key of a collection: keyspace, key with namespace, kind.
func circleOf(keyspace string, key []byte, kind byte) string {
	return keyspace + "\x00" + string(key) + string(kind)
}

// openNamespaces finds the namespaces. It opens an LMDB file a second time, sorted, if the file is not in the
// comparator's order: from its second run on, the stock server searches it in byte order.
func (s *source) openNamespaces(ctx context.Context, dir string, o *format.OpenOptions, opts *store.Options) error {
	if s.kind == kindLevelDB {
		return s.findNamespaces(opts)
	}
	if s.kind == kindLMDB && !opts.Resort {
		if err := s.checkOrder(); err != nil {
			var order *store.OrderError
			if !errors.As(err, &order) {
				return err
			}
			if opts.Report != nil {
				opts.Report(record.Finding{Kind: FindRowOrder, Severity: record.Warning, Keyspace: order.Keyspace,
					Place:  order.Place(dir),
					Detail: "the rows are not in the order of " + codec.ComparerName + ", a bug of the stock server; kvferry sorted them"})
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
	s.spaces, s.rest = spacesOf(s.store, s.kind)
	return nil
}

// findNamespaces finds the namespaces of a LevelDB database.
func (s *source) findNamespaces(opts *store.Options) error {
	keyspaces := s.store.Keyspaces()
	if len(keyspaces) != 1 {
		return fmt.Errorf("%s: %d keyspaces; want one, as in LevelDB databases of Ardb", s.dir, len(keyspaces))
	}
	var err error
	if s.spaces, err = findSpaces(keyspaces[0]); err != nil {
		return err
	}
	s.rest = []*space{{Name: defaultCF, Label: defaultCF, Keyspace: keyspaces[0], Named: true}}
	for _, sp := range s.spaces {
		if d, _ := codec.SplitData(sp.NS); d.Tag == codec.TagInt && opts.Report != nil {
			opts.Report(record.Finding{Kind: FindIntNamespace, Severity: record.Note, DB: sp.DB, Keyspace: sp.Name,
				Detail: "MOVE wrote this namespace as an integer, so no client can select it; kvferry reads it as database " +
					sp.DB})
		}
	}
	return nil
}

// checkOrder checks every key of stores whose comparator name does not guarantee the order. It ignores damage,
// which readers of the damaged part report: the rest is readable.
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

// Format returns the format.
func (s *source) Format() format.Format { return s.format }

// Layout is flat: all databases are in one store.
func (s *source) Layout() format.Layout { return format.LayoutFlat }

// Databases are the namespaces.
func (s *source) Databases() []string {
	out := make([]string, len(s.spaces))
	for i, sp := range s.spaces {
		out[i] = sp.DB
	}
	return out
}

// Sorted is true, since an LMDB file in another order was opened sorted.
func (s *source) Sorted() bool { return true }

// Seeks returns the types whose elements are rows in the order of their names. Lists may have other indexes than their
// positions.
func (s *source) Seeks() record.TypeSet { return record.Of(record.Hash, record.Set, record.ZSet) }

// Types returns all types, since a namespace holds every type.
func (s *source) Types(string) record.TypeSet { return record.RedisTypes }

// Extra returns nil: Ardb has no extra files.
func (s *source) Extra() []string { return nil }

// Close closes the store.
func (s *source) Close() error { return s.store.Close() }

// Describe decodes one raw row.
func (s *source) Describe(_, keyspace string, key, value []byte) format.Row {
	return codec.Describe(keyspace, key, value, s.kind == kindLevelDB)
}

func (s *source) space(db string) (*space, error) {
	for _, sp := range s.spaces {
		if sp.DB == db {
			return sp, nil
		}
	}
	return nil, fmt.Errorf("%s: no namespace %q: have %q", s.dir, db, s.Databases())
}

// Split cuts the user keys of a namespace into n parts with equal sampled bytes.
func (s *source) Split(db string, t record.TypeSet, n int) ([]format.Span, error) {
	if n <= 1 {
		return []format.Span{{}}, nil
	}
	keys, err := s.Weigh(db, t, n*dataset.SamplesPerSpan)
	if err != nil {
		return []format.Span{{}}, err
	}
	return dataset.Cut(keys, n), nil
}

// Weigh samples about n user keys of a namespace; all types share one keyspace.
func (s *source) Weigh(db string, _ record.TypeSet, n int) ([]store.Weighted, error) {
	sp, err := s.space(db)
	if err != nil {
		return nil, err
	}
	return sp.Weigh(n, len(s.spaces))
}

// Size is the number of bytes of a namespace. For a subset of the types it assumes a proportional share, as
// all types share one keyspace.
func (s *source) Size(db string, t record.TypeSet) int64 {
	sp, err := s.space(db)
	if err != nil {
		return 0
	}
	size := sp.Keyspace.Size()
	if len(s.spaces) > 1 {
		size = sp.Part().Size()
	}
	return size * int64(bits.OnesCount8(uint8(t&record.RedisTypes))) / int64(bits.OnesCount8(uint8(record.RedisTypes)))
}

// Where lists the raw range of a user key: its META row and all its elements.
func (s *source) Where(db string, key []byte) []format.Range {
	sp, err := s.space(db)
	if err != nil {
		return nil
	}
	return []format.Range{{Keyspace: sp.Name, Lo: codec.Bound(sp.NS, key), Hi: codec.Bound(sp.NS, codec.After(key))}}
}

// Keyspaces lists the namespaces and then the other keyspaces. On LevelDB all are parts of one keyspace.
func (s *source) Keyspaces() []format.Keyspace {
	var out []format.Keyspace
	for _, sp := range s.spaces {
		out = append(out, format.Keyspace{DB: sp.DB, Name: sp.Name, Keyspace: sp.Part()})
	}
	for _, sp := range s.rest {
		k := format.Keyspace{Name: sp.Name, Keyspace: sp.Keyspace}
		if sp.Named {
			ttl := expirySpace(sp.Keyspace)
			k.Name, k.Keyspace = ttl.Name, ttl.Part()
		}
		out = append(out, k)
	}
	return out
}
