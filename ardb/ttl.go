package ardb

import (
	"context"

	"kvferry/ardb/codec"
	"kvferry/internal/shared/dataset"
	"kvferry/internal/sys/extsort"
	"kvferry/store"
)

// ttlOptions returns the sort options for rows of LevelDB's TTL index.
func ttlOptions(memory int64, tempDir string) extsort.Options {
	return extsort.Options{Compare: codec.LevelDBComparer().Compare, Memory: memory, TempDir: tempDir}
}

// writeTTL writes the TTL index as one run.
func writeTTL(ctx context.Context, ttl *dataset.RowFiles, b store.Builder, o extsort.Options) error {
	shards := ttl.Shards()
	if len(shards) == 0 {
		return nil
	}
	return ttl.Merge(o, func(rows *extsort.Sorter) error {
		return dataset.WriteRuns(ctx, b, shards[len(shards)-1]+1, rows,
			func(uint64, []byte) (string, uint64) { return defaultCF, 1 })
	})
}

// Weigh samples about n user keys of a namespace. On LevelDB, n grows because shared namespaces share the
// samples.
func (sp *space) Weigh(n, shared int) ([]store.Weighted, error) {
	if sp.Named {
		n *= shared
	}
	samples, err := sp.Part().Sample(n)
	if err != nil {
		return nil, err
	}
	keys := samples[:0]
	for _, w := range samples {
		if off, end, ok := codec.SplitUser(w.Key, sp.Named); ok {
			keys = append(keys, store.Weighted{Key: w.Key[off:end], Bytes: w.Bytes})
		}
	}
	return keys, nil
}
