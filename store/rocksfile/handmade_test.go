package rocksfile

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"kvferry/store"
	"kvferry/store/internal/handmade"
	"kvferry/store/rocks/base"
)

const bytewiseName = "leveldb.BytewiseComparator"

// handDB is a database directory written by hand.
type handDB struct {
	t     testing.TB
	dir   string
	edits [][]byte
	next  uint64
	level bool // LevelDB
}

// newHandDB starts a RocksDB directory that needs all logs that are there, or none.
func newHandDB(t testing.TB) *handDB {
	d := &handDB{t: t, dir: t.TempDir(), next: 10}
	d.edit(editComparator(bytewiseName), editNumber(tagLogNumber, 0), editNumber(tagNextFileNumber, 100),
		editNumber(tagLastSequence, 0), editNumber(tagMaxColumnFamily, 8))
	return d
}

// newHandLevelDB starts a LevelDB directory.
func newHandLevelDB(t testing.TB) *handDB {
	d := &handDB{t: t, dir: t.TempDir(), next: 10, level: true}
	d.edit(editComparator(bytewiseName), editNumber(tagLogNumber, 0), editNumber(tagNextFileNumber, 100), editNumber(tagLastSequence, 0))
	return d
}

func (d *handDB) edit(parts ...[]byte) { d.edits = append(d.edits, slices.Concat(parts...)) }

func editNumber(tag, v uint64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(nil, tag), v)
}

func editBytes(tag uint64, v []byte) []byte {
	b := binary.AppendUvarint(binary.AppendUvarint(nil, tag), uint64(len(v)))
	return append(b, v...)
}

func editComparator(name string) []byte { return editBytes(tagComparator, []byte(name)) }

// family adds a column family.
func (d *handDB) family(id uint64, name, comparator string) {
	d.edit(editNumber(tagColumnFamily, id), editBytes(tagColumnFamilyAdd, []byte(name)), editComparator(comparator),
		editNumber(tagLogNumber, 0))
}

// bounds are the internal keys that bound a table.
type bounds struct{ smallest, largest []byte }

// boundsOf finds the bounds of a table from its rows and range tombstones, as RocksDB does.
func boundsOf(cmp func(a, b []byte) int, spec *tableSpec, entries []testEntry) bounds {
	var keys [][]byte
	for i := range entries {
		keys = append(keys, entries[i].internal())
	}
	for i := range spec.tombstones {
		e := &spec.tombstones[i]
		keys = append(keys, e.internal(), base.AppendKey(nil, []byte(e.value), base.Trailer(base.MaxSequence, base.KindRangeDelete)))
	}
	slices.SortFunc(keys, func(a, b []byte) int { return base.CompareKeys(cmp, a, b) })
	return bounds{keys[0], keys[len(keys)-1]}
}

// table writes a table of a column family and names it in the MANIFEST; entries are sorted unless the
// spec says otherwise.
func (d *handDB) table(family uint64, level int, spec tableSpec, entries ...testEntry) string {
	d.t.Helper()
	cmp := comparerNamed(spec.comparator).Compare
	if !spec.keepOrder {
		sortEntries(cmp, entries)
	}
	name := d.write(spec, entries)
	d.name(family, level, name, boundsOf(cmp, &spec, entries), maxSeqOf(entries, &spec))
	return name
}

// write writes a table that nothing names.
func (d *handDB) write(spec tableSpec, entries []testEntry) string {
	d.t.Helper()
	spec.levelDB = spec.levelDB || d.level
	ext := ".sst"
	if d.level {
		ext = ".ldb"
	}
	name := fmt.Sprintf("%06d%s", d.next, ext)
	d.next++
	d.file(name, makeTable(d.t, spec, entries))
	return name
}

func (d *handDB) file(name string, data []byte) {
	d.t.Helper()
	if err := os.WriteFile(filepath.Join(d.dir, name), data, 0o644); err != nil {
		d.t.Fatal(err)
	}
}

// name names a table in the MANIFEST.
func (d *handDB) name(family uint64, level int, name string, b bounds, maxSeq uint64) {
	d.t.Helper()
	st, err := os.Stat(filepath.Join(d.dir, name))
	if err != nil {
		d.t.Fatal(err)
	}
	var number uint64
	fmt.Sscanf(name, "%d", &number)
	d.edit(editFamily(family), d.fileEdit(level, number, uint64(st.Size()), b, maxSeq))
}

func editFamily(id uint64) []byte {
	if id == 0 {
		return nil
	}
	return editNumber(tagColumnFamily, id)
}

func (d *handDB) fileEdit(level int, number, size uint64, b bounds, maxSeq uint64) []byte {
	tag := uint64(tagNewFile4)
	if d.level {
		tag = tagNewFile
	}
	e := editNumber(tag, uint64(level))
	e = binary.AppendUvarint(binary.AppendUvarint(e, number), size)
	for _, k := range [][]byte{b.smallest, b.largest} {
		e = append(binary.AppendUvarint(e, uint64(len(k))), k...)
	}
	if d.level {
		return e
	}
	e = binary.AppendUvarint(binary.AppendUvarint(e, 0), maxSeq)
	return append(e, fileNeedCompaction, 1, 0, 5, 2, 0x80, 1, fileTerminate) // and a creation time
}

func maxSeqOf(entries []testEntry, spec *tableSpec) (m uint64) {
	for _, e := range slices.Concat(entries, spec.tombstones) {
		m = max(m, e.seq)
	}
	if spec.external {
		m = max(spec.globalSeq, m)
	}
	return m
}

func sortEntries(cmp func(a, b []byte) int, entries []testEntry) {
	slices.SortStableFunc(entries, func(a, b testEntry) int { return base.CompareKeys(cmp, a.internal(), b.internal()) })
}

func comparerNamed(name string) *store.Comparer {
	for i := range testComparers {
		if testComparers[i].Name == name {
			return &testComparers[i]
		}
	}
	return &store.Bytewise
}

// finish writes MANIFEST and CURRENT and returns the directory.
func (d *handDB) finish() string {
	d.file("MANIFEST-000005", handmade.Log(0, false, d.edits...))
	d.file(currentName, []byte("MANIFEST-000005\n"))
	return d.dir
}

// log writes a WAL.
func (d *handDB) log(number uint64, records ...[]byte) {
	d.file(fmt.Sprintf("%06d.log", number), handmade.Log(number, false, records...))
}

// put is an entry of a table.
func put(key string, seq uint64, value string) testEntry {
	return testEntry{key, seq, base.KindPut, value}
}
func del(key string, seq uint64) testEntry { return testEntry{key, seq, base.KindDelete, ""} }

// show renders rows for comparison.
func show(rows []row) string {
	s := ""
	for _, r := range rows {
		s += fmt.Sprintf("%s=%s ", r.key, r.value)
	}
	return s
}

// wantRows fails unless a keyspace of the database shows exactly these rows.
func wantRows(t testing.TB, db *database, family int, want string) {
	t.Helper()
	rows, _ := readRows(t, db.Keyspaces()[family], nil, nil)
	if want != "" {
		want += " "
	}
	if got := show(rows); got != want {
		t.Errorf("rows %s, want %s", got, want)
	}
}
