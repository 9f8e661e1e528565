package manifest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"slices"

	"kvferry/internal/sys/disk"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/logfile"
)

// Version is the sum of the edits of a MANIFEST.
type Version struct {
	Name      string // name
	Number    uint64 // in Name
	Path      string
	Size      int64       // bytes of the MANIFEST that were read
	Info      fs.FileInfo // of the MANIFEST before it was read
	Families  map[uint32]*Family
	MaxFamily uint32
	dropped   map[uint32]bool // families that some edit dropped
	minLog    uint64
	flush     Flush   // the flush of the last edits
	begun     []Flush // flushes that began logs, ascending; see Unflushed
	start     start
	PrevLog   uint64
	LastSeq   uint64
	NextFile  uint64 // the next free file number
	Rocks     bool   // some tag is RocksDB's own
	OldFile   bool   // some tag is LevelDB's own
	seen      struct{ nextFile, lastSeq, logNumber bool }

	Mentioned map[uint64]bool // numbers of all tables that some edit added
	Ingested  map[uint64]bool // sequence numbers of ingested tables, which may have been compacted since

	Rebuilt bool           // built without a MANIFEST: see Rebuilt
	before  *Version       // the version before its damage
	was     map[uint64]Was // the files in before; see Was

	group []*Edit // edits of an incomplete atomic group

	reported map[string]bool // unknown parts already reported

	Torn   bool  // the MANIFEST ends within a record
	TornAt int64 // the start of that record
}

// Family is a column family.
type Family struct {
	ID         uint32
	Name       string
	Comparator string
	// Unnamed is true if no edit names the comparator. The first MANIFEST of a database omits it for the default
	// family, which then is bytewise unless the tables name another.
	Unnamed   bool
	LogNumber uint64
	Logged    uint64 // the largest sequence number of tables, also past ones, that was in a log; see noteTables
	Tables    map[Position]Table
	blobs     map[uint64]*Blob // all added files; see Blobs
	allBlobs  bool             // all of them count as part of the database
}

// Read replays the MANIFEST in CURRENT. If it is damaged, Read returns the version before the damage with the error.
func Read(ctx context.Context, dir string, report func(record.Finding)) (*Version, error) {
	name, err := Current(dir)
	if err != nil {
		return nil, err
	}
	return readNamed(ctx, dir, name, report)
}

