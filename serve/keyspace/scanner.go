package keyspace

import (
	"bytes"
	"context"
	"errors"
	"io"
	"time"

	"kvferry/format"
	"kvferry/inspect"
	"kvferry/internal/pass"
	"kvferry/record"
	"kvferry/serve/command"
	"kvferry/store"
)

// scanner yields the keys of a span, each once.
type scanner struct {
	k      *Keyspace
	ctx    context.Context
	db     command.Database
	span   format.Span
	past   bool // it reads past damage
	r      *record.Walker
	prev   []byte
	typ    record.Type   // of the last record of the key, if names are shown under several types
	any    bool          // prev is a key
	h      record.Header // of a renamed record
	one    [1]record.Element
	hidden int64 // records whose names belong to a record of another type
}

// Scan returns the keys after a position.
func (k *Keyspace) Scan(ctx context.Context, db command.Database, after *command.Position) (command.Scanner, error) {
	s, err := k.keys(ctx, db, spanAfter(after))
	if err == nil && after != nil {
		s.prev, s.typ, s.any = bytes.Clone(after.Key), after.Type, true
	}
	return s, err
}

// spanAfter is the span of the keys after a position.
func spanAfter(after *command.Position) (s format.Span) {
	if after != nil {
		s.Lo = bytes.Clone(after.Key)
		if after.Type == 0 {
			s.Lo = append(s.Lo, 0)
		}
	}
	return s
}

// At returns the position after the last key.
func (s *scanner) At() command.Position { return command.Position{Key: s.prev, Type: s.typ} }

