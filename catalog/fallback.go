//go:build !rocksdb

package catalog

import "kvferry/store"

// fallback is the reader that --store rocksdb takes: none in a build without the library.
func fallback() store.Opener { return nil }
