// Package cleveldb opens, changes and repairs LevelDB databases with the C++ library, through its C
// interface. It is an oracle of the tests and exists only with the build tag leveldb, which needs cgo
// and LevelDB 1.20 or newer (Debian: libleveldb-dev).
package cleveldb
