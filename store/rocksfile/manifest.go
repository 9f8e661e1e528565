package rocksfile

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/logfile"
)

const currentName = "CURRENT"

// version is the state that the MANIFEST describes.
type version struct {
	manifest  string // name
	number    uint64 // in that name
	path      string
	size      int64 // bytes of the MANIFEST that were read
	families  map[uint32]*family
	maxFamily uint32
	minLog    uint64
	prevLog   uint64
	lastSeq   uint64
	nextFile  uint64 // number that no file had yet
	rocks     bool   // some tag is RocksDB's own
	oldFile   bool   // some tag is LevelDB's own
	seen      struct{ nextFile, lastSeq, logNumber bool }

	mentioned map[uint64]bool // numbers of all tables that some edit added

	group []*versionEdit // of an atomic group that is not complete yet

	torn   bool  // the MANIFEST ends within a record
	tornAt int64 // which starts there
}

// family is a column family.
type family struct {
	id         uint32
	name       string
	comparator string
	logNumber  uint64
	tables     map[levelFile]tableMeta
}

// maxCurrent bounds CURRENT, which is the name of a file.
const maxCurrent = 4 << 10

// manifestName reads CURRENT. A directory without it is no database.
func manifestName(dir string) (string, error) {
	b, err := store.ReadHead(filepath.Join(dir, currentName), maxCurrent)
	if st, serr := os.Stat(dir); errors.Is(err, fs.ErrNotExist) || serr == nil && !st.IsDir() {
		return "", notStore(dir)
	}
	if err != nil {
		return "", err
	}
	name, ok := strings.CutSuffix(string(b), "\n")
	num, isManifest := strings.CutPrefix(name, "MANIFEST-")
	if _, err := strconv.ParseUint(num, 10, 64); !ok || !isManifest || err != nil {
		return "", base.Corrupt(filepath.Join(dir, currentName), 0, "manifest name",
			fmt.Errorf("have %s, want \"MANIFEST-<number>\\n\"", record.Quote(b)))
	}
	return name, nil
}

