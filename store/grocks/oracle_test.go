//go:build rocksdb

package grocks

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand"
	"os"
	"path/filepath"
	"testing"

	"github.com/linxGnu/grocksdb"

	"kvferry/internal/testkit/seed"
	"kvferry/record"
	"kvferry/store"
)

// random returns a generator for a test.
func random(t *testing.T) *rand.Rand { return rand.New(rand.NewSource(seed.Of(t))) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// order is a comparer with a generator of keys that make sense to it.
type order struct {
	cmp store.Comparer
	key func(*rand.Rand) []byte
}

func nativeComparer(name string) store.Comparer {
	return store.Comparer{Name: name, Compare: func(a, b []byte) int { return compareNative(name, a, b) }}
}

// reversed has no native form: RocksDB calls it back.
var reversed = store.Comparer{Name: "test.ReversedComparator", Compare: func(a, b []byte) int { return bytes.Compare(b, a) }}

// orders are all comparers in databases of our formats, and an unknown one.
var orders = []order{
	{store.Bytewise, bytesKey},
	{nativeComparer("blackwidow.ListsDataKeyComparator"), listsKey},
	{nativeComparer("blackwidow.ZSetsScoreKeyComparator"), zsetsKey},
	{nativeComparer("ardb.comparator"), ardbKey},
	{reversed, bytesKey},
	{nativeComparer("floyd.ListsDataKeyComparator"), floydListsKey},
	{nativeComparer("floyd.ZSetsScoreKeyComparator"), floydScoreKey},
}

func comparers() (out []store.Comparer) {
	for _, o := range orders {
		out = append(out, o.cmp)
	}
	return out
}

// bytesKey makes short keys that share prefixes; the empty key is among them.
func bytesKey(r *rand.Rand) []byte {
	key := make([]byte, r.Intn(12))
	for i := range key {
		key[i] = "\x00\x01ab\xfe\xff"[r.Intn(6)]
	}
	return key
}

// prefixKey is klen, key, version as blackwidow has them.
func prefixKey(r *rand.Rand) []byte {
	user := bytesKey(r)
	out := binary.LittleEndian.AppendUint32(nil, uint32(len(user)))
	return binary.LittleEndian.AppendUint32(append(out, user...), uint32(r.Intn(4)-2))
}

func listsKey(r *rand.Rand) []byte {
	return binary.LittleEndian.AppendUint64(prefixKey(r), math.MaxInt64+uint64(r.Intn(20)-10))
}

func zsetsKey(r *rand.Rand) []byte {
	return append(binary.LittleEndian.AppendUint64(prefixKey(r), math.Float64bits(randomScore(r))), bytesKey(r)...)
}

func randomScore(r *rand.Rand) float64 {
	scores := []float64{0, 1, -1, 1.5, math.Inf(1), math.Inf(-1), 1e300, -1e-300, math.MaxFloat64, r.NormFloat64()}
	return scores[r.Intn(len(scores))]
}

// floydKey is 8 reserved bytes, escaped key, version, number and data, and 16 reserved bytes, as floyd has them.
func floydKey(r *rand.Rand, number uint64, data []byte) []byte {
	out := append(make([]byte, 8), bytes.ReplaceAll(bytesKey(r), []byte{0}, []byte{0, 1})...)
	out = binary.LittleEndian.AppendUint64(append(out, 0, 0), []uint64{0, 1, 255, 256, math.MaxUint64}[r.Intn(5)])
	return append(append(binary.LittleEndian.AppendUint64(out, number), data...), make([]byte, 16)...)
}

func floydListsKey(r *rand.Rand) []byte { return floydKey(r, math.MaxInt64+uint64(r.Intn(20)-10), nil) }
func floydScoreKey(r *rand.Rand) []byte {
	return floydKey(r, math.Float64bits(randomScore(r)), bytesKey(r))
}

// ardbKey is a key of Ardb on RocksDB: key, type, count, elements.
func ardbKey(r *rand.Rand) []byte {
	user := bytesKey(r)
	out := append(binary.AppendUvarint(nil, uint64(len(user))), user...)
	types := []byte{1, 4, 6, 8, 10, 11}
	typ := types[r.Intn(len(types))]
	n := map[byte]int{1: 0, 10: 2}
	count := 1
	if c, ok := n[typ]; ok {
		count = c
	}
	out = append(out, typ, byte(count))
	for range count {
		switch r.Intn(4) {
		case 0:
			out = append(out, 0)
		case 1:
			out = binary.AppendVarint(append(out, 1), int64(r.Intn(2000)-1000))
		case 2: // never a whole number: those compare equal to integers
			out = binary.AppendVarint(append(out, 2), int64(math.Float64bits(float64(r.Intn(2000)-1000)+0.5)))
		default:
			s := bytesKey(r)
			out = append(binary.AppendUvarint(append(out, 4), uint64(len(s))), s...)
		}
	}
	return out
}

type row struct{ key, value string }

// randomRows makes n rows in order, no two keys equal to the comparer.
func randomRows(r *rand.Rand, o order, n int) []row {
	keys := make([][]byte, 0, n)
	for range n {
		keys = append(keys, o.key(r))
	}
	sortKeys(keys, o.cmp.Compare)
	var out []row
	for i, k := range keys {
		if i == 0 || o.cmp.Compare(keys[i-1], k) != 0 {
			out = append(out, row{string(k), randomValue(r)})
		}
	}
	return out
}

// randomValue is mostly small and half compressible, rarely large, sometimes empty.
func randomValue(r *rand.Rand) string {
	n := r.Intn(100)
	if r.Intn(500) == 0 {
		n = r.Intn(50_000)
	}
	b := make([]byte, n)
	r.Read(b[:n/2])
	return string(b)
}

// scan reads all rows of [lo, hi).
func scan(t *testing.T, k store.Keyspace, lo, hi []byte) []row {
	t.Helper()
	it, err := k.Rows(lo, hi)
	must(t, err)
	defer it.Close()
	var out []row
	for {
		key, value, err := it.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("%s after %d rows: %v", k.Name(), len(out), err)
		}
		out = append(out, row{string(key), string(value)})
	}
	var tally record.Tally
	it.Tally(&tally)
	if tally.Visible != int64(len(out)) {
		t.Fatalf("%s: the tally counts %d visible rows of %d", k.Name(), tally.Visible, len(out))
	}
	tally.Rows[record.Copied] = tally.Visible
	must(t, tally.Check())
	return out
}

