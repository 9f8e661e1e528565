// Package lmdb reads LMDB environments (format of LMDB 0.9, 64-bit little-endian) without the C library: it reads
// data.mdb with pread, page by page, and checks every page number, offset, count and size before use. A damaged or
// truncated file results in an error that names the place, never in a crash. The package never writes; lock.mdb is only
// queried for lock holders.
//
// An environment is a file of pages. Pages 0 and 1 are meta pages; the one with the larger transaction number is
// current. It names the roots of two B-trees: the free list, which is not read, and the main database, whose rows are
// the named databases (keyspaces here).
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
// LMDB does not store the comparator of a database; the writing program chooses it. Options.Order is the expected
// order. Rows are returned in tree order; two rows that contradict the expected order are a store.OrderError, and so is
// a row on the wrong side of a branch key, which would mislead ranges and seeks. With Options.Resort all rows of a
// database are sorted externally instead. With Options.Salvage unreadable pages and nodes are skipped.
package lmdb
