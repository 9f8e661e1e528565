package live

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gomodule/redigo/redis"

	"kvferry/format"
	"kvferry/record"
	"kvferry/redis/live/server"
)

// whole is a record that goes as one piece.
type whole struct {
	key    []byte
	data   []byte
	number int64
}

const (
	// maxAsked and maxAskedBytes limit the records buffered until the server reports which keys exist.
	maxAsked      = 512
	maxAskedBytes = 1 << 20
)

// asker buffers records until the server reports which keys of a database exist; in a cluster, it asks each node for its
// own keys.
type asker struct {
	ctx    context.Context
	server *server.Server
	router *server.Router // nil: the database was empty
	held   []whole
	bytes  int
	known  func(r whole, exists bool) error
}

// newAsker returns an asker for a database, or nil if existing keys are overwritten. It passes buffered records to known.
func (d *destination) newAsker(ctx context.Context, db string, known func(r whole, exists bool) error) *asker {
	if d.server.Existing == format.Replace {
		return nil
	}
	a := &asker{ctx: ctx, server: d.server, known: known}
	if d.Before[db] > 0 {
		a.router = d.server.Router(db)
	}
	return a
}

// keys reports whether the database can contain keys.
func (a *asker) keys() bool { return a != nil && a.router != nil }

// hold buffers a record.
func (a *asker) hold(r whole) error {
	r.key, r.data = bytes.Clone(r.key), bytes.Clone(r.data)
	a.held = append(a.held, r)
	if a.bytes += len(r.data); len(a.held) < maxAsked && a.bytes < maxAskedBytes {
		return nil
	}
	return a.release()
}

// release passes on all buffered records.
func (a *asker) release() error {
	if a == nil || len(a.held) == 0 {
		return nil
	}
	keys := make([][]byte, len(a.held))
	for i := range a.held {
		keys[i] = a.held[i].key
	}
	there, err := a.there(keys)
	if err != nil {
		return err
	}
	for i := range there {
		if err := a.known(a.held[i], there[i]); err != nil {
			return err
		}
	}
	a.held, a.bytes = a.held[:0], 0
	return nil
}

// there reports for each key whether it exists.
func (a *asker) there(keys [][]byte) ([]bool, error) {
	commands := make([]*server.Command, len(keys))
	for i, key := range keys {
		commands[i] = &server.Command{Key: key, Name: "EXISTS"}
	}
	err := a.router.Send(a.ctx, commands...)
	out := make([]bool, len(keys))
	for i, k := range commands {
		n, e := redis.Int(k.Reply, k.Err)
		if err = cmp.Or(err, e); err != nil {
			return nil, asLost(server.Explain(a.server.Shown, err))
		}
		out[i] = n != 0
	}
	return out, nil
}

// asLost marks errors of unreachable or busy servers as LostError: another process can resume from here.
func asLost(err error) error {
	if server.IsBusy(err) || server.IsBroken(err) {
		return &format.LostError{Err: err}
	}
	return err
}

// library reports whether a function library of this name exists with different code. Libraries belong to no database.
func (a *asker) library(name string, code []byte) (there bool, err error) {
	err = a.server.Each(a.server.Hosts(), func(_ string, c *server.Client) error {
		list, err := c.Libraries(a.ctx, globbed(name))
		there = there ||
			slices.ContainsFunc(list, func(l server.CodeLibrary) bool { return l.Name == name && l.Code != string(code) })
		return err
	})
	if err != nil {
		err = asLost(err)
	}
	return there, err
}

// globbed escapes text to a glob pattern that matches only this text.
func globbed(text string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(text)
}

func (a *asker) close() error {
	if !a.keys() {
		return nil
	}
	return a.router.Close()
}

// looker checks keys and writes no record.
type looker struct {
	*destination
	db    string
	ask   *asker
	feed  record.Feeder
	cur   record.Header
	key   []byte
	any   bool // the record has elements
	code  []byte
	count int64
	some  []string

	decisions
}

func (d *destination) newLooker(db string) *looker {
	l := &looker{destination: d, db: db}
	l.ask = d.newAsker(d.ctx, db, l.noteExists)
	return l
}

// OnDecided registers f to learn which records would be skipped.
func (l *looker) OnDecided(f func(n int64, skipped bool)) bool { return l.tell(l.server.Existing, f) }

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
		if there, err = l.ask.library(string(name), l.code); err != nil {
			return err
		}
		if there {
			l.found("function library " + record.Quote(name))
		}
	case l.ask.keys():
		return l.ask.hold(whole{key: l.key, number: l.number})
	}
	l.decide(l.number, there)
	return nil
}

func (l *looker) found(name string) {
	l.count++
	if len(l.some) < maxNamed {
		l.some = append(l.some, name)
	}
}

// noteExists notes whether a buffered key exists.
func (l *looker) noteExists(r whole, exists bool) error {
	if exists {
		l.found(fmt.Sprintf("%s in database %s", record.Quote(r.key), l.db))
	}
	l.decide(r.number, exists)
	return nil
}

// Close adds the conflicts to the target.
func (l *looker) Close() error {
	err := l.ask.release()
	if err == nil && l.server.Existing == format.FailExisting {
		l.conflicts.add(l.count, l.some)
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
	if existing != format.SkipExisting {
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