// wantRows compares two scans and names the first row that differs.
func wantRows(t *testing.T, what string, got, want []row) {
	t.Helper()
	for i := range min(len(got), len(want)) {
		if got[i].key != want[i].key {
			t.Fatalf("%s: row %d has key %q, want %q", what, i, cut(got[i].key), cut(want[i].key))
		}
		if got[i].value != want[i].value {
			t.Fatalf("%s: row %d, key %q: value %q, want %q", what, i, cut(got[i].key), cut(got[i].value), cut(want[i].value))
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%s: %d rows, want %d", what, len(got), len(want))
	}
}

func cut(s string) string { return s[:min(len(s), 64)] }

// openRocks opens a directory through RocksDB until the test ends.
func openRocks(t *testing.T, dir string, o *store.Options) *database {
	t.Helper()
	o.TempDir = t.TempDir()
	s, err := Open(context.Background(), dir, o)
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	return s.(*database)
}

// gets looks up n keys, present and absent ones, and compares.
func gets(t *testing.T, r *rand.Rand, k *keyspace, o order, rows []row, n int) {
	t.Helper()
	opts := grocksdb.NewDefaultReadOptions()
	defer opts.Destroy()
	for range n {
		key, want, found := string(o.key(r)), "", false
		if len(rows) > 0 && r.Intn(5) > 0 {
			key = rows[r.Intn(len(rows))].key
		}
		if i := search(rows, key, o.cmp.Compare); i < len(rows) && o.cmp.Compare([]byte(rows[i].key), []byte(key)) == 0 {
			// Keys that only the comparer takes for equal miss the filter, as they do when
			// RocksDB itself wrote the table.
			if rows[i].key != key {
				continue
			}
			want, found = rows[i].value, true
		}
		got, err := k.d.db.GetCF(opts, k.handle, []byte(key))
		must(t, err)
		if got.Exists() != found || string(got.Data()) != want {
			t.Fatalf("%s: get %q: found %v, want %v; %d bytes, want %d", k.name, cut(key), got.Exists(), found, got.Size(),
				len(want))
		}
		got.Free()
	}
}

// snapshot lists names, sizes, times and contents of a directory.
func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	must(t, filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			out[path] = fmt.Sprint(info.ModTime())
			return err
		}
		data, err := os.ReadFile(path)
		out[path] = fmt.Sprint(info.ModTime(), info.Mode(), string(data))
		return err
	}))
	return out
}

func wantUnchanged(t *testing.T, dir string, before map[string]string) {
	t.Helper()
	after := snapshot(t, dir)
	for name, is := range after {
		if before[name] != is {
			t.Errorf("%s was changed or made", name)
		}
	}
	if len(after) != len(before) {
		t.Errorf("%d files, were %d", len(after), len(before))
	}
}
