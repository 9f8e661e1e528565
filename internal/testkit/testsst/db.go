package testsst

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kvferry/store"
	"kvferry/store/rocks/base"
)

const BytewiseName = "leveldb.BytewiseComparator"

// Tags of version edits, defined independently of the code under test.
const (
	comparatorTag   = 1
	logNumberTag    = 2
	nextFileTag     = 3
	lastSequenceTag = 4
	newFileTag      = 7
	newFile4Tag     = 103
	familyTag       = 200
	addFamilyTag    = 201
	dropFamilyTag   = 202
	maxFamilyTag    = 203

	terminate      = 1
	needCompaction = 2
)

// DB writes a database directory by hand.
type DB struct {
	t     testing.TB
	Dir   string
	Edits [][]byte
	Next  uint64
	Level bool // LevelDB
	// LastSeq is the last sequence number in the MANIFEST: at least the tables' highest and the one before the first
	// log.
	LastSeq uint64
	logs    int
}

// NewDB starts a RocksDB directory whose MANIFEST needs every existing log.
func NewDB(t testing.TB) *DB {
	d := &DB{t: t, Dir: t.TempDir(), Next: 10}
	d.Edit(EditComparator(BytewiseName), EditNumber(logNumberTag, 0), EditNumber(nextFileTag, 100),
		EditNumber(lastSequenceTag, 0), EditNumber(maxFamilyTag, 8))
	return d
}

// NewLevelDB starts a LevelDB directory.
func NewLevelDB(t testing.TB) *DB {
	d := &DB{t: t, Dir: t.TempDir(), Next: 10, Level: true}
	d.Edit(EditComparator(BytewiseName), EditNumber(logNumberTag, 0), EditNumber(nextFileTag, 100),
		EditNumber(lastSequenceTag, 0))
	return d
}

func (d *DB) Edit(parts ...[]byte) { d.Edits = append(d.Edits, slices.Concat(parts...)) }

func EditNumber(tag, v uint64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(nil, tag), v)
}

func EditBytes(tag uint64, v []byte) []byte {
	b := binary.AppendUvarint(binary.AppendUvarint(nil, tag), uint64(len(v)))
	return append(b, v...)
}

func EditComparator(name string) []byte { return EditBytes(comparatorTag, []byte(name)) }

// Family adds a column family.
func (d *DB) Family(id uint64, name, comparator string) {
	d.Edit(EditNumber(familyTag, id), EditBytes(addFamilyTag, []byte(name)), EditComparator(comparator),
		EditNumber(logNumberTag, 0))
}

// Drop adds a column family and drops it again.
func (d *DB) Drop(id uint64) {
	d.Family(id, "dropped", BytewiseName)
	d.Edit(EditNumber(familyTag, id), binary.AppendUvarint(nil, dropFamilyTag))
}

// Bounds are the smallest and largest internal key of a table.
type Bounds struct{ Smallest, Largest []byte }

// BoundsOf computes the bounds of a table from its rows and range tombstones, like RocksDB.
func BoundsOf(cmp func(a, b []byte) int, spec *Spec, entries []Entry) Bounds {
	var keys [][]byte
	for i := range entries {
		keys = append(keys, entries[i].Internal())
	}
	for i := range spec.Tombstones {
		e := &spec.Tombstones[i]
		keys = append(keys, e.Internal(), base.AppendKey(nil, []byte(e.Value),
			base.Trailer(base.MaxSequence, base.KindRangeDelete)))
	}
	slices.SortFunc(keys, func(a, b []byte) int { return base.CompareKeys(cmp, a, b) })
	return Bounds{keys[0], keys[len(keys)-1]}
}

// Table writes a table of a column family and lists it in the MANIFEST. It sorts the entries unless spec.KeepOrder is
// set.
func (d *DB) Table(family uint64, level int, spec Spec, entries ...Entry) string {
	d.t.Helper()
	cmp := comparerNamed(spec.Comparator).Compare
	if !spec.KeepOrder {
		SortEntries(cmp, entries)
	}
	name := d.Write(spec, entries)
	b := BoundsOf(cmp, &spec, entries)
	if spec.KeepOrder && len(spec.Tombstones) == 0 { // engines use the first and the last key written
		b = Bounds{entries[0].Internal(), entries[len(entries)-1].Internal()}
	}
	d.Name(family, level, name, b, MaxSeqOf(entries, &spec))
	return name
}

// Write writes a table without listing it in the MANIFEST.
func (d *DB) Write(spec Spec, entries []Entry) string {
	d.t.Helper()
	spec.LevelDB = spec.LevelDB || d.Level
	ext := ".sst"
	if d.Level {
		ext = ".ldb"
	}
	name := fmt.Sprintf("%06d%s", d.Next, ext)
	d.Next++
	d.File(name, MakeTable(d.t, spec, entries))
	return name
}

func (d *DB) File(name string, data []byte) {
	d.t.Helper()
	if err := os.WriteFile(filepath.Join(d.Dir, name), data, 0o644); err != nil {
		d.t.Fatal(err)
	}
}

