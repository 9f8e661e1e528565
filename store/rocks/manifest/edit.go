package manifest

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"kvferry/record"
	"kvferry/store/rocks/base"
)

// Edit is one record of the MANIFEST: a change to the set of tables and column families, as
// a sequence of tagged fields.
//
//	+--------------+------------------+--------------+----
//	| tag (varint) | fields of the tag| tag (varint) | …
//	+--------------+------------------+--------------+----
type Edit struct {
	comparator   string
	hasLogNumber bool
	logNumber    uint64
	prevLog      uint64
	minLog       uint64
	hasMinLog    bool
	hasNextFile  bool
	nextFile     uint64
	hasLastSeq   bool
	lastSeq      uint64
	family       uint32
	addFamily    bool
	familyName   string
	dropFamily   bool
	maxFamily    uint32
	deleted      []Position
	added        []Table
	blobs        []Blob
	garbage      []Blob
	inGroup      bool
	groupLeft    uint32 // edits of the atomic group that follow
	rocks        bool   // has tags that LevelDB does not know
	oldFile      bool   // has TagNewFile, which only LevelDB still writes
	unknown      []unknown
}

// unknown is a part of an edit that was skipped because it is unknown.
type unknown struct {
	record.Severity // Note if engines that do not know it skip it, too
	what            string
}

// pass notes a skipped part.
func (e *Edit) pass(s record.Severity, format string, args ...any) {
	e.unknown = append(e.unknown, unknown{s, fmt.Sprintf(format, args...)})
}

// Position names a table of a level.
type Position struct {
	Level  int
	Number uint64
}

// Table is a table listed in the MANIFEST. The bounds are internal keys.
type Table struct {
	Position
	Size              int64
	Smallest, Largest []byte
	MinSeq, MaxSeq    uint64
	OldestBlob        uint64 // number of the oldest blob file that the table refers to; 0: no blob file
	UniqueID          UniqueID
	Checksum          Checksum
	Err               error // set if the entry makes the table unreadable: base.ErrUnsupported
}

// Checksum is the checksum of a whole file. An engine writes it if file_checksum_gen_factory is set. The zero value
// means that the file has no checksum.
type Checksum struct {
	Func  string
	Value []byte
}

// ChecksumCRC32C is the built-in function of RocksDB: CRC-32C, big-endian.
const ChecksumCRC32C = "FileChecksumCrc32c"

// noChecksum is the function name of a file without a checksum.
const noChecksum = "Unknown"

// checksum copies name and value into a checksum.
func checksum(name, value []byte) Checksum {
	if len(value) == 0 || string(name) == noChecksum {
		return Checksum{}
	}
	return Checksum{string(name), bytes.Clone(value)}
}

// UniqueID identifies a table globally; the zero value means that the table has no id.
type UniqueID [2]uint64

// maxLevels bounds level numbers.
const maxLevels = 64

// Decode decodes one version edit.
func Decode(b []byte) (*Edit, error) {
	e := new(Edit)
	f := &base.Fields{Buf: b}
	for f.More() {
		e.field(f, f.Uvarint32("tag"))
	}
	return e, f.Err
}

// field decodes the fields of one tag.
func (e *Edit) field(f *base.Fields, tag uint32) {
	if f.Err != nil {
		return
	}
	if tag >= TagNewFile2 {
		e.rocks = true
	}
	switch tag {
	case TagComparator:
		e.comparator = string(f.Prefixed("comparator"))
	case TagLogNumber:
		e.hasLogNumber, e.logNumber = true, f.Uvarint("log number")
	case TagPrevLogNumber:
		e.prevLog = f.Uvarint("previous log number")
	case TagMinLogToKeep:
		e.minLog, e.hasMinLog, e.rocks = f.Uvarint("minimum log number to keep"), true, true
	case TagNextFileNumber:
		e.hasNextFile, e.nextFile = true, f.Uvarint("next file number")
	case TagLastSequence:
		e.hasLastSeq, e.lastSeq = true, f.Uvarint("last sequence")
	case TagCompactCursor:
		level(f)
		f.Prefixed("compaction cursor")
	case TagDeletedFile:
		l := level(f)
		e.deleted = append(e.deleted, Position{l, f.Uvarint("file number")})
	case TagNewFile, TagNewFile2, TagNewFile3, TagNewFile4:
		e.oldFile = e.oldFile || tag == TagNewFile
		e.added = append(e.added, e.newFile(f, tag))
	case TagBlobAddition, TagBlobAdditionOld:
		e.blobs = append(e.blobs, e.blobFile(f, true))
	case TagBlobGarbage, TagBlobGarbageOld:
		e.garbage = append(e.garbage, e.blobFile(f, false))
	case TagColumnFamily:
		e.family = f.Uvarint32("column family")
	case TagColumnFamilyAdd:
		e.addFamily, e.familyName = true, string(f.Prefixed("column family name"))
	case TagColumnFamilyDel:
		e.dropFamily = true
	case TagMaxColumnFamily:
		e.maxFamily = f.Uvarint32("max column family")
	case TagInAtomicGroup:
		e.inGroup, e.groupLeft = true, f.Uvarint32("atomic group")
	default:
		e.skipField(f, tag)
	}
}

