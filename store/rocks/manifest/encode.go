package manifest

import (
	"bytes"
	"encoding/binary"

	"github.com/cockroachdb/pebble/record"

	"kvferry/store"
	"kvferry/store/rocks/base"
)

// LastLevel is the level of all tables. No lower level needs merging, and no engine compacts the tables until it
// overwrites their rows.
const LastLevel = 6

// Writer encodes one version edit. It only uses tags of RocksDB 5.0.1, which refuses the whole database over any other
// tag.
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

// ColumnFamily sets the column family of the edit; the default family, 0, is implied.
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

// FirstSequence is the last sequence number that a new database has used. It must not be 0: to RocksDB, a snapshot
// taken at 0 is older than everything, and a compaction that runs while it is held drops every row.
const FirstSequence = 1

// Counters sets the log numbers to 0, the last sequence number to FirstSequence, and the next file number.
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
// All rows have sequence number 0, as in any last level, except the last row of the table, which has last.
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

// LevelTable is Table for LevelDB, whose tag 7 has no sequence numbers; all rows have FirstSequence.
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
