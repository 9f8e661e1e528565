package rocks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"kvferry/internal/sys/disk"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/files"
	"kvferry/store/rocks/lsm"
	"kvferry/store/rocks/manifest"
	"kvferry/store/rocks/sst"
)

// A salvage rebuilds the version that an unreadable MANIFEST held.
//
// It does the same as RepairDB of RocksDB and LevelDB, but writes no files: it reads every
// table in the directory as a table of level 0, and every log. Sequence numbers order the rows, then file numbers. The
// result is a manifest.Version, so all other code works unchanged, and depends on the files alone.
//
//	column families      the part of the MANIFEST before the damage, the properties of tables, and OPTIONS, which lists the
//	                     families in the order of their ids
//	comparator           the same; of LevelDB, whose tables do not name it, that of the format
//	obsolete files       files that the MANIFEST deleted before the damage are not read. Others are not recognised:
//	                     deleted or overwritten rows come back if an obsolete table still has them
//	bounds               the first and last key that can be read, and the range tombstones
//	ingested tables      only the MANIFEST has their sequence number. A lost number counts as 0: every other row of the
//	                     same key is newer, unless a compaction has set its number to 0, too
//	blob files           all, each of the column family that its header names
//
// If only CURRENT is lost, the newest MANIFEST that ends with a whole record is used.

// rebuilder builds a manifest.Version.
type rebuilder struct {
	db       *database
	v        *manifest.Version
	tables   []*foundTable // by number
	blobs    []foundBlob
	logs     int
	ingested int // tables whose sequence number is lost
}

// foundTable is a table of the directory.
type foundTable struct {
	number uint64
	file   *files.File
	opts   *sst.Options
	source *sst.Reader
	info   *sst.Info
	err    error // of opening it
	was    manifest.Was
	family *manifest.Family
	// dropped is set if its family is no longer part of the database.
	dropped bool
}

// foundBlob is a blob file of the directory.
type foundBlob struct {
	number uint64
	family uint32
}

// rebuild builds the version of a MANIFEST that cannot be read because of cause. of is the version before the damage, or
// nil.
func (db *database) rebuild(ctx context.Context, of *manifest.Version, cause error) (*manifest.Version, error) {
	b, err := db.survey(ctx, of, cause)
	if err != nil {
		return nil, err
	}
	if !b.v.Rebuilt {
		return b.v, nil
	}
	for _, t := range b.tables {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := b.add(t); err != nil {
			return nil, err
		}
	}
	for _, f := range b.blobs {
		if fam := b.v.FamilyOf(f.family, "", ""); fam != nil {
			b.v.AddBlob(fam, f.number)
		}
	}
	if len(b.v.Mentioned)+b.logs == 0 {
		return nil, cause
	}
	b.tell(cause)
	return b.v, nil
}

// survey is rebuild without the contents of tables, for callers that only need the column families.
func (db *database) survey(ctx context.Context, of *manifest.Version, cause error) (*rebuilder, error) {
	entries, err := disk.ReadDir(db.dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	b := &rebuilder{db: db}
	f := causeOf(db.dir, cause)
	if f.Place.File == manifest.CurrentName {
		if b.v = manifest.Newest(ctx, db.dir, names, db.report); b.v != nil {
			f.Detail += fmt.Sprintf("; %s is taken, the newest MANIFEST of the directory that can be read to its end", b.v.Name)
			db.report(f)
			return b, ctx.Err()
		}
	}
	known := false
	if of != nil {
		db.levelDB, known = of.Engine()
	}
	if !known {
		db.levelDB = hasExt(names, base.LevelTable) || !hasExt(names, base.RocksTable) && !isRocks(names)
	}
	b.v = manifest.Rebuilt(of, db.dir, f.Place.File, db.levelDB)
	for _, name := range names {
		if err := b.examineFile(name); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(b.tables, func(t, u *foundTable) int { return cmp.Compare(t.number, u.number) })
	return b, b.families()
}

// hasExt reports whether a name has the extension.
func hasExt(names []string, ext string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return filepath.Ext(n) == ext })
}

// isRocks reports whether the names include a file that only RocksDB writes.
func isRocks(names []string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return n == "IDENTITY" || strings.HasPrefix(n, "OPTIONS-") })
}

// examineFile examines a file of the directory.
func (b *rebuilder) examineFile(name string) error {
	ext := filepath.Ext(name)
	number, err := strconv.ParseUint(strings.TrimSuffix(name, ext), 10, 64)
	isTable := ext == base.RocksTable || ext == base.LevelTable && b.db.levelDB
	switch {
	case ext == logExt && err == nil:
		b.logs++
		return nil
	case err != nil || !isTable && ext != blobExt:
		return nil
	}
	was := b.v.Was(number)
	if was.Past {
		b.note(record.Note, "unreferenced-table", name, "the MANIFEST gave this file up before the damage; kvferry does not read it")
		return nil
	}
	file, err := b.db.files.Open(b.db.dir, name, false)
	if errors.Is(err, store.ErrNotRegular) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if ext == blobExt {
		return b.blob(number, file)
	}
	t := &foundTable{number: number, file: file, was: was,
		opts: &sst.Options{Unlisted: true, Salvage: true, Comparer: &store.Bytewise}}
	t.source = b.db.newSource(file, t.opts).Reader
	if t.info, t.err = t.source.Open(); disk.IsAccess(t.err) {
		return t.err
	}
	b.tables = append(b.tables, t)
	return nil
}

