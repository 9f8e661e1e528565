// Package rocks reads the directories of RocksDB and LevelDB in pure Go; package build writes them.
//
// A directory consists of
//
//	CURRENT          the name of the MANIFEST                                                   manifest
//	MANIFEST-NNNNNN  a log of version edits: column families, tables by level, log numbers     manifest
//	NNNNNN.sst .ldb  tables: sorted rows in checksummed, compressed blocks                     sst
//	NNNNNN.blob      large values, which tables refer to                                        blob_format.go
//	NNNNNN.log       write-ahead logs: write batches that no table holds yet                   wal_batch.go
//
// Packages manifest and sst read files of their kind. They use base (encoding of numbers and keys), blocks (the parts of tables),
// logfile (the records of logs and of the MANIFEST) and files (reads at offsets). Package lsm merges sorted runs into
// rows and sees tables only as walks through blocks. Only this package and build know all of them.
//
// Reading never creates, changes or locks a file. It ignores tables that the MANIFEST does not list, except in a
// salvage without a MANIFEST: see repair.go. Unknown formats are refused by name or number, never skipped.
package rocks
