// Package state keeps the keys of a Redis server while commands are replayed into it. It keeps everything on
// disk, in a temporary Pebble store, so its memory does not grow with the data.
//
//	aof -> commands -> state
//
//	state     State: the keys of databases; Value: the content of a key and its methods by type; Put: a whole record;
//	          Records: all records, in order
//	          Server: shared by commands, with its clock, arguments and replies
//	commands  all commands by name
//
// # Rows
//
// A key is a row of its database; the elements of a collection are rows of an id that is never reused. So
// deleting, renaming, moving or overwriting a key changes a single row: the rows of its old id become
// unreachable garbage. A database is a number as well: SWAPDB swaps two numbers, FLUSHDB takes a new one.
//
//	+---+-----------------+----------+    +----------+--------------+-----------------+
//	| m | database (BE32) | key      | -> | type (1) | expiry (LE64)| by type         |
//	+---+-----------------+----------+    +----------+--------------+-----------------+
//
//	string   0 ‖ value, or 1 ‖ id ‖ length: the value lies in chunks
//	list     id ‖ count ‖ position of the first element
//	stream   id ‖ count ‖ last id ‖ greatest deleted id ‖ entries added
//	others   id ‖ count
//
//	+---+-----------+----------------------------+
//	| d | id (BE64) | by type                    |
//	+---+-----------+----------------------------+
//
//	string   chunk (BE64)                   -> bytes
//	hash     field                          -> expiry (LE64) ‖ value
//	list     position (BE64)                -> element
//	set      member                         ->
//	zset     m ‖ member                     -> score (LE64 of its bits)
//	         s ‖ score, ordered ‖ member    ->
//	stream   e ‖ id (16)                    -> fields and values, packed
//	         g ‖ group                      -> number ‖ last id ‖ entries read
//	         c ‖ number ‖ consumer          -> seen ‖ active
//	         p ‖ number ‖ id (16)           -> delivered ‖ deliveries ‖ 0 ‖ consumer, or 1: of none
//	other    name of the type               -> bytes
//
// The row of a key whose value is lost is 0x40 ‖ reason; 0x41 ‖ reason if the key may not exist (lost.go).
//
// 0x20 is added to the type if there is an expiry. 0x80 is added if the count of a set or hash is only an upper bound; the
// lower bound follows it. In rows of keys, ids and counts are varints; other numbers without a byte order are BE64. A large value is split into pieces (large.go).
package state
