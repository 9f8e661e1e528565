package transfer

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"kvferry/convert/result"
	"kvferry/format"
	"kvferry/internal/pass"
	"kvferry/record"
)

// Rename is a record to rename because a record of another type keeps its name.
type Rename struct {
	db      string
	typ     record.Type
	key, to []byte
}

// plain returns the new name without "_".
func (r *Rename) plain() []byte { return fmt.Appendf(nil, "%s:%s", r.key, r.typ) }

// size estimates the memory of a rename.
func (r *Rename) size() int64 { return int64(len(r.key)+len(r.to)) + 128 }

// errManyRenames means that the renames do not fit into memory.
var errManyRenames = errors.New("too many names exist under several types to rename them: use --on-conflict keep=TYPES, or more --memory")

// FindRenames reads all tasks of the source once and lists the records to rename, by database and new name. m is
// the total limit; r.Memory divides the tasks' part of it.
func FindRenames(ctx context.Context, tasks []pass.Task, r *Rules, src format.Source, target format.Target, c *pass.Cores,
	m pass.Memory) ([]Rename, error) {
	names := NewNames(m.Bytes, r.TempDir)
	defer names.Close()
	err := pass.Run(ctx, tasks, c, m, func(ctx context.Context, t *pass.Task) error {
		return names.Collect(ctx, t, r, src, target)
	})
	if err != nil {
		return nil, err
	}
	return names.Renames()
}

// Collect reads a task, and adds each record whose name another type keeps, and the names that look like new ones. A
// record without elements that the target can hold claims no name. The losses are discarded here; Run counts them.
func (n *Names) Collect(ctx context.Context, t *pass.Task, of *Rules, src format.Source, target format.Target) error {
	if t.Group == 0 {
		return nil
	}
	rules := *of
	rules.Allows = func(string) bool { return true }
	x := &task{Task: t, Rules: &rules, target: target, losses: result.Losses{}}
	x.report = x.lose
	x.gauge = rules.Meter.Gauge(t.Bytes)
	reader, err := x.read(ctx, src)
	if err != nil {
		return err
	}
	err = x.eachLoser(ctx, reader, n)
	x.gauge.Finish()
	return errors.Join(err, reader.Close())
}

func (x *task) eachLoser(ctx context.Context, r record.Reader, names *Names) error {
	records := record.Walk(r)
	for n := 1; ; n++ {
		h, err := records.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := record.Stopped(ctx, n); err != nil {
			return err
		}
		if h.Keyless != record.Keyed {
			continue // keyless records claim no name
		}
		if err := names.note(x.DB, h.Key); err != nil {
			return err
		}
		x.header = *h
		x.header.DB = x.TargetDB
		if x.drops(false) {
			continue
		}
		if !x.isTaken(x.header.Key) {
			if err := x.findKept(records); err != nil {
				return err
			}
			continue
		}
		typ := h.Type
		if something, err := x.something(records); err != nil {
			return err
		} else if !something {
			continue
		}
		if err := names.lose(&Rename{db: x.DB, typ: typ, key: x.lastKey}); err != nil {
			return err
		}
	}
}

// findKept reads the current record until it finds an element that the target keeps. Only then the record takes its name.
func (x *task) findKept(records *record.Walker) error {
	x.lastKey, x.hasLast = append(x.lastKey[:0], x.header.Key...), false
	for count := 0; ; {
		if x.hasLast = x.keeps(int64(count)); x.hasLast {
			return nil
		}
		got, err := records.Read(x.looked[:])
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		count = len(x.target.ElementLosses(&x.header, x.fit(x.looked[:got]), x.report))
	}
}

// something reports whether the current record exists in the target. Most types need an element.
func (x *task) something(records *record.Walker) (bool, error) {
	n, err := records.Read(x.looked[:1])
	if err == io.EOF {
		return x.keeps(0), nil
	}
	return n > 0, err
}

// byName orders renames by database and new name.
func byName(a, b Rename) int {
	return cmp.Or(cmp.Compare(a.db, b.db), bytes.Compare(a.to, b.to))
}

