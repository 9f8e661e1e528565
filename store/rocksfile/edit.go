package rocksfile

import (
	"fmt"

	"kvferry/record"
)

// versionEdit is one record of the MANIFEST: a change to the set of tables and column families, as
// a sequence of tagged fields.
//
//	+--------------+------------------+--------------+----
//	| tag (varint) | fields of the tag| tag (varint) | …
//	+--------------+------------------+--------------+----
type versionEdit struct {
	comparator   string
	hasLogNumber bool
	logNumber    uint64
	prevLog      uint64
	minLog       uint64
	hasNextFile  bool
	nextFile     uint64
	hasLastSeq   bool
	lastSeq      uint64
	family       uint32
	addFamily    bool
	familyName   string
	dropFamily   bool
	maxFamily    uint32
	deleted      []levelFile
	added        []tableMeta
	inGroup      bool
	groupLeft    uint32 // edits of the atomic group that follow
	rocks        bool   // has tags that LevelDB does not know
	oldFile      bool   // has tagNewFile, which only LevelDB still writes
}

// levelFile names a table of a level.
type levelFile struct {
	level  int
	number uint64
}

// tableMeta is what the MANIFEST says about a table. The bounds are internal keys.
type tableMeta struct {
	levelFile
	size              int64
	smallest, largest []byte
	minSeq, maxSeq    uint64
}

// maxLevels bounds the level numbers that are believed.
const maxLevels = 64

// decodeEdit decodes one version edit.
func decodeEdit(b []byte) (*versionEdit, error) {
	e := new(versionEdit)
	f := &fields{buf: b}
	for f.more() {
		e.field(f, f.uvarint32("tag"))
	}
	return e, f.err
}

// field decodes the fields of one tag.
func (e *versionEdit) field(f *fields, tag uint32) {
	if f.err != nil {
		return
	}
	if tag >= tagNewFile2 {
		e.rocks = true
	}
	switch tag {
	case tagComparator:
		e.comparator = string(f.prefixed("comparator"))
	case tagLogNumber:
		e.hasLogNumber, e.logNumber = true, f.uvarint("log number")
	case tagPrevLogNumber:
		e.prevLog = f.uvarint("previous log number")
	case tagMinLogToKeep:
		e.minLog, e.rocks = f.uvarint("minimum log number to keep"), true
	case tagNextFileNumber:
		e.hasNextFile, e.nextFile = true, f.uvarint("next file number")
	case tagLastSequence:
		e.hasLastSeq, e.lastSeq = true, f.uvarint("last sequence")
	case tagCompactCursor:
		level(f)
		f.prefixed("compaction cursor")
	case tagDeletedFile:
		l := level(f)
		e.deleted = append(e.deleted, levelFile{l, f.uvarint("file number")})
	case tagNewFile, tagNewFile2, tagNewFile3, tagNewFile4:
		e.oldFile = e.oldFile || tag == tagNewFile
		e.added = append(e.added, newFile(f, tag))
	case tagColumnFamily:
		e.family = f.uvarint32("column family")
	case tagColumnFamilyAdd:
		e.addFamily, e.familyName = true, string(f.prefixed("column family name"))
	case tagColumnFamilyDel:
		e.dropFamily = true
	case tagMaxColumnFamily:
		e.maxFamily = f.uvarint32("max column family")
	case tagInAtomicGroup:
		e.inGroup, e.groupLeft = true, f.uvarint32("atomic group")
	default:
		skipField(f, tag)
	}
}

// skipField skips a tag that may be ignored and refuses all others.
func skipField(f *fields, tag uint32) {
	switch {
	case tag == tagBlobAddition || tag == tagBlobGarbage || tag == tagBlobAdditionOld || tag == tagBlobGarbageOld:
		f.fail("tag", unsupported("version edit tag %d: blob files", tag))
	case tag == tagFullHistoryTS:
		f.fail("tag", unsupported("version edit tag %d: user-defined timestamps", tag))
	case tag == tagWALAddition:
		f.uvarint("log number")
		for f.more() && f.uvarint32("log field") != fileTerminate {
			f.uvarint("log size")
		}
	case tag == tagWALDeletion:
		f.uvarint("log number")
	case tag&tagIgnorable != 0:
		f.prefixed("ignorable field")
	default:
		f.fail("tag", unsupported("version edit tag %d", tag))
	}
}

// level decodes a level number.
func level(f *fields) int {
	l := f.uvarint32("level")
	if l >= maxLevels {
		f.fail("level", fmt.Errorf("level %d", l))
		return 0
	}
	return int(l)
}

// newFile decodes a table added to a level.
func newFile(f *fields, tag uint32) tableMeta {
	var t tableMeta
	t.level = level(f)
	t.number = f.uvarint("file number")
	if tag == tagNewFile3 {
		if p := f.uvarint32("path id"); p != 0 {
			f.fail("path id", unsupported("table %d lies under path id %d", t.number, p))
		}
	}
	size := f.uvarint("file size")
	if size > 1<<62 {
		f.fail("file size", fmt.Errorf("%d bytes", size))
	}
	t.size = int64(size)
	t.smallest = boundKey(f, "smallest key")
	t.largest = boundKey(f, "largest key")
	if tag != tagNewFile {
		t.minSeq = f.uvarint("smallest sequence")
		t.maxSeq = f.uvarint("largest sequence")
	}
	if tag == tagNewFile4 {
		customFields(f, t.number)
	}
	return t
}

// boundKey decodes an internal key that bounds a table, as a copy.
func boundKey(f *fields, field string) []byte {
	k := f.prefixed(field)
	if f.err == nil && len(k) < trailerLen {
		f.fail(field, fmt.Errorf("internal key of %d bytes: %w", len(k), record.ErrShort))
	}
	return append([]byte(nil), k...)
}

// customFields skips the custom fields of a new file, refusing what changes its meaning.
func customFields(f *fields, number uint64) {
	for f.err == nil {
		tag := f.uvarint32("custom field")
		if tag == fileTerminate {
			return
		}
		v := f.prefixed("custom field value")
		switch {
		case f.err != nil:
		case tag == filePathID:
			if len(v) != 1 || v[0] != 0 {
				f.fail("path id", unsupported("table %d lies under path id %x", number, v))
			}
		case tag == fileOldestBlob:
			f.fail("custom field", unsupported("table %d refers to blob files", number))
		case tag == fileMinTimestamp || tag == fileMaxTimestamp:
			f.fail("custom field", unsupported("table %d has user-defined timestamps", number))
		case tag&fileNotIgnorable != 0:
			f.fail("custom field", unsupported("table %d has custom field %d", number, tag))
		}
	}
}
