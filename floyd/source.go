package floyd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"kvferry/format"
	"kvferry/internal/dataset"
	"kvferry/internal/versioned"
	"kvferry/record"
	"kvferry/store"
)

// source is an open dataset. The stores of a database are its instances.
type source struct {
	dataset.Source[*versioned.Store]
	format floydFormat
	dir    string
}

type database = dataset.Database[*versioned.Store]

// open opens all databases of a directory.
func open(ctx context.Context, f floydFormat, dir string, o *format.OpenOptions) (format.Source, error) {
	s := &source{format: f, dir: dir}
	opts := *o
	opts.Options.Comparers = Comparers()
	if err := s.openAll(ctx, &opts); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *source) openAll(ctx context.Context, o *format.OpenOptions) (err error) {
	if s.Flat, err = s.openDB(ctx, "0", "", o); err != nil || s.Flat {
		return err
	}
	dirs, err := dataset.Subdirs(s.dir, dataset.IsDB)
	if err != nil {
		return fmt.Errorf("open floyd database: %w", err)
	}
	for _, dir := range dirs {
		if _, err := s.openDB(ctx, strings.TrimPrefix(dir, "db"), dir, o); err != nil {
			return err
		}
	}
	if len(s.DBs) == 0 {
		return fmt.Errorf("%s: no floyd database: want RocksDB directories 0, 1, … in db0, db1, …", s.dir)
	}
	return nil
}

// openDB opens the instances of a database; it returns false when there are none.
func (s *source) openDB(ctx context.Context, name, dir string, o *format.OpenOptions) (bool, error) {
	db := &opened{database: &database{Name: name, Dirs: []string{dir}}, instances: map[int]*versioned.Store{}}
	s.DBs = append(s.DBs, db.database)
	numbers, err := dataset.Subdirs(filepath.Join(s.dir, dir), dataset.IsNumber)
	if err != nil {
		return false, err
	}
	for _, number := range numbers {
		i, err := strconv.Atoi(number)
		if err != nil || i >= maxInstances {
			return false, fmt.Errorf("%s: %s is no instance: a database has up to %d", filepath.Join(s.dir, dir), number, maxInstances)
		}
		if _, err := db.open(ctx, s.dir, dir, i, o); err != nil {
			return false, err
		}
	}
	for i := 0; len(numbers) == 0; i++ { // stores that are no directories stand in a row
		if found, err := db.open(ctx, s.dir, dir, i, o); err != nil {
			return false, err
		} else if !found {
			break
		}
	}
	if db.n == 0 {
		s.DBs = s.DBs[:len(s.DBs)-1]
		return false, nil
	}
	return true, db.settle(dir, o)
}

// opened is a database whose instances were opened.
type opened struct {
	*database
	instances map[int]*versioned.Store // by number
	n         int                      // how many there should be
}

// open opens an instance; it returns false when it is not there.
func (db *opened) open(ctx context.Context, root, dir string, i int, o *format.OpenOptions) (bool, error) {
	rel := path.Join(dir, strconv.Itoa(i))
	if dataset.PassedAll(root, rel, db.Name, allTypes, o) { // an instance has every type
		db.n = i + 1
		return true, nil
	}
	st, err := openInstance(ctx, root, rel, db.Name, o)
	if st == nil {
		return false, err
	}
	db.n, db.instances[i] = i+1, st
	db.Stores = append(db.Stores, st)
	return true, nil
}

// settle finds out how keys are spread and reports what is missing.
func (db *opened) settle(dir string, o *format.OpenOptions) error {
	var missing []string
	for i := range db.n {
		if db.instances[i] == nil && o.Pass == nil {
			missing = append(missing, path.Join(dir, strconv.Itoa(i)))
		}
	}
	if len(missing) > 0 {
		dataset.Report(o, record.Finding{Kind: dataset.FindMissingStore, Severity: record.Error, DB: db.Name,
			Detail: strings.Join(missing, ", ") + " not found; keys are spread over all instances, so data may have been left behind"})
	}
	keys, err := db.someKeys()
	if err != nil {
		return err
	}
	slots := guessSlots(keys)
	if slots != defaultSlots {
		dataset.Report(o, record.Finding{Kind: FindSlots, Severity: record.Note, DB: db.Name,
			Detail: fmt.Sprintf("keys lie in %d instances as default-slot-num %d has them, not %d", db.n, slots, defaultSlots)})
	}
	p := &placing{slots: slots, instances: db.instances, n: db.n}
	for i, st := range db.instances {
		st.Judge(func(pass *versioned.Pass) (bool, error) { return p.judge(pass, i) })
	}
	return nil
}

// keysLooked is how many keys of an instance are looked at to find the number of slots.
const keysLooked = 200

// someKeys returns the first user keys of each instance.
func (db *opened) someKeys() ([][][]byte, error) {
	out := make([][][]byte, db.n)
	for i, st := range db.instances {
		it, err := st.Metas.Rows(nil, nil)
		if err != nil {
			return nil, err
		}
		for len(out[i]) < keysLooked && err == nil {
			var raw []byte
			if raw, _, err = it.Next(); err != nil {
				break
			}
			if k, err := DecodeMetaKey(raw); err == nil && k.Lost == 0 {
				out[i] = append(out[i], slices.Clone(k.Key))
			}
		}
		if cerr := it.Close(); err == nil || err == io.EOF {
			err = cerr
		}
		var corrupt *record.CorruptError
		if err != nil && !errors.As(err, &corrupt) { // damage is told when it is read
			return nil, err
		}
	}
	return out, nil
}

