package rocks

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"kvferry/internal/testkit/testsst"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/manifest"
	"kvferry/store/rocks/sst"
)

// damageDB is a small database with all that a directory can have.
func damageDB(t testing.TB, spec testsst.Spec) (dir, table string) {
	d := testsst.NewDB(t)
	d.Family(1, "one", testsst.BytewiseName)
	spec.Tombstones = []testsst.Entry{testsst.RangeDel("key0050", 2000, "key0060")}
	table = d.Table(0, 1, spec, testsst.SomeEntries(15)...)
	d.Table(0, 0, testsst.Spec{}, testsst.Put("key0001", 5000, "x"), testsst.Del("key0003", 5001))
	d.Table(1, 2, testsst.Spec{}, testsst.Put("other", 1, "y"))
	d.Log(7, testsst.Batch(6000, testsst.Op(base.KindPut, "log", "1"), testsst.OpCF(base.KindCFPut, 1, "log", "2")),
		testsst.Batch(6002, testsst.Op(base.KindMerge, "key0006", "m")))
	return d.Finish(), table
}

// readAll does everything that a database can be asked, and returns the first error. A panic, a
// hang or rows out of order fail the test elsewhere or here.
func readAll(t testing.TB, dir string, o store.Options) error {
	o.Comparers, o.Merger, o.Hot = testsst.Comparers, testsst.JoinMerger, &store.Hot{Max: 1 << 20}
	Peek(dir)
	s, err := Open(context.Background(), dir, &o)
	if err != nil {
		return err
	}
	defer s.Close()
	return testsst.ReadAll(t, s)
}

// TestDamageSweep reads every strict prefix of every file and every file with one byte flipped: an
// error, a finding or a well-formed result, in bounded memory. Where checksums cover a byte, the
// flip is seen.
func TestDamageSweep(t *testing.T) {
	dir, table := damageDB(t, testsst.Spec{Codec: testsst.Snappy, BlockSize: 200})
	for _, name := range []string{manifest.CurrentName, "MANIFEST-000005", "000007.log", table} {
		t.Run(name, func(t *testing.T) { sweepFile(t, dir, name) })
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if m.Sys > 512<<20 {
		t.Errorf("%d MiB of memory", m.Sys>>20)
	}
}

func sweepFile(t *testing.T, dir, name string) {
	path := filepath.Join(dir, name)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer os.WriteFile(path, whole, 0o644)
	try := func(b []byte) (int, error) {
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		found := 0
		err := readAll(t, dir, store.Options{Report: func(record.Finding) { found++ }})
		return found, err
	}
	if _, err := try(whole); err != nil {
		t.Fatal(err)
	}
	silent := 0
	for n := range whole {
		if !testsst.SweptAt(n, len(whole), 3) {
			continue
		}
		if found, err := try(whole[:n]); err == nil && found == 0 {
			silent++
		}
	}
	// A prefix that ends where a record ends is an older state of a log, and no damage.
	limit := map[bool]int{true: 6, false: 0}[strings.HasPrefix(name, "MANIFEST") || strings.HasSuffix(name, ".log")]
	if silent > limit {
		t.Errorf("%d prefixes went unnoticed", silent)
	}
	for i := range whole {
		if !testsst.SweptAt(i, len(whole), 3) {
			continue
		}
		for _, bit := range []byte{1 << (i % 8)} {
			b := slices.Clone(whole)
			b[i] ^= bit
			found, err := try(b)
			if err == nil && found == 0 && (!strings.HasSuffix(name, ".sst") || i < len(whole)-testsst.RocksFooter) {
				t.Errorf("flip of bit %#x at %d went unnoticed", bit, i)
			}
		}
	}
}

// TestDamageWithoutChecksums sweeps the parsers themselves, without the protection of checksums.
func TestDamageWithoutChecksums(t *testing.T) {
	for _, spec := range []testsst.Spec{
		{NoChecksum: true, Codec: testsst.Snappy},
		{NoChecksum: true, Codec: testsst.Zlib},
		{NoChecksum: true, Codec: testsst.LZ4},
		{NoChecksum: true, Codec: testsst.Zstd},
		{NoChecksum: true, Version: 5, UserKeys: true, Delta: true, IndexType: testsst.TwoLevelIndex},
		{NoChecksum: true, IndexType: testsst.FirstKeyIndex, Hash: true},
	} {
		spec.BlockSize = 150
		dir, table := damageDB(t, spec)
		path := filepath.Join(dir, table)
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		before := totalAlloc()
		tries := 0
		for i := range whole {
			if !testsst.SweptAt(i, len(whole), 5) {
				continue
			}
			for _, bit := range []byte{1 << (i % 7), 0x80} {
				b := slices.Clone(whole)
				b[i] ^= bit
				if err := os.WriteFile(path, b, 0o644); err != nil {
					t.Fatal(err)
				}
				readAll(t, dir, store.Options{Resort: i%2 == 0})
				tries++
			}
		}
		if each := (totalAlloc() - before) / uint64(tries); each > 16<<20 {
			t.Errorf("%+v: %d MiB allocated a try", spec, each>>20)
		}
	}
}

func totalAlloc() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// TestSalvageTable: Unordered skips a damaged block, and a table whose index or end is damaged.
func TestSalvageTable(t *testing.T) {
	for _, where := range []string{"block", "index", "footer", "properties"} {
		d := testsst.NewDB(t)
		name := d.Table(0, 1, testsst.Spec{BlockSize: 100}, testsst.SomeEntries(20)...)
		d.Table(0, 2, testsst.Spec{}, testsst.Put("other", 1, ""))
		dir := d.Finish()
		path := filepath.Join(dir, name)
		b, _ := os.ReadFile(path)
		ft, err := sst.DecodeFooter(b[len(b)-testsst.RocksFooter:], int64(len(b)))
		if err != nil {
			t.Fatal(err)
		}
		at := map[string]uint64{"block": 3, "index": ft.Index.Off + 3, "footer": uint64(len(b) - 2),
			"properties": ft.Index.Off - 10}[where]
		b[at] ^= 1
		d.File(name, b)
		db, found := openFindings(t, dir, store.Options{})
		n := 0
		if err := db.Keyspaces()[0].Unordered(func(*store.Entry) error { n++; return nil }); err != nil {
			t.Fatal(err)
		}
		if n == 0 || n == 21 || len(*found) != 1 || (*found)[0].Kind != "damaged-block" {
			t.Errorf("%s: %d entries, findings %+v", where, n, *found)
		}
		if where == "block" && n < 15 {
			t.Errorf("%d entries beside one damaged block", n)
		}
		wantCorrupt(t, rowsError(dir, store.Options{}), name)
	}
}
