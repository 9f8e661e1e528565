// Package blob reads the blob files of RocksDB (BlobDB of 6.18 and later): large values in separate files, NNNNNN.blob,
// in the order of a flush or compaction. In place of such a value a table has a blob index, an entry of its own kind.
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
// The middle three are varints; offset is the offset of the value in the file, size its stored size. Kinds:
//
//	kind                  treatment
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
// The key is the user key. The value is compressed with the codec of the header, like blocks of format_version 2 and
// later: prefixed with its decompressed size, except snappy.
//
// # Footer
//
//	+-----------+-----------+-------------------+---------+
//	| magic (4) | count (8) | expiry range (16) | CRC (4) |
//	+-----------+-----------+-------------------+---------+
//
// All little endian; checksums are CRC32c, masked as in logs. Version is 1. Flag 1 marks files of the stacked BlobDB
// whose values expire, which are refused; without it expiry ranges are zero. A file without a footer was not finished;
// no MANIFEST names it.
package blob
