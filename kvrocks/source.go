package kvrocks

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"

	"kvferry/format"
	"kvferry/internal/shared/dataset"
	"kvferry/internal/shared/versioned"
	"kvferry/kvrocks/codec"
	"kvferry/record"
	"kvferry/store"
)

// storeDir is the database's directory within the server's. Backups and checkpoints are databases without it.
const storeDir = "db"

// source is an open dataset, whose namespaces share the store.
type source struct {
	versioned.Source
	store    store.Store
	families map[string]store.Keyspace // column families with records
	rest     []store.Keyspace          // column families without records
	// slotted is true if keys have the slot of a cluster after the namespace.
	slotted   bool
	seen      atomic.Uint32 // forms of the rows that were read
	maxBitmap int64
	metas     codec.LastValue // last metadata row looked up by Describe
}

// open opens the database in dir, which is the server's directory or the database's own.
func open(ctx context.Context, f kvrocksFormat, dir string, o *format.OpenOptions) (*source, error) {
	s := &source{Source: versioned.NewSource(f, dir), families: map[string]store.Keyspace{},
		maxBitmap: cmp.Or(o.MaxBitmap, DefaultMaxBitmap)}
	s.Flat = true
	s.Home = func(db string, _ []byte) *versioned.Store { return s.Database(db).Stores[0] }
	st, err := openStore(ctx, dir, o)
	if err != nil {
		return nil, err
	}
	s.store = st
	if err := s.findFamilies(ctx, o); err != nil {
		return nil, errors.Join(err, st.Close())
	}
	return s, nil
}

// openStore opens the database in dir, which is the server's directory or the database's own.
func openStore(ctx context.Context, dir string, o *format.OpenOptions) (store.Store, error) {
	return dataset.OpenOnly(ctx, dir, storeDir, "Kvrocks database: want a RocksDB directory in it, or in "+storeDir+" below it",
		o)
}

// findFamilies finds the column families and the namespaces.
func (s *source) findFamilies(ctx context.Context, o *format.OpenOptions) error {
	for _, ks := range s.store.Keyspaces() {
		if c := ks.Comparer(); !c.IsBytewise() {
			return fmt.Errorf("%s: column family %s is ordered by %s; all of Kvrocks's are in byte order", s.Dir, ks.Name(),
				c.Name)
		}
		if slices.Contains(codec.RecordFamilies[:], ks.Name()) {
			s.families[ks.Name()] = ks
			continue
		}
		s.rest = append(s.rest, ks)
		if !slices.Contains(codec.Families[:], ks.Name()) {
			dataset.Report(o, record.Finding{Kind: FindUnknownFamily, Severity: record.Warning, Keyspace: ks.Name(),
				Detail: "Kvrocks has no such column family and does not start with it; kvferry does not read its rows"})
		}
	}
	names, err := s.probe(s.family(codec.FamilyMetadata))
	err = dataset.ReadPast(err, o, func(past *format.OpenOptions) (store.Store, error) { return openStore(ctx, s.Dir, past) },
		func(st store.Store) (err error) {
			i := slices.IndexFunc(st.Keyspaces(), func(ks store.Keyspace) bool { return ks.Name() == codec.FamilyMetadata })
			if i >= 0 {
				names, err = s.probe(st.Keyspaces()[i])
			}
			return err
		})
	if err != nil {
		return err
	}
	s.openSpaces(names)
	return nil
}

// family returns a column family of records, or an empty one if it does not exist.
func (s *source) family(name string) store.Keyspace {
	if ks := s.families[name]; ks != nil {
		return ks
	}
	return dataset.Absent(name)
}

