// Package keydbflash is the format of KeyDB FLASH: the databases of a KeyDB server with storage-provider flash, on RocksDB. It is
// a source only.
//
//	family N          a database: each key is one row, of any type
//	family N+1_expires  its keys by expiry, for the job that deletes them
//	default           the server's own metadata; 0_expires is its index
//
// A database is in the family of its number, unless SWAPDB wrote a row db-N in default.
//
//	key    slot (LE16) | user key
//	value  expiries of the key and its members | object
//
// Values other than strings are payloads of DUMP, which package redis/rdb decodes. KeyDB before 6.3.4 has no slots, no
// index and smaller images of strings; the version row of a family decides.
package keydbflash
