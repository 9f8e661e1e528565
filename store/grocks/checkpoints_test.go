//go:build rocksdb

package grocks

import (
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"testing"

	"github.com/linxGnu/grocksdb"

	"kvferry/record"
)

// TestLogsOfCheckpoints: RocksDB makes checkpoints and restores backups of a server that writes. Unlike the server's
// own directory, they are not mistaken for one without its logs, even after attempts to open them.
func TestLogsOfCheckpoints(t *testing.T) {
	n := 4
	if long() {
		n = 100
	}
	for i := range n {
		t.Run(fmt.Sprint(i), func(t *testing.T) { logsOfCheckpoints(t, random(t)) })
	}
}

func logsOfCheckpoints(t *testing.T, r *rand.Rand) {
	w := newWriter(t, r, filepath.Join(t.TempDir(), "db"), with("a server", func(o *writerOptions) { o.format = 5 }))
	for range 4 {
		w.write()
		for _, logs := range []uint64{0, 1 << 30} { // flushed, or with its logs
			dir := filepath.Join(t.TempDir(), "checkpoint")
			c, err := w.w.db.NewCheckpoint()
			must(t, err)
			must(t, c.CreateCheckpoint(dir, logs))
			c.Destroy()
			noErrors(t, "checkpoint", dir)
			openReadOnly(t, w, dir)
			noErrors(t, "checkpoint, opened to read", dir)
			openInVain(t, w, dir)
			noErrors(t, "checkpoint, opened in vain", dir)
		}
	}
	w.close()
	checkWithoutLogs(t, w.dir)
}

// TestLogsOfBackups: a backup that was restored needs no log, and neither does a database that RepairDB moved the logs out of,
// even one without rows.
func TestLogsOfBackups(t *testing.T) {
	o, wo := grocksdb.NewDefaultOptions(), grocksdb.NewDefaultWriteOptions()
	defer o.Destroy()
	defer wo.Destroy()
	o.SetCreateIfMissing(true)
	for _, key := range []string{"", "key"} {
		dir := filepath.Join(t.TempDir(), "db")
		db, err := grocksdb.OpenDb(o, dir)
		must(t, err)
		if key != "" {
			must(t, db.Put(wo, []byte(key), nil))
		}
		backup := restored(t, db)
		db.Close()
		noErrors(t, "restored", backup)
		checkWithoutLogs(t, dir)
		must(t, grocksdb.RepairDb(dir, o))
		noErrors(t, "repaired", dir)
	}
}

// write changes some column families, and flushes some.
func (w *writer) write() {
	fo := grocksdb.NewDefaultFlushOptions()
	defer fo.Destroy()
	for range 10 {
		i := w.r.Intn(len(w.families))
		for range 1 + w.r.Intn(5) {
			must(w.t, w.change(i))
		}
		if w.r.Intn(2) == 0 {
			must(w.t, w.w.db.FlushCF(w.w.handles[w.r.Intn(len(w.families))], fo))
		}
	}
}

func openReadOnly(t *testing.T, w *writer, dir string) {
	t.Helper()
	var names []string
	for _, f := range w.families {
		names = append(names, f.name)
	}
	db, handles, err := grocksdb.OpenDbForReadOnlyColumnFamilies(w.w.options[0], dir, names, w.w.options, false)
	must(t, err)
	for _, h := range handles {
		h.Destroy()
	}
	db.Close()
}

// openInVain opens a database to write as a tool does that does not know its column families.
func openInVain(t *testing.T, w *writer, dir string) {
	t.Helper()
	if db, err := grocksdb.OpenDb(w.w.options[0], dir); err == nil {
		db.Close()
		t.Fatal("opened without its column families")
	}
	_, err := os.Stat(filepath.Join(dir, "LOCK"))
	must(t, err)
}

// restored makes a backup of a database and restores it elsewhere.
func restored(t *testing.T, db *grocksdb.DB) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "restored")
	b, err := grocksdb.CreateBackupEngineWithPath(db, filepath.Join(t.TempDir(), "backup"))
	must(t, err)
	defer b.Close()
	must(t, b.CreateNewBackupFlush(true))
	o := grocksdb.NewRestoreOptions()
	defer o.Destroy()
	must(t, b.RestoreDBFromLatestBackup(dir, dir, o))
	return dir
}

func noErrors(t *testing.T, what, dir string) {
	t.Helper()
	db, found, err := openFound(t, dir)
	must(t, err)
	defer db.Close()
	for _, f := range *found {
		if f.Severity == record.Error {
			t.Errorf("%s: %+v", what, f)
		}
	}
}

func checkWithoutLogs(t *testing.T, dir string) {
	t.Helper()
	copied := filepath.Join(t.TempDir(), "db")
	must(t, os.CopyFS(copied, os.DirFS(dir)))
	logs, err := filepath.Glob(filepath.Join(copied, "*.log"))
	must(t, err)
	if len(logs) == 0 {
		t.Fatal("a server without a log")
	}
	for _, log := range logs {
		must(t, os.Remove(log))
	}
	db, found, err := openFound(t, copied)
	must(t, err)
	defer db.Close()
	for _, f := range *found {
		if f.Severity == record.Error && (f.Kind == "no-log" || f.Kind == record.FindLogGap) {
			return
		}
	}
	t.Errorf("a server without its logs: findings %+v", *found)
}
