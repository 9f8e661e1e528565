// Package logfile reads the records that write-ahead logs and the MANIFEST are made of.
//
// A log (WAL or MANIFEST) is a sequence of 32 KiB blocks of fragments; a fragment never crosses a
// block, a record is one full fragment or first, middle…, last. Blocks end in up to 6 zero bytes.
//
//	+------------+-------------+-----------+ +-----------------+ +---------+
//	| CRC32c (4) | length (2)  | type (1)  | | log number (4)  | | payload |
//	+------------+-------------+-----------+ +-----------------+ +---------+
//
// Little endian. The checksum is masked and covers everything after the length. Fragments with a log number (the low 32
// bits of the file number) occur in recycled files: a fragment with another number is a leftover that ends the log, and
// blocks end in up to 10 zero bytes.
//
//	type        is                                      since           handling
//	1 to 4      full, first, middle, last                               read
//	5 to 8      the same with a log number              RocksDB 4.4     read
//	9           codec of all records (4)                RocksDB 7.4     read: none (0), zstd (7); others are refused
//	10, 11      sizes of user-defined timestamps        RocksDB 8.3     refused
//	130, 131    number, size, last sequence number of   RocksDB 10.1    ignored
//	            the log before
//	128 and up  what may be ignored                     RocksDB 10.1    ignored
//
// Odd types from 11 on carry a log number.
package logfile
