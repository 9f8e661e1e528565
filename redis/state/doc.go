// Package state keeps the keys of a Redis server while commands are replayed into it. It holds everything on disk, in a
// Pebble store of its own, so its memory does not grow with the data.
//
//	aof -> commands -> streams -> server -> state
//
//	state     State: the keys of databases; Value: what a key holds, with what its type can do; Put: a record as it is;
//	          Records: all that there is, in order
//	server    what commands share: the server that they change, its clock, arguments and answers
//	bits      the commands on bits of strings, and on HyperLogLogs
//	streams   the commands on streams
//	commands  all commands by name, and those on other types
//
// # Rows
//
// A key is a row of its database; the elements of a collection are rows of an id that is never used twice. So a key is
// deleted, renamed, moved to another database or overwritten by touching one row: what had its old id is garbage
// that nothing leads to. A database is a number as well: SWAPDB swaps two, FLUSHDB takes a new one.
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
// A key of which only the reason is known that its value is lost has 0x40 ‖ reason; 0x41: there may be no such key (lost.go).
//
// The type is more by 0x80 when the count of a set or hash is only a bound. Numbers without a byte order are BE64. A row whose value is large lies in pieces (large.go).
package state
