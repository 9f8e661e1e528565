//go:build rocksdb

package grocks

import (
	"context"
	"encoding/binary"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"kvferry/ardb"
	"kvferry/ardb/codec"
	"kvferry/blackwidow"
	"kvferry/fixtures"
	"kvferry/floyd"
	"kvferry/format"
	"kvferry/kvrocks"
	"kvferry/nemo"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks"
	"kvferry/store/rocks/build"
)

// What compaction filters of engines drop, as motion.h numbers it.
const (
	ruleNone = iota
	ruleNemo
	ruleStrings
	ruleCollections
	ruleLists
	ruleStreams
	ruleFloyd
	ruleKvrocks
)

var blackwidowRules = map[string]int{"strings": ruleStrings, "hashes": ruleCollections, "sets": ruleCollections,
	"zsets": ruleCollections, "lists": ruleLists, "streams": ruleStreams}

// motionTargets are the targets that live on RocksDB, with what their engines' compaction filters drop.
var motionTargets = []struct {
	name  string
	open  format.Format
	rules map[string]int // by the base name of the database's directory, "" of all others
	build store.BuildOptions
}{
	{"nemo", nemo.New(), map[string]int{"kv": ruleStrings, "": ruleNemo}, store.BuildOptions{}},
	{"blackwidow", blackwidow.New(), blackwidowRules, store.BuildOptions{}},
	{"blackwidow, newer tables", blackwidow.New(), nil, store.BuildOptions{TableVersion: 5}},
	{"pika3.5", blackwidow.New().(format.Served).For("pika3.5"), blackwidowRules, store.BuildOptions{}},
	{"floyd", floyd.New(), map[string]int{"": ruleFloyd}, store.BuildOptions{}},
	{"kvrocks", kvrocks.New(), map[string]int{"": ruleKvrocks}, store.BuildOptions{}},
	{"ardb", ardb.New(), nil, store.BuildOptions{}},
}

var motions = []string{"snapshot, compact", "snapshot, write, compact", "leveled", "dynamic", "universal", "filtered", "young", "ingest",
	"checkpoint", "backup", "repair", "repair blind", "verify", "read only", "properties"}

// long reports whether tests that have a short and a long form run in the long one: several times the rows.
func long() bool { return os.Getenv("KVFERRY_LONG") != "" }

// TestMotions puts every database of every target through what RocksDB does to it in years. The rows equal the model
// each time.
func TestMotions(t *testing.T) {
	seed := uint32(random(t).Uint64())
	for _, target := range motionTargets {
		t.Run(target.name, func(t *testing.T) {
			t.Parallel()
			build := target.build
			build.Now = time.Now()
			rows := 0
			for dir, families := range buildMotion(t, target.open, build) {
				rule, ok := target.rules[filepath.Base(dir)]
				if !ok {
					rule = target.rules[""]
				}
				for _, m := range motions {
					if testing.Short() && m != "snapshot, compact" && m != "repair" && m != "properties" {
						continue
					}
					putThrough(t, dir, m, rule, seed, families)
				}
				for _, f := range families {
					rows += len(f.rows)
				}
			}
			t.Logf("%d bytes of rows", rows)
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
func buildMotion(t *testing.T, f format.Format, o store.BuildOptions) map[string][]motionFamily {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	limits := f.Limits()
	limits.Types &= record.RedisTypes
	n, shape := 40, fixtures.Options{DB: "0", Limits: limits, NarrowInts: true, Short: true}
	o.TableSize, o.Identity = 4<<10, "motion"
	if long() {
		n, shape.Short, o.TableSize = 100, false, 1<<15
	}
	target, err := f.Create(context.Background(), dir,
		&format.CreateOptions{Create: build.Create, Kind: "rocksdb", DBs: []string{"0"},
			Layout: format.LayoutFlat, Build: o, TempDir: t.TempDir(), Memory: 1 << 20, Now: fixtures.Clock})
	must(t, err)
	must(t, fixtures.BuildFrom(context.Background(), target, 1<<20, func(set record.TypeSet) record.Reader {
		shape.Types = set
		return fixtures.Records(7, n, shape)
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
	s, err := rocks.Open(context.Background(), dir,
		&store.Options{Comparers: slices.Concat(blackwidow.Comparers(), floyd.Comparers(), []store.Comparer{codec.Comparer()})})
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