// Name lists a table in the MANIFEST.
func (d *DB) Name(family uint64, level int, name string, b Bounds, maxSeq uint64) {
	d.t.Helper()
	d.name(family, level, name, b, 0, maxSeq)
}

// Ingest writes a table whose entries share one sequence number and lists it like an ingested table.
func (d *DB) Ingest(family uint64, level int, seq uint64, keys ...string) string {
	d.t.Helper()
	var entries []Entry
	for _, key := range keys {
		entries = append(entries, Put(key, seq, ""))
	}
	name := d.Write(Spec{}, entries)
	d.name(family, level, name, BoundsOf(store.Bytewise.Compare, &Spec{}, entries), seq, seq)
	d.Edits[len(d.Edits)-1] = append(EditNumber(nextFileTag, d.Next), d.Edits[len(d.Edits)-1]...)
	return name
}

func (d *DB) name(family uint64, level int, name string, b Bounds, minSeq, maxSeq uint64) {
	d.t.Helper()
	st, err := os.Stat(filepath.Join(d.Dir, name))
	if err != nil {
		d.t.Fatal(err)
	}
	var number uint64
	fmt.Sscanf(name, "%d", &number)
	d.LastSeq = max(d.LastSeq, maxSeq, 1)
	d.Edit(EditFamily(family), d.fileEdit(level, number, uint64(st.Size()), b, minSeq, maxSeq))
}

func EditFamily(id uint64) []byte {
	if id == 0 {
		return nil
	}
	return EditNumber(familyTag, id)
}

func (d *DB) fileEdit(level int, number, size uint64, b Bounds, minSeq, maxSeq uint64) []byte {
	tag := uint64(newFile4Tag)
	if d.Level {
		tag = newFileTag
	}
	e := EditNumber(tag, uint64(level))
	e = binary.AppendUvarint(binary.AppendUvarint(e, number), size)
	for _, k := range [][]byte{b.Smallest, b.Largest} {
		e = append(binary.AppendUvarint(e, uint64(len(k))), k...)
	}
	if d.Level {
		return e
	}
	e = binary.AppendUvarint(binary.AppendUvarint(e, minSeq), maxSeq)
	return append(e, needCompaction, 1, 0, 5, 2, 0x80, 1, terminate) // includes a creation time
}

func MaxSeqOf(entries []Entry, spec *Spec) (m uint64) {
	for _, e := range slices.Concat(entries, spec.Tombstones) {
		m = max(m, e.Seq)
	}
	if spec.External {
		m = max(spec.GlobalSeq, m)
	}
	return m
}

func SortEntries(cmp func(a, b []byte) int, entries []Entry) {
	slices.SortStableFunc(entries, func(a, b Entry) int { return base.CompareKeys(cmp, a.Internal(), b.Internal()) })
}

func comparerNamed(name string) *store.Comparer {
	for i := range Comparers {
		if Comparers[i].Name == name {
			return &Comparers[i]
		}
	}
	return &store.Bytewise
}

// Finish writes MANIFEST and CURRENT and returns the directory.
func (d *DB) Finish() string {
	if d.LastSeq > 0 {
		d.Edits = append(d.Edits, EditNumber(lastSequenceTag, d.LastSeq))
	}
	d.File("MANIFEST-000005", Log(0, false, d.Edits...))
	d.File("CURRENT", []byte("MANIFEST-000005\n"))
	return d.Dir
}

// Log writes a WAL.
func (d *DB) Log(number uint64, records ...[]byte) {
	if len(records) > 0 && len(records[0]) >= 8 && d.logs == 0 {
		d.LastSeq = max(d.LastSeq, binary.LittleEndian.Uint64(records[0])-1)
	}
	d.logs++
	d.File(fmt.Sprintf("%06d.log", number), Log(number, false, records...))
}

// NewEntry returns an entry of any kind.
func NewEntry(key string, seq uint64, kind byte, value string) Entry {
	return Entry{key, seq, kind, value}
}

// Put returns an entry that sets a key.
func Put(key string, seq uint64, value string) Entry { return Entry{key, seq, base.KindPut, value} }

// Del returns a tombstone of a key.
func Del(key string, seq uint64) Entry { return Entry{key, seq, base.KindDelete, ""} }

// RangeDel returns a tombstone of the keys in [start, end).
func RangeDel(start string, seq uint64, end string) Entry {
	return Entry{start, seq, base.KindRangeDelete, end}
}

// BoundEdit encodes bounds in the form of a version edit.
func BoundEdit(b Bounds) (e []byte) {
	for _, k := range [][]byte{b.Smallest, b.Largest} {
		e = append(binary.AppendUvarint(e, uint64(len(k))), k...)
	}
	return e
}

// SomeEntries returns n puts with keys that share prefixes and values that compress well.
func SomeEntries(n int) []Entry {
	var out []Entry
	for i := range n {
		out = append(out, Put(fmt.Sprintf("key%04d", i*3), uint64(1000+i), strings.Repeat(fmt.Sprint(i), 1+i%40)))
	}
	return out
}
