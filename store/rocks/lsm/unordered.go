package lsm

import (
	"kvferry/internal/sys/disk"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/blocks"
)

// ScanTables calls f with every entry of the tables, in physical order. It reports and skips damage: a block, an index
// partition or, if a table or its index cannot be opened, the whole table. An error of access ends the scan, because it
// is not about the table.
func (ks *Keyspace) ScanTables(f func(*store.Entry) error) error {
	for _, t := range ks.Tables {
		if err := ks.scanTable(t, f); err != nil {
			return err
		}
	}
	return nil
}

// Damaged reports damage that was skipped. read means that the rows were read nevertheless.
func (ks *Keyspace) Damaged(p record.Place, unread int64, read bool, what string) {
	ks.Env.Report(record.Finding{Kind: record.FindDamagedBlock, Severity: record.Error, Keyspace: ks.name, Place: p, Detail: what,
		Unread: unread, Read: read})
}

// scanTable reads one table in physical order.
func (ks *Keyspace) scanTable(t *Table, f func(*store.Entry) error) error {
	info, err := t.Load()
	switch {
	case disk.IsAccess(err):
		return err
	case err != nil:
		ks.lost(t, err)
		return nil
	case disk.IsAccess(info.TombErr):
		return info.TombErr
	}
	if info.TombErr != nil {
		ks.undeleted(t, info.TombErr)
	}
	for i := range info.Tombstones {
		d := &info.Tombstones[i]
		e := store.Entry{Key: d.Start, Value: d.End, Seq: d.Seq, Kind: store.RangeDelete, Place: d.place}
		if err := f(&e); err != nil {
			return err
		}
	}
	s := &tableScan{t: t, f: f, ks: ks}
	s.pass = func(h blocks.Handle, sep []byte, err error) bool {
		if disk.IsAccess(err) {
			return false
		}
		ks.skipped(t, h, sep, err)
		return true
	}
	s.damaged = func(h blocks.Handle, err error) error {
		if disk.IsAccess(err) {
			return err
		}
		ks.skipped(t, h, s.walk.Separator(), t.failBlock(h, err))
		return nil
	}
	if err := s.run(); err != nil {
		if s.stop != nil || disk.IsAccess(err) {
			return err
		}
		if isForeign(err) {
			ks.lost(t, err)
		} else if t.skips.First(info.Index.Off) {
			ks.Damaged(t.Place(info.Index.Off), 0, false, err.Error())
		}
	}
	return nil
}

// Scan calls f with the entries of a table in physical order, and damaged for each unreadable block. It ends with the
// first error of f, damaged or the index.
func (t *Table) Scan(f func(*store.Entry) error, damaged func(h blocks.Handle, err error) error) error {
	s := &tableScan{t: t, f: f, damaged: damaged}
	return s.run()
}

// tableScan walks the blocks of a table.
type tableScan struct {
	t     *Table
	f     func(*store.Entry) error
	stop  error // of f, or of access: it ends even a salvage
	walk  blocks.Walk
	block blocks.Entries
	// outside reads blob values for ks; if ks is nil, entries have their blob indexes as values.
	ks      *Keyspace
	outside outside
	// pass reports whether the scan continues after an unreadable part of the index; nil ends it with the error.
	pass func(h blocks.Handle, sep []byte, err error) bool
	// damaged is called for an unreadable block; its error ends the scan.
	damaged func(h blocks.Handle, err error) error
}

// run reads all blocks; its error is the index's or the callback's.
func (s *tableScan) run() error {
	if err := s.t.walk(&s.walk, s.pass); err != nil {
		return err
	}
	defer s.walk.Close()
	for {
		ok, err := s.walk.Next()
		if err != nil || !ok {
			return err
		}
		if err = s.blockAt(); err != nil && s.stop == nil {
			err = s.damaged(s.walk.Handle(), err)
		}
		if err != nil {
			return err
		}
	}
}

// outsideValue replaces a blob index with its value.
func (s *tableScan) outsideValue(e *store.Entry, tr uint64) error {
	if s.ks == nil || byte(tr) != base.KindBlobIndex {
		return nil
	}
	v, err := s.outside.at(s.ks, e.Key, e.Value, e.Place)
	switch {
	case err == nil:
		e.Value = v
		return nil
	case base.IsDamage(err):
		s.ks.Damaged(e.Place, 0, false, Reason(err)+"; the row is missing")
	case err != ErrLostValue:
		s.stop = err
		return err
	}
	e.Kind, e.Value = store.Lost, nil
	return nil
}

// blockAt calls f with the entries of one block.
func (s *tableScan) blockAt() error {
	bl, err := s.walk.Load()
	if err != nil {
		return err
	}
	if !s.walk.Counted() {
		if err := s.walk.Count(nil, nil); err != nil {
			return err
		}
	}
	s.block = blocks.Entries{Data: bl.Entries, Key: s.block.Key[:0]}
	for {
		ok, err := s.block.Next()
		if err != nil || !ok {
			return err
		}
		if len(s.block.Key) < base.TrailerLen {
			return blocks.ErrEntry
		}
		user, tr := base.SplitKey(s.block.Key)
		if s.t.info.UseFixed {
			tr = base.Trailer(s.t.info.FixedSeq, byte(tr))
		}
		kind, err := KindOf(tr)
		if err != nil {
			h := s.walk.Handle()
			err = s.t.Fail(int64(h.Off), "kind", err)
			if s.ks == nil || !s.ks.rowOfKind(s.t, s.block.Key, s.t.Place(h.Off), err) {
				return err
			}
			kind = store.Lost
		}
		e := store.Entry{Key: user, Value: s.block.Val, Seq: tr >> 8, Kind: kind, Place: s.t.Place(s.walk.Handle().Off)}
		e.Place.Seq = e.Seq
		if err := s.outsideValue(&e, tr); err != nil {
			return err
		}
		if s.stop = s.f(&e); s.stop != nil {
			return s.stop
		}
	}
}
