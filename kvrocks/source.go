package kvrocks

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"kvferry/format"
	"kvferry/internal/dataset"
	"kvferry/internal/extsort"
	"kvferry/internal/lane"
	"kvferry/internal/versioned"
	"kvferry/kvrocks/codec"
	"kvferry/record"
	"kvferry/store"
)

// role is what a column family holds of records.
type role int

const (
	roleMeta role = iota
	roleData
	roleScore
	roleStream

	numRoles
)

var roleNames = [numRoles]string{codec.FamilyMetadata, codec.FamilyDefault, codec.FamilyScore, codec.FamilyStream}

// storeDir is where the server keeps the database below its own directory. Backups and checkpoints are such
// databases by themselves.
const storeDir = "db"

// source is an open dataset.
type source struct {
	format kvrocksFormat
	dir    string
	store  store.Store
	roles  [numRoles]store.Keyspace
	rest   []store.Keyspace // those that hold no records
	// missing says which of roles are not there, and so empty.
	missing [numRoles]bool
	// slotted says that keys have the slot of a cluster behind the namespace.
	slotted   bool
	spaces    []*space
	maxBitmap int64
}

// space is a namespace, and as such a database.
type space struct {
	name string
	keys
	prefix []byte // of all its keys
	upper  []byte // after all of them; nil when nothing is
	store  *versioned.Store
}

// open opens the database in dir, which is the server's directory or the database's own.
func open(ctx context.Context, f kvrocksFormat, dir string, o *format.OpenOptions) (*source, error) {
	s := &source{format: f, dir: dir, maxBitmap: cmp.Or(o.MaxBitmap, DefaultMaxBitmap)}
	st, err := dataset.OpenStore(ctx, dir, storeDir, o)
	if st == nil && err == nil {
		st, err = dataset.OpenStore(ctx, dir, "", o)
	}
	switch {
	case errors.Is(err, store.ErrNotStore) || st == nil && err == nil:
		return nil, fmt.Errorf("%s: no Kvrocks database: want a RocksDB directory in it, or in %s below it: %w", dir, storeDir, store.ErrNotStore)
	case err != nil:
		return nil, err
	}
	s.store = st
	if err := s.settle(o); err != nil {
		return nil, errors.Join(err, st.Close())
	}
	return s, nil
}

// settle finds the column families and the namespaces.
func (s *source) settle(o *format.OpenOptions) error {
	for i, name := range roleNames {
		s.roles[i], s.missing[i] = dataset.Absent(name), true
	}
	for _, ks := range s.store.Keyspaces() {
		if c := ks.Comparer(); !c.IsBytewise() {
			return fmt.Errorf("%s: column family %s is ordered by %s, Kvrocks has all in byte order", s.dir, ks.Name(), c.Name)
		}
		if i := slices.Index(roleNames[:], ks.Name()); i >= 0 {
			s.roles[i], s.missing[i] = ks, false
			continue
		}
		s.rest = append(s.rest, ks)
		if !slices.Contains(codec.Families[:], ks.Name()) {
			dataset.Report(o, record.Finding{Kind: FindUnknownFamily, Severity: record.Warning, Keyspace: ks.Name(),
				Detail: "Kvrocks has no such column family and does not start with it; its rows are not read"})
		}
	}
	var err error
	if s.slotted, err = s.hasSlots(); err != nil {
		return err
	}
	return s.findSpaces()
}

// slotSample is how many metadata rows are asked whether keys have slots.
const slotSample = 256

// hasSlots reports whether the keys of metadata rows have the slot of a cluster: two bytes that agree with the rest.
// By chance one in 16384 does.
func (s *source) hasSlots() (bool, error) {
	it, err := s.roles[roleMeta].Rows(nil, nil)
	if err != nil {
		return false, err
	}
	yes, no := 0, 0
	for yes+no < slotSample {
		key, _, err := it.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return false, errors.Join(err, it.Close())
		}
		k, err := codec.DecodeMetaKey(key, true)
		switch {
		case err == nil && k.Slot == codec.Slot(k.Key):
			yes++
		default:
			no++
		}
	}
	return yes > no, it.Close()
}

