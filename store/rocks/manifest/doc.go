// Package manifest reads and writes the MANIFEST: the log of changes to the set of tables and column families. CURRENT
// has its name, and a newline.
//
// A record of the log is a version edit, a sequence of tagged fields:
//
//	+--------------+-------------------+--------------+----
//	| tag (varint) | fields of the tag | tag (varint) | …
//	+--------------+-------------------+--------------+----
//
// Numbers are varints, strings have their length before them. What is done with the tags of db/version_edit.h:
//
//	tag      field                        here
//	1        comparator                   read, written
//	2        log number                   read, written
//	3        next file number             read, written
//	4        last sequence                read, written
//	5        compaction cursor            ignored: it says where the next compaction starts
//	6        deleted file                 read
//	7        new file of LevelDB          read, written
//	9        previous log number          read, written
//	10       minimum log number to keep   read
//	100      new file                     read, written
//	102      new file with a path         read; refused when the path is not the first
//	103      new file, custom fields      read; fields that may be ignored are, others are refused by number
//	200      column family of the edit    read, written
//	201      column family is added       read, written
//	202      column family is dropped     read
//	203      largest column family id     read, written
//	300      edits left of an atomic group read
//	400 401  blob files                   refused
//	8193…    what older readers may skip  ignored, but for blob files and user-defined timestamps, which are refused
package manifest
