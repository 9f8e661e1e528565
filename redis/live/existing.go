package live

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"kvferry/format"
	"kvferry/record"
)

// asker asks a server which keys of a database exist, in batches; in a cluster, each node for its own.
type asker struct {
	t      *target
	client redis.UniversalClient // nil: no key of the database was there
	cmds   []*redis.IntCmd
}

// newAsker returns what asks about a database; nil when nothing that is there matters.
func (t *target) newAsker(db string) (*asker, error) {
	if t.Existing == format.Replace {
		return nil, nil
	}
	a := &asker{t: t}
	if t.start.Before[db] == 0 {
		return a, nil
	}
	if t.server.cluster {
		a.client = redis.NewClusterClient(t.server.clusterOptions())
		return a, nil
	}
	client, err := t.client(t.server.host, db)
	a.client = client
	return a, err
}

// keys reports whether keys can exist at all.
func (a *asker) keys() bool { return a != nil && a.client != nil }

// there reports for each key whether it exists.
func (a *asker) there(ctx context.Context, keys [][]byte) ([]bool, error) {
	pipe := a.client.Pipeline()
	a.cmds = a.cmds[:0]
	for _, key := range keys {
		a.cmds = append(a.cmds, pipe.Exists(ctx, string(key)))
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, asLost(told(a.t.server.shown, err))
	}
	out := make([]bool, len(keys))
	for i, c := range a.cmds {
		out[i] = c.Val() != 0
	}
	return out, nil
}

// asLost tells apart that a server cannot be reached, or cannot answer now: another process may go on where this one ends.
func asLost(err error) error {
	var answer redis.Error
	if errors.As(err, &answer) && isBusy("-"+answer.Error()) || isBroken(err) {
		return &format.LostError{Err: err}
	}
	return err
}

// library reports whether a library of functions exists with other code than this. Libraries belong to no database.
func (a *asker) library(ctx context.Context, name string, code []byte) (bool, error) {
	for _, host := range a.t.hosts() {
		client := redis.NewClient(a.t.server.single(host, 0))
		list, err := client.FunctionList(ctx, redis.FunctionListQuery{LibraryNamePattern: globbed(name), WithCode: true}).Result()
		if err = errors.Join(err, client.Close()); err != nil {
			return false, asLost(told(host, err))
		}
		if slices.ContainsFunc(list, func(l redis.Library) bool { return l.Name == name && l.Code != string(code) }) {
			return true, nil
		}
	}
	return false, nil
}

// globbed is a pattern that only a text matches.
func globbed(text string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(text)
}

func (a *asker) close() error {
	if !a.keys() {
		return nil
	}
	return a.client.Close()
}

// conflicts are the keys that exist and may not be written.
type conflicts struct {
	mu    sync.Mutex
	count int64
	some  []string
}

// maxNamed is how many of them an error names.
const maxNamed = 5

func (c *conflicts) add(count int64, some []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count += count
	c.some = append(c.some, some[:min(len(some), maxNamed-len(c.some))]...)
}

// Look returns a writer that only asks whether the keys of its records exist; nil when that does not matter.
func (t *target) Look(db string, dry bool) (record.Writer, error) {
	if t.Existing == format.Replace || t.Existing == skipExisting && !dry {
		return nil, nil
	}
	db = t.home(db)
	a, err := t.newAsker(db)
	if err != nil {
		return nil, err
	}
	return &looker{t: t, db: db, ask: a}, nil
}

// Conflicts is an error that names some of the keys which exist and which the writers of Look have found.
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
	return &format.ExistingError{Err: fmt.Errorf("%s: the server already has %d of the keys to write: %s; nothing was written; %s",
		t.server.shown, c.count, names, existingHint)}
}

const existingHint = "--replace overwrites existing keys, --skip-existing keeps them"

// looker is a writer that writes nothing.
type looker struct {
	t     *target
	db    string
	ask   *asker
	keys  [][]byte
	cur   record.Header
	key   []byte
	any   bool // the record has elements
	code  []byte
	count int64
	some  []string

	decisions
	numbers []int64 // of keys
}

// OnDecided has f told which records would be left out.
func (l *looker) OnDecided(f func(n int64, skipped bool)) bool { return l.tell(l.t.Existing, f) }

// Begin starts a record.
func (l *looker) Begin(h *record.Header) error {
	l.number++
	l.key = append(l.key[:0], h.Key...)
	l.cur, l.any = record.Header{Type: h.Type, Key: l.key, Keyless: h.Keyless}, h.Type == record.Stream
	return nil
}

// Write notes that there are elements.
func (l *looker) Write(elems []record.Element) error {
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

// flush asks about the keys so far.
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

// Close adds what was found to the target.
func (l *looker) Close() error {
	err := l.flush()
	if err == nil && l.t.Existing == format.FailExisting {
		l.t.conflicts.add(l.count, l.some)
	}
	return errors.Join(err, l.ask.close())
}

// Abort forgets what was found.
func (l *looker) Abort() { _ = l.ask.close() }

// decisions tell what becomes of records, by their numbers.
type decisions struct {
	number  int64                       // of the record, from 1
	decided func(n int64, skipped bool) // nil: nobody wants to know
}

// tell has f told, if keys may be left alone.
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
