package transfer

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"kvferry/convert/plan"
	"kvferry/convert/result"
	"kvferry/convert/workers"
	"kvferry/format"
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

// FindRenames reads all tasks of the source once and lists the records to rename, by database and new name. memory is
// the total limit; r.Memory divides the tasks' part of it.
func FindRenames(ctx context.Context, tasks []*plan.Task, r *Rules, src format.Source, target format.Target, c *workers.Cores, memory int64) ([]Rename, error) {
	names := newNamesakes(memory/16, r.TempDir)
	defer names.sorter.Close()
	var mu sync.Mutex
	var all []Rename
	var size int64
	err := workers.Run(ctx, tasks, c, func(ctx context.Context, t *plan.Task) error {
		if t.Group == 0 {
			return nil
		}
		return losers(ctx, t, r, src, target, names, func(n Rename) error {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, n)
			if size += n.size(); size > memory/8 {
				return errManyRenames
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	if all == nil {
		all = []Rename{}
	}
	return all, names.give(all)
}

// losers calls add for each record of a task whose name another type keeps, and collects names that look like new
// ones. A record without elements that the target can hold claims no name. The losses are discarded here; Run counts
// them.
func losers(ctx context.Context, t *plan.Task, of *Rules, src format.Source, target format.Target, names *namesakes, add func(Rename) error) error {
	rules := *of
	rules.Allows = func(string) bool { return true }
	x := &task{Task: t, Rules: &rules, target: target, losses: result.Losses{}}
	x.report = x.lose
	x.gauge = rules.Meter.Gauge(t.Bytes)
	reader, err := x.read(ctx, src)
	if err != nil {
		return err
	}
	err = x.eachLoser(ctx, reader, names, add)
	x.gauge.Finish()
	return errors.Join(err, reader.Close())
}

func (x *task) eachLoser(ctx context.Context, r record.Reader, names *namesakes, add func(Rename) error) error {
	x.reader = r
	for n := 1; ; n++ {
		h, err := r.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if n%checkEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if h.Keyless != record.Keyed {
			continue // keyless records claim no name
		}
		if err := names.note(x.DB, h.Key); err != nil {
			return err
		}
		if x.begin(h); x.drops() {
			continue
		}
		if !x.isTaken(x.header.Key) {
			if err := x.look(); err != nil {
				return err
			}
			continue
		}
		typ := h.Type
		if something, err := x.something(); err != nil {
			return err
		} else if !something {
			continue
		}
		if err := add(Rename{db: x.DB, typ: typ, key: bytes.Clone(x.lastKey)}); err != nil {
			return err
		}
	}
}

// look reads the current record until it finds an element that the target keeps. Only then the record takes its name.
func (x *task) look() error {
	x.lastKey, x.hasLast = append(x.lastKey[:0], x.header.Key...), false
	for count := 0; ; {
		if x.hasLast = x.keeps(int64(count)); x.hasLast {
			return nil
		}
		got, err := x.reader.Read(x.batch[:])
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		count = len(x.target.ElementLosses(&x.header, x.fit(x.batch[:got]), x.report))
	}
}

// byName orders renames by database and new name.
func byName(a, b Rename) int {
	return cmp.Or(cmp.Compare(a.db, b.db), bytes.Compare(a.to, b.to))
}

// renamedIn returns the renames whose new names are in a task's span. all is ordered by byName.
func renamedIn(all []Rename, t *plan.Task) []Rename {
	if t.Group == 0 {
		return nil
	}
	from, _ := slices.BinarySearchFunc(all, Rename{db: t.DB, to: t.Span.Lo}, byName)
	to, _ := slices.BinarySearchFunc(all, t, func(n Rename, t *plan.Task) int {
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

// renamedReader reads the renamed records, each from its old position, in order of their new names. Both orders are
// nearly the same, so each type has one reader that mostly moves forward. Rows are counted by the task that owns the
// old position.
type renamedReader struct {
	ctx  context.Context
	src  format.Source
	env  format.Env
	list []Rename
	old  [record.NumTypes]place // read position of each type
	at   *place                 // position of the current record; nil before Next
	head record.Header
	rows map[string]rowsOf // rows of passed records
}

// place is the read position within a type.
type place struct {
	reader record.Reader
	header *record.Header // read but not returned yet; nil if none
	rows   record.Passing
}

// maxPassed limits the records skipped on the way to the next one. Beyond that, seek opens a new reader.
const maxPassed = 64

// Next moves to the next record.
func (r *renamedReader) Next() (*record.Header, error) {
	if err := r.pass(); err != nil {
		return nil, err
	}
	if len(r.list) == 0 {
		return nil, io.EOF
	}
	n := r.list[0]
	r.list = r.list[1:]
	at := &r.old[n.typ]
	h, err := at.forward(n.key)
	if h == nil && err == nil {
		h, err = r.seek(at, &n)
	}
	if err != nil {
		return nil, err
	}
	r.at, r.head = at, *h
	r.head.Key = n.to
	at.rows.Rows(at.reader, nil)
	return &r.head, nil
}

// pass moves the current record's reader on, which counts its rows.
func (r *renamedReader) pass() (err error) {
	at := r.at
	if r.at = nil; at == nil {
		return nil
	}
	if at.header, err = at.reader.Next(); err != nil && err != io.EOF {
		return err
	}
	at.rows.Rows(at.reader, func(keyspace string, copied, index int64) {
		if r.rows == nil {
			r.rows = map[string]rowsOf{}
		}
		sum := r.rows[keyspace]
		r.rows[keyspace] = rowsOf{keyspace, sum.copied + copied, sum.index + index}
	})
	return nil
}

// Counted reports the rows of the renamed records. They belong to other positions of the source.
func (r *renamedReader) Counted(f record.CountFunc) {
	for name, n := range r.rows {
		f(name, n.copied, n.index)
	}
}

// forward skips to a key. It returns nil if the key is not within maxPassed records.
func (p *place) forward(key []byte) (h *record.Header, err error) {
	if p.reader == nil {
		return nil, nil
	}
	for range maxPassed {
		if p.header == nil {
			if p.header, err = p.reader.Next(); err == io.EOF {
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
func (r *renamedReader) seek(at *place, n *Rename) (*record.Header, error) {
	err := at.close()
	if err == nil {
		at.reader, err = r.src.Records(r.ctx, n.db, record.Of(n.typ), format.Span{Lo: n.key}, &r.env)
	}
	if err != nil {
		return nil, err
	}
	h, err := at.forward(n.key)
	if h == nil && err == nil {
		err = fmt.Errorf("%s %s: gone since it was looked at", n.typ, record.Quote(n.key))
	}
	return h, err
}

func (p *place) close() error {
	if p.reader == nil {
		return nil
	}
	err := p.reader.Close()
	*p = place{}
	return err
}

// Read reads from the current record.
func (r *renamedReader) Read(dst []record.Element) (int, error) { return r.at.reader.Read(dst) }

// Settle does nothing: the record is settled at its old position.
func (r *renamedReader) Settle(record.Class) {}

// Close closes all readers.
func (r *renamedReader) Close() (err error) {
	for i := range r.old {
		err = errors.Join(err, r.old[i].close())
	}
	return err
}
