//go:build rocksdb

package grocks

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/linxGnu/grocksdb"

	"kvferry/fixtures"
	"kvferry/internal/sys/bufpool"
	"kvferry/store"
	"kvferry/store/rocks/build"
)

// largeDatabases are databases of column families, a letter a row, as largeValues draws them; each is one table.
var largeDatabases = []struct {
	name     string
	families [][2]string      // name, rows
	motions  map[int][]string // by the version of the tables
}{
	{"around the limit", [][2]string{{"default", "s<=>s({)s}"}, {"long key", "sks"}},
		map[int][]string{0: {"snapshot, write, compact"}, 5: {"verify", "snapshot, write, compact"}}},
	{"first, middle, last", [][2]string{{"default", "sss"}, {"first", "psns"}, {"plain first", "nspps"}, {"last", "ssp"}, {"plain last", "sn"}},
		map[int][]string{0: {"verify", "snapshot, write, compact"}, 5: {"snapshot, write, compact"}}},
	{"alone", [][2]string{{"default", "p"}, {"plain", "n"}}, map[int][]string{0: {"repair"}, 5: {"verify", "repair"}}},
	{"huge", [][2]string{{"default", "sHs"}}, map[int][]string{0: {"verify"}, 5: {"snapshot, compact"}}},
}

// largeValues makes the rows of a layout. Noise is not compressed, repeated noise is.
type largeValues struct{ noise, packed []byte }

func newLargeValues() *largeValues {
	noise := make([]byte, 2<<20)
	rand.New(rand.NewSource(20)).Read(noise)
	return &largeValues{noise, bytes.Repeat(noise[:50_000], 20<<20/50_000+1)}
}

func (v *largeValues) rows(layout string) (out []row) {
	for _, c := range layout {
		key := fmt.Sprintf("a prefix that keys share:%06d", len(out))
		value := func(from []byte, more int) { // together with the key as large as a row can be in a common block, and more
			out = append(out, row{key, string(from[len(out):][:bufpool.Large+more-len(key)])})
		}
		switch c {
		case 's': // two blocks, the second not full
			for i := range 100 {
				out = append(out, row{fmt.Sprintf("%s:%03d", key, i), strings.Repeat("v", i%60)})
			}
		case 'p':
			value(v.packed, 20_000)
		case 'n':
			value(v.noise, 20_000)
		case '<', '=', '>':
			value(v.packed, int(c)-'=')
		case '(', '{', ')', '}': // to both sides of the limit
			value(v.noise, map[rune]int{'(': -1, '{': 0, ')': 1, '}': 1 + largePart}[c])
		case 'H':
			out = append(out, row{key, string(v.packed)})
		case 'k':
			out = append(out, row{key + string(v.noise[:bufpool.Large]), "v"})
		}
	}
	return out
}

// largePart is how much of a large value is compressed at once.
const largePart = 256 << 10

// TestRocksDBReadsLargeRows: rows that are streamed into blocks of their own are to RocksDB as others are. It verifies
// all checksums, scans both ways, finds every key, repairs, and compacts under a snapshot.
func TestRocksDBReadsLargeRows(t *testing.T) {
	values := newLargeValues()
	for _, version := range []int{0, 5} {
		for _, db := range largeDatabases {
			t.Run(fmt.Sprintf("%s, tables of version %d", db.name, version), func(t *testing.T) {
				r := random(t)
				var families []family
				var motion []motionFamily
				for _, l := range db.families {
					f := family{l[0], orders[0], values.rows(l[1])}
					families, motion = append(families, f), append(motion, motionRows(f))
				}
				dir := buildLarge(t, families, version)
				readLarge(t, r, dir, families)
				for _, m := range db.motions[version] {
					putThrough(t, dir, m, ruleNone, uint32(r.Uint64()), motion)
				}
			})
		}
	}
}

// buildLarge writes each family as one table.
func buildLarge(t *testing.T, families []family, version int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "db")
	b, err := build.Create(dir, store.BuildOptions{TableVersion: version, Now: fixtures.Clock, Identity: "large"})
	must(t, err)
	for _, f := range families {
		must(t, b.Keyspace(f.name, f.order.cmp))
		run, err := b.Run(f.name, 0, 0)
		must(t, err)
		for _, row := range f.rows {
			must(t, run.Append([]byte(row.key), []byte(row.value)))
		}
		must(t, run.Close())
	}
	must(t, b.Finish())
	return dir
}

func motionRows(f family) motionFamily {
	m := motionFamily{name: f.name, order: f.order.cmp.Name}
	for _, row := range f.rows {
		m.rows = binary.NativeEndian.AppendUint32(m.rows, uint32(len(row.key)))
		m.rows = binary.NativeEndian.AppendUint32(m.rows, uint32(len(row.value)))
		m.rows = append(append(m.rows, row.key...), row.value...)
	}
	return m
}

// readLarge reads each family forwards, backwards, in leaps and by every key.
func readLarge(t *testing.T, r *rand.Rand, dir string, families []family) {
	t.Helper()
	start := time.Now()
	d := openRocks(t, dir, &store.Options{})
	o := grocksdb.NewDefaultReadOptions()
	defer o.Destroy()
	o.SetVerifyChecksums(true)
	for i, f := range families {
		k := d.spaces[i]
		wantRows(t, f.name, scan(t, k, nil, nil), f.rows)
		seeks(t, r, k, f)
		it := d.db.NewIteratorCF(o, k.handle)
		at := len(f.rows)
		for it.SeekToLast(); it.Valid(); it.Prev() {
			at--
			if key := it.Key(); at < 0 || string(key.Data()) != f.rows[at].key {
				t.Fatalf("%s: backwards: row %d has key %.40q", f.name, at, key.Data())
			}
		}
		must(t, it.Err())
		if at != 0 {
			t.Fatalf("%s: backwards: %d rows are missing", f.name, at)
		}
		it.Close()
		for _, row := range f.rows {
			got, err := d.db.GetCF(o, k.handle, []byte(row.key))
			must(t, err)
			if !got.Exists() || string(got.Data()) != row.value {
				t.Fatalf("%s: get %.40q: %d bytes, want %d", f.name, row.key, got.Size(), len(row.value))
			}
			got.Free()
		}
	}
	wantLargeSizes(t, d, families)
	t.Logf("read: %s", time.Since(start).Round(time.Millisecond))
}

// wantLargeSizes holds that packed rows are compressed and noise is not.
func wantLargeSizes(t *testing.T, d *database, families []family) {
	t.Helper()
	tables := map[string][]int64{}
	for _, f := range d.Files() {
		if f.Kind == "table" {
			tables[f.Keyspace] = append(tables[f.Keyspace], f.Size)
		}
	}
	for _, f := range families {
		raw := int64(0)
		for _, row := range f.rows {
			raw += int64(len(row.value))
		}
		size := tables[f.name]
		if len(size) != 1 || f.name == "plain" && size[0] < raw || len(f.rows) == 1 && f.name == "default" && size[0] > raw/4 {
			t.Errorf("%s: tables of %d bytes for %d bytes of values", f.name, size, raw)
		}
	}
}
