package command

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestHyperLogLogsOfArdb checks that Redis counts the HyperLogLogs of an Ardb database, of any origin: the mark of a
// stale count must be where Redis expects it. A copy in Ardb's own format keeps them unchanged.
func TestHyperLogLogsOfArdb(t *testing.T) {
	t.Chdir(t.TempDir()) // for reports
	r := startRedis(t)
	for _, store := range []string{"rocksdb", "leveldb", "lmdb"} {
		src := golden(t, "ardb-"+store+"-basic")
		var keys []string
		for _, l := range linesOf(t, ok(t, "dump", src, "--db", "0", "--type", "string", "--match", "hll*")) {
			keys = append(keys, l.Key)
		}
		counted := func(way string) {
			t.Helper()
			var counts []int64
			for _, k := range keys {
				counts = append(counts, r.do(t, "PFCOUNT", k).(int64))
			}
			slices.Sort(counts)
			if fmt.Sprint(counts) != "[51 100 150]" {
				t.Errorf("%s, %s: %v are %v, want 51, 100 and 150", store, way, keys, counts)
			}
			r.do(t, "FLUSHALL")
		}
		some := []string{"--db", "0", "--match", "hll*"}
		r.pipe(t, ok(t, append(some, "dump", src, "--format", "resp")...))
		counted("as commands")
		server := "unix://" + r.sock
		ok(t, append(some, "convert", src, server)...)
		if d := kvferry(t, append(some, "diff", src, server)...); d.code != 0 {
			t.Errorf("%s: source and server differ: %s", store, d.stdout)
		}
		counted("converted")
		back, again := filepath.Join(t.TempDir(), "back"), filepath.Join(t.TempDir(), "again")
		ok(t, append(some, "convert", src, "ardb:"+back)...)
		if a, b := ok(t, append(some, "dump", src)...), ok(t, "dump", back); !strings.Contains(a, "hll") || a != b {
			t.Errorf("%s: a copy of Ardb has other strings", store)
		}
		ok(t, append(some, "convert", back, "pika4:"+again)...)
		ok(t, append(some, "convert", again, server)...)
		counted("by way of Pika")
	}
}
