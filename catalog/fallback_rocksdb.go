//go:build rocksdb

package catalog

import (
	"kvferry/store"
	"kvferry/store/grocks"
)

// fallback returns the opener of RocksDB itself, for --store rocksdb.
func fallback() store.Opener { return grocks.Open }
