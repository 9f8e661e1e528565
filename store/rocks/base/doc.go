// Package base provides the common parts of all RocksDB and LevelDB files: encodings of numbers and strings, internal
// keys, and errors for damaged bytes.
//
// Tables and logs hold internal keys, ordered by user key ascending and then newest first:
//
//	+----------------+-----------------------------------------+
//	| user key       | sequence<<8 | kind (8B, little endian)  |
//	+----------------+-----------------------------------------+
//
// Numbers are little endian or varints of 7 bits a byte, low bits first; strings are prefixed with their length as a
// varint. Checksums called CRC32c are stored masked: rotated right by 15 bits, plus a constant.
package base
