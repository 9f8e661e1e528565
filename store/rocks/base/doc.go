// Package base has what all files of RocksDB and LevelDB share: how numbers and strings are coded, internal keys, and the
// errors of bytes that are not as they should be.
//
// Tables and logs hold internal keys, ordered by user key ascending and then newest first:
//
//	+----------------+-----------------------------------------+
//	| user key       | sequence<<8 | kind (8B, little endian)  |
//	+----------------+-----------------------------------------+
//
// Numbers are little endian or varints of 7 bits a byte, low ones first; strings have their length before them as a
// varint. Checksums called CRC32c are stored masked: rotated right by 15 bits, plus a constant.
package base
