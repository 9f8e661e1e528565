package rocks

import (
	"errors"
	"fmt"

	"kvferry/record"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/logfile"
	"kvferry/store/rocks/lsm"
)

// A salvage reads logs like the repair of RocksDB and LevelDB: an unreadable record loses at most the rest of its
// block, and reading continues after it. A record whose length leads to a whole record loses only itself. So the result
// depends only on the files. Sequence numbers keep the order of writes across the gap.

// recordError handles an unreadable record: a salvage continues after it. over means that it cannot.
func (w *walLoader) recordError(r *logfile.Reader, off int64, err error, last bool) (over bool, _ error) {
	if err == logfile.ErrTorn && last {
		err = errNotCut
	}
	over, next := !resync(r, err), r.At()
	if over {
		next = w.log.file.Size
	}
	if err := w.passes(off, next-off, base.Corrupt(w.log.file.Path, off, "log record", err),
		"everything after it in this log is missing"); err != nil {
		return true, err
	}
	return over, nil
}

// passes returns an error of a log, or nil if a salvage reads past it, and past n bytes if that is known. unread describes
// the loss for an unknown form.
func (w *walLoader) passes(off, n int64, err error, unread string) error {
	if !w.db.opts.Salvage || !base.IsDamage(err) {
		return err
	}
	if w.again {
		return nil
	}
	if w.db.logErr == nil {
		w.db.logErr = err
	}
	from := "the writes up to the next record that can be read are missing"
	if w.log.seqs.Any() {
		from = fmt.Sprintf("the writes after sequence number %d, up to the next record that can be read, are missing",
			w.log.seqs.Last)
	}
	if errors.Is(err, base.ErrUnsupported) {
		from = unread
	}
	w.db.report(record.Finding{Kind: lsm.Newer(record.FindDamagedFile, err), Severity: record.Error,
		Place: record.Place{File: w.log.name, Off: off, Level: -1}, Unread: min(n, w.log.file.Size-off),
		Detail: fmt.Sprintf("%s; %s: rows that they deleted or changed keep their old state", lsm.Reason(err), from)})
	return nil
}

// unnamed reports whether a rebuilt version may lack a column family. It adds a finding, once, that the entries of the
// family are not read.
func (w *walLoader) unnamed(id uint32) bool {
	if w.db.version.Dropped(id) {
		return false
	}
	if !w.again && !w.noFamily[id] {
		w.noFamily[id] = true
		w.db.report(record.Finding{Kind: record.FindDamagedFile, Severity: record.Error,
			Place:  record.Place{File: w.log.name, Off: w.off, Level: -1},
			Detail: fmt.Sprintf("writes of column family %d, which no table, OPTIONS or MANIFEST names, are missing", id)})
	}
	return true
}
