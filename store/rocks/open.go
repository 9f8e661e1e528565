package rocks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"kvferry/internal/sys/disk"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/lsm"
	"kvferry/store/rocks/manifest"
	"kvferry/store/rocks/sst"
)

const (
	liveTries = 10 // attempts to open a changing directory
	livePause = 50 * time.Millisecond
)

var _ store.Opener = Open

// Open opens a RocksDB or LevelDB directory for reading.
func Open(ctx context.Context, dir string, o *store.Options) (store.Store, error) {
	if o == nil {
		o = &store.Options{}
	}
	if o.OpenDamaged && !o.AllowLive && !o.Salvage {
		return openDamaged(ctx, dir, o)
	}
	return openSound(ctx, dir, o)
}

// openDamaged opens a directory. All reads fail if only a salvage can open it.
func openDamaged(ctx context.Context, dir string, o *store.Options) (store.Store, error) {
	st, err := openSound(ctx, dir, o)
	if !base.IsDamage(err) {
		return st, err
	}
	again := *o
	again.Salvage, again.Report = true, nil
	st, other := openSound(ctx, dir, &again)
	if other != nil {
		return nil, err
	}
	for _, ks := range st.Keyspaces() {
		ks.(*family).LogErr = base.BlockError(err)
	}
	return st, nil
}

func openSound(ctx context.Context, dir string, o *store.Options) (store.Store, error) {
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

// open reads the MANIFEST, finds the files and reads the logs.
func (db *database) open(ctx context.Context) error {
	v, err := db.readManifest(ctx)
	if err == nil {
		err = db.cut
	}
	if err != nil && db.opts.Salvage && !db.opts.AllowLive && rebuildable(db.dir, err) {
		db.rebuilt = true
		v, err = db.rebuild(ctx, v, err)
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
		if i, err := db.newSource(file, &sst.Options{Unlisted: true, Comparer: &store.Bytewise}).Reader.Open(); err == nil &&
			i.Comparator != "" {
			return i.Comparator
		}
	}
	return ""
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
		err = base.Corrupt(meta.Path, record.NoOffset, lsm.FieldFileSize,
			fmt.Errorf("%s bytes, but %s in the MANIFEST", record.Number(file.Size), record.Number(m.Size)))
	}
	if err == nil {
		src := db.newSource(file, &sst.Options{Keyspace: ks.Name(), Comparer: ks.Comparer(), Sequence: m.MaxSeq})
		if !db.version.Rebuilt {
			src.claim = &claim{Table: m, family: ks.Name(), compare: ks.Comparer().Compare}
		}
		return lsm.NewTable(ks.Keyspace, meta, src), nil
	}
	if !ks.Salvages(err) && !(db.opts.OpenDamaged && base.IsDamage(err)) {
		return nil, base.BlockError(err)
	}
	if file != nil {
		meta.Size, meta.Lacks = file.Size, max(m.Size-file.Size, 0)
	}
	return lsm.NewBrokenTable(ks.Keyspace, meta, err), nil
}

// openBlobs finds the blob files of a column family.
func (ks *family) openBlobs(f *manifest.Family) error {
	all := &blobFiles{fam: ks, files: map[uint64]*blobFile{}}
	ks.blobs, ks.Values = all, all
	for _, m := range f.Blobs() {
		b, err := ks.findBlob(m)
		if err != nil {
			return err
		}
		all.files[m.Number] = b
		all.order = append(all.order, b)
	}
	return nil
}

// findBlob opens a blob file. In a salvage, a missing file is kept: its values count as unreadable.
func (ks *family) findBlob(m manifest.Blob) (*blobFile, error) {
	db := ks.st
	b := &blobFile{fam: ks, meta: m, name: blobName(m.Number)}
	b.path = disk.Join(db.dir, b.name)
	file, err := db.files.Open(db.dir, b.name, db.opts.AllowLive)
	if errors.Is(err, fs.ErrNotExist) {
		err = &store.MissingError{File: b.path, By: "the MANIFEST"}
		if db.opts.AllowLive && db.unchanged() != nil {
			return nil, err // the MANIFEST may no longer name it
		}
	}
	if err == nil && m.Err != nil {
		err = base.Corrupt(b.path, record.NoOffset, "MANIFEST", m.Err)
	}
	if err != nil && !ks.Salvages(err) {
		return nil, base.BlockError(err)
	}
	b.file = file
	if err != nil {
		b.once.Do(func() { b.err = err })
	}
	return b, nil
}
