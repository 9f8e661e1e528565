// Package manifest reads and writes the MANIFEST: the log of changes to the set of tables and column families. CURRENT
// contains its name and a newline.
//
// A record of the log is a version edit, a sequence of tagged fields:
//
//	+--------------+-------------------+--------------+----
//	| tag (varint) | fields of the tag | tag (varint) | …
//	+--------------+-------------------+--------------+----
//
// Numbers are varints, strings are length-prefixed. Handling of the tags of db/version_edit.h:
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
//	102      new file with a path         read; the table is lost when the path is not the first
//	103      new file, custom fields      read; fields that may be ignored are, others cost the table
//	200      column family of the edit    read, written
//	201      column family is added       read, written
//	202      column family is dropped     read
//	203      largest column family id     read, written
//	300      edits left of an atomic group read
//	400      new blob file                read; fields that may be ignored are, others cost the file
//	401      garbage in a blob file       read, the same
//	8193     id of the database           ignored
//	8194 8195 early form of 400 and 401   read
//	8196 8197 log synced, log removed     ignored, without the length that other such tags have
//	8198     user-defined timestamps      an error, and the rest is read
//	8199 8200 as 8196 and 8197            ignored, and so are 8201 (timestamps are kept), 8202 (progress of a
//	                                      compaction), 8203 (size of the MANIFEST)
//
// Later tags with bit 13 have a length and are skipped, with a note. The length of any other tag is unknown: the
// MANIFEST cannot be read from there on. Custom fields of a table (tag 103):
//
//	2        needs compaction             ignored
//	3        minimum log number to keep   read
//	4        oldest blob file             read
//	5 6      ancestor's and own time      ignored
//	7 8      checksum of the file, name   read; verify compares CRC-32C and reports others
//	9        temperature                  ignored
//	10 11 16 user-defined timestamps      the table is lost
//	12       unique id                    read, and compared with that of the table
//	13       epoch number                 ignored: sequence numbers say what is newer
//	14 15 17 sizes, metadata of opening   ignored
//	65       path id                      read; the table is lost when the path is not the first
//
// Others below 64, which older readers may skip, are ignored, with a note; others above lose the table.
package manifest
