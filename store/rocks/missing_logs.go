package rocks

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"

	"kvferry/internal/sys/disk"
	"kvferry/record"
	"kvferry/store/rocks/manifest"
	"kvferry/store/rocks/rocksopts"
)

// hadLogs reports whether the database ever had a log: an engine that opens one says from which log
// on it needs them, RocksDB not before the first table or the second opening. It then left IDENTITY.
// A repair makes tables of all logs, moves them to lost and begins with log number 0.
func hadLogs(v *manifest.Version, dir string) (bool, error) {
	if v.FirstLog() > 0 || v.PrevLog > 0 {
		return true, nil
	}
	for _, f := range v.Families {
		if len(f.Tables) > 0 {
			return false, nil
		}
	}
	identity, err := hasAny(dir, "IDENTITY")
	if err != nil || !identity {
		return false, err
	}
	repaired, err := hasAny(filepath.Join(dir, "lost"), "*.log")
	return !repaired, err
}

// needsLog reports whether an engine has opened the directory to write: then there is a log, be it an empty one. LevelDB makes
// nothing else. RocksDB leaves LOCK and IDENTITY, and neither in a checkpoint or a restored backup. One of them alone proves
// nothing: an attempt to open a checkpoint that failed leaves LOCK, and RocksDB 6.4 and some later versions write IDENTITY
// where they only read. RocksDB 5 leaves both when it fails to open a checkpoint; --wal-dir is the way out there.
func (db *database) needsLog() (bool, error) {
	if db.levelDB {
		return true, nil
	}
	lock, err := hasAny(db.dir, lockFile)
	if err != nil || !lock {
		return false, err
	}
	return hasAny(db.dir, "IDENTITY")
}

// missingLogs judges a directory without any of the logs that the MANIFEST counts on: it refuses it when they are kept
// elsewhere, and otherwise reports that they were left behind, or may have been.
func (db *database) missingLogs() error {
	wal, file, err := rocksopts.Newest(db.dir, "wal_dir")
	if err != nil {
		return err
	}
	if elsewhere, err := db.isElsewhere(wal); err != nil || elsewhere {
		return cmp.Or(err, fmt.Errorf("%s: logs should follow the MANIFEST, none is here, and %s says that they are kept in %s: pass "+
			"%s with where they are now (or with the directory of the data, if there are none, as in a checkpoint)", db.dir, file, wal, db.walFlag()))
	}
	if _, flushes := db.version.Unflushed(); len(flushes) > 0 && !db.opts.AllowLive {
		return nil // log-gap says what the MANIFEST knows of them
	}
	needed, err := db.needsLog()
	if err != nil {
		return err
	}
	if needed || !db.rebuilt { // a finding tells of the MANIFEST, without which nothing follows from a missing log
		db.report(db.noLog(needed))
	}
	return nil
}

// walFlag is the option that says where the logs are.
func (db *database) walFlag() string { return cmp.Or(db.opts.WALFlag, "--wal-dir") }

// noLog says that there is no log.
func (db *database) noLog(needed bool) record.Finding {
	f := record.Finding{Kind: "no-log", Severity: record.Warning, Place: record.Place{File: db.version.Name, Off: record.NoOffset, Level: -1},
		Detail: "no log follows the MANIFEST: a checkpoint (bgsave) has none, but when the files were copied from a stopped or " +
			"running server the last writes are missing; pass " + db.walFlag() + " with the directory of the logs if there are any"}
	if !needed {
		return f
	}
	why := "LOCK and IDENTITY show that a server opened this directory, where it always has one"
	if db.levelDB {
		why = "LevelDB always has one"
	}
	f.Severity = record.Error
	f.Detail = "no log follows the MANIFEST, and " + why + ": the last writes are missing; bring back the *.log files, or pass " + db.walFlag() + " with " +
		"their directory (or with that of the data, if there never were any, as in a checkpoint that a server tried to open in vain)"
	return f
}

// isElsewhere reports whether wal_dir names another place than the directory. The path is where the
// database was first opened, by its server, and may hold another one today or be on another machine:
// it is never read. One that is not here and ends in the same name is taken for the original of a copy.
func (db *database) isElsewhere(wal string) (bool, error) {
	if wal == "" {
		return false, nil
	}
	path, err := filepath.Abs(wal)
	if err != nil {
		return false, err
	}
	here, err := disk.EvalSymlinks(db.dir)
	if err == nil {
		here, err = filepath.Abs(here)
	}
	if err != nil {
		return false, err
	}
	st, err := disk.Stat(here)
	if err != nil {
		return false, err
	}
	if there, err := disk.Stat(path); err == nil {
		// A place with a CURRENT of its own is the database that this one was copied from.
		_, err := disk.Stat(filepath.Join(path, "CURRENT"))
		return err != nil && !os.SameFile(st, there), nil
	}
	return filepath.Base(path) != filepath.Base(here), nil
}
