// Package blob reads the blob files of RocksDB (BlobDB of 6.18 and later): large values that stand in files of their
// own, NNNNNN.blob, in the order in which a flush or compaction wrote them. A table has a blob index in the place of
// such a value: an entry of its own kind.
//
//	+-------------+---------------------------------+-------------+
//	| header (30B)| records                         | footer (32B)|
//	+-------------+---------------------------------+-------------+
//
// # Blob index
//
//	+----------+------------------+-------------+-----------+-----------+
//	| kind (1) | file number      | offset      | size      | codec (1) |
//	+----------+------------------+-------------+-----------+-----------+
//
// The three in the middle are varints; offset is that of the value in the file, size is as stored. What else there is:
//
//	kind                  what comes of it
//	0 inlined with TTL    refused: of the older, stacked BlobDB (expiry, value)
//	1 plain               read
//	2 plain with TTL      refused: of the stacked BlobDB
//
// # Header
//
//	+-----------+-------------+-------------------+-----------+-----------+-------------------+
//	| magic (4) | version (4) | column family (4) | flags (1) | codec (1) | expiry range (16) |
//	+-----------+-------------+-------------------+-----------+-----------+-------------------+
//
// # Record
//
//	+----------------+------------------+------------+---------------------+-----------------+-----+-------+
//	| key length (8) | value length (8) | expiry (8) | CRC of the three (4)| CRC of data (4) | key | value |
//	+----------------+------------------+------------+---------------------+-----------------+-----+-------+
//
// The key is the user key. The value is compressed with the codec of the header, as blocks of tables of
// format_version 2 and later are: behind its decompressed size, but for snappy.
//
// # Footer
//
//	+-----------+-----------+-------------------+---------+
//	| magic (4) | count (8) | expiry range (16) | CRC (4) |
//	+-----------+-----------+-------------------+---------+
//
// All little endian; checksums are CRC32c, masked as in logs. Version is 1. Flag 1 says that values expire, and
// expiry ranges are zero without: files of the stacked BlobDB, which are refused. A file without footer is one whose
// writer died; no MANIFEST names it.
package blob