// blob adds a blob file.
func (b *rebuilder) blob(number uint64, file *files.File) error {
	f, err := openAnyBlob(file, file.Size, file.Path)
	if disk.IsAccess(err) {
		return err
	}
	if err != nil {
		b.note(record.Error, record.FindDamagedBlob, file.Name, lsm.Reason(err)+"; the rows whose values it has are missing")
		return nil
	}
	b.blobs = append(b.blobs, foundBlob{number, f.Family})
	return nil
}

// families finds the column families and assigns the tables to them.
func (b *rebuilder) families() error {
	for _, t := range b.tables {
		switch p := &t.info.Properties; {
		case t.was.Listed:
			t.family = b.v.Families[t.was.Family]
		case t.err == nil && p.HasFamily && p.Family <= math.MaxUint32:
			if t.family = b.v.FamilyOf(uint32(p.Family), p.FamilyName, p.Comparator); t.family == nil {
				t.dropped = true
			}
		}
	}
	if err := b.fromOptions(); err != nil {
		return err
	}
	for _, t := range b.tables { // LevelDB and early versions of RocksDB do not record the family
		legacy := t.err == nil && !t.info.HasFamily && t.info.Family == 0
		if t.family == nil && (legacy || len(b.v.Families) == 1) {
			t.family = b.v.FamilyOf(0, "", t.info.Comparator)
		}
	}
	for _, f := range b.v.Families {
		if f.Comparator == "" && b.db.levelDB && len(b.db.opts.Comparers) > 0 {
			f.Comparator = b.db.opts.Comparers[0].Name
		}
	}
	b.v.Complete()
	return nil
}

// fromOptions adds the column families in OPTIONS, which lists them by id. The id of a family is its position, unless
// an earlier family was dropped: then the ids and log entries of families without tables are unknown.
func (b *rebuilder) fromOptions() error {
	list, err := files.Families(b.db.dir)
	if err != nil || b.db.levelDB {
		return err
	}
	placed := true
	named := map[string]bool{}
	for id, f := range b.v.Families {
		named[f.Name] = true
		placed = placed && (int64(id) < int64(len(list)) && list[id].Name == f.Name)
	}
	for i, f := range list {
		id := uint32(i)
		if !placed {
			id = math.MaxUint32 - id
		}
		if placed || !named[f.Name] {
			b.v.FamilyOf(id, f.Name, f.Comparator)
		}
	}
	return nil
}

// add adds a table to the version.
func (b *rebuilder) add(t *foundTable) error {
	if t.dropped {
		b.note(record.Note, "unreferenced-table", t.file.Name, "the table is of a column family that was dropped; kvferry does not read it")
		return nil
	}
	if t.family == nil {
		why := "it does not name its column family"
		if t.err != nil {
			why = lsm.Reason(t.err)
		}
		b.note(record.Error, record.FindDamagedBlock, t.file.Name, why+", so the column family of its rows is unknown; they are missing")
		return nil
	}
	if c := b.db.comparer(t.family.Comparator); c != nil {
		t.opts.Comparer = c
	}
	m := t.was.Table
	m.Number, m.Size = t.number, t.file.Size
	first, last, err := t.source.Bounds()
	switch {
	case disk.IsAccess(err):
		return err
	case err == nil && first == nil && t.info.TombstoneErr == nil && t.info.Entries == 0:
		return nil // an empty table
	case err != nil || first == nil:
		if err == nil {
			err = base.Corrupt(t.file.Path, record.NoOffset, "table", errors.New("all of its blocks are unreadable"))
		}
		b.note(record.Error, record.FindDamagedBlock, t.file.Name, lsm.Reason(err)+"; its rows are missing")
		return nil
	}
	m.Smallest, m.Largest = first, last
	if t.info.External && !t.was.Listed {
		m.MinSeq, m.MaxSeq = t.info.GlobalSeq, t.info.GlobalSeq
		if t.info.GlobalSeq == 0 {
			b.ingested++
		}
	}
	b.v.AddTable(t.family, m)
	return nil
}

// note reports a finding about a file.
func (b *rebuilder) note(s record.Severity, kind, file, detail string) {
	at := record.InFile(file)
	if kind == record.FindDamagedBlock {
		at.Level = 0
	}
	b.db.report(record.Finding{Kind: kind, Severity: s, Place: at, Detail: detail})
}

// causeOf returns the finding for the error that made the rebuild necessary.
func causeOf(dir string, err error) record.Finding {
	f := record.Finding{Kind: record.FindDamagedFile, Severity: record.Error, Detail: lsm.Reason(err),
		Place: record.InFile(manifest.CurrentName)}
	var missing *store.MissingError
	var c *record.CorruptError
	switch {
	case errors.As(err, &missing):
		f.Kind, f.Place.File = record.FindMissingFile, filepath.Base(missing.File)
	case errors.As(err, &c):
		f.Kind, f.Place.File, f.Place.Off = lsm.Newer(f.Kind, err), filepath.Base(c.File), c.Off
	}
	return f
}

// tell reports the sources of a rebuilt version and the possible loss.
func (b *rebuilder) tell(cause error) {
	f := causeOf(b.db.dir, cause)
	if b.db.cut != nil {
		f.Kind = "manifest-behind"
	}
	tables := 0
	for _, fam := range b.v.Families {
		tables += len(fam.Tables)
	}
	f.Detail += fmt.Sprintf("; all tables and logs of the directory are read instead, by their sequence numbers (tables: %d, logs: %d): "+
		"rows deleted before may come back, and records may be older or incomplete, where a table is obsolete or missing", tables,
		b.logs)
	if b.ingested > 0 {
		f.Detail += fmt.Sprintf("; ingested tables: %d, whose rows count as the oldest of their keys, since only the MANIFEST had their sequence numbers",
			b.ingested)
	}
	b.db.report(f)
}