// findSpaces jumps from namespace to namespace of the metadata rows. When there is none the default one is.
func (s *source) findSpaces() (err error) {
	it, err := s.roles[roleMeta].Rows(nil, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for {
		key, _, err := it.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		ns, _, err := codec.SplitNamespace(key)
		if err != nil {
			continue
		}
		sp := s.newSpace(string(ns))
		s.spaces = append(s.spaces, sp)
		if sp.upper == nil {
			break
		}
		if err := it.SeekGE(sp.upper); err != nil {
			return err
		}
	}
	if len(s.spaces) == 0 {
		s.spaces = append(s.spaces, s.newSpace(DefaultNamespace))
	}
	slices.SortFunc(s.spaces, func(a, b *space) int { return bytes.Compare([]byte(a.name), []byte(b.name)) })
	return nil
}

// newSpace returns a namespace.
func (s *source) newSpace(name string) *space {
	sp := &space{name: name, keys: keys{[]byte(name), s.slotted}, prefix: codec.AppendNamespace(nil, name)}
	sp.upper, _ = lane.Successor(sp.prefix)
	sp.store = versioned.NewStore(s.layout(sp), name, "", func(cf string) store.Keyspace { return s.family(sp, cf) }, nil)
	sp.store.Judge(func() versioned.Judge { return judge })
	return sp
}

// family returns a column family for the records of a namespace; nil when it is not there.
func (s *source) family(sp *space, name string) store.Keyspace {
	i := slices.Index(roleNames[:], name)
	switch {
	case s.missing[i]:
		return nil
	case s.slotted && role(i) != roleMeta:
		return &slotRows{s.roles[i], sp}
	}
	return s.roles[i]
}

// Records yields the records of a span.
func (s *source) Records(ctx context.Context, db string, t record.TypeSet, span format.Span, e *format.Env) (record.Reader, error) {
	sp, err := s.space(db)
	if err != nil {
		return nil, err
	}
	return s.read(ctx, sp, sp.store.Layout, s.roles[roleMeta], t, span, e)
}

// read yields those that some metadata rows tell of.
func (s *source) read(ctx context.Context, sp *space, l *versioned.Layout, metas store.Keyspace, t record.TypeSet, span format.Span,
	e *format.Env) (record.Reader, error) {

	of, memory := *sp.store, versioned.Share(e, 1)
	if of.Layout, of.Metas.Keyspace = l, metas; s.slotted {
		of.Metas.Keyspace = &slotMetas{metas, sp, extsort.Options{Memory: memory / 4, TempDir: e.TempDir}}
	}
	return of.Records(ctx, t, span, e, memory)
}

// space returns the namespace of a name.
func (s *source) space(db string) (*space, error) {
	for _, sp := range s.spaces {
		if sp.name == db {
			return sp, nil
		}
	}
	return nil, fmt.Errorf("%s: no namespace %q: have %q", s.dir, db, s.Databases())
}

// Format returns the format.
func (s *source) Format() format.Format { return s.format }

// Layout is flat: all namespaces are in one store.
func (s *source) Layout() format.Layout { return format.LayoutFlat }

// Databases are the namespaces.
func (s *source) Databases() []string {
	out := make([]string, len(s.spaces))
	for i, sp := range s.spaces {
		out[i] = sp.name
	}
	return out
}

// Sorted is false for a node of a cluster, whose rows ascend by slot.
func (s *source) Sorted() bool { return !s.slotted }

// Types are all: a namespace holds every type.
func (s *source) Types(string) record.TypeSet { return record.AllTypes }

// Extra files there are none.
func (s *source) Extra() []string { return nil }

// LiveVersion reports whether a row below a metadata row counts.
func (s *source) LiveVersion(meta, row int64) bool { return meta == row }

// Close closes the store.
func (s *source) Close() error { return s.store.Close() }
