package ardb

import (
	"context"

	"kvferry/ardb/codec"
	"kvferry/ardb/engine"
	"kvferry/internal/extsort"
)

// On LevelDB the server collects expired keys by an index that is ordered by expiry, across all namespaces: its rows are
// kept in files until all shards are there.
//
//	ttl/000001.rows   of shard 1
const ttlDir = "ttl"

// ttlIndex is the namespace of the index, ttlValue the value of all its rows.
var ttlIndex, ttlValue = codec.AppendText(nil, []byte(codec.TTLNamespace)), []byte{byte(codec.KindTTL), 0}

// ttlOptions says how rows of the index are sorted.
func (t *target) ttlOptions(memory int64) extsort.Options {
	return extsort.Options{Compare: codec.LevelDBComparer().Compare, Memory: memory, TempDir: t.options.TempDir}
}

// writeTTL writes the TTL index as one run.
func (t *target) writeTTL(ctx context.Context) error {
	shards := t.ttl.Shards()
	if len(shards) == 0 {
		return nil
	}
	return t.ttl.Merge(t.ttlOptions(t.options.Memory), func(rows *extsort.Sorter) error {
		run, err := t.builder.Run(engine.DefaultCF, shards[len(shards)-1]+1, 1)
		if err != nil {
			return err
		}
		n := 0
		err = rows.Each(func(_ uint64, key, value []byte) error {
			if n++; n%1024 == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			return run.Append(key, value)
		})
		if err != nil {
			run.Abort()
			return err
		}
		return run.Close()
	})
}
