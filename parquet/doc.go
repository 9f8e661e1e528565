// Package parquet keeps datasets as Parquet files, for query engines such as DuckDB, Spark and Trino. `kvferry dump
// --format parquet` writes them, and convert, verify, diff and fingerprint read them. Package columns reads and writes a file.
//
//	DIR/_manifest.jsonl               written last: what belongs to the dataset, with checksums
//	DIR/type=hash/part-00001.parquet  rows of hashes, by database and key
//	DIR/type=…
//
// All files have the same columns, and a row for each element. A stream has rows of other kinds, too.
//
//	db               text    name of the database; bytes if it is not UTF-8
//	key              bytes   of the record
//	expire_at        time    of the record, in milliseconds; null: never
//	kind             text    null, or see below
//	index            int64   position of a list's element, or one of type other, from 0
//	id               text    of a stream's entry: 1700000000000-0
//	field            bytes   of a hash or an entry; the server's name of a value of type other
//	value            bytes   of a string, field or list's element, or of type other
//	member           bytes   of a set or sorted set
//	score            double  of a member of a sorted set
//	field_expire_at  time    of a hash's field; null: never
//
// An entry has a row for each pair of field and value. kind is the native type of a record (hyperloglog), the kind of a
// record without a key (function, module-aux), or, in a stream:
//
//	stream    the first row: id is the last id, value {"entries_added":N,"max_deleted_id":"1-0"} or null
//	group     field is its name, id the last one delivered, value {"entries_read":N}; N is -1 if unknown
//	consumer  field is the group, member the name, value {"seen_ms":N,"active_ms":N}
//	pending   field is the group, id the entry, member the consumer, value {"delivered_ms":N,"deliveries":N}
package parquet

import "kvferry/parquet/columns"

// Name is the name of the format in locations.
const Name = "parquet"

// The columns.
const (
	colDB = iota
	colKey
	colExpire
	colKind
	colIndex
	colID
	colField
	colValue
	colMember
	colScore
	colFieldExpire
	numColumns
)

// Kinds of a stream's rows.
const (
	kindStream   = "stream"
	kindGroup    = "group"
	kindConsumer = "consumer"
	kindPending  = "pending"
)

// columnNames are the names of the columns.
var columnNames = [numColumns]string{"db", "key", "expire_at", "kind", "index", "id", "field", "value", "member", "score", "field_expire_at"}

// sortedBy are the columns that rows ascend by.
var sortedBy = []string{columnNames[colDB], columnNames[colKey]}

// columnsOf returns the columns of a file. A key that has one row only is not worth a dictionary.
func columnsOf(single, text bool) []columns.Column {
	key, data := columns.Repeats, columns.Binary
	if single {
		key = columns.Plain
	}
	if text {
		data = columns.UTF8
	}
	out := []columns.Column{
		colDB:          {Kind: columns.UTF8, Coding: columns.Repeats},
		colKey:         {Kind: data, Coding: key},
		colExpire:      {Kind: columns.Timestamp, Optional: true},
		colKind:        {Kind: columns.UTF8, Coding: columns.Repeats, Optional: true},
		colIndex:       {Kind: columns.Integer, Coding: columns.Counted, Optional: true},
		colID:          {Kind: columns.UTF8, Coding: columns.Repeats, Optional: true},
		colField:       {Kind: data, Optional: true},
		colValue:       {Kind: data, Optional: true},
		colMember:      {Kind: data, Optional: true},
		colScore:       {Kind: columns.Number, Optional: true},
		colFieldExpire: {Kind: columns.Timestamp, Optional: true},
	}
	for i := range out {
		out[i].Name = columnNames[i]
	}
	return out
}
