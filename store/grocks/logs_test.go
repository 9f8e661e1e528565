//go:build rocksdb

package grocks

import (
	"context"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/linxGnu/grocksdb"

	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks"
)

// TestLogsOfServers: servers write to some column families, flush some, end, start, and end without notice. The logs
// that this leaves, even empty, have no findings, and the rows equal the rows that RocksDB reads. When a log is lost
// and a later one has writes, that is found.
func TestLogsOfServers(t *testing.T) {
	n := 6
	if long() {
		n = 100
	}
	for i := range n {
		t.Run(fmt.Sprint(i), func(t *testing.T) { logsOfServers(t, random(t)) })
	}
}

func logsOfServers(t *testing.T, r *rand.Rand) {
	keeps := r.Intn(3) == 0 // the logs when it starts: then no MANIFEST says what they had
	text := fmt.Sprintf("avoid_flush_during_recovery=%t;avoid_flush_during_shutdown=%t;atomic_flush=%t", keeps, r.Intn(2) == 0,
		r.Intn(4) == 0)
	compacts := r.Intn(2) == 0 // on its own: a flush is not needed for it
	recycled, noLog := uint(r.Intn(2)*r.Intn(3)), r.Intn(8) == 0
	t.Logf("%s, compacts: %t, %d logs are recycled, without a log: %t", text, compacts, recycled, noLog)
	o := with("a server", func(o *writerOptions) {
		o.format = 5
		o.db = func(d *grocksdb.Options) {
			d.SetDisableAutoCompactions(!compacts)
			d.SetLevel0FileNumCompactionTrigger(2)
			d.SetRecycleLogFileNum(recycled)
			changed, err := grocksdb.GetOptionsFromString(d, text)
			must(t, err)
			*d = *changed
		}
	})
	w := newWriter(t, r, filepath.Join(t.TempDir(), "db"), o)
	w.wo.DisableWAL(noLog)
	fo := grocksdb.NewDefaultFlushOptions()
	defer fo.Destroy()
	must(t, w.change(0)) // tables that are ingested first have sequence number 0, which is another finding
	if noLog {
		must(t, w.w.db.FlushCF(w.w.handles[0], fo))
	}
	for range 40 {
		i := r.Intn(len(w.families))
		switch r.Intn(11) {
		case 0, 1, 2:
			for range r.Intn(20) {
				must(t, w.change(i))
			}
		case 3:
			b := grocksdb.NewWriteBatch()
			if r.Intn(2) == 0 {
				b.PutLogData([]byte("of a server"))
			}
			must(t, w.w.db.Write(w.wo, b))
			b.Destroy()
		case 4, 5:
			must(t, w.w.db.FlushCF(w.w.handles[i], fo))
		case 6:
			w.close()
			w.open()
		case 7:
			if !keeps { // nor what was ingested
				w.ingest(i)
			}
		case 8:
			w.w.db.CompactRangeCF(w.w.handles[i], grocksdb.Range{})
		default:
			if compacts {
				w.rest()
			}
			dir := filepath.Join(t.TempDir(), "db")
			must(t, os.CopyFS(dir, os.DirFS(w.dir)))
			checkCrashed(t, dir, !keeps)
			if r.Intn(2) == 0 { // the server goes on from there
				w.close()
				w.dir = dir
				w.open()
			}
		}
	}
	w.close()
	checkCrashed(t, w.dir, !keeps)
}

// rest waits until no compaction is running.
func (w *writer) rest() {
	for i := 0; i < len(w.families); i++ {
		for _, what := range []string{"rocksdb.compaction-pending", "rocksdb.num-running-compactions", "rocksdb.mem-table-flush-pending"} {
			if w.w.db.GetPropertyCF(what, w.w.handles[i]) != "0" {
				time.Sleep(time.Millisecond)
				i = -1
				break
			}
		}
	}
}

// checkCrashed checks that a database has no findings and has the rows that RocksDB reads; if known is true, that the
// loss of a log is found.
func checkCrashed(t *testing.T, dir string, known bool) {
	t.Helper()
	ours, found, err := openFound(t, dir)
	must(t, err)
	defer ours.Close()
	theirs := openRocks(t, dir, &store.Options{Comparers: comparers(), Merger: appendMerger, TempDir: t.TempDir()})
	for i, k := range ours.Keyspaces() {
		wantRows(t, k.Name(), scan(t, k, nil, nil), scan(t, theirs.spaces[i], nil, nil))
	}
	if len(*found) > 0 {
		t.Errorf("a sound database: findings %+v", *found)
	}
	logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
	must(t, err)
	last := len(logs) - 1
	for last >= 0 && size(t, logs[last]) == 0 {
		last--
	}
	for i := 0; known && i < last; i++ { // without the last one it may be the database of a moment before
		damaged := filepath.Join(t.TempDir(), "db")
		must(t, os.CopyFS(damaged, os.DirFS(dir)))
		log := filepath.Join(damaged, filepath.Base(logs[i]))
		must(t, os.Truncate(log, 0))
		checkLost(t, damaged, ours)
		must(t, os.Remove(log))
		checkLost(t, damaged, ours)
	}
}

// checkLost checks that a database which lacks rows does not seem to be sound.
func checkLost(t *testing.T, dir string, whole store.Store) {
	t.Helper()
	rest, found, err := openFound(t, dir)
	if err != nil {
		return
	}
	defer rest.Close()
	for i, k := range whole.Keyspaces() {
		if len(*found) == 0 && !slices.Equal(scan(t, k, nil, nil), scan(t, rest.Keyspaces()[i], nil, nil)) {
			t.Errorf("%s: %s has other rows and seems sound", dir, k.Name())
		}
	}
}

// openFound opens a database and returns its findings.
func openFound(t *testing.T, dir string) (store.Store, *[]record.Finding, error) {
	var found []record.Finding
	st, err := rocks.Open(context.Background(), dir,
		&store.Options{Comparers: comparers(), Merger: appendMerger, TempDir: t.TempDir(),
			Report: func(f record.Finding) {
				if f.Severity != record.Note { // as on tables that were compacted just now
					found = append(found, f)
				}
			}})
	return st, &found, err
}

func size(t *testing.T, path string) int64 {
	t.Helper()
	st, err := os.Stat(path)
	must(t, err)
	return st.Size()
}