// keys returns the selected keys of a span.
func (k *Keyspace) keys(ctx context.Context, db command.Database, span format.Span) (*scanner, error) {
	s := &scanner{k: k, ctx: ctx, db: db, span: span, r: record.Walk(record.Concat())}
	if !db.Exists {
		return s, nil
	}
	k.mu.Lock()
	scan := k.past
	k.mu.Unlock()
	s.past = scan != nil
	if scan == nil {
		scan = k.scan.Load()
	}
	if err := s.open(scan); err != nil {
		if err = s.readPast(err); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}

// open begins to read.
func (s *scanner) open(scan *inspect.Scan) error {
	o := s.k.opening(func(record.Finding) {})
	if o.Source = scan.Source; !scan.Source.Sorted() {
		o.Sort = o.Env.Memory
	}
	spans := format.Intersect(s.k.spans, []format.Span{s.span})
	r, err := o.Open(s.ctx, &pass.Task{DB: s.db.Name, Types: scan.Types(s.db.Name), Spans: spans})
	if err == nil {
		s.r = record.Walk(r)
	}
	return err
}

// Next returns the next key. It skips damage.
func (s *scanner) Next() (*record.Header, error) {
	h, err := s.next()
	if err == nil || err == io.EOF {
		return h, err
	}
	if err := s.readPast(err); err != nil {
		return nil, err
	}
	return s.next()
}

// readPast goes on behind damage; other errors it returns.
func (s *scanner) readPast(err error) error {
	var block *store.BlockError
	if s.past || !errors.As(err, &block) {
		return s.k.explained(err)
	}
	scan, none := s.k.readPast()
	if scan == nil {
		return errors.Join(err, none)
	}
	if at := s.At(); s.any {
		s.span.Lo = spanAfter(&at).Lo
	}
	was := s.r
	s.past, s.r = true, record.Walk(record.Concat())
	return errors.Join(was.Close(), s.open(scan))
}

func (s *scanner) next() (*record.Header, error) {
	for {
		h, err := s.r.Next()
		if err != nil {
			return nil, err
		}
		again := s.any && bytes.Equal(h.Key, s.prev)
		if h.Keyless != record.Keyed || again && s.k.Rename && h.Type <= s.typ {
			continue
		}
		if h.Type != record.String && h.Type != record.Stream {
			if _, err := s.r.Read(s.one[:]); err == io.EOF {
				continue
			} else if err != nil {
				return nil, err
			}
			if h.Type == record.Other {
				h.Native = string(s.one[0].Name)
			}
		}
		if again && !s.k.Rename {
			s.hidden++
			continue
		}
		if s.prev, s.any = append(s.prev[:0], h.Key...), true; !s.k.Rename {
			return h, nil
		}
		if s.typ = h.Type; !again {
			return h, nil
		}
		s.h = *h
		s.h.Key, err = s.k.renamed(s.ctx, s.db, h.Key, h.Type)
		return &s.h, err
	}
}

// Close ends the pass.
func (s *scanner) Close() error {
	return s.r.Close()
}

// count counts the keys of a database once.
type count struct {
	done   chan struct{} // closed at the end
	n      command.Count
	hidden int64 // records that are not shown
}

// countSpans is the number of spans to count; estimates follow from the finished ones.
const countSpans = 64

// Count returns the number of keys. The first call begins to count in the background.
func (k *Keyspace) Count(db command.Database) command.Count {
	k.mu.Lock()
	c := k.counts[db.Name]
	if c == nil {
		c = &count{done: make(chan struct{}), n: command.Count{Exact: !db.Exists}}
		if k.counts[db.Name] = c; db.Exists {
			k.wg.Add(1)
			go k.count(db, c)
		} else {
			close(c.done)
		}
	}
	k.mu.Unlock()
	n := command.Count{}
	for i := 0; i < maxWaits && n.Keys == 0 && !n.Exact; i++ {
		c.wait()
		k.mu.Lock()
		n = c.n
		k.mu.Unlock()
	}
	return n
}

// Hidden counts the keys in the background and then calls report with the number of records that clients do not see,
// because their names belong to records of other types, and that of all records. exact is false if some keys could not
// be counted. The channel is closed at the end.
func (k *Keyspace) Hidden(report func(hidden, all int64, exact bool)) <-chan struct{} {
	done := make(chan struct{})
	k.wg.Add(1)
	go func() {
		defer k.wg.Done()
		defer close(done)
		hidden, all, exact := int64(0), int64(0), true
		for _, db := range k.dbs {
			k.Count(db)
			k.mu.Lock()
			c := k.counts[db.Name]
			k.mu.Unlock()
			<-c.done
			hidden, all, exact = hidden+c.hidden, all+c.n.Keys+c.hidden, exact && c.n.Exact
		}
		if k.ctx.Err() == nil {
			report(hidden, all, exact)
		}
	}()
	return done
}

// count reads the keys of a database, again if its tables had to be sorted first.
func (k *Keyspace) count(db command.Database, c *count) {
	defer k.wg.Done()
	defer close(c.done)
	var order *command.UnorderedError
	if err := k.countSpans(db, c); errors.As(err, &order) && order.Sort() == nil {
		_ = k.countSpans(db, c) // without it the number stays an estimate
	}
}

func (k *Keyspace) countSpans(db command.Database, c *count) error {
	scan := k.scan.Load()
	spans, err := scan.Source.Split(db.Name, scan.Types(db.Name), countSpans)
	if block := (*store.BlockError)(nil); errors.As(err, &block) {
		spans, err = []format.Span{{}}, nil
	}
	var total command.Count
	c.hidden = 0
	for i := 0; err == nil && i < len(spans); i++ {
		if err = k.countSpan(db, spans[i], &total, c); err != nil {
			break
		}
		k.mu.Lock()
		done := int64(i + 1)
		c.n = command.Count{Keys: total.Keys * int64(len(spans)) / done, Expires: total.Expires * int64(len(spans)) / done, Exact: i+1 == len(spans)}
		k.mu.Unlock()
	}
	return k.explained(err)
}

// countAtLeast is the number of keys between updates of an estimate that is too low.
const countAtLeast = 1024

func (k *Keyspace) countSpan(db command.Database, span format.Span, total *command.Count, c *count) (err error) {
	s, err := k.keys(k.ctx, db, span)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	for {
		h, err := s.Next()
		if err == io.EOF {
			c.hidden += s.hidden
			return nil
		}
		if err != nil {
			return err
		}
		total.Keys++
		if h.ExpireMS != 0 {
			total.Expires++
		}
		if total.Keys == 1 || total.Keys%countAtLeast == 0 {
			k.mu.Lock()
			c.n.Keys, c.n.Expires = max(c.n.Keys, total.Keys), max(c.n.Expires, total.Expires)
			k.mu.Unlock()
		}
	}
}

// patience is how long a client waits for an exact number of keys, and up to maxWaits times as long for the first key:
// 0 means an empty database.
const (
	patience = 500 * time.Millisecond
	maxWaits = 10
)

func (c *count) wait() {
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case <-c.done:
	case <-t.C:
	}
}
