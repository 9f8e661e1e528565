package rocks

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kvferry/fixtures"
	"kvferry/internal/testkit/testsst"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/blocks"
	"kvferry/store/rocks/lsm"
)

// indexBytes returns the range of the index and its partitions in a table, behind which only the metaindex stands.
// Partitions begin behind the last block that the metaindex names.
func indexBytes(t *testing.T, table *lsm.Table) (from, to uint64) {
	t.Helper()
	src := table.Source.(*tableSource)
	info, err := src.Reader.Open()
	if err != nil {
		t.Fatal(err)
	}
	err = src.EachMeta(func(name string, value []byte) error {
		f := &base.Fields{Buf: value}
		if h := blocks.ReadHandle(f, name); f.Err == nil && h.Off < info.Index.Off {
			from = max(from, h.Off+h.Size+blocks.TrailerLen)
		}
		return nil
	})
	if from == 0 || info.IndexType != testsst.TwoLevelIndex {
		from = info.Index.Off
	}
	if err != nil {
		t.Fatal(err)
	}
	return from, info.Index.Off + info.Index.Size
}

// TestMendedIndex flips bits of indexes of every kind: a salvage reads all rows, by the blocks that the damaged index still
// names and by those that it finds between them, and reports one error and one warning. Other readers fail as before.
func TestMendedIndex(t *testing.T) {
	specs := map[string]testsst.Spec{
		"leveldb":        {LevelDB: true, Codec: testsst.Snappy, BlockSize: 200},
		"leveldb filter": {LevelDB: true, BlockSize: 200, Filter: "filter.other"},
		"binary":         {BlockSize: 200},
		"hash search":    {IndexType: testsst.HashIndex, BlockSize: 200, Codec: testsst.Zlib},
		"two-level":      {IndexType: testsst.TwoLevelIndex, BlockSize: 200},
		"first key":      {Version: 5, IndexType: testsst.FirstKeyIndex, UserKeys: true, Delta: true, BlockSize: 200},
		"delta":          {Version: 5, IndexType: testsst.TwoLevelIndex, UserKeys: true, Delta: true, BlockSize: 100, Checksum: testsst.XXH3},
		"xxh32":          {Checksum: testsst.XXH32, BlockSize: 200, Codec: testsst.LZ4},
		"xxh64":          {Version: 5, Checksum: testsst.XXH64, BlockSize: 300, Codec: testsst.Zstd},
		"context":        {Version: 6, Checksum: testsst.XXH3, BlockSize: 200},
		"large blocks":   {Version: 5, Checksum: testsst.XXH3, BlockSize: 100 << 10},
	}
	for name, spec := range specs {
		t.Run(name, func(t *testing.T) {
			d := testsst.NewDB(t)
			if spec.LevelDB {
				d = testsst.NewLevelDB(t)
			}
			entries := testsst.SomeEntries(200)
			if spec.BlockSize > 1000 {
				for i := range entries {
					entries[i].Value = strings.Repeat(entries[i].Key, 400)
				}
			}
			table := d.Table(0, 1, spec, entries...)
			dir := d.Finish()
			sound, err := os.ReadFile(filepath.Join(dir, table))
			if err != nil {
				t.Fatal(err)
			}
			from, to := indexBytes(t, openTest(t, dir, store.Options{}).spaces[0].Tables[0])
			for at := from; at < to; at += 1 + (to-from)/24 {
				b := slices.Clone(sound)
				b[at] ^= 1 << (at % 8)
				d.File(table, b)
				var found []record.Finding
				n := numberOfRows(t, dir, store.Options{Salvage: true, Report: func(f record.Finding) {
					found = append(found, f)
				}})
				var kinds []string
				for _, f := range found {
					kinds = append(kinds, fmt.Sprint(f.Severity, " ", f.Kind))
				}
				if got := strings.Join(kinds, ", "); n != len(entries) || got != "error damaged-block, warning damaged-block" {
					t.Fatalf("bit of byte %d of %d to %d: %d rows, findings %+v", at, from, to, n, found)
				}
				if f := found[0]; f.Skipped() || f.Loses() || f.Unread != 0 {
					t.Fatalf("%+v says that rows are lost", f)
				}
				wantCorrupt(t, rowsError(dir, store.Options{}), table)
			}
		})
	}
}

