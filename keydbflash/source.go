package keydbflash

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"kvferry/format"
	"kvferry/internal/shared/dataset"
	"kvferry/internal/shared/versioned"
	"kvferry/record"
	"kvferry/store"
)

// source is an open dataset, whose databases share the store.
type source struct {
	versioned.Source
	store    store.Store
	families map[string]store.Keyspace
	dialects map[string]dialect // by family, of families with databases
	names    map[string]string  // of databases, by family
	dead     []*versioned.Database
	others   []store.Keyspace // families without keys
}

// open opens the store in dir, or below it.
func open(ctx context.Context, f flash, dir string, o *format.OpenOptions) (*source, error) {
	s := &source{Source: versioned.NewSource(f, dir), families: map[string]store.Keyspace{}, dialects: map[string]dialect{}}
	st, err := dataset.OpenOnly(ctx, dir, storeDir,
		"KeyDB FLASH database: name the directory that storage-provider flash has in keydb.conf", o)
	if err != nil {
		return nil, err
	}
	s.store = st
	if err := s.assignRoles(o); err != nil {
		return nil, errors.Join(err, st.Close())
	}
	return s, nil
}

// assignRoles assigns roles to the families.
func (s *source) assignRoles(o *format.OpenOptions) error {
	for _, ks := range s.store.Keyspaces() {
		if c := ks.Comparer(); !c.IsBytewise() {
			return fmt.Errorf("%s: column family %s is ordered by %s; all of KeyDB's are in byte order", s.Dir, ks.Name(), c.Name)
		}
		s.families[ks.Name()] = ks
		if name, _ := strings.CutSuffix(ks.Name(), expires); name != familyDefault && !dataset.IsNumber(name) {
			dataset.Report(o, record.Finding{Kind: FindUnknownFamily, Severity: record.Warning, Keyspace: ks.Name(),
				Detail: "KeyDB has no such column family and does not start with it; kvferry does not read its rows"})
		}
	}
	usual := s.dialect(familyDefault, oldDialect)
	if s.families["0"+expires] != nil {
		usual = s.dialect(familyDefault, newDialect)
	}
	for name := range s.families {
		if dataset.IsNumber(name) {
			s.dialects[name] = s.dialect(name, usual)
		}
	}
	if err := s.nameDatabases(o); err != nil {
		return err
	}
	return s.openDatabases(o)
}

// dialect returns the dialect of a family. FLUSHDB recreates it without a version: then it is otherwise.
func (s *source) dialect(family string, otherwise dialect) dialect {
	value, err := dataset.Get(s.family(family), []byte(rowVersion))
	if err != nil || value == nil {
		return otherwise
	}
	d, err := dialectOf(value)
	if err != nil { // the reader of the row reports it
		return otherwise
	}
	return d
}

// family returns a family, or an empty one if it does not exist.
func (s *source) family(name string) store.Keyspace {
	if ks := s.families[name]; ks != nil {
		return ks
	}
	return dataset.Absent(name)
}

// nameDatabases names the database of each family: by the family's number, unless SWAPDB changed it.
func (s *source) nameDatabases(o *format.OpenOptions) error {
	s.names = map[string]string{}
	swaps := false
	d := s.dialect(familyDefault, newDialect)
	for name := range s.dialects {
		value, err := dataset.Get(s.family(familyDefault), d.appendKey(nil, []byte(swapped+name)))
		if err != nil {
			return err
		}
		of := name
		if len(value) == 4 {
			of, swaps = fmt.Sprint(int32(binary.LittleEndian.Uint32(value))), true
		}
		s.names[of] = name
	}
	for name := range s.dialects {
		if s.names[name] == "" {
			dataset.Report(o, record.Finding{Kind: FindSwapped, Severity: record.Error, Keyspace: familyDefault,
				Detail: fmt.Sprintf("rows %sN name no database for column family %s; each family is read as the database of its number",
					swapped, name)})
			swaps = false
			break
		}
	}
	if !swaps {
		for name := range s.dialects {
			s.names[name] = name
		}
	}
	return nil
}

