package command

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Redis counts the HyperLogLogs of an Ardb database: the mark of a stale count is moved to where it looks.
func TestDumpRESPHyperLogLogs(t *testing.T) {
	r := startRedis(t)
	for _, store := range []string{"rocksdb", "leveldb", "lmdb"} {
		src := golden(t, "ardb-"+store+"-basic")
		var keys []string
		for _, l := range linesOf(t, ok(t, "dump", src, "--db", "0", "--type", "string", "--match", "hll*")) {
			if strings.HasPrefix(l.Key, "hll") {
				keys = append(keys, l.Key)
			}
		}
		r.do(t, "FLUSHALL")
		r.pipe(t, ok(t, "dump", src, "--db", "0", "--format", "resp", "--match", "hll*"))
		var counts []int64
		for _, k := range keys {
			counts = append(counts, r.do(t, "PFCOUNT", k).(int64))
		}
		slices.Sort(counts)
		if fmt.Sprint(counts) != "[51 100 150]" {
			t.Errorf("%s: %v are %v, want 51, 100 and 150", store, keys, counts)
		}
	}
}
