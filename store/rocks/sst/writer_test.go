package sst_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/bloom"
	"github.com/cockroachdb/pebble/sstable"

	"kvferry/store"
	"kvferry/store/rocks/blocks"
	"kvferry/store/rocks/sst"
)

type row struct{ key, value []byte }

// backwards is an order that is not bytewise.
var backwards = store.Comparer{Name: "backwards", Compare: func(a, b []byte) int { return bytes.Compare(b, a) }}

// shapes are rows of all kinds, in bytewise order.
func shapes() map[string][]row {
	rnd := rand.New(rand.NewSource(7))
	random := func(n, keyLen, valueLen int) []row {
		rows := map[string][]byte{}
		for len(rows) < n {
			k, v := make([]byte, rnd.Intn(keyLen+1)), make([]byte, rnd.Intn(valueLen+1))
			rnd.Read(k)
			rnd.Read(v[:len(v)/2])
			rows[string(k)] = v
		}
		return sorted(rows)
	}
	numbered := func(n int, value func(i int) []byte) (out []row) {
		for i := range n {
			out = append(out, row{fmt.Appendf(nil, "key:%08d", i), value(i)})
		}
		return out
	}
	// larger rows than are copied: some that compress and some that do not, between small ones and next to each other
	large := numbered(9, func(i int) []byte {
		v := bytes.Repeat([]byte{byte(i), 3}, 600<<10)
		switch i % 3 {
		case 0:
			return v[:100]
		case 1:
			rnd.Read(v)
		}
		return v
	})
	between := numbered(4000, func(i int) []byte { // batches, whole and not, of blocks, whole and not
		if i%1700 == 1500 || i == 1501 {
			return large[1+i%2].value
		}
		return large[1].value[i : i+i%100]
	})
	prefixes := []row{}
	for i := range 300 {
		prefixes = append(prefixes, row{bytes.Repeat([]byte{0xff}, i), nil})
	}
	return map[string][]row{
		"no row":         nil,
		"one row":        {{[]byte("k"), []byte("v")}},
		"empty key":      {{[]byte{}, []byte{}}, {[]byte{0}, nil}},
		"random":         random(5000, 30, 200),
		"many":           random(60_000, 20, 12),
		"empty values":   numbered(3000, func(int) []byte { return nil }),
		"prefixes":       prefixes,
		"long keys":      sorted(map[string][]byte{strings.Repeat("a", 64<<10): nil, strings.Repeat("a", 64<<10) + "b": {1}, strings.Repeat("b", 64<<10): {2}}),
		"large values":   numbered(20, func(i int) []byte { return bytes.Repeat([]byte{byte(i), 3}, 100_000*(i%4)) }),
		"large, small":   large[:7],
		"large, random":  large[:8],
		"large, packed":  large,
		"between large":  between,
		"large keys":     sorted(map[string][]byte{strings.Repeat("a", 1200<<10): nil, "b": {1}, strings.Repeat("c", 1200<<10): make([]byte, 2<<20)}),
		"at boundaries":  numbered(600, func(i int) []byte { return make([]byte, 4096-64+i%128) }),
		"incompressible": random(200, 20, 4000),
		"restarts":       numbered(16*4+1, func(i int) []byte { return []byte{byte(i)} }),
	}
}

func sorted(rows map[string][]byte) (out []row) {
	for k, v := range rows {
		out = append(out, row{[]byte(k), v})
	}
	slices.SortFunc(out, func(a, b row) int { return bytes.Compare(a.key, b.key) })
	return out
}

func options() *sst.WriterOptions {
	return &sst.WriterOptions{Comparer: store.Bytewise, Sequence: 1, FamilyName: "default", Identity: "db", Created: 1700000000}
}

