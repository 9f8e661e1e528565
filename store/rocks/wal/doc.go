// Package wal decodes what write-ahead logs hold: write batches.
//
// A write batch is the payload of a log record:
//
//	+--------------+-----------+----------+-----
//	| sequence (8) | count (4) | entries  |
//	+--------------+-----------+----------+-----
//
// Little endian. An entry is a tag, for column families other than the default one its id as a
// varint, then key and value, each length-prefixed, as the tag needs. Entries take sequence numbers
// one after the other.
// Entries that are no rows (log data, the marks of transactions) take none.
//
//	tag         entry                          fields
//	0x00  0x04  delete                         key
//	0x01  0x05  put                            key, value
//	0x02  0x06  merge                          key, operand
//	0x03        log data                       blob; skipped
//	0x07  0x08  single delete                  key
//	0x0d        noop                           none; skipped
//	0x0f  0x0e  range delete                   first key, exclusive last key
//	0x11  0x10  blob index                     key, index; the row is lost
//	0x16  0x17  wide columns                   key, columns; the row is lost
//	0x18  0x19  value with a write time        key, value; the row is lost
//
// The second tag is that of another column family than the default one. Of other tags, those of prepared transactions among
// them, the length or the meaning is not known: they cost the rest of their batch.
package wal