// openInstance opens an instance, nil when it is not there. The engine makes the column families that are missing.
func openInstance(ctx context.Context, root, rel, db string, o *format.OpenOptions) (*versioned.Store, error) {
	st, err := dataset.OpenStore(ctx, root, rel, o)
	if st == nil {
		return nil, err
	}
	spaces := map[string]store.Keyspace{}
	for _, ks := range st.Keyspaces() {
		want := orders[ks.Name()]
		switch {
		case want == nil:
			err = fmt.Errorf("%s: has a column family %q, which the engine refuses to open", filepath.Join(root, rel), ks.Name())
		case ks.Comparer().Name != want.Name:
			err = fmt.Errorf("%s: column family %s is ordered by %s, want %s", filepath.Join(root, rel), ks.Name(), ks.Comparer().Name, want.Name)
		}
		if err != nil {
			return nil, errors.Join(err, st.Close())
		}
		spaces[ks.Name()] = ks
	}
	return versioned.NewStore(layout, db, rel, func(name string) store.Keyspace { return spaces[name] }, st), nil
}

// placing knows in which instance of a database a key belongs.
type placing struct {
	slots, n  int
	instances map[int]*versioned.Store
}

// judge looks at a record of instance i. One that is in another than its own is a finding, and left out where the same key is
// where it belongs, or in an earlier one.
func (p *placing) judge(pass *versioned.Pass, i int) (ok bool, err error) {
	m := pass.Meta()
	k := &pass.Store().Metas
	if m.Tail > 0 {
		pass.Damage(k, FindTruncatedKey, pass.Place(), "the last %s of the key are not on disk: the engine does not write what follows a NUL; it is read as %s",
			record.Plural(int64(m.Tail), "byte"), record.Quote(m.Key))
		return true, nil // its slot was that of the whole key
	}
	right := instanceOf(m.Key, p.slots, p.n)
	if right == i {
		return true, nil
	}
	for j := range p.n {
		if j == i || j > i && j != right || p.instances[j] == nil {
			continue
		}
		there, err := holds(p.instances[j], m.Key)
		if err != nil {
			return false, err
		}
		if there {
			pass.Damage(k, FindWrongInstance, pass.Place(), "it belongs to instance %d; instance %d has the key too, and is read", right, j)
			return false, nil
		}
	}
	pass.Damage(k, FindWrongInstance, pass.Place(), "it belongs to instance %d, where the engine does not find it", right)
	return true, nil
}

// holds reports whether an instance has a meta row of a user key.
func holds(st *versioned.Store, key []byte) (bool, error) {
	raw := AppendMetaKey(nil, MetaKey{Key: key})
	it, err := st.Metas.Rows(raw, append(slices.Clone(raw), 0))
	if err != nil {
		return false, err
	}
	_, value, err := it.Next()
	cerr := it.Close()
	if err == io.EOF {
		return false, cerr
	}
	return err == nil && !gone(value), errors.Join(err, cerr)
}

// gone reports whether the value of a meta row stands for nothing.
func gone(value []byte) bool {
	t, err := DecodeType(value)
	if err != nil {
		return true
	}
	for _, c := range layout.Codecs {
		var m versioned.Meta
		if c.Type == t {
			return c.DecodeMeta(&m, value) != nil || m.Gone
		}
	}
	return true
}

// Format returns floyd.
func (s *source) Format() format.Format { return s.format }

// Records returns a reader of the types' records, merged over the instances.
func (s *source) Records(ctx context.Context, db string, t record.TypeSet, span format.Span, e *format.Env) (record.Reader, error) {
	if s.Database(db) == nil {
		return nil, fmt.Errorf("%s: no database %q", s.dir, db)
	}
	stores := s.StoresOf(db, t)
	return dataset.Merge(stores, func(st *versioned.Store) (record.Reader, error) {
		return st.Records(ctx, t, span, e, versioned.Share(e, len(stores)))
	})
}

// DeadDatabases are all databases: they are directories.
func (s *source) DeadDatabases() ([]string, error) { return s.Databases(), nil }

// DeadRecords yields records whose delete left their rows behind.
func (s *source) DeadRecords(ctx context.Context, db string, t record.TypeSet, span format.Span, e *format.Env,
	tell func(key []byte, t record.Type, what string)) (record.Reader, error) {

	if s.Database(db) == nil {
		return nil, fmt.Errorf("%s: no database %q", s.dir, db)
	}
	stores := s.StoresOf(db, t)
	return dataset.Merge(stores, func(st *versioned.Store) (record.Reader, error) {
		return st.DeadRecords(ctx, t, span, e, versioned.Share(e, len(stores)), tell)
	})
}

// Where lists the raw ranges of a user key in every instance: one may have it that should not.
func (s *source) Where(db string, key []byte) []format.Range {
	var out []format.Range
	for _, st := range s.StoresOf(db, allTypes) {
		out = append(out, st.Where(key)...)
	}
	return out
}

// Extra lists the info files of bgsave.
func (s *source) Extra() []string {
	dirs := []string{""}
	for _, db := range s.DBs {
		dirs = append(dirs, db.Dirs...)
	}
	slices.Sort(dirs)
	return dataset.InfoFiles(s.dir, slices.Compact(dirs))
}