// TestMendedBesideDamage: what a damaged index and damaged blocks leave is read: the blocks that the index still names, and
// those that follow a known one. The others are missing rows.
func TestMendedBesideDamage(t *testing.T) {
	for name, c := range map[string]struct {
		blocks []int // damaged
		all    bool  // nothing of the index is readable
		least  int
	}{
		"a block within":        {blocks: []int{5}, least: 190},
		"the first block":       {blocks: []int{0}, least: 190},
		"the last block":        {blocks: []int{-1}, least: 190},
		"no index, block 20":    {blocks: []int{20}, all: true, least: 50},
		"no index, first block": {blocks: []int{0}, all: true, least: 0},
	} {
		d := testsst.NewDB(t)
		entries := testsst.SomeEntries(200)
		var handles []blocks.Handle
		spec := testsst.Spec{BlockSize: 100, EditIndex: func(h []blocks.Handle, keys [][]byte) ([]blocks.Handle, [][]byte) {
			handles = h
			return h, keys
		}}
		table := d.Table(0, 1, spec, entries...)
		dir := d.Finish()
		b, err := os.ReadFile(filepath.Join(dir, table))
		if err != nil {
			t.Fatal(err)
		}
		from, to := indexBytes(t, openTest(t, dir, store.Options{}).spaces[0].Tables[0])
		b[from+(to-from)/2] ^= 1
		if c.all {
			clear(b[from:to])
		}
		for _, i := range c.blocks {
			b[handles[(i+len(handles))%len(handles)].Off+3] ^= 1
		}
		d.File(table, b)
		var found []record.Finding
		n := numberOfRows(t, dir, store.Options{Salvage: true, Report: func(f record.Finding) { found = append(found, f) }})
		missing := false
		for _, f := range found {
			missing = missing || f.Severity == record.Error && strings.Contains(f.Detail, "rows are missing")
		}
		if n < c.least || n >= len(entries) || !missing {
			t.Errorf("%s: %d rows, findings %+v", name, n, found)
		}
	}
}

