package ardb

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"kvferry/ardb/codec"
	"kvferry/ardb/merge"
	"kvferry/format"
	"kvferry/internal/undead"
	"kvferry/record"
	"kvferry/store"
)

// DeadRecords yields records as they were right before their META row was deleted, from older entries that
// tombstones hide. DEL, FLUSHDB on LevelDB and the collection of expired keys delete the META row first, then the elements, or all
// with one range tombstone: so what the other rows were at that sequence number is what the record was.
func (s *source) DeadRecords(ctx context.Context, db string, t record.TypeSet, span format.Span, e *format.Env,
	tell func(key []byte, t record.Type, what string)) (record.Reader, error) {

	if s.kind == storeLMDB {
		return nil, fmt.Errorf("%s: LMDB keeps no older rows: its pages are written anew without them", s.dir)
	}
	sp, err := s.deadSpace(db)
	if err != nil {
		return nil, err
	}
	quiet := *e
	quiet.Ledger, quiet.Report, quiet.Deep = nil, nil, false
	past, rows := *sp, sp.pastRows()
	past.ks = rows.Past(ctx)
	lo, hi := sp.bounds(span)
	g, err := rows.Graves(ctx, lo, hi)
	if err != nil {
		return nil, err
	}
	p := &pass{src: s, sp: &past, types: t, env: &quiet, it: g, now: e.Now.UnixMilli()}
	p.head.DB = db
	return &deadReader{pass: p, graves: g, tell: tell}, nil
}

// DeadDatabases are the namespaces, on LevelDB also those that have only deleted rows.
func (s *source) DeadDatabases() ([]string, error) {
	buried, err := s.buried()
	dbs := s.Databases()
	for _, sp := range buried {
		dbs = append(dbs, sp.db)
	}
	slices.Sort(dbs)
	return dbs, err
}

// deadSpace finds a namespace among all that have rows, deleted or not.
func (s *source) deadSpace(db string) (*space, error) {
	sp, err := s.space(db)
	if err == nil {
		return sp, nil
	}
	buried, berr := s.buried()
	for _, sp := range buried {
		if sp.db == db {
			return sp, nil
		}
	}
	return nil, errors.Join(err, berr)
}

// buried jumps through the entries of a LevelDB database for namespaces that no visible row is of.
func (s *source) buried() (out []*space, err error) {
	if s.kind != storeLevelDB {
		return nil, nil
	}
	ks := s.rest[0].ks
	var from []byte
	seen := make(map[string]bool) // integers may be ordered in a circle
	for {
		key, next, err := firstNamespace(ks, from)
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		d, n := codec.SplitData(key)
		if seen[string(key[:n])] {
			return out, nil
		}
		seen[string(key[:n])] = true
		sp := s.namespace(ks, d, next, new(store.Options))
		if _, err := s.space(sp.db); err != nil && string(d.Text) != codec.TTLNamespace {
			out = append(out, sp)
		}
		from = next
	}
}

// firstNamespace returns the key of the first entry at or after from that has a namespace, and a key after all of
// it; io.EOF when there is none.
func firstNamespace(ks store.Keyspace, from []byte) (key, next []byte, err error) {
	it, err := ks.Entries(from, nil)
	if err != nil {
		return nil, nil, err
	}
	for {
		e, err := it.Next()
		if err == io.EOF {
			return nil, nil, cmp.Or(it.Close(), io.EOF)
		}
		if err != nil {
			return nil, nil, errors.Join(err, it.Close())
		}
		d, n := codec.SplitData(e.Key)
		if next, ok := codec.AfterNamespace(d); n > 0 && ok {
			return bytes.Clone(e.Key), next, it.Close()
		}
	}
}

// pastRows says how rows of a namespace are told apart.
func (sp *space) pastRows() *undead.Rows {
	r := &undead.Rows{Keyspace: sp.ks, Merger: merge.Merger(), Make: sp.makeMeta}
	r.Split = func(raw []byte) (user []byte, meta, ok bool) {
		off, end, ok := codec.SplitUser(raw, sp.named)
		if !ok {
			return nil, false, false
		}
		return raw[off:end], codec.Kind(raw[end]) == codec.KindMeta, true
	}
	r.Bounds = func(user []byte) (lo, hi []byte) { return sp.bounds(format.Span{Lo: user}) }
	return r
}

// metaKinds are the kinds of values of META rows.
var metaKinds = map[record.Type]codec.Kind{record.Hash: codec.KindHash, record.List: codec.KindList, record.Set: codec.KindSet, record.ZSet: codec.KindZSet}

// makeMeta makes a META row: the kind of an element says what it was. It cannot know the names that entries of a stream
// leave to META.
func (sp *space) makeMeta(user, raw []byte) (key, value []byte, ok bool) {
	_, end, _ := codec.SplitUser(raw, sp.named)
	kind, ok := metaKinds[codec.Kind(raw[end]).Type()]
	if !ok {
		return nil, nil, false
	}
	return codec.AppendKey(nil, sp.ns, user, codec.KindMeta), codec.AppendValue(nil, &codec.Value{Kind: kind, Size: sizeLost}), true
}

// sizeLost is the size in a META row that was made.
const sizeLost = codec.SizeUnknown - 1

// deadReader is a pass over graves that says what cannot be known about their records.
type deadReader struct {
	*pass
	graves *undead.Graves
	tell   func(key []byte, t record.Type, what string)
}

// Next moves to the next record.
func (r *deadReader) Next() (*record.Header, error) {
	if r.inside {
		if err := r.finish(); err != nil {
			return nil, err
		}
		r.sum()
	}
	h, err := r.pass.Next()
	if err != nil {
		return nil, err
	}
	r.graves.Told(h.Key, func(user []byte, what string) {
		if bytes.Equal(user, h.Key) {
			r.tell(user, h.Type, what)
		}
	})
	return h, nil
}

// sum compares the rows of the record that ended with what META says. The sizes of hashes and sets may be
// unknown, and are too large after deletes that did not look.
func (r *deadReader) sum() {
	switch n := r.rows - 1; {
	case r.head.Type == record.String, r.meta.Size == sizeLost:
	case r.meta.Size == codec.SizeUnknown:
		r.tell(bytes.Clone(r.head.Key), r.head.Type, fmt.Sprintf("its META row does not say how many elements it had; %d are still on disk", n))
	case r.meta.Size != n:
		r.tell(bytes.Clone(r.head.Key), r.head.Type, fmt.Sprintf("%d of its %d elements are still on disk", n, r.meta.Size))
	}
}
