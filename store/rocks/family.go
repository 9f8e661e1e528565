package rocks

import (
	"context"
	"fmt"
	"io"

	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/logfile"
	"kvferry/store/rocks/lsm"
	"kvferry/store/rocks/lsm/circle"
	"kvferry/store/rocks/wal"
)

// family is a column family: a store.Keyspace.
type family struct {
	*lsm.Keyspace
	st        *database
	id        uint32
	logNumber uint64
	flushed   uint64 // the largest sequence number that tables have of what was written to logs; see lastFlushed
	blobs     *blobFiles
	holders   *holders    // nil until a table is found that the MANIFEST does not name
	circles   *circle.Set // nil when the comparer is an order, or what the engine makes of it cannot be told
}

// Size is the bytes of its tables and blob files, and of its entries in the logs.
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

// Sample returns keys with the bytes between them. What blob files have is spread over the keys as the bytes of tables are.
func (ks *family) Sample(n int) ([]store.Weighted, error) {
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

// Rows yields the newest visible row of each key in [lo, hi).
func (ks *family) Rows(lo, hi []byte) (store.Iterator, error) {
	if ks.circles.Any() {
		return ks.circles.Rows(lo, hi)
	}
	return ks.Keyspace.Rows(lo, hi)
}

// Entries yields every physical entry in [lo, hi).
func (ks *family) Entries(lo, hi []byte) (store.EntryIterator, error) {
	if ks.circles.Any() {
		return ks.circles.Entries(lo, hi)
	}
	return ks.Keyspace.Entries(lo, hi)
}

// Unordered calls f with every entry of the column family, table by table and log by log, as they stand. Damage is
// reported and skipped: in logs a block at a time.
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

// scanLog reads one log, going on with the next block after damage.
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
			var b *wal.Batch
			if b, err = wal.NewBatch(r, rec, off); err == nil {
				err = ks.scanBatch(b, p, take)
			}
		} else {
			over = !resync(r, err)
		}
		if stop != nil {
			return stop
		}
		// What a salvage passed over, and a torn tail, was reported when the logs were read.
		if err != nil && err != logfile.ErrTorn && !ks.Env.Salvage {
			ks.Env.Report(record.Finding{Kind: lsm.Newer(record.FindDamagedFile, err), Severity: record.Error, Keyspace: ks.Name(), Place: p,
				Detail: "log record: " + lsm.Reason(err)})
		}
	}
	return nil
}

// scanBatch hands over the entries of a write batch that are of this column family.
func (ks *family) scanBatch(r *wal.Batch, p record.Place, f func(*store.Entry) error) error {
	return r.Decode(func(b wal.Entry) error {
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

// lostRow reports a row of a log that is of a kind that is not known.
func (ks *family) lostRow(key []byte, p record.Place, err error) {
	ks.Unread(p, err, fmt.Sprintf("%v; the row is missing: key %s", err, record.Quote(key)))
}
