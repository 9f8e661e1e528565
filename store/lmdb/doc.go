// Package lmdb reads LMDB environments (format of LMDB 0.9, 64-bit little-endian) without the C
// library: data.mdb is read with pread, page by page, and every page number, offset, count and size is
// checked before it is used. A damaged or truncated file is an error that names the place, never
// a crash. Nothing is written, lock.mdb is only asked who holds it.
//
// An environment is a file of pages. Pages 0 and 1 are meta pages; the one with the larger transaction
// number counts. It names the roots of two B-trees: the free list, which is not read, and the main
// database, whose rows are the named databases (keyspaces here).
//
//	page   +--------------+---------+-----------+-----------------------+----------+- - - -+-------+
//	       | number (8B)  | pad (2B)| flags (2B)| lower (2B) upper (2B) | ptr (2B)…| free  | nodes |
//	       +--------------+---------+-----------+-----------------------+----------+- - - -+-------+
//	        an overflow page has its number of pages (4B) in place of lower and upper, then the value
//
//	node   +---------------+------------+----------------+-----+------+
//	       | lo, hi (2B 2B)| flags (2B) | key size (2B)  | key | data |
//	       +---------------+------------+----------------+-----+------+
//	        leaf: lo | hi<<16 is the size of data; with flag 1 data is the 8-byte number of the first
//	        overflow page. branch: lo | hi<<16 | flags<<32 is the child page, no data.
//
//	meta   +-------------+--------------+--------------+---------------+------------+------------+
//	       | magic (4B)  | version (4B) | address (8B) | map size (8B) | free (48B) | main (48B) |
//	       +-------------+--------------+--------------+---------------+------------+------------+
//	       | last page (8B) | transaction (8B) |       after the page header
//	       +----------------+------------------+
//
//	tree   +----------+------------+------------+-------------+-----------+---------------+
//	       | pad (4B) | flags (2B) | depth (2B) | branch (8B) | leaf (8B) | overflow (8B) |
//	       +----------+------------+------------+-------------+-----------+---------------+
//	       | entries (8B) | root (8B) |   pad of the free list's tree is the page size
//	       +--------------+-----------+
//
// LMDB keeps no name of the order of a database: it is whatever the program that wrote it compared with. Options.Order
// says which order is expected; rows are yielded as the tree has them, and two rows that contradict the expected order
// are a store.OrderError, as is a row on the wrong side of a key of a branch page, by which ranges and seeks go. With
// Options.Resort all rows of a database go through an external sort instead. With Options.Salvage pages and nodes that
// cannot be read are skipped.
package lmdb
