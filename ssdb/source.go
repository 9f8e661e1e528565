package ssdb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"kvferry/format"
	"kvferry/internal/shared/dataset"
	"kvferry/internal/shared/deleted"
	"kvferry/internal/shared/keylanes"
	"kvferry/internal/shared/versioned"
	"kvferry/record"
	"kvferry/store"
)

// db is the only database. dataDir and metaDir are LevelDB directories and names of keyspaces.
const (
	db      = "0"
	dataDir = "data"
	metaDir = "meta"
)

// homes are the parents of dataDir and metaDir: in a work directory or a dump of ssdb-dump, and beside ssdb.conf.
var homes = []string{"", "var"}

// source is an open dataset.
type source struct {
	versioned.Source
	stores   []store.Store
	data     store.Keyspace
	meta     store.Keyspace // nil if absent
	expiries *keylanes.Directory
}

// open opens the dataset in dir.
func open(ctx context.Context, f ssdbFormat, dir string, o *format.OpenOptions) (format.Source, error) {
	s := &source{Source: versioned.NewSource(f, dir)}
	s.Flat = true
	if err := s.openAll(ctx, o); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.expiries = keylanes.NewDirectory(s.data, expiryRows)
	d := &versioned.Database{Name: db}
	for i := range families[:record.ZSet-1] {
		d.Stores = append(d.Stores, families[i].open(s.data))
	}
	s.DBs = []*versioned.Database{d}
	return s, nil
}

func (s *source) openAll(ctx context.Context, o *format.OpenOptions) (err error) {
	for _, home := range homes {
		if s.data, err = s.openStore(ctx, filepath.Join(home, dataDir), o); s.data == nil && err == nil {
			continue
		}
		if err == nil {
			s.meta, err = s.openStore(ctx, filepath.Join(home, metaDir), o)
		}
		return err
	}
	if s.data, err = s.openStore(ctx, "", o); s.data != nil || err != nil && !errors.Is(err, store.ErrNotStore) {
		return err
	}
	return fmt.Errorf("%s: not an SSDB database: want a LevelDB directory in it, or in %s or var/%s below it: %w", s.Dir, dataDir, dataDir, store.ErrNotStore)
}

// openStore opens a LevelDB directory; it returns nil if the directory does not exist.
func (s *source) openStore(ctx context.Context, rel string, o *format.OpenOptions) (store.Keyspace, error) {
	st, err := dataset.OpenStore(ctx, s.Dir, rel, o)
	if st == nil {
		return nil, err
	}
	s.stores = append(s.stores, st)
	all := st.Keyspaces()
	if len(all) != 1 || !all[0].Comparer().IsBytewise() {
		return nil, fmt.Errorf("%s: SSDB has one keyspace in byte order", filepath.Join(s.Dir, rel))
	}
	return all[0], nil
}

// slice is the part of the keyspace that belongs to a type.
type slice struct {
	store.Keyspace
	of *family
}

func (s *slice) part() *dataset.Slice {
	return &dataset.Slice{Keyspace: s.Keyspace, Holds: s.of.holds}
}

// IteratorSize returns the size of an iterator, see store.Weigher.
func (s *slice) IteratorSize() int64 { return s.part().IteratorSize() }

// Sample returns about n samples.
func (s *slice) Sample(n int) ([]store.Weighted, error) { return s.part().Sample(n) }

// Size is the share of the bytes.
func (s *slice) Size() int64 { return s.part().Size() }

// Unordered yields the entries.
func (s *slice) Unordered(f func(*store.Entry) error) error { return s.part().Unordered(f) }

// Records yields the records of a span. Rows outside of records are counted by the pass that reads strings.
func (s *source) Records(ctx context.Context, name string, t record.TypeSet, span format.Span, e *format.Env) (record.Reader, error) {
	return s.read(name, t, e, func(st *versioned.Store, memory int64) (record.Reader, error) {
		r, err := st.Records(ctx, t, span, e, memory/2)
		if err != nil || !st.Types().Has(record.String) {
			return r, err
		}
		return newTimed(s, r, span, e, memory/2)
	})
}

