package keyspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"kvferry/format"
	"kvferry/inspect"
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
func judged(key []byte, err error) error {
	var block *store.BlockError
	if errors.As(err, &block) {
		return &command.DamagedError{Key: bytes.Clone(key), What: err.Error()}
	}
	return explained(err)
}

// value is a record that is being read.
type value struct {
	k     *Keyspace
	r     *record.Walker
	h     *record.Header
	key   []byte
	found damage

	first []record.Element // elements read to see that the record exists; they are returned first
	array [inspect.BatchLen]record.Element
}

// Open seeks a key.
func (k *Keyspace) Open(ctx context.Context, db command.Database, key []byte, want record.Type, byName bool) (command.Value, error) {
	if !db.Exists || !k.scan.Selected().Key(key) {
		return nil, nil
	}
	for _, types := range k.order(db, want) {
		v := &value{k: k, key: key}
		err := v.open(ctx, db, types, byName)
		if err == nil && v.h != nil {
			return v, nil
		}
		if err == nil {
			err = v.found.err(key)
		}
		if err = errors.Join(judged(key, err), v.Close()); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// order returns the types in which to look for a key, in turn. Of several records with the name the first in dump order
// counts: a value of the type wanted is the one if no type before it has the key, whatever later types have. A file
// keeps all types in one order.
func (k *Keyspace) order(db command.Database, want record.Type) []record.TypeSet {
	all := k.scan.Types(db.Name)
	first := all & (1<<(want+1) - 1)
	if want == 0 || first == 0 || first == all || len(k.pins) > 0 {
		return []record.TypeSet{all}
	}
	return []record.TypeSet{first, all &^ first}
}

// open opens the reader, and moves to the first record that exists: those of other types under the same name follow it.
func (v *value) open(ctx context.Context, db command.Database, types record.TypeSet, byName bool) error {
	scan := v.k.scan
	env := v.k.env(v.found.report)
	r, err := scan.Source.Records(ctx, db.Name, types, format.KeySpan(v.key), env)
	if err != nil {
		return err
	}
	if r = scan.Apply(ctx, r, nil); byName {
		r = sorted.ByName(r, sorted.Options{Memory: env.Memory, TempDir: scan.TempDir})
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
		n, err := v.r.Read(v.array[:])
		if err == io.EOF && h.Type != record.Stream {
			continue // no element is left of it
		}
		if err != nil && err != io.EOF {
			return err
		}
		v.h, v.first = h, v.array[:n]
		return nil
	}
}

// Header returns the header.
func (v *value) Header() *record.Header { return v.h }

// Read returns the next elements.
func (v *value) Read(dst []record.Element) (int, error) {
	if len(v.first) > 0 {
		n := copy(dst, v.first)
		v.first = v.first[n:]
		return n, nil
	}
	n, err := v.r.Read(dst)
	if err == io.EOF {
		if damage := v.found.err(v.key); damage != nil {
			return 0, damage
		}
	}
	return n, judged(v.key, err)
}

// Close ends the pass.
func (v *value) Close() (err error) {
	if v.r != nil {
		err = v.r.Close()
	}
	return err
}
