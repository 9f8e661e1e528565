package rocks

import (
	"cmp"
	"context"

	"kvferry/internal/sys/disk"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/manifest"
)

// reportTorn reports a MANIFEST that ends within a record. Engines open it without that edit, which is right after a
// crash. If the file was truncated instead, unlisted tables show whether it has lost tables.
func (db *database) reportTorn(lost bool) {
	f := record.Finding{Kind: "torn-manifest", Severity: record.Warning,
		Place: record.Place{File: db.version.Name, Off: db.version.TornAt, Level: -1},
		Detail: "the MANIFEST ends within a record, as after a crash: engines drop that change, " +
			"and no unlisted table has rows that exist nowhere else"}
	if lost {
		f.Severity = record.Error
		f.Detail = "the MANIFEST ends within a record: engines drop that change, " +
			"but a file that was cut off has lost tables with it"
	}
	db.report(f)
}

// isLevelDB reports whether the directory is a LevelDB database: by the tags of the MANIFEST or, before the first tag,
// by the absence of the files that RocksDB always leaves.
func isLevelDB(v *manifest.Version, dir string) (bool, error) {
	if v.Rocks || v.OldFile {
		return !v.Rocks, nil
	}
	rocks, err := hasAny(dir, rocksFiles...)
	return !rocks, err
}

// rocksFiles match files that RocksDB writes and LevelDB does not.
var rocksFiles = []string{"OPTIONS-*", "IDENTITY"}

// hasAny reports whether dir has files that match one of some patterns.
func hasAny(dir string, patterns ...string) (bool, error) {
	for _, pattern := range patterns {
		if m, err := disk.Glob(dir, pattern); err != nil || len(m) > 0 {
			return len(m) > 0, err
		}
	}
	return false, nil
}

// KeyspaceInfo describes a column family listed in the MANIFEST of a directory.
type KeyspaceInfo struct {
	Name, Comparer string
	Ends           [][]byte // the first and last keys of some tables
}

// maxEnds is the maximum number of tables in KeyspaceInfo.Ends.
const maxEnds = 64

func infoOf(f *manifest.Family) KeyspaceInfo {
	info := KeyspaceInfo{Name: f.Name, Comparer: f.Comparator}
	for _, t := range f.Tables {
		if info.Ends = append(info.Ends, userKey(t.Smallest), userKey(t.Largest)); len(info.Ends) >= 2*maxEnds {
			break
		}
	}
	return info
}

// userKey returns the user key of an internal key.
func userKey(k []byte) []byte { return k[:max(0, len(k)-base.TrailerLen)] }

// Peek reads CURRENT and the MANIFEST of dir and returns the engine of the directory, "rocksdb" or "leveldb", and its
// column families. If they are damaged, it derives both from the other files as far as possible, and returns the error
// too.
func Peek(dir string) (kind string, keyspaces []KeyspaceInfo, err error) {
	ctx := context.Background()
	v, err := manifest.Read(ctx, dir, func(record.Finding) {})
	if err != nil { // returned even if the survey succeeds
		if !rebuildable(dir, err) {
			return base.RocksDB, nil, err
		}
		db := newDatabase(dir, &store.Options{}, nil)
		defer db.Close()
		b, surveyErr := db.survey(ctx, v, err)
		if surveyErr != nil {
			return base.RocksDB, nil, err
		}
		v = b.v
	}
	for _, f := range v.Sorted() {
		keyspaces = append(keyspaces, infoOf(f))
	}
	kind = base.RocksDB
	level, levelErr := isLevelDB(v, dir)
	if level {
		kind = base.LevelDB
	}
	return kind, keyspaces, cmp.Or(err, levelErr)
}

// IsStore reports whether a directory is a database, or was one that has lost CURRENT.
func IsStore(dir string) bool { return manifest.IsStore(dir) }

// rebuildable reports whether a salvage can ignore an error of CURRENT or the MANIFEST.
func rebuildable(dir string, err error) bool { return base.IsDamage(err) && manifest.IsStore(dir) }