// read merges the records of types, which share the memory.
func (s *source) read(name string, t record.TypeSet, e *format.Env, one func(*versioned.Store, int64) (record.Reader, error)) (record.Reader, error) {
	if s.Database(name) == nil {
		return nil, fmt.Errorf("%s: no database %q: SSDB has one, %q", s.Dir, name, db)
	}
	stores := s.StoresOf(name, t)
	if e.AnyOrder {
		return dataset.Concat(stores, func(st *versioned.Store) (record.Reader, error) { return one(st, versioned.Share(e, 1)) }), nil
	}
	return dataset.Merge(stores, func(st *versioned.Store) (record.Reader, error) { return one(st, versioned.Share(e, len(stores))) })
}

// DeadRecords yields the deleted rows still on disk of names without live rows. SSDB deletes the elements of a
// collection one by one, so this includes all elements ever deleted.
func (s *source) DeadRecords(ctx context.Context, name string, t record.TypeSet, span format.Span, e *format.Env,
	tell func(key []byte, t record.Type, what string)) (record.Reader, error) {

	quiet := *e
	quiet.Ledger, quiet.Report, quiet.Deep = nil, nil, false
	return s.read(name, t, e, func(st *versioned.Store, memory int64) (record.Reader, error) {
		f := &families[st.Types().Types()[0]-1]
		l := *f.layout
		c := *l.Codecs[0]
		l.Codecs, l.Internal = []*versioned.Codec{&c}, nil
		if f.typ == record.List { // popped items are outside the last bounds
			c.Start = func(m *versioned.Meta) { m.Left, m.Right, m.Boundless = MinItem-1, 1<<63, false }
			c.Bound = func(*versioned.Meta, []byte, []byte) bool { return true }
		}
		ks := deleted.Strings(ctx, s.data)
		dead := (&family{f.typ, f.size, f.data, f.index, &l}).open(ks)
		r, err := dead.Records(ctx, t, span, &quiet, memory)
		if err != nil {
			return nil, err
		}
		return &deadReader{Reader: r, src: s, of: f, tell: tell}, nil
	})
}

// deadReader leaves out names that exist again.
type deadReader struct {
	record.Reader
	src  *source
	of   *family
	tell func(key []byte, t record.Type, what string)
}

// Next moves to the next name without live rows.
func (d *deadReader) Next() (*record.Header, error) {
	for {
		h, err := d.Reader.Next()
		if err != nil || d.of.typ == record.String {
			if err == nil {
				d.tell(bytes.Clone(h.Key), h.Type, "its expiry, if it had one, is not known")
			}
			return h, err
		}
		alive, err := d.alive(h.Key)
		if err != nil {
			return nil, err
		}
		if !alive && string(h.Key) != ExpireList {
			d.tell(bytes.Clone(h.Key), h.Type, "its elements may have been deleted at different times")
			return h, nil
		}
	}
}

// alive reports whether a name has data rows.
func (d *deadReader) alive(key []byte) (bool, error) {
	prefix := appendPrefix(nil, d.of.data, key)
	it, err := d.src.data.Rows(prefix, nil)
	if err != nil {
		return false, err
	}
	raw, _, err := it.Next()
	alive := err == nil && bytes.HasPrefix(raw, prefix)
	return alive, it.Close()
}

// Where lists the raw ranges of a name, in all types, and the range of a string's expiry.
func (s *source) Where(name string, key []byte) []format.Range {
	out := s.Source.Where(name, key)
	if len(key) > 0 && len(key) <= MaxName {
		lo := appendMember(bytes.Clone(expiryPrefix), key)
		out = append(out, format.Range{Keyspace: dataDir, Type: record.String, Lo: lo, Hi: append(bytes.Clone(lo), 0)})
	}
	return out
}

// Keyspaces lists data and meta.
func (s *source) Keyspaces() []format.Keyspace {
	out := []format.Keyspace{{DB: db, Name: dataDir, Keyspace: s.data}}
	if s.meta != nil {
		out = append(out, format.Keyspace{Name: metaDir, Keyspace: s.meta})
	}
	return out
}

// Extra returns no files.
func (s *source) Extra() []string { return nil }

// Close closes the stores.
func (s *source) Close() error {
	var errs []error
	for _, st := range s.stores {
		errs = append(errs, st.Close())
	}
	return errors.Join(errs...)
}

func closing(c interface{ Close() error }, err error) error { return errors.Join(err, c.Close()) }
