package ardb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"kvferry/ardb/codec"
	"kvferry/format"
	"kvferry/internal/shared/deleted"
	"kvferry/record"
)

// DeadRecords yields records as they were right before their META row was deleted, from older entries hidden
// by tombstones. DEL, FLUSHDB on LevelDB and the collection of expired keys delete the META row first and then
// the elements, or everything with one range tombstone. So the state of the other rows at that sequence number
// is the record.
func (s *source) DeadRecords(ctx context.Context, db string, t record.TypeSet, span format.Span, e *format.Env,
	tell func(key []byte, t record.Type, what string)) (record.Reader, error) {

	if s.kind == kindLMDB {
		return nil, fmt.Errorf("%s: LMDB keeps no deleted rows: it rewrites its pages without them", s.dir)
	}
	sp, err := s.deadSpace(db)
	if err != nil {
		return nil, err
	}
	quiet := *e
	quiet.Ledger, quiet.Report, quiet.Deep = nil, nil, false
	rows := pastRows(sp)
	past := &space{DB: sp.DB, Name: sp.Name, Label: sp.Label, Keyspace: rows.Past(ctx), NS: sp.NS, Named: sp.Named,
		Upper: sp.Upper}
	lo, hi := sp.Bounds(span)
	g, err := rows.Graves(ctx, lo, hi)
	if err != nil {
		return nil, err
	}
	p := &pass{src: s, sp: past, types: t, env: &quiet, it: g, now: e.Now.UnixMilli()}
	p.head.DB = db
	return record.Gather(&deadReader{pass: p, graves: g, tell: tell}, nil), nil
}

// DeadDatabases returns the namespaces; on LevelDB these include namespaces with only deleted rows.
func (s *source) DeadDatabases() ([]string, error) {
	buried, err := s.buried()
	dbs := s.Databases()
	for _, sp := range buried {
		dbs = append(dbs, sp.DB)
	}
	slices.Sort(dbs)
	return dbs, err
}

// buried returns the namespaces of a LevelDB database that have no visible rows.
func (s *source) buried() ([]*space, error) {
	if s.kind != kindLevelDB {
		return nil, nil
	}
	all, err := buriedSpaces(s.rest[0].Keyspace)
	return slices.DeleteFunc(all, func(sp *space) bool {
		_, err := s.space(sp.DB)
		return err == nil
	}), err
}

// deadSpace finds a namespace among all with rows, deleted or not.
func (s *source) deadSpace(db string) (*space, error) {
	sp, err := s.space(db)
	if err == nil {
		return sp, nil
	}
	buried, berr := s.buried()
	for _, sp := range buried {
		if sp.DB == db {
			return sp, nil
		}
	}
	return nil, errors.Join(err, berr)
}

// deadReader is a pass over graves that reports which properties of their records are unknown.
type deadReader struct {
	*pass
	graves *deleted.Graves
	tell   func(key []byte, t record.Type, what string)
}

// Next moves to the next record.
func (r *deadReader) Next() (*record.Header, error) {
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

// End ends the record and tells what is missing from it.
func (r *deadReader) End(rec *record.Record) error {
	err := r.pass.End(rec)
	r.sum()
	return err
}

// sum compares the rows of the record that ended with META's size. The sizes of hashes and sets may be
// unknown, and too large after deletes without a lookup.
func (r *deadReader) sum() {
	switch n := r.rows - 1; {
	case r.head.Type == record.String, r.meta.Size == sizeLost:
	case r.meta.Size == codec.SizeUnknown:
		r.tell(bytes.Clone(r.head.Key), r.head.Type,
			fmt.Sprintf("its META row has no element count; %s elements are still on disk", record.Number(n)))
	case r.meta.Size != n:
		r.tell(bytes.Clone(r.head.Key), r.head.Type,
			fmt.Sprintf("%s of its %s elements are still on disk", record.Number(n), record.Number(r.meta.Size)))
	}
}