// write writes a table.
func write(t testing.TB, o *sst.WriterOptions, rows []row) []byte {
	t.Helper()
	var out bytes.Buffer
	w := sst.NewWriter(&out, o)
	for _, r := range rows {
		if err := w.Add(r.key, r.value); err != nil {
			t.Fatal(err)
		}
	}
	got, err := w.Close()
	if err != nil {
		t.Fatal(err)
	}
	if got.Entries != int64(len(rows)) || got.Bytes != int64(out.Len()) {
		t.Fatalf("wrote %d rows, %d bytes; told %d, %d", len(rows), out.Len(), got.Entries, got.Bytes)
	}
	if len(rows) > 0 && (!bytes.Equal(got.First, rows[0].key) || !bytes.Equal(got.Last, rows[len(rows)-1].key)) {
		t.Fatalf("bounds %q, %q", got.First, got.Last)
	}
	return out.Bytes()
}

// pebbleReader opens a table with Pebble, which verifies every checksum.
func pebbleReader(t testing.TB, table []byte, c store.Comparer) *sstable.Reader {
	t.Helper()
	o := sstable.ReaderOptions{Filters: map[string]sstable.FilterPolicy{"rocksdb.BuiltinBloomFilter": bloom.FilterPolicy(10)}}
	if !c.IsBytewise() {
		o.Comparer = pebbleComparer(c)
	}
	r, err := sstable.NewMemReader(table, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	if err := r.ValidateBlockChecksums(); err != nil {
		t.Fatal(err)
	}
	return r
}

func pebbleComparer(c store.Comparer) *sstable.Comparer {
	return &sstable.Comparer{Name: c.Name, Compare: c.Compare, Equal: func(a, b []byte) bool { return c.Compare(a, b) == 0 },
		AbbreviatedKey: func([]byte) uint64 { return 0 }, FormatKey: sstable.DefaultComparer.FormatKey,
		Separator: func(dst, a, _ []byte) []byte {
			return append(dst, a...)
		}, Successor: func(dst, a []byte) []byte { return append(dst, a...) }}
}

// pebbleReads checks that Pebble reads the rows, forwards and by seeks to every key.
func pebbleReads(t *testing.T, table []byte, c store.Comparer, rows []row) {
	t.Helper()
	it, err := pebbleReader(t, table, c).NewIter(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	i := 0
	for k, v := it.First(); k != nil; k, v = it.Next() {
		value, _, err := v.Value(nil)
		if err != nil || i >= len(rows) || !bytes.Equal(k.UserKey, rows[i].key) || !bytes.Equal(value, rows[i].value) ||
			k.Trailer != 1<<8|1 {
			t.Fatalf("row %d: %.40q trailer %#x, %v", i, k.UserKey, k.Trailer, err)
		}
		i++
	}
	if i != len(rows) || it.Error() != nil {
		t.Fatalf("%d rows of %d: %v", i, len(rows), it.Error())
	}
	for _, r := range rows[:min(len(rows), 5000)] {
		if k, _ := it.SeekGE(r.key, 0); k == nil || !bytes.Equal(k.UserKey, r.key) {
			t.Fatalf("seek to %.40q: %v", r.key, k)
		}
	}
}

func TestPebbleReadsWhatWasWritten(t *testing.T) {
	for name, rows := range shapes() {
		for _, f := range []sst.Format{sst.RocksDB2, sst.LevelDB} {
			for _, c := range []store.Comparer{store.Bytewise, backwards} {
				t.Run(fmt.Sprintf("%s/%d/%s", name, f, c.Name), func(t *testing.T) {
					rows := slices.Clone(rows)
					slices.SortFunc(rows, func(a, b row) int { return c.Compare(a.key, b.key) })
					o := options()
					o.Format, o.Comparer = f, c
					pebbleReads(t, write(t, o, rows), c, rows)
				})
			}
		}
	}
}

// spare provides n idle cores.
func spare(cores int) func(func()) bool {
	slots := make(chan struct{}, cores)
	return func(f func()) bool {
		select {
		case slots <- struct{}{}:
			go func() {
				f()
				<-slots
			}()
			return true
		default:
			return false
		}
	}
}

// TestBytesDoNotDependOnSpareCores writes with and without cores to spare, and with small buffers.
func TestBytesDoNotDependOnSpareCores(t *testing.T) {
	for name, rows := range shapes() {
		want := write(t, options(), rows)
		for _, cores := range []int{0, 1, 4} {
			o := options()
			o.Spare, o.Buffer = spare(cores), 1000*cores
			if !bytes.Equal(write(t, o, rows), want) {
				t.Errorf("%s: other bytes with %d cores to spare", name, cores)
			}
		}
	}
}

// TestSizeDoesNotDependOnSpareCores follows the size, by which tables are cut, row by row.
func TestSizeDoesNotDependOnSpareCores(t *testing.T) {
	plain, beside := options(), options()
	beside.Spare = spare(2)
	var a, b bytes.Buffer
	v, w := sst.NewWriter(&a, plain), sst.NewWriter(&b, beside)
	rows := shapes()
	for i, r := range append(rows["between large"], rows["many"]...) {
		key := fmt.Appendf(nil, "%06d%s", i, r.key)
		v.Add(key, r.value)
		w.Add(key, r.value)
		if v.Size() != w.Size() || !bytes.Equal(w.Last(), key) || w.Entries() != int64(i+1) {
			t.Fatalf("row %d: sizes %d and %d", i, v.Size(), w.Size())
		}
	}
	if v.Size() == 0 {
		t.Fatal("the size does not move")
	}
}

func TestOrderIsChecked(t *testing.T) {
	for _, tc := range []struct {
		c    store.Comparer
		a, b string
	}{
		{store.Bytewise, "b", "a"}, {store.Bytewise, "a", "a"}, {store.Bytewise, "ab", "a"}, {store.Bytewise, "", ""},
		{store.Bytewise, "longer than eight b", "longer than eight a"}, {backwards, "a", "b"}, {backwards, "a", "a"},
	} {
		o := options()
		o.Comparer = tc.c
		w := sst.NewWriter(new(bytes.Buffer), o)
		if w.Last() != nil || w.Add([]byte(tc.a), nil) != nil {
			t.Fatal("the first row")
		}
		if err := w.Add([]byte(tc.b), nil); err != sst.ErrOrder {
			t.Errorf("%s: %q after %q: %v", tc.c.Name, tc.b, tc.a, err)
		}
		if _, err := w.Close(); err != sst.ErrOrder || w.Add([]byte("z"), nil) != sst.ErrOrder {
			t.Error("the error does not stick")
		}
	}
}

// calls records the offsets of writes.
type calls struct {
	size   int
	starts []int
}

func (c *calls) Write(p []byte) (int, error) {
	c.starts = append(c.starts, c.size)
	c.size += len(p)
	return len(p), nil
}

// TestWritesAreAligned: writes start at multiples of the buffer size, except after a large row's separate block.
func TestWritesAreAligned(t *testing.T) {
	for _, cores := range []int{0, 2} {
		for _, buffer := range []int{0, 8 << 10} {
			unit := 128 << 10
			if buffer > 0 {
				unit = buffer
			}
			var c calls
			o := options()
			o.Buffer, o.Spare = buffer, spare(cores)
			w := sst.NewWriter(&c, o)
			for i := range 60_000 {
				w.Add(fmt.Appendf(nil, "%08d", i), fmt.Appendf(nil, "value %d", i*i))
			}
			if _, err := w.Close(); err != nil || len(c.starts) < 4 {
				t.Errorf("%d writes of %d bytes, %v", len(c.starts), c.size, err)
			}
			for _, at := range c.starts {
				if at%unit != 0 {
					t.Errorf("buffer of %d: a write at %d", unit, at)
				}
			}
		}
	}
}

// full accepts n bytes, then fails.
type full int

func (f *full) Write(p []byte) (int, error) {
	if *f -= full(len(p)); *f < 0 {
		return 0, fmt.Errorf("disk full")
	}
	return len(p), nil
}

func TestWriteErrorsAreReturned(t *testing.T) {
	all := shapes()
	for _, name := range []string{"random", "large, random", "large, packed"} {
		for _, cores := range []int{0, 1} {
			writesWhileThereIsRoom(t, name, all[name], cores)
		}
	}
}

func writesWhileThereIsRoom(t *testing.T, name string, rows []row, cores int) {
	size := len(write(t, options(), rows))
	for _, room := range []int{0, 200, size / 2, size - 1} { // 200: a large row, after a small one, has its head in the file
		f, o := full(room), options()
		o.Buffer, o.Spare = 1, spare(cores)
		w := sst.NewWriter(&f, o)
		var err error
		for _, r := range rows {
			if err = w.Add(r.key, r.value); err != nil {
				break
			}
		}
		if _, cerr := w.Close(); cerr == nil || cerr.Error() != "disk full" || err != nil && err != cerr {
			t.Errorf("%s: room %d: %v, %v", name, room, err, cerr)
		}
	}
}

func TestClosed(t *testing.T) {
	w := sst.NewWriter(new(bytes.Buffer), options())
	w.Close()
	if w.Add([]byte("k"), nil) == nil {
		t.Error("a closed table takes rows")
	}
}

// TestProperties reads the properties with Pebble and compares them with the rows.
func TestProperties(t *testing.T) {
	rows := shapes()["random"]
	o := options()
	o.FamilyID, o.FamilyName, o.Merger = 3, "data_cf", "pebble.concatenate"
	table := write(t, o, rows)
	r := pebbleReader(t, table, store.Bytewise)
	p := &r.Properties
	var keys, values uint64
	for _, r := range rows {
		keys, values = keys+uint64(len(r.key))+8, values+uint64(len(r.value))
	}
	got := fmt.Sprint(p.NumEntries, p.RawKeySize, p.RawValueSize, p.NumDeletions, p.NumMergeOperands, p.NumRangeDeletions,
		p.ComparerName, p.MergerName, p.FilterPolicyName, p.CompressionName, p.WholeKeyFiltering, p.ExternalFormatVersion)
	want := fmt.Sprint(len(rows), keys, values, 0, 0, 0,
		"leveldb.BytewiseComparator", "pebble.concatenate", "rocksdb.BuiltinBloomFilter", "Snappy", true, 0)
	if got != want {
		t.Errorf("properties %s, want %s", got, want)
	}
	l, err := r.Layout()
	if err != nil {
		t.Fatal(err)
	}
	if n := uint64(len(l.Data)); n != p.NumDataBlocks || p.DataSize != l.Data[n-1].Offset+l.Data[n-1].Length+5 {
		t.Errorf("%d blocks to %d, properties %d to %d", n, l.Data[n-1].Offset+l.Data[n-1].Length+5, p.NumDataBlocks, p.DataSize)
	}
	if l.Filter.Length != p.FilterSize || bytes.Contains(table, []byte("external_sst_file")) {
		t.Error("filter size, or properties of an ingested file")
	}
}

// TestLastSequence changes the last row's sequence number: all other bytes stay the same, and lookups find the row.
func TestLastSequence(t *testing.T) {
	for name, rows := range shapes() {
		for _, f := range []sst.Format{sst.RocksDB2, sst.RocksDB5} {
			if len(rows) == 0 {
				continue
			}
			o := options()
			o.Sequence, o.Format = 0, f
			table := write(t, o, rows)
			path := filepath.Join(t.TempDir(), "000001.sst")
			if err := os.WriteFile(path, table, 0o600); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := sst.SetLastSequence(path, 9); err != nil {
					t.Fatal(name, err)
				}
			}
			marked, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			changed := 0
			half := bytes.Clone(table)
			for i := range table {
				if marked[i] != table[i] {
					if changed++; changed == 1 {
						half[i] = marked[i] // a crash between the number and the checksum
					}
				}
			}
			err = errors.Join(os.WriteFile(path, half, 0o600), sst.SetLastSequence(path, 9))
			if again, e := os.ReadFile(path); err != nil || e != nil || !bytes.Equal(again, marked) {
				t.Errorf("%s: after a crash: %v", name, errors.Join(err, e))
			}
			if len(marked) != len(table) || changed < 2 || changed > 5 { // the number and the checksum
				t.Errorf("%s: %d bytes changed", name, changed)
			}
			if f != sst.RocksDB2 {
				continue
			}
			it, err := pebbleReader(t, marked, store.Bytewise).NewIter(nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			last, _ := it.Last()
			if k, _ := it.SeekGE(rows[len(rows)-1].key, 0); k == nil || k.Trailer != 9<<8|1 || last.Trailer != k.Trailer {
				t.Errorf("%s: the last row is %v", name, k)
			}
			it.Close()
		}
	}
	damaged := write(t, options(), []row{{[]byte("key"), []byte("value")}})
	damaged[len("\x00\x0b\x05key12345678")] ^= 1 // the first letter of the value
	for name, data := range map[string][]byte{"short": nil, "other": make([]byte, 200), "damaged": damaged} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := sst.SetLastSequence(path, 1); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := sst.SetLastSequence(filepath.Join(t.TempDir(), "none"), 1); err == nil {
		t.Error("no file, no error")
	}
}

// TestIdentity: tables differ in identity if contents, column family or database differ; equal tables do not.
func TestIdentity(t *testing.T) {
	session := func(rows []row, change func(*sst.WriterOptions)) string {
		o := options()
		change(o)
		r := pebbleReader(t, write(t, o, rows), store.Bytewise)
		id := r.Properties.UserProperties["rocksdb.creating.session.identity"]
		if len(id) != 20 || strings.Trim(id, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
			t.Errorf("session %q", id)
		}
		return id
	}
	rows := shapes()["random"]
	other := slices.Clone(rows)
	other[77].value = []byte("other")
	same := func(*sst.WriterOptions) {}
	seen := map[string]bool{}
	for _, id := range []string{
		session(rows, same), session(other, same), session(rows[:77], same),
		session(rows, func(o *sst.WriterOptions) { o.FamilyID = 1 }),
		session(rows, func(o *sst.WriterOptions) { o.Identity = "other" }),
	} {
		if seen[id] {
			t.Errorf("session %s twice", id)
		}
		seen[id] = true
	}
	if again := session(rows, same); again != session(rows, same) {
		t.Error("two sessions for one table")
	}
}

// TestFilter looks up existing and other keys with Pebble's filter reader.
func TestFilter(t *testing.T) {
	var keys [][]byte
	rows := shapes()["many"]
	for _, r := range rows {
		keys = append(keys, r.key)
	}
	r := pebbleReader(t, write(t, options(), rows), store.Bytewise)
	l, err := r.Layout()
	if err != nil {
		t.Fatal(err)
	}
	for n := range 3 { // any table with rows has one
		if has := bytes.Contains(write(t, options(), rows[:n]), []byte("fullfilter.")); has != (n > 0) {
			t.Errorf("%d rows: filter %t", n, has)
		}
	}
	one := write(t, options(), rows[:1])
	ol, err := pebbleReader(t, one, store.Bytewise).Layout()
	if err != nil {
		t.Fatal(err)
	}
	if codec := one[ol.Filter.Offset+ol.Filter.Length]; codec != 0 {
		t.Errorf("a filter is compressed by codec %d, which no engine does", codec)
	}
	table := write(t, options(), rows)
	filter := table[l.Filter.Offset:][:l.Filter.Length]
	may := func(k []byte) bool { return bloom.FilterPolicy(10).MayContain(sstable.TableFilter, filter, k) }
	for _, k := range keys {
		if !may(k) {
			t.Fatalf("the filter denies %q", k)
		}
	}
	wrong, ours := 0, blocks.OpenFullFilter(filter)
	for i := range 10_000 {
		absent := fmt.Appendf(nil, "no such key %d", i)
		if may(absent) {
			wrong++
		}
		if k := keys[i%len(keys)]; ours.Has(0, absent) != may(absent) || !ours.Has(0, k) {
			t.Fatalf("%q or %q: verify's lookup gives another answer than Pebble's", absent, k)
		}
	}
	if wrong > 250 {
		t.Errorf("%d of 10000 absent keys pass the filter", wrong)
	}
	// Pebble's own filter of these keys is identical.
	w := bloom.FilterPolicy(10).NewWriter(sstable.TableFilter)
	for _, k := range keys {
		w.AddKey(k)
	}
	if !bytes.Equal(w.Finish(nil), filter) {
		t.Error("Pebble makes another filter of the same keys")
	}
}
