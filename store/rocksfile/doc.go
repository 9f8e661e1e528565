// Package rocksfile reads and writes the directories of RocksDB and LevelDB in pure Go.
//
// A directory is made of
//
//	CURRENT          the name of the MANIFEST
//	MANIFEST-NNNNNN  a log of version edits: column families, tables by level, log numbers
//	NNNNNN.sst .ldb  tables: sorted rows in checksummed, compressed blocks
//	NNNNNN.log       write-ahead logs: write batches that no table holds yet
//
// Reading never creates, changes or locks anything there. What the MANIFEST does not name is not
// read. What this package does not understand is refused by name or number, never skipped.
//
// # Internal keys
//
// Tables hold internal keys, ordered by user key ascending and then newest first:
//
//	+----------------+-----------------------------------------+
//	| user key       | sequence<<8 | kind (8B, little endian)  |
//	+----------------+-----------------------------------------+
//
// # How rows are read
//
// Each level-0 table, each deeper level and the rows of the logs form a run: a sequence of entries
// in internal key order. A cursor walks a run, checking its order; a loser tree merges cursors; rows
// keeps what a scan at the last sequence would return and counts all the rest.
//
// With Options.Salvage what cannot be read of a table is passed over: see salvage.go.
//
// Where a LevelDB comparer is no order (store.Wrapping) and the logs hold such keys, the engine's memtable
// and iterator are repeated instead: see circle.go.
package rocksfile
