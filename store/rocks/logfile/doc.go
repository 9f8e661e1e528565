// Package logfile reads the records that write-ahead logs and the MANIFEST are made of.
//
// A log (WAL or MANIFEST) is a sequence of 32 KiB blocks of fragments; a fragment never crosses a
// block, a record is one full fragment or first, middle…, last. Blocks end in up to 6 zero bytes.
//
//	+------------+-------------+-----------+ +-----------------+ +---------+
//	| CRC32c (4) | length (2)  | type (1)  | | log number (4)  | | payload |
//	+------------+-------------+-----------+ +-----------------+ +---------+
//
// Little endian. The checksum is masked and covers everything after the length. The log number, the
// low 32 bits of the file's, is there in types 5 to 8 only: such files may be written over older
// ones, and a fragment of another number is a leftover that ends the log.
package logfile
