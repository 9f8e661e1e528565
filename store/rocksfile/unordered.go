package rocksfile

import (
	"errors"
	"io"

	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/blocks"
	"kvferry/store/rocks/files"
	"kvferry/store/rocks/logfile"
	"kvferry/store/rocks/wal"
)

// Unordered calls f with every entry of the column family, table by table and log by log, as they
// stand. Damage is reported and skipped: a block or a partition of the index at a time in tables, a block in logs,
// a whole table when it cannot be opened or its index cannot be read.
func (ks *keyspace) Unordered(f func(*store.Entry) error) error {
	for _, t := range ks.tables {
		if err := ks.scanTable(t, f); err != nil {
			return err
		}
	}
	for _, l := range ks.st.logs {
		if err := ks.scanLog(l, f); err != nil {
			return err
		}
	}
	return nil
}

// damaged reports damage that is read past.
func (ks *keyspace) damaged(p record.Place, what string) {
	ks.st.report(record.Finding{Kind: record.FindDamagedBlock, Severity: record.Error, Keyspace: ks.name, Place: p, Detail: what})
}

// callbackError marks an error of the caller's function, which ends a salvage.
type callbackError struct{ err error }

func (e *callbackError) Error() string { return e.err.Error() }

// scanTable reads one table in physical order.
func (ks *keyspace) scanTable(t *table, f func(*store.Entry) error) error {
	info, err := t.load()
	if err != nil {
		ks.lost(t, err)
		return nil
	}
	if t.tombErr != nil {
		ks.undeleted(t, t.tombErr)
	}
	for i := range info.tombstones {
		d := &info.tombstones[i]
		e := store.Entry{Key: d.start, Value: d.end, Seq: d.seq, Kind: store.RangeDelete, Place: d.place}
		if err := f(&e); err != nil {
			return err
		}
	}
	s := &tableScan{ks: ks, t: t, f: f}
	s.idx.pass = func(h blocks.Handle, sep []byte, err error) bool {
		ks.skipped(t, h, sep, err)
		return true
	}
	s.damaged = func(h blocks.Handle, err error) error {
		ks.skipped(t, h, s.idx.entry().sep, t.fail(int64(h.Off), fieldBlock, err))
		return nil
	}
	defer s.close()
	if err := s.run(); err != nil {
		var c *callbackError
		if errors.As(err, &c) {
			return c.err
		}
		if t.skips.first(info.index.Off) {
			ks.damaged(t.place(info.index.Off), err.Error())
		}
	}
	return nil
}

// tableScan walks the blocks of a table.
type tableScan struct {
	ks    *keyspace
	t     *table
	f     func(*store.Entry) error
	idx   tableIndex
	win   files.Window
	plain []byte
	block blocks.Entries
	// damaged is called for a block that cannot be read; the scan ends with its error.
	damaged func(h blocks.Handle, err error) error
}

func (s *tableScan) close() {
	s.idx.close()
	s.win.Close()
}

// run reads all blocks; its error is the index's or the callback's.
func (s *tableScan) run() error {
	if err := s.idx.open(s.t); err != nil {
		return err
	}
	s.win.All = &s.ks.st.windows
	s.win.Open(s.t.file)
	for {
		ok, err := s.idx.next()
		if err != nil {
			return err
		}
		if !ok {
			return nil
		}
		h := s.idx.entry().handle
		err = s.blockAt(h)
		var c *callbackError
		if errors.As(err, &c) {
			return err
		}
		if err != nil {
			err = s.damaged(h, err)
		}
		if err != nil {
			return err
		}
	}
}

// blockAt hands over the entries of one block.
func (s *tableScan) blockAt(h blocks.Handle) error {
	var b []byte
	var err error
	if b, s.plain, err = s.t.loadBlock(&s.win, h, s.plain); err != nil {
		return err
	}
	bl, err := blocks.Parse(b)
	if err != nil {
		return err
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
		if s.t.info.useFixed {
			tr = base.Trailer(s.t.info.fixedSeq, byte(tr))
		}
		kind, err := kindOf(tr)
		if err != nil {
			return err
		}
		e := store.Entry{Key: user, Value: s.block.Val, Seq: tr >> 8, Kind: kind, Place: s.t.place(h.Off)}
		e.Place.Seq = e.Seq
		if err := s.f(&e); err != nil {
			return &callbackError{err}
		}
	}
}

// scanLog reads one log, going on with the next block after damage.
func (ks *keyspace) scanLog(l *logFile, f func(*store.Entry) error) error {
	if !ks.reads(l) {
		return nil
	}
	r, done, err := l.open()
	if err != nil {
		return err
	}
	defer done()
	r.Salvage = true
	for {
		rec, off, err := r.Next()
		if err == io.EOF {
			return nil
		}
		p := record.Place{File: l.name, Off: off, Level: -1}
		if err == nil {
			var b *wal.Batch
			if b, err = wal.NewBatch(r, rec, off); err == nil {
				err = ks.scanBatch(b, p, f)
			}
		} else if !errors.Is(err, logfile.ErrWithin) && !errors.Is(err, logfile.ErrPacked) {
			r.Resync()
		}
		var c *callbackError
		if errors.As(err, &c) {
			return c.err
		}
		if err != nil && err != logfile.ErrTorn { // a torn tail was reported when the logs were read
			ks.st.report(record.Finding{Kind: record.FindDamagedFile, Severity: record.Error, Keyspace: ks.name, Place: p,
				Detail: "log record: " + reason(err)})
		}
	}
}

// scanBatch hands over the entries of a write batch that are of this column family.
func (ks *keyspace) scanBatch(r *wal.Batch, p record.Place, f func(*store.Entry) error) error {
	return r.Decode(func(b wal.Entry) error {
		if b.Family != ks.id {
			return nil
		}
		kind, err := kindOf(base.Trailer(b.Seq, b.Kind))
		if err != nil {
			return err
		}
		value, err := b.Whole()
		if err != nil {
			return err
		}
		p.Seq = b.Seq
		if err := f(&store.Entry{Key: b.Key, Value: value, Seq: b.Seq, Kind: kind, Place: p}); err != nil {
			return &callbackError{err}
		}
		return nil
	})
}
