// Package rocks reads and writes the directories of RocksDB and LevelDB in pure Go.
//
// A directory is made of
//
//	CURRENT          the name of the MANIFEST                                                   manifest
//	MANIFEST-NNNNNN  a log of version edits: column families, tables by level, log numbers     manifest
//	NNNNNN.sst .ldb  tables: sorted rows in checksummed, compressed blocks                     sst
//	NNNNNN.blob      large values, which tables refer to                                        blob
//	NNNNNN.log       write-ahead logs: write batches that no table holds yet                   wal
//
// with a package for each sort of file. Below them stand base (how numbers and keys are coded), blocks (what tables are
// made of), logfile (the records of logs and of the MANIFEST) and files (reading at offsets); above them lsm, which merges
// sorted runs into rows and knows tables only as walks through blocks, and lsm/circle, which repeats LevelDB where a
// comparer is no order. This package alone knows all of them.
//
// Reading never creates, changes or locks anything. What the MANIFEST does not name is not read, unless a salvage does
// without it: see repair. What is not understood is
// refused by name or number, never skipped.
package rocks
