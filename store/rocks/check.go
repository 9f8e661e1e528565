package rocks

import (
	"context"
	"errors"

	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/sst"
)

var _ store.BlockChecker = (*database)(nil)

// CheckBlocks verifies the checksums of the blocks that reading rows does not touch or does not need, and the checksums
// of whole files. Damage in such a block loses no rows: RocksDB and LevelDB look up keys without an unreadable filter.
func (db *database) CheckBlocks(ctx context.Context) error {
	sums := checksums{db: db, unknown: map[string]bool{}}
	var room []byte
	for _, ks := range db.spaces {
		for _, t := range ks.Tables {
			if err := ctx.Err(); err != nil {
				return err
			}
			if s, ok := t.Source.(*tableSource); ok {
				var err error
				room, err = s.CheckBlocks(room, func(off uint64, err error) {
					f := record.Finding{Kind: record.FindDamagedBlock, Severity: record.Warning, Keyspace: ks.Name(),
						Place: t.Place(off), Detail: err.Error() + "; it holds no rows, and reading them does without it"}
					if errors.Is(err, sst.ErrMissed) {
						f.Severity, f.Detail = record.Error, err.Error()+"; the row is read, but the engine's lookups miss it"
					}
					db.report(f)
				})
				if err == nil && s.claim != nil {
					err = sums.check(ctx, ks, s.file, t.Name, s.claim.Checksum)
				}
				if err != nil {
					return err
				}
			}
		}
		for _, b := range ks.blobs.order {
			if err := ctx.Err(); err != nil {
				return err
			}
			err := b.check()
			if err == nil && b.file != nil {
				err = sums.check(ctx, ks, b.file, b.name, b.meta.Checksum)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}
