// Package ardb reads and writes the databases of Ardb 0.9 and 0.10, on RocksDB, LevelDB and LMDB (read
// only).
//
// Keyspaces are namespaces: a column family on RocksDB, a named database on LMDB; on LevelDB the namespace is the first
// part of every key. All rows of a Redis key lie side by side, META first, so a record is read as it comes, and written
// as one run: what META has to know of the elements makes the writer hold them back. Package codec draws the rows,
// package merge has the merge operator, package engine knows where namespaces lie.
package ardb