// notStore says what a directory without CURRENT holds.
func notStore(dir string) error {
	st, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if !st.IsDir() {
		return fmt.Errorf("%s: %w: it is a file", dir, store.ErrNotStore)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	if len(entries) == 0 {
		return fmt.Errorf("%s: %w: it is empty", dir, store.ErrNotStore)
	}
	var names []string
	for _, e := range entries[:min(len(entries), 5)] {
		names = append(names, e.Name())
	}
	more := ""
	if n := len(entries) - len(names); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return fmt.Errorf("%s: %w: there is no %s, only %s%s", dir, store.ErrNotStore, currentName,
		strings.Join(names, ", "), more)
}

// readManifest replays the MANIFEST that CURRENT names.
func readManifest(dir string, report func(record.Finding)) (*version, error) {
	name, err := manifestName(dir)
	if err != nil {
		return nil, err
	}
	f, err := store.OpenRegular(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &store.MissingError{File: filepath.Join(dir, name), By: currentName}
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	v := &version{manifest: name, path: filepath.Join(dir, name), size: st.Size(), mentioned: map[uint64]bool{}}
	v.number, _ = strconv.ParseUint(strings.TrimPrefix(name, "MANIFEST-"), 10, 64)
	v.families = map[uint32]*family{0: newFamily(0, "default")}
	return v, v.replay(logfile.NewReader(io.NewSectionReader(f, 0, v.size), 0), report)
}

func newFamily(id uint32, name string) *family {
	return &family{id: id, name: name, tables: make(map[levelFile]tableMeta)}
}

// replay applies all edits of the MANIFEST.
func (v *version) replay(log *logfile.Reader, report func(record.Finding)) error {
	for {
		rec, off, err := log.Next()
		if err == io.EOF {
			break
		}
		if err == logfile.ErrTorn {
			v.torn, v.tornAt = true, off
			break
		}
		if err != nil {
			return base.Corrupt(v.path, off, "record", err)
		}
		e, err := decodeEdit(rec)
		if err == nil {
			err = v.add(e)
		}
		if err != nil {
			return editError(v.path, off, err)
		}
	}
	if len(v.group) > 0 {
		report(record.Finding{Kind: "torn-manifest", Severity: record.Error,
			Place:  record.Place{File: v.manifest, Off: record.NoOffset, Level: -1},
			Detail: fmt.Sprintf("the MANIFEST ends within an atomic group; the %d edits of it that are there are not applied", len(v.group))})
	}
	return v.complete()
}

// reportTorn reports a MANIFEST that ends within a record. Engines open it without that edit, which is right
// after a crash; whether a file that was cut off has lost tables with it, the tables that it does not name tell.
func (db *database) reportTorn(lost bool) {
	f := record.Finding{Kind: "torn-manifest", Severity: record.Warning,
		Place: record.Place{File: db.version.manifest, Off: db.version.tornAt, Level: -1},
		Detail: "the MANIFEST ends within a record, as a crash leaves it: that change never took effect, " +
			"and no table that it does not name has rows of its own"}
	if lost {
		f.Severity = record.Error
		f.Detail = "the MANIFEST ends within a record: after a crash that change never took effect, " +
			"but a file that was cut off has lost tables with it"
	}
	db.report(f)
}

// editError places an error within an edit in the MANIFEST: offsets are those of the record.
func editError(path string, off int64, err error) error {
	var c *record.CorruptError
	if errors.As(err, &c) {
		return base.Corrupt(path, off, "version edit: "+c.Field, c.Err)
	}
	return base.Corrupt(path, off, "version edit", err)
}

// add applies an edit, or keeps it until its atomic group is complete.
func (v *version) add(e *versionEdit) error {
	if !e.inGroup {
		if len(v.group) > 0 {
			return errors.New("an atomic group is interrupted")
		}
		return v.apply(e)
	}
	if n := len(v.group); n > 0 && v.group[n-1].groupLeft != e.groupLeft+1 {
		return fmt.Errorf("atomic group: %d edits left after %d", e.groupLeft, v.group[n-1].groupLeft)
	}
	v.group = append(v.group, e)
	if e.groupLeft > 0 {
		return nil
	}
	for _, g := range v.group {
		if err := v.apply(g); err != nil {
			return err
		}
	}
	v.group = nil
	return nil
}

// apply makes an edit's changes.
func (v *version) apply(e *versionEdit) error {
	if e.addFamily {
		if v.families[e.family] != nil && e.family != 0 {
			return fmt.Errorf("column family %d is added twice", e.family)
		}
		v.families[e.family] = newFamily(e.family, e.familyName)
	}
	f := v.families[e.family]
	if f == nil {
		return fmt.Errorf("column family %d is unknown", e.family)
	}
	if e.dropFamily {
		delete(v.families, e.family)
	}
	if e.comparator != "" {
		if f.comparator != "" && f.comparator != e.comparator {
			return fmt.Errorf("column family %q: comparator %q, before %q", f.name, e.comparator, f.comparator)
		}
		f.comparator = e.comparator
	}
	f.logNumber = max(f.logNumber, e.logNumber)
	for _, d := range e.deleted {
		delete(f.tables, d)
	}
	for _, t := range e.added {
		f.tables[t.levelFile] = t
		v.mentioned[t.number] = true
	}
	v.lastSeq = max(v.lastSeq, e.lastSeq)
	v.minLog = max(v.minLog, e.minLog)
	v.nextFile = max(v.nextFile, e.nextFile)
	v.maxFamily = max(v.maxFamily, e.maxFamily, e.family)
	v.prevLog = e.prevLog
	v.rocks = v.rocks || e.rocks
	v.oldFile = v.oldFile || e.oldFile
	v.seen.nextFile = v.seen.nextFile || e.hasNextFile
	v.seen.lastSeq = v.seen.lastSeq || e.hasLastSeq
	v.seen.logNumber = v.seen.logNumber || e.hasLogNumber
	return nil
}

// complete checks that the MANIFEST said what every engine writes first.
func (v *version) complete() error {
	missing := ""
	switch {
	case !v.seen.nextFile:
		missing = "next file number"
	case !v.seen.lastSeq:
		missing = "last sequence"
	case !v.seen.logNumber:
		missing = "log number"
	}
	if missing != "" {
		return base.Corrupt(v.path, v.size, missing, errors.New("no version edit names it"))
	}
	for _, f := range v.sorted() {
		if f.comparator == "" {
			return base.Corrupt(v.path, v.size, "comparator", fmt.Errorf("column family %q has none", f.name))
		}
	}
	return nil
}

// sorted returns the column families by id.
func (v *version) sorted() []*family {
	out := make([]*family, 0, len(v.families))
	for _, f := range v.families {
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b *family) int { return cmp.Compare(a.id, b.id) })
	return out
}

// firstLog is the lowest log number that some column family still needs.
func (v *version) firstLog() uint64 {
	low := ^uint64(0)
	for _, f := range v.families {
		low = min(low, f.logNumber)
	}
	return max(low, v.minLog)
}

// hadLogs reports whether the database ever had a log: an engine that opens one says from which log
// on it needs them, RocksDB not before the first table or the second opening. It then left IDENTITY.
func (v *version) hadLogs(dir string) bool {
	if v.firstLog() > 0 || v.prevLog > 0 {
		return true
	}
	for _, f := range v.families {
		if len(f.tables) > 0 {
			return false
		}
	}
	_, err := os.Stat(filepath.Join(dir, "IDENTITY"))
	return err == nil
}

// levelDB reports whether the directory is LevelDB's: the tags tell, or, in a database too young to
// have any, the files that RocksDB always leaves beside the MANIFEST.
func (v *version) levelDB(dir string) bool {
	if v.rocks || v.oldFile {
		return !v.rocks
	}
	return !hasAny(dir, rocksFiles...)
}

// rocksFiles are what RocksDB has beside its tables and LevelDB has not.
var rocksFiles = []string{"OPTIONS-*", "IDENTITY"}

// hasAny reports whether dir has files that match one of some patterns.
func hasAny(dir string, patterns ...string) bool {
	for _, pattern := range patterns {
		if m, _ := filepath.Glob(filepath.Join(globEscape(dir), pattern)); len(m) > 0 {
			return true
		}
	}
	return false
}

// globEscape makes filepath.Glob take a directory's name as it is.
func globEscape(dir string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(dir)
}

// KeyspaceInfo is what a directory's MANIFEST says about a column family.
type KeyspaceInfo struct {
	Name, Comparer string
}

// Peek reads CURRENT and the MANIFEST of dir and says which engine the directory is of, "rocksdb" or
// "leveldb", and which column families it has. Where they cannot be read, the names of the other files speak for
// an engine.
func Peek(dir string) (kind string, keyspaces []KeyspaceInfo, err error) {
	v, err := readManifest(dir, func(record.Finding) {})
	if err != nil {
		if hasAny(dir, "*.ldb") && !hasAny(dir, rocksFiles...) {
			return flavourLevelDB.name, nil, err
		}
		return flavourRocksDB.name, nil, err
	}
	for _, f := range v.sorted() {
		keyspaces = append(keyspaces, KeyspaceInfo{f.name, f.comparator})
	}
	if v.levelDB(dir) {
		return flavourLevelDB.name, keyspaces, nil
	}
	return flavourRocksDB.name, keyspaces, nil
}
