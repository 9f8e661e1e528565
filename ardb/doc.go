// Package ardb reads and writes the databases of Ardb 0.9 and 0.10, on RocksDB, LevelDB and LMDB (read only).
//
// Keyspaces are namespaces: a column family on RocksDB, a named database on LMDB; on LevelDB the namespace is
// the first part of every key. All rows of a Redis key are adjacent, META first, so records are read in one
// pass and written as one run. META summarizes the elements, so the writer buffers them. Package codec draws
// the rows.
package ardb
