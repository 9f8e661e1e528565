package convert

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"kvferry/format"
	"kvferry/record"
)

// rename is a record that gets another name in the target because a record of another type keeps its
// own.
type rename struct {
	db      string
	typ     record.Type
	key, to []byte
}

// plain is the new name unless that is taken.
func (r *rename) plain() []byte { return fmt.Appendf(nil, "%s:%s", r.key, r.typ) }

// size is about what a rename takes in memory.
func (r *rename) size() int64 { return int64(len(r.key)+len(r.to)) + 128 }

// errManyRenames says that the renames do not fit into memory.
var errManyRenames = errors.New("too many names stand under several types to rename them: use --on-conflict keep=TYPES, or more --memory")

// findRenames reads the source once and lists the records to rename, by database and new name.
func (a *attempt) findRenames(ctx context.Context) ([]rename, error) {
	if a.rules.sameName || !a.src.Format().Limits().SameName {
		return nil, nil
	}
	tasks := make([]*Task, len(a.id.Plan.Tasks))
	for i := range tasks {
		tasks[i] = &a.id.Plan.Tasks[i]
	}
	a.rules.memory = newShares(a.o.Memory/4, tasks, a.o.Workers)
	a.meter.Begin("look", a.id.Plan.Bytes, 0, len(tasks))
	var mu sync.Mutex
	var all []rename
	var size int64
	err := runPool(ctx, tasks, a.o.Workers, &a.cores, func(ctx context.Context, t *Task) error {
		if t.Group == 0 {
			return nil
		}
		return losers(ctx, t, a.rules, a.src, a.target, func(n rename) error {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, n)
			if size += n.size(); size > a.o.Memory/8 {
				return errManyRenames
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	if all == nil {
		all = []rename{}
	}
	return all, a.nameThem(ctx, all)
}

// losers calls add for each record of a task whose name another type keeps. What is left of a record decides, as when it is
// written; losses are counted then.
func losers(ctx context.Context, t *Task, of *rules, src format.Source, target format.Target, add func(rename) error) error {
	rules := *of
	rules.allows = func(string) bool { return true }
	x := &task{Task: t, rules: &rules, target: target, losses: lossSet{}}
	x.report = x.lose
	x.gauge = rules.meter.Gauge(t.Bytes)
	reader, err := x.read(ctx, src)
	if err != nil {
		return err
	}
	err = x.eachLoser(ctx, reader, add)
	x.gauge.Finish()
	return errors.Join(err, reader.Close())
}

func (x *task) eachLoser(ctx context.Context, r record.Reader, add func(rename) error) error {
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
		if x.begin(h); x.drops() {
			continue
		}
		if !x.isTaken() {
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
		if err := add(rename{db: x.DB, typ: typ, key: bytes.Clone(x.lastKey)}); err != nil {
			return err
		}
	}
}

// look reads of the current record until something is left of it, with which it keeps its name.
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

// nameThem gives each record its new name: the old one with ":" and the type, and as many "_" as it
// takes to be the only one of that name.
func (a *attempt) nameThem(ctx context.Context, all []rename) error {
	byKey := func(a, b rename) int {
		return cmp.Or(cmp.Compare(a.db, b.db), bytes.Compare(a.key, b.key), cmp.Compare(a.typ, b.typ))
	}
	slices.SortFunc(all, byKey)
	taken := map[string]bool{}
	for i := range all {
		n := &all[i]
		n.to = n.plain()
		for {
			id := n.db + "\x00" + string(n.to)
			exists, err := a.exists(ctx, n.db, n.to)
			if err != nil {
				return err
			}
			if !exists && !taken[id] {
				taken[id] = true
				break
			}
			n.to = append(n.to, '_')
		}
	}
	slices.SortFunc(all, func(a, b rename) int {
		return cmp.Or(cmp.Compare(a.db, b.db), bytes.Compare(a.to, b.to))
	})
	return nil
}

// only is the span of a single key.
func only(key []byte) format.Span {
	return format.Span{Lo: key, Hi: append(bytes.Clone(key), 0)}
}

// exists reports whether the source has any record of a name.
func (a *attempt) exists(ctx context.Context, db string, key []byte) (bool, error) {
	reader, err := a.src.Records(ctx, db, a.src.Types(db), only(key), &format.Env{Now: a.o.Now, TempDir: a.work.spools(), Memory: leastShare})
	if err != nil {
		return false, err
	}
	_, err = reader.Next()
	found := err == nil
	if err == io.EOF {
		err = nil
	}
	return found, errors.Join(err, reader.Close())
}

// renamedIn returns those renames whose new names are in a task's span.
func renamedIn(all []rename, t *Task) []rename {
	if t.Group == 0 {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(all), func(n rename) bool {
		return n.db != t.DB || bytes.Compare(n.to, t.Span.Lo) < 0 || t.Span.Hi != nil && bytes.Compare(n.to, t.Span.Hi) >= 0
	})
}

// newName finds the new name of a record in a list by database and new name.
func newName(all []rename, want rename) []byte {
	want.to = want.plain()
	i, _ := slices.BinarySearchFunc(all, want, func(a, b rename) int {
		return cmp.Or(cmp.Compare(a.db, b.db), bytes.Compare(a.to, b.to))
	})
	for ; i < len(all) && all[i].db == want.db && bytes.HasPrefix(all[i].to, want.to); i++ {
		if all[i].typ == want.typ && bytes.Equal(all[i].key, want.key) {
			return all[i].to
		}
	}
	return want.to
}

// renamedReader reads records of a list, each from its own place, under their new names. The rows are
// counted where the records stand.
type renamedReader struct {
	ctx  context.Context
	src  format.Source
	env  format.Env
	list []rename
	cur  record.Reader
	head record.Header
}

// Next opens the next record.
func (r *renamedReader) Next() (*record.Header, error) {
	if err := r.leave(); err != nil {
		return nil, err
	}
	if len(r.list) == 0 {
		return nil, io.EOF
	}
	n := r.list[0]
	r.list = r.list[1:]
	var err error
	if r.cur, err = r.src.Records(r.ctx, n.db, record.Of(n.typ), only(n.key), &r.env); err != nil {
		return nil, err
	}
	h, err := r.cur.Next()
	if err == io.EOF {
		err = fmt.Errorf("%s %s: gone since it was looked at", n.typ, record.Quote(n.key))
	}
	if err != nil {
		return nil, err
	}
	r.head = *h
	r.head.Key = n.to
	return &r.head, nil
}

func (r *renamedReader) leave() error {
	if r.cur == nil {
		return nil
	}
	err := r.cur.Close()
	r.cur = nil
	return err
}

// Read reads from the current record.
func (r *renamedReader) Read(dst []record.Element) (int, error) { return r.cur.Read(dst) }

// Settle does nothing: the record is settled where it stands.
func (r *renamedReader) Settle(record.Class) {}

// Close closes the current record.
func (r *renamedReader) Close() error { return r.leave() }
