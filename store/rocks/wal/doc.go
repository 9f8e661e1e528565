// Package wal decodes what write-ahead logs hold: write batches.
//
// A write batch is the payload of a log record:
//
//	+--------------+-----------+----------+-----
//	| sequence (8) | count (4) | entries  |
//	+--------------+-----------+----------+-----
//
// Little endian. An entry is a tag, the id of its column family as a varint unless that is the default one, and key and
// value, each length-prefixed, as the tag needs. Entries take consecutive sequence numbers, except entries that are not
// rows (log data, the marks of transactions).
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
// The second tag is for column families other than the default one. The length or the meaning of any other tag, such as
// a mark of a prepared transaction, is unknown: it loses the rest of its batch.
package wal
