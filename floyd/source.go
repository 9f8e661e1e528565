package floyd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"

	"kvferry/format"
	"kvferry/internal/shared/dataset"
	"kvferry/internal/shared/versioned"
	"kvferry/internal/sys/disk"
	"kvferry/record"
)

// source is an open dataset. The stores of a database are its instances.
type source struct {
	versioned.Source
	slots int                                          // 0: guess from the keys
	as    spread                                       // of the database with most instances
	homes map[string]func(key []byte) *versioned.Store // by database: where the engine looks for a key
}

// open opens all databases of a directory.
func open(ctx context.Context, f floydFormat, dir string, o *format.OpenOptions) (format.Source, error) {
	s := &source{Source: versioned.NewSource(floydFormat{server: f.server}, dir), slots: f.slots,
		homes: map[string]func([]byte) *versioned.Store{}}
	s.Home = func(db string, key []byte) *versioned.Store { return s.homes[db](key) }
	opts := *o
	opts.Options.Comparers = Comparers()
	err := s.OpenDBs(o, "0, 1, … in db0, db1, …", func(name, dir string) (bool, error) { return s.openDB(ctx, name, dir, &opts) })
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// openDB opens the instances of a database; it returns false if the database has no instances.
func (s *source) openDB(ctx context.Context, name, dir string, o *format.OpenOptions) (bool, error) {
	db := &opened{Database: &versioned.Database{Name: name, Dirs: []string{dir}}, instances: map[int]*versioned.Store{},
		passed: map[int]bool{}}
	s.DBs = append(s.DBs, db.Database)
	numbers, err := dataset.Subdirs(disk.Join(s.Dir, dir), dataset.IsNumber)
	if err != nil {
		return false, err
	}
	for _, number := range numbers {
		i, err := strconv.Atoi(number)
		if err != nil || i >= maxInstances {
			return false, fmt.Errorf("%s: %s is not an instance; a database has at most %d", disk.Join(s.Dir, dir), number,
				maxInstances)
		}
		if _, err := db.open(ctx, s.Dir, dir, i, o); err != nil {
			return false, err
		}
	}
	for i := 0; len(numbers) == 0 && i < maxInstances; i++ { // stores that are not directories have consecutive numbers
		if found, err := db.open(ctx, s.Dir, dir, i, o); err != nil {
			return false, err
		} else if !found {
			break
		}
	}
	if db.n == 0 {
		s.DBs = s.DBs[:len(s.DBs)-1]
		return false, nil
	}
	sp, err := db.findSpread(s.Dir, dir, s.slots, o)
	if sp.instances > s.as.instances {
		s.as = sp
	}
	s.homes[name] = func(key []byte) *versioned.Store {
		return db.instances[Slot(key, max(sp.slots, 1))%max(sp.instances, 1)]
	}
	return true, err
}

// Shape is how keys are spread.
func (s *source) Shape() format.Shape {
	return format.Shape{Instances: s.as.instances, Slots: s.as.slots}
}

// opened is a database whose instances were opened.
type opened struct {
	*versioned.Database
	instances map[int]*versioned.Store // by number
	passed    map[int]bool             // existing instances outside the selection
	n         int                      // expected number of instances
}

// open opens an instance; it returns false if it does not exist.
func (db *opened) open(ctx context.Context, root, dir string, i int, o *format.OpenOptions) (bool, error) {
	rel := path.Join(dir, strconv.Itoa(i))
	if dataset.PassedAll(root, rel, db.Name, allTypes, o) { // an instance has every type
		db.n, db.passed[i] = i+1, true
		return true, nil
	}
	st, _, err := versioned.OpenStore(ctx, root, rel, db.Name, layout, orders, o)
	if st == nil {
		return false, err
	}
	db.n, db.instances[i] = i+1, st
	db.Stores = append(db.Stores, st)
	return true, nil
}

// findSpread finds out how keys are spread, unless the number of slots is known, and reports missing instances.
func (db *opened) findSpread(root, dir string, slots int, o *format.OpenOptions) (spread, error) {
	sp := spread{slots, db.n}
	if slots == 0 {
		sums, err := db.someKeys()
		if err != nil {
			return sp, err
		}
		var fits bool
		sp, fits = sums.guess()
		db.reportMissing(root, dir, o, sp, fits)
		if fits {
			db.reportBarren(dir, o, sp, sums)
		}
		if sp.slots != defaultSlots {
			dataset.Report(o, record.Finding{Kind: FindSlots, Severity: record.Note, DB: db.Name,
				Detail: fmt.Sprintf("keys are spread over %d instances by default-slot-num %d, or a number of the same effect on them, not %d",
					sp.instances, sp.slots, defaultSlots)})
		}
	}
	p := &placing{instances: db.instances, n: sp.instances}
	for i, st := range db.instances {
		st.Judge(func() versioned.Judge {
			own := &placer{slots: sp.slots, instances: sp.instances}
			return func(pass *versioned.Pass) (bool, error) { return p.checkPlace(pass, own, i) }
		})
	}
	return sp, nil
}

// reportMissing reports missing instances: gaps below existing ones, and instances that the keys imply.
func (db *opened) reportMissing(root, dir string, o *format.OpenOptions, sp spread, fits bool) {
	var missing []string
	for i := range sp.instances {
		rel := path.Join(dir, strconv.Itoa(i))
		if db.instances[i] == nil && !db.passed[i] && !dataset.Unwanted(root, rel, db.Name, allTypes, o) {
			missing = append(missing, rel)
		}
	}
	if len(missing) == 0 {
		return
	}
	why := "keys are spread over all instances, so data may have been left behind"
	if fits && sp.instances > db.n {
		why = fmt.Sprintf("the keys of the other instances fit %d instances, so the missing instances were left behind: bring them back",
			sp.instances)
	}
	if n := len(missing); n > maxMissing {
		missing = append(missing[:maxMissing], fmt.Sprintf("and %d more", n-maxMissing))
	}
	db.reportLost(o, strings.Join(missing, ", ")+" not found; "+why)
}

// maxMissing is the number of instances that a finding names.
const maxMissing = 8

// reportBarren reports empty instances that must have had rows, judging by the keys of the others: a server
// creates an instance that it does not find.
func (db *opened) reportBarren(dir string, o *format.OpenOptions, sp spread, sums keySums) {
	for i := range db.n {
		if st := db.instances[i]; st != nil && len(sums[i]) == 0 && st.Size() == 0 && sums.barren(sp, i) {
			db.reportLost(o, fmt.Sprintf("%s is empty, but the keys of the other instances fit %d instances, so its keys were left behind: bring it back",
				path.Join(dir, strconv.Itoa(i)), sp.instances))
		}
	}
}

// reportLost reports lost keys.
func (db *opened) reportLost(o *format.OpenOptions, detail string) {
	dataset.Report(o, record.Finding{Kind: dataset.FindMissingStore, Severity: record.Error, DB: db.Name, Detail: detail})
}

// keysWanted is the number of keys with distinct checksums sampled per instance to find the number of slots;
// keysLooked is the maximum number of keys read for that.
const (
	keysWanted = 200
	keysLooked = 10000
)

// someKeys returns the checksums of the first user keys of each instance.
func (db *opened) someKeys() (keySums, error) {
	out := make(keySums, db.n)
	for i, st := range db.instances {
		it, err := st.Metas.Rows(nil, nil)
		if err != nil {
			return nil, err
		}
		seen := map[uint32]bool{}
		for n := 0; len(seen) < keysWanted && n < keysLooked && err == nil; n++ {
			var raw []byte
			if raw, _, err = it.Next(); err != nil {
				break
			}
			if k, err := DecodeMetaKey(raw); err == nil && k.Lost == 0 && !seen[sumOf(k.Key)] {
				seen[sumOf(k.Key)] = true
				out[i] = append(out[i], sumOf(k.Key))
			}
		}
		cerr := it.Close()
		if err == nil || err == io.EOF {
			err = cerr
		}
		var corrupt *record.CorruptError
		if err != nil && !errors.As(err, &corrupt) { // damage is reported when the rows are read
			return nil, err
		}
	}
	return out, nil
}

// placing checks that the keys of a database are in the instances of their slots.
type placing struct {
	n         int
	instances map[int]*versioned.Store
}

// checkPlace checks a record of instance i. A record in the wrong instance is a finding. It is left out if the same
// key exists in the right instance, or in an earlier wrong one.
func (p *placing) checkPlace(pass *versioned.Pass, own *placer, i int) (ok bool, err error) {
	m := pass.Meta()
	k := &pass.Store().Metas
	if m.Tail > 0 {
		pass.Damage(k, FindTruncatedKey, pass.Place(), "the last %s of the key are not on disk: the engine truncates keys at their last NUL; it is read as %s",
			record.Count(int64(m.Tail), "byte"), record.Quote(m.Key))
		return true, nil // its slot came from the whole key
	}
	right := own.instance(m.Key)
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
			pass.Damage(k, FindWrongInstance, pass.Place(),
				"it belongs to instance %d; instance %d has the key too, and kvferry reads that one", right, j)
			return false, nil
		}
	}
	pass.Damage(k, FindWrongInstance, pass.Place(), "it belongs to instance %d, where the engine does not find it", right)
	return true, nil
}

// holds reports whether an instance has a meta row of a user key.
func holds(st *versioned.Store, key []byte) (bool, error) {
	raw := AppendMetaKey(nil, MetaKey{Key: key})
	value, err := dataset.Get(st.Metas.Keyspace, raw)
	return err == nil && value != nil && !gone(value), err
}

// gone reports whether a meta row belongs to a deleted or empty record.
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
