// Package grocks reads RocksDB directories through RocksDB itself. It is built with the tag
// rocksdb and needs cgo, a C++ compiler and librocksdb (Debian: librocksdb-dev, which brings the
// compression libraries that grocksdb links: libsnappy-dev, liblz4-dev, libzstd-dev, zlib1g-dev):
//
//	CGO_ENABLED=1 go test -tags rocksdb ./store/grocks/
//
// It has two uses: the oracle against which store/rocks is tested in both directions, and the fallback for a source
// that store/rocks refuses. Databases are opened read only, so RocksDB takes no lock and does not write to them; its
// LOG goes to a temporary directory. It sees visible rows only: no superseded entries, no tombstones.
package grocks
