//go:build rocksdb

package grocks

import (
	"context"
	"encoding/binary"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"kvferry/ardb"
	"kvferry/blackwidow"
	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/nemo"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks"
)

// What compaction filters of engines drop, as motion.h numbers it.
const (
	ruleNone = iota
	ruleNemo
	ruleStrings
	ruleCollections
	ruleLists
)

// motionTargets are the targets that live on RocksDB, with what their engines' compaction filters drop.
var motionTargets = []struct {
	name  string
	open  format.Format
	rules map[string]int // by the base name of the database's directory
	build store.BuildOptions
}{
	{"nemo", nemo.New(), map[string]int{"hash": ruleNemo, "list": ruleNemo, "set": ruleNemo, "zset": ruleNemo}, store.BuildOptions{}},
	{"blackwidow", blackwidow.New(), map[string]int{"strings": ruleStrings, "hashes": ruleCollections, "sets": ruleCollections,
		"zsets": ruleCollections, "lists": ruleLists}, store.BuildOptions{}},
	{"blackwidow, newer tables", blackwidow.New(), nil, store.BuildOptions{TableVersion: 5}},
	{"ardb", ardb.New(), nil, store.BuildOptions{}},
}

var motions = []string{"snapshot, compact", "snapshot, write, compact", "leveled", "dynamic", "universal", "filtered", "young", "ingest",
	"checkpoint", "backup", "repair", "repair blind", "verify", "read only", "properties"}

// TestMotions puts every database of every target through what RocksDB does to it in years. The rows equal the model
// each time.
func TestMotions(t *testing.T) {
	for _, target := range motionTargets {
		t.Run(target.name, func(t *testing.T) {
			seed := uint32(random(t).Uint64())
			build := target.build
			build.Now = time.Now()
			for dir, families := range buildMotion(t, target.open, build) {
				for _, m := range motions {
					if testing.Short() && m != "snapshot, compact" && m != "repair" && m != "properties" {
						continue
					}
					putThrough(t, dir, m, target.rules[filepath.Base(dir)], seed, families)
				}
			}
			build.Now = fixtures.Clock // years ago
			for dir, families := range buildMotion(t, target.open, build) {
				putThrough(t, dir, "ttl", ruleNone, seed, families)
			}
		})
	}
}

// putThrough puts a copy of a database through a motion.
func putThrough(t *testing.T, dir, motion string, rule int, seed uint32, families []motionFamily) {
	t.Helper()
	start := time.Now()
	work := t.TempDir()
	defer os.RemoveAll(work)
	db, scratch := filepath.Join(work, "db"), filepath.Join(work, "scratch")
	must(t, os.CopyFS(db, os.DirFS(dir)))
	must(t, os.Mkdir(scratch, 0o755))
	if err := move(db, scratch, motion, rule, seed, fixtures.Clock, families); err != nil {
		t.Errorf("%s: %s: %v (seed %d)", filepath.Base(dir), motion, err, seed)
	}
	t.Logf("%s: %s: %s", filepath.Base(dir), motion, time.Since(start).Round(time.Millisecond))
}

// buildMotion writes a dataset and returns its databases by directory, with their rows.
func buildMotion(t *testing.T, f format.Format, build store.BuildOptions) map[string][]motionFamily {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	build.TableSize, build.Identity = 1<<15, "motion"
	target, err := f.Create(context.Background(), dir, &format.CreateOptions{Create: rocks.Create, Kind: "rocksdb", DBs: []string{"0"},
		Layout: format.LayoutFlat, Build: build, TempDir: t.TempDir(), Memory: 1 << 20, Now: fixtures.Clock})
	must(t, err)
	must(t, fixtures.BuildFrom(context.Background(), target, 1<<20, func(set record.TypeSet) record.Reader {
		return fixtures.Records(7, 100, fixtures.Options{DB: "0", Types: set, Limits: f.Limits(), NarrowInts: true})
	}))
	stores := map[string][]motionFamily{}
	must(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Name() == "CURRENT" {
			stores[filepath.Dir(path)] = motionFamilies(t, filepath.Dir(path))
		}
		return err
	}))
	if len(stores) == 0 {
		t.Fatal("no databases")
	}
	return stores
}

// motionFamilies reads a database by our own reader.
func motionFamilies(t *testing.T, dir string) (out []motionFamily) {
	t.Helper()
	s, err := rocks.Open(context.Background(), dir, &store.Options{Comparers: append(blackwidow.Comparers(), ardb.Comparer())})
	must(t, err)
	defer s.Close()
	for _, ks := range s.Keyspaces() {
		f := motionFamily{name: ks.Name(), order: ks.Comparer().Name}
		it, err := ks.Rows(nil, nil)
		must(t, err)
		for {
			k, v, err := it.Next()
			if err == io.EOF {
				break
			}
			must(t, err)
			f.rows = binary.NativeEndian.AppendUint32(f.rows, uint32(len(k)))
			f.rows = binary.NativeEndian.AppendUint32(f.rows, uint32(len(v)))
			f.rows = append(append(f.rows, k...), v...)
		}
		must(t, it.Close())
		out = append(out, f)
	}
	return out
}
