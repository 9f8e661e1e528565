package rocksfile

import (
	"fmt"

	"kvferry/record"
	"kvferry/store/rocks/base"
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
	f := &base.Fields{Buf: b}
	for f.More() {
		e.field(f, f.Uvarint32("tag"))
	}
	return e, f.Err
}

// field decodes the fields of one tag.
func (e *versionEdit) field(f *base.Fields, tag uint32) {
	if f.Err != nil {
		return
	}
	if tag >= tagNewFile2 {
		e.rocks = true
	}
	switch tag {
	case tagComparator:
		e.comparator = string(f.Prefixed("comparator"))
	case tagLogNumber:
		e.hasLogNumber, e.logNumber = true, f.Uvarint("log number")
	case tagPrevLogNumber:
		e.prevLog = f.Uvarint("previous log number")
	case tagMinLogToKeep:
		e.minLog, e.rocks = f.Uvarint("minimum log number to keep"), true
	case tagNextFileNumber:
		e.hasNextFile, e.nextFile = true, f.Uvarint("next file number")
	case tagLastSequence:
		e.hasLastSeq, e.lastSeq = true, f.Uvarint("last sequence")
	case tagCompactCursor:
		level(f)
		f.Prefixed("compaction cursor")
	case tagDeletedFile:
		l := level(f)
		e.deleted = append(e.deleted, levelFile{l, f.Uvarint("file number")})
	case tagNewFile, tagNewFile2, tagNewFile3, tagNewFile4:
		e.oldFile = e.oldFile || tag == tagNewFile
		e.added = append(e.added, newFile(f, tag))
	case tagColumnFamily:
		e.family = f.Uvarint32("column family")
	case tagColumnFamilyAdd:
		e.addFamily, e.familyName = true, string(f.Prefixed("column family name"))
	case tagColumnFamilyDel:
		e.dropFamily = true
	case tagMaxColumnFamily:
		e.maxFamily = f.Uvarint32("max column family")
	case tagInAtomicGroup:
		e.inGroup, e.groupLeft = true, f.Uvarint32("atomic group")
	default:
		skipField(f, tag)
	}
}

// skipField skips a tag that may be ignored and refuses all others.
func skipField(f *base.Fields, tag uint32) {
	switch {
	case tag == tagBlobAddition || tag == tagBlobGarbage || tag == tagBlobAdditionOld || tag == tagBlobGarbageOld:
		f.Fail("tag", base.Unsupported("version edit tag %d: blob files", tag))
	case tag == tagFullHistoryTS:
		f.Fail("tag", base.Unsupported("version edit tag %d: user-defined timestamps", tag))
	case tag == tagWALAddition:
		f.Uvarint("log number")
		for f.More() && f.Uvarint32("log field") != fileTerminate {
			f.Uvarint("log size")
		}
	case tag == tagWALDeletion:
		f.Uvarint("log number")
	case tag&tagIgnorable != 0:
		f.Prefixed("ignorable field")
	default:
		f.Fail("tag", base.Unsupported("version edit tag %d", tag))
	}
}

// level decodes a level number.
func level(f *base.Fields) int {
	l := f.Uvarint32("level")
	if l >= maxLevels {
		f.Fail("level", fmt.Errorf("level %d", l))
		return 0
	}
	return int(l)
}

// newFile decodes a table added to a level.
func newFile(f *base.Fields, tag uint32) tableMeta {
	var t tableMeta
	t.level = level(f)
	t.number = f.Uvarint("file number")
	if tag == tagNewFile3 {
		if p := f.Uvarint32("path id"); p != 0 {
			f.Fail("path id", base.Unsupported("table %d lies under path id %d", t.number, p))
		}
	}
	size := f.Uvarint("file size")
	if size > 1<<62 {
		f.Fail("file size", fmt.Errorf("%d bytes", size))
	}
	t.size = int64(size)
	t.smallest = boundKey(f, "smallest key")
	t.largest = boundKey(f, "largest key")
	if tag != tagNewFile {
		t.minSeq = f.Uvarint("smallest sequence")
		t.maxSeq = f.Uvarint("largest sequence")
	}
	if tag == tagNewFile4 {
		customFields(f, t.number)
	}
	return t
}

// boundKey decodes an internal key that bounds a table, as a copy.
func boundKey(f *base.Fields, field string) []byte {
	k := f.Prefixed(field)
	if f.Err == nil && len(k) < base.TrailerLen {
		f.Fail(field, fmt.Errorf("internal key of %d bytes: %w", len(k), record.ErrShort))
	}
	return append([]byte(nil), k...)
}

// customFields skips the custom fields of a new file, refusing what changes its meaning.
func customFields(f *base.Fields, number uint64) {
	for f.Err == nil {
		tag := f.Uvarint32("custom field")
		if tag == fileTerminate {
			return
		}
		v := f.Prefixed("custom field value")
		switch {
		case f.Err != nil:
		case tag == filePathID:
			if len(v) != 1 || v[0] != 0 {
				f.Fail("path id", base.Unsupported("table %d lies under path id %x", number, v))
			}
		case tag == fileOldestBlob:
			f.Fail("custom field", base.Unsupported("table %d refers to blob files", number))
		case tag == fileMinTimestamp || tag == fileMaxTimestamp:
			f.Fail("custom field", base.Unsupported("table %d has user-defined timestamps", number))
		case tag&fileNotIgnorable != 0:
			f.Fail("custom field", base.Unsupported("table %d has custom field %d", number, tag))
		}
	}
}
