//go:build !rocksdb

package catalog

import "kvferry/store"

// fallback returns nil: this build does not include RocksDB.
func fallback() store.Opener { return nil }
