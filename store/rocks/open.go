package rocks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"kvferry/internal/sys/disk"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/files"
	"kvferry/store/rocks/lsm"
	"kvferry/store/rocks/manifest"
	"kvferry/store/rocks/sst"
)

const (
	liveTries = 10 // attempts to open a changing directory
	livePause = 50 * time.Millisecond
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

var _ store.Opener = Open

// lockFile is locked by the process that has the database open.
const lockFile = "LOCK"

// errChanged means that a live database changed while it was being opened.
var errChanged = errors.New("the database changes while it is being opened")

// Open opens a RocksDB or LevelDB directory for reading.
func Open(ctx context.Context, dir string, o *store.Options) (store.Store, error) {
	if o == nil {
		o = &store.Options{}
	}
	if _, err := manifest.Current(dir); err != nil && (!o.Salvage || o.AllowLive || !rebuildable(dir, err)) {
		return nil, base.BlockError(err)
	}
	if !o.AllowLive {
		if err := store.CheckLive(dir, lockFile); err != nil {
			return nil, err
		}
		db, err := openDatabase(ctx, dir, o, o.Report)
		if err != nil {
			return nil, err
		}
		return db, nil
	}
	return openLive(ctx, dir, o)
}

// openLive opens a directory that another process may change. It opens all tables at once and starts over if a file
// vanishes or the MANIFEST grows.
func openLive(ctx context.Context, dir string, o *store.Options) (store.Store, error) {
	var err error
	for range liveTries {
		var found []record.Finding
		var db *database
		db, err = openDatabase(ctx, dir, o, func(f record.Finding) { found = append(found, f) })
		if err == nil {
			if err = db.unchanged(); err == nil {
				db.opts.Report = o.Report
				for _, f := range found {
					db.report(f)
				}
				return db, nil
			}
			db.Close()
		}
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errChanged) {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(livePause):
		}
	}
	return nil, fmt.Errorf("%s: gave up after %d tries: %w", dir, liveTries, err)
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

// openDatabase opens a directory once. If the end of the MANIFEST is lost, a salvage opens it again without the
// MANIFEST and drops the findings of the first attempt.
func openDatabase(ctx context.Context, dir string, o *store.Options, report func(record.Finding)) (*database, error) {
	var found []record.Finding
	hold := func(f record.Finding) { found = append(found, f) }
	db := newDatabase(dir, o, hold)
	err := db.open(ctx)
	if err == nil && db.behind != nil && o.Salvage && !o.AllowLive {
		behind := db.behind
		db.Close()
		found = nil
		db = newDatabase(dir, o, hold)
		db.cut = behind
		err = db.open(ctx)
	}
	db.opts.Report = report
	for _, f := range found {
		db.report(f)
	}
	if err != nil {
		db.Close()
		return nil, err
	}
	return db, nil
}

// newDatabase prepares to open a directory.
func newDatabase(dir string, o *store.Options, report func(record.Finding)) *database {
	db := &database{dir: dir, opts: *o}
	db.opts.Report = report
	if db.opts.Memory <= 0 {
		db.opts.Memory = record.DefaultMemory
	}
	db.env = lsm.Env{Dir: dir, Merger: o.Merger, Salvage: o.Salvage, Resort: o.Resort, Memory: db.opts.Memory, TempDir: o.TempDir, Report: db.report}
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

// open reads the MANIFEST, finds the files and reads the logs.
func (db *database) open(ctx context.Context) error {
	v, err := db.readManifest(ctx)
	if err == nil {
		err = db.cut
	}
	if err != nil && db.opts.Salvage && !db.opts.AllowLive && rebuildable(db.dir, err) {
		db.rebuilt = true
		v, err = db.repair().Version(ctx, v, err)
	}
	if err != nil {
		return base.BlockError(err)
	}
	db.version, db.env.Manifest = v, v.Path
	if db.levelDB, err = isLevelDB(v, db.dir); err != nil {
		return err
	}
	db.env.LevelDB = db.levelDB
	complete, err := db.load(ctx)
	if v.Torn {
		db.reportTorn(!complete)
	}
	return err
}

// readManifest reads CURRENT and the MANIFEST and watches both: an engine that opens the database changes them.
func (db *database) readManifest(ctx context.Context) (*manifest.Version, error) {
	current := disk.Join(db.dir, manifest.CurrentName)
	if st, err := disk.Stat(current); err == nil { // manifest.Read returns other errors
		if err := db.files.Sources.Add(current, st); err != nil {
			return nil, err
		}
	}
	v, err := manifest.Read(ctx, db.dir, db.report)
	if v != nil && v.Info != nil { // a change takes precedence: it may have caused err
		if changed := db.files.Sources.Add(v.Path, v.Info); changed != nil {
			return nil, changed
		}
	}
	return v, err
}

// load opens the tables listed in the MANIFEST and reads the logs. complete means that no other table can have rows of
// its own.
func (db *database) load(ctx context.Context) (complete bool, err error) {
	for _, f := range db.version.Sorted() {
		ks, err := db.newFamily(f)
		if err != nil {
			return false, err
		}
		db.spaces = append(db.spaces, ks)
		if err := ks.openTables(ctx, f); err != nil {
			return false, err
		}
		ks.flushed = ks.lastFlushed(f)
		if err := ks.openBlobs(f); err != nil {
			return false, err
		}
	}
	if db.logs, err = db.findLogs(); err != nil {
		return false, err
	}
	err = db.loadLogs(ctx)
	logged := err == nil && db.logErr == nil
	var c *record.CorruptError
	if errors.As(err, &c) {
		for _, ks := range db.spaces {
			ks.LogErr = base.BlockError(err)
		}
		db.logErr, err = err, nil
	}
	if err != nil {
		return false, err
	}
	if db.version.Rebuilt {
		return true, nil // the files themselves are the only reference
	}
	if complete, err = db.strays(ctx); err == nil && logged {
		err = db.judgeLogs(ctx)
		db.checkLastSequence()
	}
	return complete, err
}

// readAgain reports bytes that were only readable at the second attempt.
func (db *database) readAgain(f *files.File, off int64, refused error) {
	db.report(record.Finding{Kind: record.FindRefusedRead, Severity: record.Warning, Place: record.Place{File: f.Name, Off: off, Level: -1},
		Detail: lsm.Reason(refused) + "; a second read succeeded: the disk may be failing, copy the dataset to another disk"})
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

// newFamily makes the keyspace of a column family.
func (db *database) newFamily(f *manifest.Family) (*family, error) {
	if f.Unnamed {
		f.Comparator = cmp.Or(db.comparatorOfTables(f), f.Comparator)
	}
	c := db.comparer(f.Comparator)
	if c == nil {
		return nil, fmt.Errorf("%s: column family %q is in the order of comparator %q, which is unknown here",
			db.dir, f.Name, f.Comparator)
	}
	return &family{Keyspace: lsm.New(&db.env, f.Name, c), st: db, id: f.ID, logNumber: f.LogNumber}, nil
}

// comparatorOfTables returns the comparator of the first of the family's tables that names one, or "".
func (db *database) comparatorOfTables(f *manifest.Family) string {
	for _, m := range f.Tables {
		file, err := db.files.Open(db.dir, db.tableName(m.Number), false)
		if err != nil {
			continue // reading the table reports the error
		}
		if i, err := db.newSource(file, &sst.Options{Unlisted: true, Comparer: &store.Bytewise}).Reader.Open(); err == nil && i.Comparator != "" {
			return i.Comparator
		}
	}
	return ""
}

// tableName returns the file name of a table. LevelDB has two extensions; the existing file decides.
func (db *database) tableName(number uint64) string {
	name := fmt.Sprintf("%06d%s", number, flavourRocksDB.tableExt)
	if !db.levelDB {
		return name
	}
	if _, err := disk.Stat(disk.Join(db.dir, name)); err == nil {
		return name
	}
	return fmt.Sprintf("%06d%s", number, flavourLevelDB.tableExt)
}

// openTables finds the files of a column family's tables.
func (ks *family) openTables(ctx context.Context, f *manifest.Family) error {
	var tables []*lsm.Table
	for _, m := range f.Tables {
		if err := ctx.Err(); err != nil {
			return err
		}
		t, err := ks.findTable(m)
		if err != nil {
			return err
		}
		tables = append(tables, t)
	}
	ks.SetTables(tables)
	return nil
}

// findTable opens the file of a table. In a salvage, a missing file or one of the wrong size becomes a broken table.
func (ks *family) findTable(m manifest.Table) (*lsm.Table, error) {
	db := ks.st
	name := db.tableName(m.Number)
	meta := lsm.Meta{Name: name, Path: disk.Join(db.dir, name), Level: m.Level, Number: m.Number, Size: m.Size,
		Smallest: m.Smallest, Largest: m.Largest, MinSeq: m.MinSeq, MaxSeq: m.MaxSeq}
	file, err := db.files.Open(db.dir, name, db.opts.AllowLive)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = &store.MissingError{File: meta.Path, By: "the MANIFEST"}
		if db.opts.AllowLive && db.unchanged() != nil {
			return nil, err // the MANIFEST may no longer name it
		}
	case err == nil && m.Err != nil:
		err = base.Corrupt(meta.Path, record.NoOffset, "MANIFEST", m.Err)
	case err == nil && file.Size != m.Size:
		err = base.Corrupt(meta.Path, record.NoOffset, lsm.FieldFileSize, fmt.Errorf("%d bytes, the MANIFEST says %d", file.Size, m.Size))
	}
	if err == nil {
		src := db.newSource(file, &sst.Options{Keyspace: ks.Name(), Comparer: ks.Comparer(), Sequence: m.MaxSeq})
		if !db.version.Rebuilt {
			src.claim = &claim{Table: m, family: ks.Name(), compare: ks.Comparer().Compare}
		}
		return lsm.NewTable(ks.Keyspace, meta, src), nil
	}
	if !ks.Salvages(err) {
		return nil, base.BlockError(err)
	}
	if file != nil {
		meta.Size = file.Size
	}
	return lsm.NewBrokenTable(ks.Keyspace, meta, err), nil
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