// renamedIn returns the renames whose new names are in a task's span. all is ordered by byName.
func renamedIn(all []Rename, t *pass.Task) []Rename {
	if t.Group == 0 {
		return nil
	}
	from, _ := slices.BinarySearchFunc(all, Rename{db: t.DB, to: t.Span.Lo}, byName)
	to, _ := slices.BinarySearchFunc(all, t, func(n Rename, t *pass.Task) int {
		if c := cmp.Compare(n.db, t.DB); c != 0 || t.Span.Hi == nil {
			return cmp.Or(c, -1)
		}
		return bytes.Compare(n.to, t.Span.Hi)
	})
	return all[from:max(from, to)]
}

// newName finds the new name of a record. all is ordered by byName.
func newName(all []Rename, want Rename) []byte {
	for want.to = want.plain(); ; want.to = append(want.to, '_') {
		i, found := slices.BinarySearchFunc(all, want, byName)
		if found && all[i].typ == want.typ && bytes.Equal(all[i].key, want.key) {
			return all[i].to
		}
		if all = all[i:]; len(all) == 0 || all[0].db != want.db || !bytes.HasPrefix(all[0].to, want.to) {
			return want.plain()
		}
	}
}

// renamed reads the renamed records, each from its old position, in order of their new names. Both orders are nearly the
// same, so each type has one reader that mostly moves forward. Rows of renamed records are counted here, by their fate;
// the task that owns the old position counts none.
type renamed struct {
	ctx  context.Context
	src  format.Source
	env  format.Env
	list []Rename
	old  [record.NumTypes]place // read position of each type
	at   *place                 // position of the current record; nil before Next
	head record.Header
}

// place is the read position within a type.
type place struct {
	records *record.Walker
	header  *record.Header // read but not returned yet; nil if none
	rows    *record.Places // of all records: each reader has its own
}

// maxPassed limits the records skipped on the way to the next one. Beyond that, seek opens a new reader.
const maxPassed = 64

// Next moves to the next record.
func (r *renamed) Next() (*record.Header, error) {
	if len(r.list) == 0 {
		return nil, io.EOF
	}
	n := r.list[0]
	r.list = r.list[1:]
	r.at = &r.old[n.typ]
	h, err := r.at.forward(n.key)
	if h == nil && err == nil {
		h, err = r.seek(r.at, &n)
	}
	if err != nil {
		return nil, err
	}
	r.head = *h
	r.head.Key = n.to
	return &r.head, nil
}

// forward skips to a key. It returns nil if the key is not within maxPassed records.
func (p *place) forward(key []byte) (h *record.Header, err error) {
	if p.records == nil {
		return nil, nil
	}
	for range maxPassed {
		if p.header == nil {
			if p.header, err = p.records.Next(); err == io.EOF {
				return nil, nil
			} else if err != nil {
				return nil, err
			}
		}
		switch c := bytes.Compare(p.header.Key, key); {
		case c == 0:
			h, p.header = p.header, nil
			return h, nil
		case c > 0:
			return nil, nil
		}
		p.header = nil
	}
	return nil, nil
}

// seek opens a reader at a record.
func (r *renamed) seek(at *place, n *Rename) (*record.Header, error) {
	if err := at.close(); err != nil {
		return nil, err
	}
	reader, err := r.src.Records(r.ctx, n.db, record.Of(n.typ), format.Span{Lo: n.key}, &r.env)
	if err != nil {
		return nil, err
	}
	at.records = record.Walk(reader)
	h, err := at.forward(n.key)
	if h == nil && err == nil {
		err = fmt.Errorf("%s %s: gone since it was looked at", n.typ, record.Quote(n.key))
	}
	return h, err
}

func (p *place) close() error {
	if p.records == nil {
		return nil
	}
	err := p.records.Close()
	*p = place{rows: p.rows}
	return err
}

// Heavy implements record.Cursor.
func (r *renamed) Heavy() bool { return false }

// Read reads from the current record.
func (r *renamed) Read(dst []record.Element) (int, error) { return r.at.records.Read(dst) }

// End takes over the rows of the record.
func (r *renamed) End(rec *record.Record) (err error) {
	if rec.Rows, err = r.at.records.Rows(); err != nil || rec.Rows.Of == nil {
		return err
	}
	if r.at.rows == nil || *r.at.rows != *rec.Rows.Of {
		r.at.rows = rec.Rows.Of
	}
	rec.Rows.Of = r.at.rows
	return nil
}

// Close closes all readers.
func (r *renamed) Close() (err error) {
	for i := range r.old {
		err = errors.Join(err, r.old[i].close())
	}
	return err
}
