package live

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/gomodule/redigo/redis"

	"kvferry/format"
	"kvferry/record"
)

// asker queries in batches which keys of a database exist; in a cluster, it asks each node for its own keys.
type asker struct {
	t      *target
	router *router // nil: the database was empty
}

// newAsker returns an asker for a database, or nil if existing keys are overwritten.
func (t *target) newAsker(db string) *asker {
	if t.Existing == format.Replace {
		return nil
	}
	a := &asker{t: t}
	if t.start.Before[db] == 0 {
		return a
	}
	a.router = t.router(db)
	return a
}

// keys reports whether the database can contain keys.
func (a *asker) keys() bool { return a != nil && a.router != nil }

// there reports for each key whether it exists.
func (a *asker) there(ctx context.Context, keys [][]byte) ([]bool, error) {
	commands := make([]*keyed, len(keys))
	for i, key := range keys {
		commands[i] = &keyed{key: key, name: "EXISTS"}
	}
	err := a.router.send(ctx, commands...)
	out := make([]bool, len(keys))
	for i, k := range commands {
		n, e := redis.Int(k.reply, k.err)
		if err = cmp.Or(err, e); err != nil {
			return nil, asLost(told(a.t.server.shown, err))
		}
		out[i] = n != 0
	}
	return out, nil
}

// asLost marks errors of unreachable or busy servers as LostError: another process can resume from here.
func asLost(err error) error {
	if isBusyError(err) || isBroken(err) {
		return &format.LostError{Err: err}
	}
	return err
}

// library reports whether a function library of this name exists with different code. Libraries belong to no database.
func (a *asker) library(ctx context.Context, name string, code []byte) (bool, error) {
	for _, host := range a.t.hosts() {
		client := a.t.server.to(host, "0")
		list, err := client.libraries(ctx, globbed(name))
		if err = errors.Join(err, client.close()); err != nil {
			return false, asLost(told(host, err))
		}
		if slices.ContainsFunc(list, func(l codeLibrary) bool { return l.name == name && l.code != string(code) }) {
			return true, nil
		}
	}
	return false, nil
}

// globbed escapes text to a glob pattern that matches only this text.
func globbed(text string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(text)
}

func (a *asker) close() error {
	if !a.keys() {
		return nil
	}
	return a.router.close()
}

// conflicts collects keys that exist and must not be overwritten.
type conflicts struct {
	mu    sync.Mutex
	count int64
	some  []string
}

// maxNamed limits how many of them an error lists.
const maxNamed = 5

func (c *conflicts) add(count int64, some []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count += count
	c.some = append(c.some, some[:min(len(some), maxNamed-len(c.some))]...)
}

// Look returns a writer that only checks whether the keys of its records exist, or nil if existing keys are acceptable.
func (t *target) Look(db string, dry bool) (record.Writer, error) {
	if t.Existing == format.Replace || t.Existing == skipExisting && !dry {
		return nil, nil
	}
	db = t.home(db)
	return &looker{t: t, db: db, ask: t.newAsker(db)}, nil
}

// Conflicts returns an error that lists some of the existing keys found by the writers of Look, or nil.
func (t *target) Conflicts() error {
	c := &t.conflicts
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.count == 0 {
		return nil
	}
	names := strings.Join(c.some, ", ")
	if c.count > int64(len(c.some)) {
		names += ", …"
	}
	return &format.ExistingError{Err: fmt.Errorf("%s: the server already has %s of the keys to write: %s; nothing was written; %s",
		t.server.shown, record.Number(c.count), names, existingHint)}
}

const existingHint = "--replace overwrites existing keys, --skip-existing keeps them"

// looker checks keys and writes no record.
type looker struct {
	t     *target
	db    string
	ask   *asker
	feed  record.Feeder
	keys  [][]byte
	cur   record.Header
	key   []byte
	any   bool // the record has elements
	code  []byte
	count int64
	some  []string

	decisions
	numbers []int64 // record numbers of keys
}

// OnDecided registers f to learn which records would be skipped.
func (l *looker) OnDecided(f func(n int64, skipped bool)) bool { return l.tell(l.t.Existing, f) }

// Write looks up records.
func (l *looker) Write(b *record.Batch) error { return l.feed.Feed(b, l, nil) }

// Begin starts a record.
func (l *looker) Begin(h *record.Header) error {
	l.number++
	l.key = append(l.key[:0], h.Key...)
	l.cur, l.any = record.Header{Type: h.Type, Key: l.key, Keyless: h.Keyless}, h.Type == record.Stream
	return nil
}

// Elements notes that the record has elements, and keeps the code of a function library.
func (l *looker) Elements(elems []record.Element) error {
	l.any = true
	if l.cur.Keyless == record.Library {
		l.code = append(l.code[:0], elems[0].Value...)
	}
	return nil
}

// End finishes a record.
func (l *looker) End() error {
	there := false
	switch {
	case !l.any:
	case l.cur.Keyless == record.Library:
		name := record.Library.Name(l.key)
		var err error
		if there, err = l.ask.library(l.t.ctx, string(name), l.code); err != nil {
			return err
		}
		if there {
			l.found("function library " + record.Quote(name))
		}
	case l.ask.keys():
		l.keys, l.numbers = append(l.keys, bytes.Clone(l.key)), append(l.numbers, l.number)
		if len(l.keys) >= maxAsked {
			return l.flush()
		}
		return nil
	}
	l.decide(l.number, there)
	return nil
}

func (l *looker) found(name string) {
	if l.count++; len(l.some) < maxNamed {
		l.some = append(l.some, name)
	}
}

// flush queries the buffered keys.
func (l *looker) flush() error {
	if len(l.keys) == 0 {
		return nil
	}
	there, err := l.ask.there(l.t.ctx, l.keys)
	for i := range there {
		if there[i] {
			l.found(fmt.Sprintf("%s in database %s", record.Quote(l.keys[i]), l.db))
		}
		l.decide(l.numbers[i], there[i])
	}
	l.keys, l.numbers = l.keys[:0], l.numbers[:0]
	return err
}

// Close adds the conflicts to the target.
func (l *looker) Close() error {
	err := l.flush()
	if err == nil && l.t.Existing == format.FailExisting {
		l.t.conflicts.add(l.count, l.some)
	}
	return errors.Join(err, l.ask.close())
}

// Abort discards the conflicts.
func (l *looker) Abort() { _ = l.ask.close() }

// decisions report for each record, by its number, whether it was skipped.
type decisions struct {
	number  int64                       // of the current record, from 1
	decided func(n int64, skipped bool) // may be nil
}

// tell registers f if existing keys may be skipped.
func (d *decisions) tell(existing format.Existing, f func(n int64, skipped bool)) bool {
	if existing != skipExisting {
		return false
	}
	d.decided = f
	return true
}

func (d *decisions) decide(number int64, skipped bool) {
	if d.decided != nil {
		d.decided(number-1, skipped)
	}
}
