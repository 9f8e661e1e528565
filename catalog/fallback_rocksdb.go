//go:build rocksdb

package catalog

import (
	"kvferry/store"
	"kvferry/store/grocks"
)

// fallback is the reader that --store rocksdb takes: RocksDB itself.
func fallback() store.Opener { return grocks.Open }
