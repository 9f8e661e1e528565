package keyspace

import (
	"bytes"
	"context"
	"errors"
	"io"

	"kvferry/format"
	"kvferry/inspect"
	"kvferry/internal/pass"
	"kvferry/record"
	"kvferry/serve/command"
	"kvferry/store"
)

// scanner yields the keys of a span, each once.
type scanner struct {
	k    *Keyspace
	ctx  context.Context
	db   command.Database
	span format.Span
	past bool // it reads past damage
	r    *record.Walker
	prev []byte
	typ  record.Type   // of the last record of the key
	any  bool          // prev is a key
	all  bool          // it began at the first key
	n    command.Count // keys so far
	h    record.Header // of a renamed record
	one  [1]record.Element
}

// Scan returns the keys after a position.
func (k *Keyspace) Scan(ctx context.Context, db command.Database, after *command.Position) (command.Scanner, error) {
	s, err := k.keys(ctx, db, spanAfter(after))
	if err == nil && after != nil {
		s.prev, s.typ, s.any = bytes.Clone(after.Key), after.Type, true
	} else if err == nil {
		s.all = db.Exists
	}
	return s, err
}

// maxLibraries limits the sources of function libraries in memory.
const maxLibraries = 16 << 20

// Libraries returns the sources of the function libraries.
func (k *Keyspace) Libraries(ctx context.Context) (out [][]byte, err error) {
	size := 0
	for _, db := range k.dbs {
		s, err := k.keys(ctx, db, format.PrefixSpan(record.Library.AppendName(nil, "")))
		if err != nil {
			return nil, err
		}
		for err == nil {
			var h *record.Header
			if h, err = s.r.Next(); err != nil || h.Keyless != record.Library {
				continue
			}
			if _, err = s.r.Read(s.one[:]); err == nil {
				out = append(out, bytes.Clone(s.one[0].Value))
			}
			if size += len(s.one[0].Value); size > maxLibraries {
				err = errors.New("kvferry shows up to 16 MiB of function libraries")
			}
		}
		if err = errors.Join(err, s.Close()); !errors.Is(err, io.EOF) {
			return nil, err
		}
	}
	return out, nil
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
func (s *scanner) At() command.Position {
	at := command.Position{Key: s.prev}
	if s.k.Rename {
		at.Type = s.typ
	}
	return at
}

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

// Next returns the next key. It skips damage. A pass over all keys leaves their number.
func (s *scanner) Next() (*record.Header, error) {
	h, err := s.next()
	if err != nil && err != io.EOF {
		if err = s.readPast(err); err == nil {
			h, err = s.next()
		}
	}
	switch {
	case err == nil:
		s.n.Keys++
		s.n.Expires += command.Number(h.ExpireMS != 0)
	case err == io.EOF && s.all:
		s.k.known(s.db, s.n)
	}
	return h, err
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
	if s.any { // further records of the key may follow
		s.span.Lo = bytes.Clone(s.prev)
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
		if h.Keyless != record.Keyed || again && (s.k.Rename || s.past) && h.Type <= s.typ {
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
		if s.typ = h.Type; again && !s.k.Rename {
			s.n.Hidden++
			continue
		}
		if s.prev, s.any = append(s.prev[:0], h.Key...), true; !again {
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
