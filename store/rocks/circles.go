package rocks

import (
	"context"

	"kvferry/store/rocks/base"
	"kvferry/store/rocks/lsm/circle"
	"kvferry/store/rocks/wal"
)

// findCircles finds the keys among which a comparer is not an order. For RocksDB it reports them: RocksDB picks the
// heights of its memtable nodes at random, so kvferry cannot repeat its result.
func (db *database) findCircles(ctx context.Context) error {
	for _, ks := range db.spaces {
		if ks.circles == nil {
			continue
		}
		if err := ks.circles.Find(ctx); err != nil {
			return err
		}
		if !db.levelDB {
			ks.circles.Tell()
		}
	}
	return nil
}

// replay reads the log entries of a column family again.
func (db *database) replay(ks *family) circle.Replay {
	return func(ctx context.Context, f func(log uint32, off int64, e circle.Entry) error) error {
		w := db.newWALLoader()
		w.again = true
		w.take = func(of *family, e wal.Entry) error {
			if of != ks || e.Kind == base.KindRangeDelete {
				return nil
			}
			return f(w.index, w.off, circle.Entry{Key: e.Key, Kind: e.Kind, Seq: e.Seq, Whole: e.Whole})
		}
		return w.run(ctx)
	}
}