// readNamed replays a MANIFEST. If it is damaged, readNamed returns the version before the damage with the error.
func readNamed(ctx context.Context, dir, name string, report func(record.Finding)) (*Version, error) {
	f, err := store.OpenRegular(disk.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &store.MissingError{File: disk.Join(dir, name), By: CurrentName}
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	v := newVersion()
	v.Name, v.Path, v.Size, v.Info = name, disk.Join(dir, name), st.Size(), st
	v.Number, _ = manifestNumber(name)
	return v, v.replay(ctx, logfile.NewReader(logfile.Within(ctx, io.NewSectionReader(f, 0, v.Size)), 0), report)
}

// newVersion returns the version before the first edit.
func newVersion() *Version {
	return &Version{Families: map[uint32]*Family{0: newFamily(0, "default")}, Mentioned: map[uint64]bool{},
		Ingested: map[uint64]bool{}, dropped: map[uint32]bool{}, reported: map[string]bool{}}
}

func newFamily(id uint32, name string) *Family {
	return &Family{ID: id, Name: name, Tables: map[Position]Table{}, blobs: map[uint64]*Blob{}}
}

// replay applies all edits of the MANIFEST.
func (v *Version) replay(ctx context.Context, log *logfile.Reader, report func(record.Finding)) error {
	for {
		rec, off, err := log.Next()
		if err == io.EOF {
			break
		}
		if err == logfile.ErrTorn {
			v.Torn, v.TornAt = true, off
			break
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return base.Corrupt(v.Path, off, "record", err)
		}
		e, err := Decode(rec)
		if err == nil {
			err = v.add(e)
		}
		if err != nil {
			return editError(v.Path, off, err)
		}
		v.reportUnknown(e, off, report)
	}
	if len(v.group) > 0 {
		report(record.Finding{Kind: "torn-manifest", Severity: record.Error, Place: record.InFile(v.Name),
			Detail: fmt.Sprintf("the MANIFEST ends within an atomic group; the %d edits of it that are there are not applied",
				len(v.group))})
	}
	return v.complete()
}

// reportUnknown reports skipped parts, once each.
func (v *Version) reportUnknown(e *Edit, off int64, report func(record.Finding)) {
	for _, u := range e.unknown {
		if v.reported[u.what] {
			continue
		}
		v.reported[u.what] = true
		report(record.Finding{Kind: record.FindNewer, Severity: u.Severity,
			Place: record.Place{File: v.Name, Off: off, Level: -1}, Detail: u.what})
	}
}

// editError adds the MANIFEST to an error within an edit. Its offset is the offset of the record.
func editError(path string, off int64, err error) error {
	var c *record.CorruptError
	if errors.As(err, &c) {
		return base.Corrupt(path, off, "version edit: "+c.Field, c.Err)
	}
	return base.Corrupt(path, off, "version edit", err)
}

// add applies an edit, or keeps it until its atomic group is complete.
func (v *Version) add(e *Edit) error {
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
func (v *Version) apply(e *Edit) error {
	if e.addFamily {
		if v.Families[e.family] != nil && e.family != 0 {
			return fmt.Errorf("column family %d is added twice", e.family)
		}
		v.Families[e.family] = newFamily(e.family, e.familyName)
	}
	f := v.Families[e.family]
	if f == nil {
		return fmt.Errorf("column family %d is unknown", e.family)
	}
	if e.dropFamily {
		delete(v.Families, e.family)
		v.dropped[e.family] = true
	}
	if e.comparator != "" {
		if f.Comparator != "" && f.Comparator != e.comparator {
			return fmt.Errorf("column family %q: comparator %q, before %q", f.Name, e.comparator, f.Comparator)
		}
		f.Comparator = e.comparator
	}
	f.LogNumber = max(f.LogNumber, e.logNumber)
	for _, d := range e.deleted {
		delete(f.Tables, d)
	}
	if err := f.addBlobs(e.blobs, e.garbage); err != nil {
		return fmt.Errorf("column family %q: %w", f.Name, err)
	}
	for _, b := range e.blobs {
		v.Mentioned[b.Number] = true
	}
	for _, t := range e.added {
		f.Tables[t.Position] = t
		v.Mentioned[t.Number] = true
	}
	v.noteTables(f, e)
	v.LastSeq = max(v.LastSeq, e.lastSeq)
	v.minLog = max(v.minLog, e.minLog)
	v.noteFlush(e)
	v.NextFile = max(v.NextFile, e.nextFile)
	v.MaxFamily = max(v.MaxFamily, e.maxFamily, e.family)
	v.PrevLog = e.prevLog
	v.Rocks = v.Rocks || e.rocks
	v.OldFile = v.OldFile || e.oldFile
	v.seen.nextFile = v.seen.nextFile || e.hasNextFile
	v.seen.lastSeq = v.seen.lastSeq || e.hasLastSeq
	v.seen.logNumber = v.seen.logNumber || e.hasLogNumber
	return nil
}

// complete checks for the fields that every engine writes first.
func (v *Version) complete() error {
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
		return base.Corrupt(v.Path, v.Size, missing, errors.New("no version edit names it"))
	}
	v.Families[0].setDefault()
	for _, f := range v.Sorted() {
		if f.Comparator == "" {
			return base.Corrupt(v.Path, v.Size, "comparator", fmt.Errorf("column family %q has no comparator", f.Name))
		}
	}
	return nil
}

// setDefault sets the comparator of the default family to bytewise if no edit names it.
func (f *Family) setDefault() {
	if f != nil && f.Comparator == "" {
		f.Comparator, f.Unnamed = store.Bytewise.Name, true
	}
}

// Sorted returns the column families by id.
func (v *Version) Sorted() []*Family {
	out := make([]*Family, 0, len(v.Families))
	for _, f := range v.Families {
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b *Family) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// noteTables notes the sequence numbers of the tables that an edit adds. A flush names a log, a compaction deletes
// tables, and ingestion does neither: it gives a table one number, which is in no log. The first edits of a MANIFEST
// have no next file number and do not show the origin of a table: one with several numbers was not ingested, or was
// compacted since.
func (v *Version) noteTables(f *Family, e *Edit) {
	for i := range e.added {
		t := &e.added[i]
		if e.hasNextFile && e.logNumber == 0 && len(e.deleted) == 0 && t.MinSeq == t.MaxSeq {
			v.Ingested[t.MaxSeq] = true
		}
		if flushed := e.hasNextFile && e.logNumber > 0; flushed || t.MinSeq < t.MaxSeq && !v.Ingested[t.MaxSeq] {
			f.Logged = max(f.Logged, t.MaxSeq)
		}
	}
}

// Flush is a flush of a column family that began a log. Its edit and the next one describe it.
type Flush struct {
	Log uint64 // the log that entries go to since
	Seq uint64 // the largest sequence number of its tables
}

// start collects the edits of a server's start. Their log numbers, if any, are equal; it ends at the first edit with
// another log number, or of a compaction or ingestion.
type start struct {
	log, nextFile uint64
	over          bool
}

func (s *start) add(e *Edit) {
	if s.log == 0 {
		s.log = e.logNumber
	}
	s.over = s.over || e.logNumber != s.log && (e.logNumber != 0 || len(e.added)+len(e.deleted) > 0)
	if !s.over && e.logNumber != 0 {
		s.nextFile = max(s.nextFile, e.nextFile)
	}
}

// noteFlush notes a flush that began a log if earlier logs are still needed. The first edits of a MANIFEST are older
// and have no next file number. The log of a server's start is older than its edits, or has the next number after them.
func (v *Version) noteFlush(e *Edit) {
	if !e.hasNextFile {
		return
	}
	v.start.add(e)
	f := Flush{Log: e.logNumber}
	if f.Log == v.flush.Log || f.Log == 0 && e.hasMinLog {
		f = v.flush
	}
	for i := range e.added {
		f.Seq = max(f.Seq, e.added[i].MaxSeq)
	}
	v.flush = f
	if !e.hasMinLog {
		return
	}
	n := len(v.begun)
	if v.start.over && f.Log > v.start.nextFile && (n == 0 || f.Log > v.begun[n-1].Log) {
		v.begun = append(v.begun, f)
	}
	for len(v.begun) > 0 && v.begun[0].Log <= v.minLog {
		v.begun = v.begun[1:]
	}
}

// Unflushed returns the first log that is needed and the flushes that began later logs. The logs before each flush have
// entries that no table has, and reach at least the last entry of its tables. An engine that flushes a column family
// begins another log, unless the last log is empty, and records the lowest log whose entries other families only have
// in memory: a family without such entries needs no log before the new log.
func (v *Version) Unflushed() (from uint64, flushes []Flush) {
	from, flushes = v.FirstLog(), v.begun
	for len(flushes) > 0 && flushes[0].Log <= from {
		flushes = flushes[1:]
	}
	return from, flushes
}

// FirstLog returns the lowest log number that some column family still needs.
func (v *Version) FirstLog() uint64 {
	low := uint64(math.MaxUint64)
	for _, f := range v.Families {
		low = min(low, f.LogNumber)
	}
	return max(low, v.minLog)
}

// Begins reports whether a log is the first that the MANIFEST needs, so that none before it is missing. An engine that
// opens a database writes all logs to tables, and begins a log and a MANIFEST one after the other.
func (v *Version) Begins(log uint64) bool {
	return log == v.FirstLog() || log > v.FirstLog() && (log+1 == v.Number || log == v.Number+1)
}