// openDatabases opens the databases with rows, or the first if all are empty.
func (s *source) openDatabases(o *format.OpenOptions) error {
	var killed []string
	for _, family := range slices.SortedFunc(maps.Keys(s.dialects), record.CompareNames) {
		db := s.open(family)
		s.dead = append(s.dead, db)
		if has, err := s.hasKeys(family); err != nil {
			return err
		} else if !has {
			continue
		}
		s.DBs = append(s.DBs, db)
		if count, err := dataset.Get(s.families[family], []byte(rowCount)); err != nil {
			return err
		} else if count == nil {
			killed = append(killed, db.Name)
		}
	}
	if len(s.dead) == 0 {
		s.names["0"] = "0"
		s.dead = append(s.dead, s.open("0"))
	}
	if len(s.DBs) == 0 {
		s.DBs = append(s.DBs, s.dead[0])
	}
	for _, list := range [][]*versioned.Database{s.dead, s.DBs} {
		slices.SortFunc(list, func(a, b *versioned.Database) int { return record.CompareNames(a.Name, b.Name) })
	}
	if len(killed) > 0 {
		dataset.Report(o, record.Finding{Kind: FindUnclean, Severity: record.Note, Detail: fmt.Sprintf("the server was killed, or runs (no count of keys in database "+
			"%s): commands that it had not answered are missing, and after a failure of the machine the last writes, which it does not sync",
			strings.Join(killed, ", "))})
	}
	s.Flat = len(s.DBs) == 1 && s.DBs[0].Name == "0"
	s.settleRest()
	return nil
}

// open returns the database in a family.
func (s *source) open(family string) *versioned.Database {
	st := versioned.NewStore(s.dialects[family].layout(family), s.names[family], "",
		func(name string) store.Keyspace { return s.families[name] }, nil)
	st.Judge(func() versioned.Judge { return s.findIndexRow })
	return &versioned.Database{Name: s.names[family], Stores: []*versioned.Store{st}}
}

// hasKeys reports whether a family has rows that are not the server's own.
func (s *source) hasKeys(family string) (bool, error) {
	it, err := s.family(family).Rows(nil, nil)
	if err != nil {
		return false, err
	}
	for {
		raw, value, err := it.Next()
		if err == io.EOF {
			return false, it.Close()
		}
		if err != nil {
			return false, errors.Join(err, it.Close())
		}
		if is, _ := own(raw, value); !is {
			return true, it.Close()
		}
	}
}

// Sorted returns false if rows ascend by slot.
func (s *source) Sorted() bool {
	return !slices.ContainsFunc(s.DBs, func(db *versioned.Database) bool { return s.dialects[familyOf(db)].slots })
}

// Extra returns no files.
func (s *source) Extra() []string { return nil }

// Keyspaces lists the families of databases with keys, and then the others.
func (s *source) Keyspaces() []format.Keyspace {
	out := s.Source.Keyspaces()
	for _, ks := range s.others {
		out = append(out, format.Keyspace{Name: ks.Name(), Keyspace: ks})
	}
	return out
}

// DeadDatabases returns all databases, since even an empty one may have had keys.
func (s *source) DeadDatabases() ([]string, error) {
	var out []string
	for _, db := range s.dead {
		out = append(out, db.Name)
	}
	return out, nil
}

// DeadRecords yields deleted keys whose rows are still on disk.
func (s *source) DeadRecords(ctx context.Context, db string, t record.TypeSet, span format.Span, e *format.Env,
	tell func(key []byte, t record.Type, what string)) (record.Reader, error) {

	for _, d := range s.dead {
		if d.Name == db {
			return d.Stores[0].ReviveRows(ctx, t, span, e, tell)
		}
	}
	return nil, fmt.Errorf("%s: no database %q", s.Dir, db)
}

// Close closes the store.
func (s *source) Close() error { return s.store.Close() }
