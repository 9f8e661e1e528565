package rocksfile

import (
	"bytes"
	"encoding/binary"

	"github.com/cockroachdb/pebble/record"

	"kvferry/store"
	"kvferry/store/rocks/base"
)

// lastLevel takes all tables: nothing below them has to be merged, and no engine compacts them
// until it writes over them itself.
const lastLevel = 6

// editWriter is one version edit being encoded: a sequence of
//
//	+----------------+----------------------+
//	| tag (uvarint)  | fields of that tag   |
//	+----------------+----------------------+
//
// Numbers are uvarints, byte strings have a uvarint length before them. Only tags that RocksDB
// 5.0.1 knows are used: it refuses the whole database over any other.
type editWriter struct{ buf []byte }

func (e *editWriter) uint(v uint64) { e.buf = binary.AppendUvarint(e.buf, v) }

func (e *editWriter) bytes(b []byte) {
	e.uint(uint64(len(b)))
	e.buf = append(e.buf, b...)
}

func (e *editWriter) comparator(name string) {
	e.uint(tagComparator)
	e.bytes([]byte(name))
}

// columnFamily says which column family the edit is about; 0 goes without saying.
func (e *editWriter) columnFamily(id int) {
	if id != 0 {
		e.uint(tagColumnFamily)
		e.uint(uint64(id))
	}
}

func (e *editWriter) addColumnFamily(id int, name string) {
	if id != 0 {
		e.uint(tagColumnFamilyAdd)
		e.bytes([]byte(name))
	}
}

func (e *editWriter) logNumber(n uint64) {
	e.uint(tagLogNumber)
	e.uint(n)
}

// lastSequence is the last sequence number that a new database has used. It may not be 0, though all rows have
// sequence 0: a snapshot taken at 0 is older than everything to RocksDB, and a compaction that runs
// while it is held drops every row.
const lastSequence = 1

// counters says that there are no logs, what the last sequence number is, and which file number is free.
func (e *editWriter) counters(nextFile int) {
	e.logNumber(0)
	e.uint(tagPrevLogNumber)
	e.uint(0)
	e.uint(tagNextFileNumber)
	e.uint(uint64(nextFile))
	e.uint(tagLastSequence)
	e.uint(lastSequence)
}

func (e *editWriter) maxColumnFamily(id int) {
	e.uint(tagMaxColumnFamily)
	e.uint(uint64(id))
}

// table adds a table to the last level of a column family:
//
//	100 | level | file number | size | smallest | largest | smallest seq | largest seq
func (e *editWriter) table(number int, t *store.Table) {
	e.uint(tagNewFile2)
	e.file(number, t)
	e.uint(0)
	e.uint(0)
}

// levelTable is table for LevelDB, whose tag 7 has no sequence numbers.
func (e *editWriter) levelTable(number int, t *store.Table) {
	e.uint(tagNewFile)
	e.file(number, t)
}

func (e *editWriter) file(number int, t *store.Table) {
	e.uint(lastLevel)
	e.uint(uint64(number))
	e.uint(uint64(t.Bytes))
	e.bytes(base.AppendKey(nil, t.First, base.Trailer(0, base.KindPut)))
	e.bytes(base.AppendKey(nil, t.Last, base.Trailer(0, base.KindPut)))
}

// encodeManifest frames the edits as the records of a log.
func encodeManifest(edits []editWriter) ([]byte, error) {
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