// skipField skips a tag that may be ignored and fails at all others, whose length is unknown.
func (e *Edit) skipField(f *base.Fields, tag uint32) {
	switch {
	case tag == TagFullHistoryTS:
		f.Prefixed("timestamp")
		e.pass(record.Error, "version edit tag %d: a column family has user-defined timestamps, which kvferry does not read", tag)
	case tag == TagWALAddition:
		f.Uvarint("log number")
		for f.More() && f.Uvarint32("log field") != FileTerminate {
			f.Uvarint("log size")
		}
	case tag == TagWALDeletion:
		f.Uvarint("log number")
	case tag&TagIgnorable != 0:
		f.Prefixed("ignorable field")
		if tag > TagLastIgnorable {
			e.pass(record.Note, "unknown version edit tag %d; engines also ignore it if they do not know it", tag)
		}
	default:
		f.Fail("tag", base.Unsupported("version edit tag %d", tag))
	}
}

// level decodes a level number.
func level(f *base.Fields) int {
	l := f.Uvarint32("level")
	if l >= maxLevels {
		f.Fail("level", fmt.Errorf("level %d", l))
	}
	return int(l)
}

// newFile decodes a table added to a level.
func (e *Edit) newFile(f *base.Fields, tag uint32) Table {
	var t Table
	t.Level = level(f)
	t.Number = f.Uvarint("file number")
	if tag == TagNewFile3 {
		if p := f.Uvarint32("path id"); p != 0 {
			t.Err = base.Unsupported("the table lies under path id %d", p)
		}
	}
	size := f.Uvarint("file size")
	if size > 1<<62 {
		f.Fail("file size", fmt.Errorf("%s bytes", record.Number(size)))
	}
	t.Size = int64(size)
	t.Smallest = boundKey(f, "smallest key")
	t.Largest = boundKey(f, "largest key")
	if tag != TagNewFile {
		t.MinSeq = f.Uvarint("smallest sequence")
		t.MaxSeq = f.Uvarint("largest sequence")
	}
	if tag == TagNewFile4 {
		e.customFields(f, &t)
	}
	return t
}

// boundKey decodes an internal key that bounds a table, as a copy.
func boundKey(f *base.Fields, field string) []byte {
	k := f.Prefixed(field)
	if f.Err == nil && len(k) < base.TrailerLen {
		f.Fail(field, fmt.Errorf("internal key of %s bytes: %w", record.Number(len(k)), record.ErrShort))
	}
	return append([]byte(nil), k...)
}

// customFields decodes the custom fields of a new file that reading needs, and skips fields that may be ignored. A
// field that changes the meaning of the table sets t.Err.
func (e *Edit) customFields(f *base.Fields, t *Table) {
	var sumOf, sum []byte
	for f.Err == nil {
		tag := f.Uvarint32("custom field")
		if tag == FileTerminate {
			t.Checksum = checksum(sumOf, sum)
			return
		}
		v := f.Prefixed("custom field value")
		switch {
		case f.Err != nil:
		case tag == FilePathID:
			if len(v) != 1 || v[0] != 0 {
				t.Err = base.Unsupported("the table lies under path id %x", v)
			}
		case tag == FileOldestBlob:
			t.OldestBlob = number(f, v, (*base.Fields).Uvarint)
		case tag == FileUniqueID && len(v) == 16:
			t.UniqueID = UniqueID{binary.LittleEndian.Uint64(v), binary.LittleEndian.Uint64(v[8:])}
		case tag == FileChecksum:
			sum = v
		case tag == FileChecksumFunc:
			sumOf = v
		case tag == FileMinLogToKeep:
			e.minLog, e.hasMinLog = max(e.minLog, number(f, v, (*base.Fields).Uint64)), true
		case tag == FileMinTimestamp || tag == FileMaxTimestamp || tag == FileTimestamps:
			t.Err = base.Unsupported("the table has user-defined timestamps")
		case tag&FileNotIgnorable != 0:
			t.Err = base.Unsupported("the table has custom field %d", tag)
		case tag > FileLastIgnorable:
			e.pass(record.Note, "unknown custom field %d of a table; engines also ignore it if they do not know it", tag)
		}
	}
}

// number decodes a custom field that is one number.
func number(f *base.Fields, v []byte, decode func(*base.Fields, string) uint64) uint64 {
	g := &base.Fields{Buf: v}
	n := decode(g, "value")
	if g.Err == nil && g.Left() > 0 {
		g.Fail("value", fmt.Errorf("%s bytes left over", record.Number(g.Left())))
	}
	if g.Err != nil {
		f.Fail("custom field", g.Err)
	}
	return n
}
