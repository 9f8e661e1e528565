package rocks

import (
	"context"
	"fmt"
	"io"

	"kvferry/internal/sys/disk"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/logfile"
	"kvferry/store/rocks/lsm"
)

// Size returns the bytes of its tables, blob files and log entries.
func (ks *family) Size() int64 {
	n := ks.Keyspace.Size()
	if ks.blobs != nil {
		for _, b := range ks.blobs.order {
			if b.file != nil {
				n += b.file.Size
			}
		}
	}
	return n
}

// remoteShare is the share of the keys that are sampled in an object store, where each takes a request: one of so many.
const remoteShare = 4

// Sample returns keys with the bytes between them. The bytes of blob files are spread over the keys in proportion to
// those in tables.
func (ks *family) Sample(n int) ([]store.Weighted, error) {
	if disk.IsMounted(ks.st.dir) {
		n = (n + remoteShare - 1) / remoteShare
	}
	out, err := ks.Keyspace.Sample(n)
	var inTables, all float64
	for i := range out {
		inTables += float64(out[i].Bytes)
	}
	if all = inTables + float64(ks.Size()-ks.Keyspace.Size()); inTables > 0 && all > inTables {
		for i := range out {
			out[i].Bytes = int64(float64(out[i].Bytes) * (all / inTables))
		}
	}
	return out, err
}

// Unordered calls f with every entry of the column family in physical order, table by table and log by log. It reports
// and skips damage; see resync for logs.
func (ks *family) Unordered(f func(*store.Entry) error) error {
	if err := ks.ScanTables(f); err != nil {
		return err
	}
	for _, l := range ks.st.logs {
		if err := ks.scanLog(l, f); err != nil {
			return err
		}
	}
	return nil
}

// scanLog reads one log and continues after damage.
func (ks *family) scanLog(l *logFile, f func(*store.Entry) error) error {
	if !ks.reads(l) {
		return nil
	}
	r, done, err := l.open(context.Background()) // f ends it
	if err != nil {
		return err
	}
	defer done()
	var stop error // of f
	take := func(e *store.Entry) error {
		stop = f(e)
		return stop
	}
	for over := false; !over; {
		rec, off, err := r.Next()
		if err == io.EOF {
			return nil
		}
		p := record.Place{File: l.name, Off: off, Level: -1}
		if err == nil {
			var b *writeBatch
			if b, err = newBatch(r, rec, off); err == nil {
				err = ks.scanBatch(b, p, take)
			}
		} else {
			over = !resync(r, err)
		}
		if stop != nil {
			return stop
		}
		// Damage that a salvage skipped, and a torn tail, were reported when the logs were loaded.
		if err != nil && err != logfile.ErrTorn && !ks.Env.Salvage {
			ks.Env.Report(record.Finding{Kind: lsm.Newer(record.FindDamagedFile, err), Severity: record.Error,
				Keyspace: ks.Name(), Place: p, Detail: "log record: " + lsm.Reason(err)})
		}
	}
	return nil
}

// scanBatch passes on the entries of a write batch that belong to this column family.
func (ks *family) scanBatch(r *writeBatch, p record.Place, f func(*store.Entry) error) error {
	return r.Decode(func(b logEntry) error {
		if b.Family != ks.id {
			return nil
		}
		p.Seq = b.Seq
		kind, err := lsm.KindOf(base.Trailer(b.Seq, b.Kind))
		if err != nil {
			kind = store.Lost
			if !ks.Env.Salvage {
				ks.lostRow(b.Key, p, err)
			}
		}
		value, err := b.Whole()
		if err != nil {
			return err
		}
		return f(&store.Entry{Key: b.Key, Value: value, Seq: b.Seq, Kind: kind, Place: p})
	})
}

// lostRow reports a row of an unknown kind in a log.
func (ks *family) lostRow(key []byte, p record.Place, err error) {
	ks.Unread(p, 0, err, fmt.Sprintf("%v; the row is missing: key %s", err, record.Quote(key)))
}
