package keyspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"kvferry/format"
	"kvferry/internal/pass"
	"kvferry/internal/pass/sorted"
	"kvferry/record"
	"kvferry/serve/command"
	"kvferry/store"
)

// damage collects the findings of a pass about a key.
type damage struct {
	mu   sync.Mutex
	what string
}

func (d *damage) report(f record.Finding) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if f.Severity >= record.Error && d.what == "" {
		d.what = fmt.Sprintf("%s: %s", f.Kind, f.Detail)
	}
}

// err returns an error if the pass found damage.
func (d *damage) err(key []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.what == "" {
		return nil
	}
	return &command.DamagedError{Key: bytes.Clone(key), What: d.what}
}

// judged makes an error of reading damage the error of the key.
func (k *Keyspace) judged(key []byte, err error) error {
	if err == nil {
		return nil
	}
	var block *store.BlockError
	if errors.As(err, &block) {
		return &command.DamagedError{Key: bytes.Clone(key), What: err.Error()}
	}
	return k.explained(err)
}

// value is a record that is being read.
type value struct {
	k     *Keyspace
	r     *record.Walker
	h     *record.Header
	key   []byte
	how   command.Reading
	found damage
	skip  int64 // elements of a list before Start
	ended bool
}

// Seeks reports whether a lookup seeks elements of a type. It cannot if the whole record decides whether it is selected.
func (k *Keyspace) Seeks(t record.Type) bool {
	s, ok := format.As[format.Seeker](k.scan.Load().Source)
	return ok && s.Seeks().Has(t) && !k.scan.Load().Selected().Holds()
}

// Get answers a lookup without a pass; false if it takes one.
func (k *Keyspace) Get(db command.Database, l *record.Lookup) bool {
	scan := k.scan.Load()
	if !db.Exists || k.Rename || k.Salvage || !scan.Selected().Everything() {
		return false
	}
	g, ok := format.As[format.Getter](scan.Source)
	if !ok {
		return false
	}
	l.DB, l.Now = db.Name, scan.Now.UnixMilli()
	return g.Get(l)
}

// Open seeks a key.
func (k *Keyspace) Open(ctx context.Context, db command.Database, key []byte, how command.Reading) (command.Value, error) {
	if !db.Exists {
		return nil, nil
	}
	if k.scan.Load().Selected().Key(key) {
		for _, types := range k.order(db, how.Type) {
			if v, err := k.openAmong(ctx, db, types, key, how); v != nil || err != nil {
				return v, err
			}
		}
	}
	if k.Rename {
		return k.openRenamed(ctx, db, key, how)
	}
	return nil, nil
}

// openAmong returns the value of a key if it has one of some types. Damage to the rows of a type costs the keys of the
// types before it nothing.
func (k *Keyspace) openAmong(ctx context.Context, db command.Database, types record.TypeSet, key []byte, how command.Reading) (command.Value, error) {
	v, err := k.openOf(ctx, db, types, key, how)
	if damaged := (*command.DamagedError)(nil); !errors.As(err, &damaged) || k.file {
		return v, err
	}
	for _, t := range types.Types() {
		if v, err := k.openOf(ctx, db, record.Of(t), key, how); v != nil || err != nil {
			return v, err
		}
	}
	return nil, err
}

// openOf returns the value of a key if it has one of some types.
func (k *Keyspace) openOf(ctx context.Context, db command.Database, types record.TypeSet, key []byte, how command.Reading) (command.Value, error) {
	start := how.Start
	if k.scan.Load().Selected().Holds() {
		start = nil
	}
	v, err := k.open(ctx, db, types, key, how, start)
	if err == errOther {
		v, err = k.open(ctx, db, types, key, how, nil)
	}
	return v, err
}

// open returns the value of a key if it has one of some types. start is the start that is asked of the source.
func (k *Keyspace) open(ctx context.Context, db command.Database, types record.TypeSet, key []byte, how command.Reading, start *record.Start) (
	command.Value, error) {

	v := &value{k: k, key: bytes.Clone(key), how: how}
	err := v.open(ctx, db, types, start)
	if err == nil && v.h != nil {
		return v, nil
	}
	if err == nil {
		err = v.found.err(key)
	}
	err = k.judged(key, err)
	if closing := v.Close(); closing != nil {
		err = errors.Join(err, closing)
	}
	return nil, err
}

// order returns the types in which to look for a key, in turn. Of several records with the name the first in dump order
// counts: a value of the type wanted is the one if no type before it has the key, whatever later types have. A file
// keeps all types in one order.
func (k *Keyspace) order(db command.Database, want record.Type) []record.TypeSet {
	all := k.scan.Load().Types(db.Name)
	first := all & (1<<(want+1) - 1)
	if want == 0 || first == 0 || first == all || k.file {
		return []record.TypeSet{all}
	}
	return []record.TypeSet{first, all &^ first}
}

// errOther means that the first record of a lookup with a start has another type: whether it exists shows only in a
// lookup without.
var errOther = errors.New("the key has another type")

// open opens the reader, and moves to the first record that exists: those of other types under the same name follow it.
func (v *value) open(ctx context.Context, db command.Database, types record.TypeSet, start *record.Start) error {
	report := v.found.report
	if v.k.Salvage {
		report = func(record.Finding) {}
	}
	o := v.k.opening(report)
	o.Env.Start = start
	r, err := o.Open(ctx, &pass.Task{DB: db.Name, Types: types, Span: format.KeySpan(v.key)})
	if err != nil {
		return err
	}
	if v.how.ByName {
		r = sorted.ByName(r, sorted.Options{Memory: o.Env.Memory, TempDir: o.Env.TempDir})
	}
	v.r = record.Walk(r)
	for {
		h, err := v.r.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil || h.Keyless != record.Keyed {
			if err != nil {
				return err
			}
			continue
		}
		if start != nil && h.Type != v.how.Type {
			return errOther
		}
		_, err = v.r.Peek()
		if err == io.EOF && h.Type != record.Stream && start == nil {
			continue // it has no elements
		}
		if err != nil && err != io.EOF {
			return err
		}
		v.h = h
		if s := v.how.Start; s != nil && h.Type == record.List && !h.Sought {
			v.skip = s.Index
		}
		return nil
	}
}

// Header returns the header.
func (v *value) Header() *record.Header { return v.h }

// Read returns the next elements.
func (v *value) Read(dst []record.Element) (int, error) {
	for !v.ended {
		n, err := v.r.Read(dst)
		err = v.k.judged(v.key, err)
		if err == nil || err == io.EOF {
			if damage := v.found.err(v.key); damage != nil { // what precedes it may be at the wrong place
				return 0, damage
			}
		}
		if n > 0 {
			n = copy(dst, v.narrow(dst[:n]))
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
	return 0, io.EOF
}

// narrow drops elements before the start, as far as the source did not, and others than the only one.
func (v *value) narrow(elems []record.Element) []record.Element {
	s := v.how.Start
	if s == nil || v.h.Type != v.how.Type {
		return elems
	}
	if v.h.Type == record.List {
		n := min(v.skip, int64(len(elems)))
		v.skip -= n
		if elems = elems[n:]; v.how.Only && len(elems) > 0 {
			v.ended, elems = true, elems[:1]
		}
		return elems
	}
	if !v.how.Only {
		return elems
	}
	for i := range elems {
		if bytes.Equal(elems[i].Name, s.Name) {
			v.ended = true
			return elems[i : i+1]
		}
	}
	v.ended = v.h.Sought
	return nil
}

// Close ends the pass.
func (v *value) Close() (err error) {
	if v.r != nil {
		err = v.r.Close()
	}
	return err
}