// TestMendedGoldens flips a bit in the index of tables that the engines wrote: LevelDB's of SSDB and Ardb, those of RocksDB
// with several codecs, checksums and versions, and with partitions. A salvage reads all rows.
func TestMendedGoldens(t *testing.T) {
	var dirs []string
	for _, name := range []string{"ssdb-basic", "ardb-leveldb-basic", "ardb-rocksdb-basic", "nemo-basic-zlib", "bw-basic",
		"pika400-basic", "kvrocks-mixed", "rocks-modern"} {
		dirs = append(dirs, testsst.StoresBelow(t, fixtures.Unpack(t, name))...)
	}
	dirs = append(dirs, testsst.StoresBelow(t,
		fixtures.UnpackFile(t, "../../fixtures/found/only-range-tombstones.tar.gz", "only-range-tombstones"))...)
	tables := 0
	for _, dir := range dirs {
		o := store.Options{Salvage: true, Comparers: testsst.Comparers, Merger: foldLast}
		sound := openTest(t, dir, o)
		want := sumOfRows(t, sound)
		for _, ks := range sound.spaces {
			for _, table := range ks.Tables {
				if i, err := table.Source.Open(); err != nil || i.Index.Size < 20 {
					continue // without an entry
				}
				tables++
				from, to := indexBytes(t, table)
				b, err := os.ReadFile(table.Path)
				if err != nil {
					t.Fatal(err)
				}
				at := from + uint64(tables)*37%(to-from)
				b[at] ^= 1 << (tables % 8)
				if err := os.WriteFile(table.Path, b, 0o644); err != nil {
					t.Fatal(err)
				}
				var errors []string
				o.Report = func(f record.Finding) {
					if f.Severity == record.Error {
						errors = append(errors, f.Detail)
					}
				}
				got := sumOfRows(t, openTest(t, dir, o))
				if got != want || len(errors) != 1 || !strings.Contains(errors[0], "blocks, which have their own checksums") &&
					!strings.Contains(errors[0], "1 block, which") {
					t.Errorf("%s, byte %d of %d to %d: %s, want %s, errors %q", table.Path, at, from, to, got, want, errors)
				}
				b[at] ^= 1 << (tables % 8)
				if err := os.WriteFile(table.Path, b, 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if tables < 40 {
		t.Errorf("only %d tables", tables)
	}
}

// sumOfRows returns the number of the rows of each column family with a digest of them.
func sumOfRows(t *testing.T, db *database) (out string) {
	t.Helper()
	for _, ks := range db.Keyspaces() {
		rows, _ := testsst.ReadRows(t, ks, nil, nil)
		h := sha256.New()
		for _, r := range rows {
			fmt.Fprintf(h, "%d %s %d %s\n", len(r.Key), r.Key, len(r.Value), r.Value)
		}
		out += fmt.Sprintf("%s: %d %x\n", ks.Name(), len(rows), h.Sum(nil))
	}
	return out
}

// TestMendedWithoutManifest: a salvage without CURRENT reads the tables of the directory, one with a damaged index, too.
func TestMendedWithoutManifest(t *testing.T) {
	for name, spec := range map[string]testsst.Spec{
		"leveldb":   {LevelDB: true, BlockSize: 200},
		"binary":    {BlockSize: 200},
		"two-level": {IndexType: testsst.TwoLevelIndex, BlockSize: 200},
	} {
		t.Run(name, func(t *testing.T) {
			d := testsst.NewDB(t)
			if spec.LevelDB {
				d = testsst.NewLevelDB(t)
			}
			table := d.Table(0, 1, spec, testsst.SomeEntries(200)...)
			dir := d.Finish()
			from, to := indexBytes(t, openTest(t, dir, store.Options{}).spaces[0].Tables[0])
			b, err := os.ReadFile(filepath.Join(dir, table))
			if err != nil {
				t.Fatal(err)
			}
			b[(from+to)/2] ^= 1
			d.File(table, b)
			if err := os.Remove(filepath.Join(dir, "CURRENT")); err != nil {
				t.Fatal(err)
			}
			if n := numberOfRows(t, dir, store.Options{Salvage: true}); n != 200 {
				t.Errorf("%d rows, want 200", n)
			}
		})
	}
}

// TestCutTableCounts: a table that is cut off has lost all bytes that the MANIFEST lists for it, and the files lack
// what was cut off.
func TestCutTableCounts(t *testing.T) {
	d := testsst.NewDB(t)
	table := d.Table(0, 1, testsst.Spec{BlockSize: 200}, testsst.SomeEntries(200)...)
	path := filepath.Join(d.Finish(), table)
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, left := range []int64{0, 1000} {
		if err := os.Truncate(path, left); err != nil {
			t.Fatal(err)
		}
		var lost int64
		db := openTest(t, filepath.Dir(path), store.Options{Salvage: true, Report: func(f record.Finding) { lost += f.Unread }})
		testsst.ReadRows(t, db.Keyspaces()[0], nil, nil)
		for _, f := range db.Files() {
			if f.Kind == "table" && (f.Size != left || f.Size+f.Lacks != st.Size() || lost != st.Size()) {
				t.Errorf("%d of %d bytes: %d are lost, %+v", left, st.Size(), lost, f)
			}
		}
	}
}

// TestStrayBesideDamage: a table that the MANIFEST does not list, with the rows of one whose index or block is damaged, does
// not show that the MANIFEST is behind: the damaged table may have the rows. If the listed table is gone, it does.
func TestStrayBesideDamage(t *testing.T) {
	for name, c := range map[string]struct {
		damage func(t *testing.T, path string)
		behind bool
	}{
		"a block": {damage: func(t *testing.T, path string) {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			b[100] ^= 1
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}},
		"gone": {behind: true, damage: func(t *testing.T, path string) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			d := testsst.NewDB(t)
			table := d.Table(0, 1, testsst.Spec{BlockSize: 200}, testsst.SomeEntries(200)...)
			dir := d.Finish()
			b, err := os.ReadFile(filepath.Join(dir, table))
			if err != nil {
				t.Fatal(err)
			}
			d.File("009999.sst", b)
			c.damage(t, filepath.Join(dir, table))
			behind := false
			n := numberOfRows(t, dir, store.Options{Salvage: true, Report: func(f record.Finding) { behind = behind || f.Kind == "manifest-behind" }})
			if behind != c.behind || (n == 200) != c.behind {
				t.Errorf("%d rows, the MANIFEST is behind: %t", n, behind)
			}
		})
	}
}
