package rocks

import (
	"cmp"
	"fmt"
	"path/filepath"

	"kvferry/internal/sys/disk"
	"kvferry/record"
	"kvferry/store/rocks/files"
	"kvferry/store/rocks/manifest"
)

// hadLogs reports whether the database ever had a log. An engine that opens one records in the MANIFEST the first log
// that it needs, RocksDB only with the first table or the second opening; before that, IDENTITY shows that it ran. A
// repair converts all logs to tables, moves them to lost and starts with log number 0.
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
	repaired, err := hasAny(disk.Join(dir, "lost"), "*.log")
	return !repaired, err
}

// needsLog reports whether an engine has opened the directory for writing, which creates a log, possibly an empty one.
// LevelDB makes no other directories. RocksDB leaves LOCK and IDENTITY, and neither in a checkpoint or a restored
// backup. One of them alone is no proof: a failed attempt to open a checkpoint leaves LOCK, and RocksDB 6.4 and some
// later versions write IDENTITY even if they only read. RocksDB 5 leaves both if it fails to open a checkpoint;
// --wal-dir is the way out there.
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

// missingLogs handles a directory without any log that the MANIFEST expects: it returns an error if the logs are kept
// elsewhere, and otherwise reports that they were left behind, or may have been.
func (db *database) missingLogs() error {
	wal, file, err := files.Option(db.dir, "wal_dir")
	if err != nil {
		return err
	}
	if elsewhere, err := db.isElsewhere(wal); err != nil || elsewhere {
		return cmp.Or(err, fmt.Errorf("%s has no logs, although the MANIFEST expects them; by %s they are in %s: pass "+
			"%s with their present directory (or with the directory of the data if logs never existed, as in a checkpoint)",
			db.dir, file, wal, db.walFlag()))
	}
	if _, flushes := db.version.Unflushed(); len(flushes) > 0 && !db.opts.AllowLive {
		return nil // judgeLogs reports them as log-gap
	}
	needed, err := db.needsLog()
	if err != nil {
		return err
	}
	if needed || !db.rebuilt { // without a MANIFEST, which has its own finding, a missing log is no evidence
		db.report(db.noLog(needed))
	}
	return nil
}

// walFlag is the name of the option for the directory of the logs.
func (db *database) walFlag() string { return cmp.Or(db.opts.WALFlag, "--wal-dir") }

// noLog is the finding for a directory without logs.
func (db *database) noLog(needed bool) record.Finding {
	f := record.Finding{Kind: "no-log", Severity: record.Warning, Place: record.InFile(db.version.Name),
		Detail: "no log follows the MANIFEST: a checkpoint (bgsave) does not need logs, but if the files were copied from a stopped or " +
			"running server, the last writes are missing; pass " + db.walFlag() + " with the directory of the logs if there are any"}
	if !needed {
		return f
	}
	why := "LOCK and IDENTITY show that a server opened this directory, which always creates a log"
	if db.levelDB {
		why = "LevelDB always keeps a log"
	}
	f.Severity = record.Error
	f.Detail = "no log follows the MANIFEST, and " + why + ": the last writes are missing; bring back the *.log files, or pass " +
		db.walFlag() + " with " +
		"their directory (or with the directory of the data if logs never existed, as in a checkpoint that a server failed to open)"
	return f
}

// isElsewhere reports whether wal_dir names another place than the directory. The path is where the server first opened
// the database. Today it may hold another database or be on another machine, so it is never read. A missing path that
// ends in the same name is taken for the original of a copy.
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
		here, err = disk.Abs(here)
	}
	if err != nil {
		return false, err
	}
	st, err := disk.Stat(here)
	if err != nil {
		return false, err
	}
	if there, err := disk.Stat(path); err == nil && !disk.IsMounted(here) {
		// A place with a CURRENT of its own is the database that this one was copied from.
		_, err := disk.Stat(disk.Join(path, "CURRENT"))
		return err != nil && !disk.SameFile(st, there), nil
	}
	return filepath.Base(path) != filepath.Base(here), nil
}