// probe reads what the metadata rows tell about all of them: whether keys have slots, and the namespaces, to which it
// seeks.
func (s *source) probe(metas store.Keyspace) (names []string, err error) {
	if s.slotted, err = detectCluster(metas); err != nil {
		return nil, err
	}
	it, err := metas.Rows(nil, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for {
		key, _, err := it.Next()
		if err == io.EOF {
			return names, nil
		}
		if err != nil {
			return nil, err
		}
		ns, _, err := codec.SplitNamespace(key)
		if err != nil {
			continue
		}
		names = append(names, string(ns))
		_, upper := codec.Space{Namespace: ns}.Prefix()
		if upper == nil {
			return names, nil
		}
		if err := it.SeekGE(upper); err != nil {
			return nil, err
		}
	}
}

// openSpaces opens the namespaces; without any the default one. The first one also counts the rows outside all
// namespaces.
func (s *source) openSpaces(names []string) {
	if len(names) == 0 {
		names = append(names, DefaultNamespace)
	}
	slices.SortFunc(names, record.CompareNames)
	for i, name := range names {
		st := s.open(name, len(names))
		if i == 0 {
			st.Layout.Rest = s.countStrays
		}
		s.DBs = append(s.DBs, &versioned.Database{Name: name, Stores: []*versioned.Store{st}})
	}
}

// open returns the part of the store that belongs to a namespace, one of n.
func (s *source) open(name string, n int) *versioned.Store {
	l := s.layout(codec.Space{Namespace: []byte(name), Slotted: s.slotted})
	st := versioned.NewStore(l, name, "", func(family string) store.Keyspace {
		if s.families[family] == nil {
			return nil
		}
		return &dataset.Slice{Keyspace: s.families[family], Lo: l.From, Hi: l.To, Of: n,
			Holds: func(raw []byte) bool { return bytes.HasPrefix(raw, l.From) }}
	}, nil)
	st.Judge(func() versioned.Judge { return noteOddities })
	return st
}

// Sorted is false for a node of a cluster, whose rows ascend by slot.
func (s *source) Sorted() bool { return !s.slotted }

// Shape is the mode of the node, and the first server with all the forms that were read.
func (s *source) Shape() format.Shape {
	shape := format.Shape{Cluster: s.slotted}
	numbered := func(db string) bool {
		n, ok := strings.CutPrefix(db, "db")
		return ok && n != "0" && format.IsNumber(n)
	}
	switch seen := s.seen.Load(); {
	case seen&seenNewest != 0:
		shape.Server = serverNew
	case slices.ContainsFunc(s.Databases(), numbered):
		shape.Server = serverDBs
	case seen&seenSince10 != 0:
	case seen&seenSince4 == 0 && seen&seenOld != 0:
		shape.Server = serverOld
	case seen&seenBefore10 != 0, seen&seenWide == 0 && seen&seenOld != 0:
		shape.Server = serverMid
	}
	return shape
}

// Forms of rows, by the servers that write them.
const (
	seenOld      = 1 << iota // metadata in the old form, which all servers read
	seenWide                 // metadata in the new form
	seenSince4               // what serverOld does not have: the new form, and kinds and streams of later servers
	seenBefore10             // consumer groups that only serverMid has
	seenSince10              // kinds and consumer groups that serverMid does not have
	seenNewest               // what only serverNew has
)

// saw notes forms of rows.
func (s *source) saw(forms uint32) {
	if s.seen.Load()&forms != forms {
		s.seen.Or(forms)
	}
}

// sawMeta notes the forms that the flags of a metadata row tell.
func (s *source) sawMeta(flags byte) {
	forms := uint32(seenOld)
	if codec.IsWide(flags) {
		forms = seenWide | seenSince4
	}
	switch kind := codec.KindOf(flags); {
	case kind == codec.KindCuckoo:
		forms |= seenNewest
	case !(kvrocksFormat{serverMid}).has(kind):
		forms |= seenSince10
	case !(kvrocksFormat{serverOld}).has(kind):
		forms |= seenSince4
	}
	s.saw(forms)
}

// Extra returns no files.
func (s *source) Extra() []string { return nil }

// LiveVersion reports whether a row below a metadata row is alive.
func (s *source) LiveVersion(meta, row int64) bool { return meta == row }

// Keyspaces lists the column families of each namespace, and then the families without records.
func (s *source) Keyspaces() []format.Keyspace {
	out := s.Source.Keyspaces()
	for _, ks := range s.rest {
		out = append(out, format.Keyspace{Name: ks.Name(), Keyspace: ks})
	}
	return out
}

// Describe decodes one raw row, even if it is damaged.
func (s *source) Describe(_, keyspace string, key, value []byte) format.Row {
	return codec.Describe(keyspace, key, value, s.slotted, func(raw []byte) []byte { return s.metas.Of(raw, s.metaValue) })
}

// metaValue returns the value of a metadata row, or nil if it does not exist.
func (s *source) metaValue(raw []byte) []byte {
	value, err := dataset.Get(s.family(codec.FamilyMetadata), raw)
	if err != nil {
		return nil
	}
	return value
}

// Close closes the store.
func (s *source) Close() error { return s.store.Close() }
