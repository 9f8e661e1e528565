package manifest

import (
	"bytes"
	"encoding/binary"

	"github.com/cockroachdb/pebble/record"

	"kvferry/store"
	"kvferry/store/rocks/base"
)

// LastLevel takes all tables: nothing below them has to be merged, and no engine compacts them
// until it writes over them itself.
const LastLevel = 6

// Writer encodes one version edit. Only tags that RocksDB 5.0.1 knows are used: it refuses the whole database over any
// other.
type Writer struct{ buf []byte }

func (e *Writer) uint(v uint64) { e.buf = binary.AppendUvarint(e.buf, v) }

func (e *Writer) bytes(b []byte) {
	e.uint(uint64(len(b)))
	e.buf = append(e.buf, b...)
}

func (e *Writer) Comparator(name string) {
	e.uint(TagComparator)
	e.bytes([]byte(name))
}

// ColumnFamily says which column family the edit is about; 0 goes without saying.
func (e *Writer) ColumnFamily(id int) {
	if id != 0 {
		e.uint(TagColumnFamily)
		e.uint(uint64(id))
	}
}

func (e *Writer) AddColumnFamily(id int, name string) {
	if id != 0 {
		e.uint(TagColumnFamilyAdd)
		e.bytes([]byte(name))
	}
}

func (e *Writer) LogNumber(n uint64) {
	e.uint(TagLogNumber)
	e.uint(n)
}

// FirstSequence is the last sequence number that a new database has used. It may not be 0: a snapshot taken at 0 is older
// than everything to RocksDB, and a compaction that runs while it is held drops every row.
const FirstSequence = 1

// Counters says that there are no logs, what the last sequence number is, and which file number is free.
func (e *Writer) Counters(nextFile int) {
	e.LogNumber(0)
	e.uint(TagPrevLogNumber)
	e.uint(0)
	e.uint(TagNextFileNumber)
	e.uint(uint64(nextFile))
	e.uint(TagLastSequence)
	e.uint(FirstSequence)
}

func (e *Writer) MaxColumnFamily(id int) {
	e.uint(TagMaxColumnFamily)
	e.uint(uint64(id))
}

// Table adds a table to the last level of a column family:
//
//	100 | level | file number | size | smallest | largest | smallest seq | largest seq
//
// All rows have sequence 0, as in any last level, but for the last one of the table, which has that of last.
func (e *Writer) Table(number int, t *store.Table, last uint64) {
	first := uint64(0)
	if t.Entries == 1 {
		first = last
	}
	e.uint(TagNewFile2)
	e.file(number, t, first, last)
	e.uint(first)
	e.uint(last)
}

// LevelTable is table for LevelDB, whose tag 7 has no sequence numbers; all its rows have that of FirstSequence.
func (e *Writer) LevelTable(number int, t *store.Table) {
	e.uint(TagNewFile)
	e.file(number, t, FirstSequence, FirstSequence)
}

func (e *Writer) file(number int, t *store.Table, first, last uint64) {
	e.uint(LastLevel)
	e.uint(uint64(number))
	e.uint(uint64(t.Bytes))
	e.bytes(base.AppendKey(nil, t.First, base.Trailer(first, base.KindPut)))
	e.bytes(base.AppendKey(nil, t.Last, base.Trailer(last, base.KindPut)))
}

// Encode frames the edits as the records of a log.
func Encode(edits []Writer) ([]byte, error) {
	var out bytes.Buffer
	w := record.NewWriter(&out)
	for _, e := range edits {
		if _, err := w.WriteRecord(e.buf); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
