// Package ssdb reads and writes the databases of SSDB 1.6.8 to 1.9.9, which are LevelDB directories.
//
//	DIR/data   all rows: strings, hashes, sorted sets, queues, expiries, the binlog
//	DIR/meta   the server's state of clusters and masters; rows of the same form, no records
//
// The first byte of a key is the kind of its row. Integers in keys are big-endian, 8-byte integers in values little-endian.
//
//	01  seq(8)                          -> seq(8) type(1) cmd(1) key   binlog
//	k   key                             -> value                       string
//	H   name                            -> int64                       size of a hash
//	h   len(1) name '=' field           -> value                       field of a hash
//	Z   name                            -> int64                       size of a sorted set
//	s   len(1) name len(1) member       -> score, decimal              member of a sorted set
//	z   len(1) name sign score(8) '=' member -> nothing                the same, by score
//	Q   name                            -> int64                       size of a queue
//	q   len(1) name seq(8)              -> item; bounds for seq 2, 3   item of a queue
//
// Expiries are a sorted set, ExpireList: its members are keys of strings, its scores times in milliseconds. Each type
// has its own namespace. Sizes are only counters: the server serves elements without them.
package ssdb
