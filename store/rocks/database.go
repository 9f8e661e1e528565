package rocks

import (
	"errors"
	"fmt"
	"sync"

	"kvferry/internal/sys/disk"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/files"
	"kvferry/store/rocks/lsm"
	"kvferry/store/rocks/manifest"
	"kvferry/store/rocks/sst"
)

// database is an open directory: a store.Store.
type database struct {
	dir     string
	opts    store.Options
	levelDB bool
	version *manifest.Version
	spaces  []*family
	logs    []*logFile
	retired []*logFile // logs that no column family needs any more
	// logErr is set if the logs are damaged. It fails reads of all rows, except in a salvage; Unordered still reads the
	// undamaged part.
	logErr  error
	rebuilt bool  // built from the files of the directory, without the MANIFEST
	behind  error // tables have rows of edits that the MANIFEST has lost
	cut     error // why the end of the MANIFEST is known to be lost: a salvage does without it

	env      lsm.Env
	files    files.Set
	indexes  sst.Cache
	packers  sst.Unpackers
	reportMu sync.Mutex
}

// lockFile is locked by the process that has the database open.
const lockFile = "LOCK"

// errChanged means that a live database changed while it was being opened.
var errChanged = errors.New("the database changes while it is being opened")

// newDatabase prepares to open a directory.
func newDatabase(dir string, o *store.Options, report func(record.Finding)) *database {
	db := &database{dir: dir, opts: *o}
	db.opts.Report = report
	if db.opts.Memory <= 0 {
		db.opts.Memory = record.DefaultMemory
	}
	db.env = lsm.Env{Dir: dir, Merger: o.Merger, Salvage: o.Salvage, OpenDamaged: o.OpenDamaged, Resort: o.Resort,
		Memory: db.opts.Memory, TempDir: o.TempDir, Report: db.report}
	db.env.Windows.Memory = db.opts.Memory / 4
	db.packers.Max = o.MaxBlock
	db.indexes.Max = db.opts.Memory / 4
	db.files.Keep = o.AllowLive
	db.files.Again = db.readAgain
	if !o.AllowLive { // a live database changes
		db.files.Sources = o.Sources
	}
	return db
}

// report passes a finding on.
func (db *database) report(f record.Finding) {
	if db.opts.Report == nil {
		return
	}
	db.reportMu.Lock()
	defer db.reportMu.Unlock()
	db.opts.Report(f)
}

// readAgain reports bytes that were only readable at the second attempt.
func (db *database) readAgain(f *files.File, off int64, refused error) {
	db.report(record.Finding{Kind: record.FindRefusedRead, Severity: record.Warning,
		Place:  record.Place{File: f.Name, Off: off, Level: -1},
		Detail: lsm.Reason(refused) + "; a second read succeeded: the disk may be failing, copy the dataset to another disk"})
}

// unchanged checks that CURRENT and the MANIFEST are as they were read.
func (db *database) unchanged() error {
	name, err := manifest.Current(db.dir)
	if err != nil {
		return err
	}
	st, err := disk.Stat(db.version.Path)
	if err != nil {
		return err
	}
	if name != db.version.Name || st.Size() != db.version.Size {
		return errChanged
	}
	return nil
}

// comparer finds the comparer of a column family.
func (db *database) comparer(name string) *store.Comparer {
	if name == store.Bytewise.Name {
		return &store.Bytewise
	}
	for i := range db.opts.Comparers {
		if db.opts.Comparers[i].Name == name {
			return &db.opts.Comparers[i]
		}
	}
	return nil
}

// tableName returns the file name of a table. LevelDB has two extensions; the existing file decides.
func (db *database) tableName(number uint64) string {
	name := fmt.Sprintf("%06d%s", number, base.RocksTable)
	if !db.levelDB {
		return name
	}
	if _, err := disk.Stat(disk.Join(db.dir, name)); err == nil {
		return name
	}
	return fmt.Sprintf("%06d%s", number, base.LevelTable)
}

// Keyspaces lists the column families by id.
func (db *database) Keyspaces() []store.Keyspace {
	out := make([]store.Keyspace, len(db.spaces))
	for i, ks := range db.spaces {
		out[i] = ks
	}
	return out
}

// Close releases all files.
func (db *database) Close() error {
	db.files.Close()
	db.env.Close()
	return nil
}

// family is a column family: a store.Keyspace.
type family struct {
	*lsm.Keyspace
	st        *database
	id        uint32
	logNumber uint64
	flushed   uint64 // the largest sequence number in tables that was also in a log; see lastFlushed
	blobs     *blobFiles
	holders   *holders // nil until an unlisted table is found
	circles   *circles // set while the logs are read; nil if the comparer is an order
}

// reads reports whether the column family needs the entries of a log: the entries of older logs are in tables.
func (ks *family) reads(l *logFile) bool {
	return l.number >= ks.logNumber || l.number == ks.st.version.PrevLog
}

// logFile is a write-ahead log that is still needed.
type logFile struct {
	number uint64
	file   *files.File
	name   string // for places
	// entries is the number of entries that are not in a table yet.
	entries int64
	seqs    seqSet // of its batches
	// flushed is the first entry that was already in a table, and nFlushed the number of such entries.
	flushed  flushedEntry
	nFlushed int64
	passed   []passedEntry // the last entries whose column families have them in tables
}

// passedEntry is an entry that a table has, unless a compaction dropped it since.
type passedEntry struct {
	seq    uint64
	family uint32
	key    uint64 // its hash
}

// flushedEntry is a log entry that was already in a table.
type flushedEntry struct {
	ks  *family
	seq uint64
	off int64 // of its batch
}
