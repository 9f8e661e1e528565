//go:build rocksdb

package grocks

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/linxGnu/grocksdb"

	"kvferry/store"
	"kvferry/store/rocks"
)

// writerOptions are the options with which RocksDB writes a database under test.
type writerOptions struct {
	name       string
	format     int // of tables
	checksum   int8
	codec      grocksdb.CompressionType
	dictionary int
	index      grocksdb.IndexType
	table      func(*grocksdb.BlockBasedTableOptions)
	db         func(*grocksdb.Options)
	batches    int  // between flushes and compactions
	noFlush    bool // everything stays in the log
	levels     int  // that must have tables
	// Tables whose rows are few have no dictionary.
	mustHaveDictionary bool
}

// appendMerger joins operands.
var appendMerger = &store.Merger{Name: "test.append", Fold: func(dst, _, base []byte, operands [][]byte) ([]byte, bool, error) {
	dst = append(dst, base...)
	for _, o := range operands {
		dst = append(append(dst, '+'), o...)
	}
	return dst, true, nil
}}

// Checksum types as tables name them.
const (
	sumNone   = 0
	sumCRC32c = 1
	sumXXHash = 2
	sumXXH64  = 3
	sumXXH3   = 4
)

// with changes the options that the old engines have.
func with(name string, change func(*writerOptions)) writerOptions {
	o := writerOptions{name: name, format: 2, checksum: sumCRC32c, codec: grocksdb.SnappyCompression, batches: 5, levels: 1}
	change(&o)
	return o
}

// TestReadsWhatRocksDBWrites: RocksDB writes databases in every way it has, and store/rocks reads
// them row for row as RocksDB does.
func TestReadsWhatRocksDBWrites(t *testing.T) {
	cases := append(shapes(), encodings()...)
	slices.SortFunc(cases, func(a, b writerOptions) int { return strings.Compare(a.name, b.name) })
	for _, o := range some(t, cases) {
		t.Run(o.name, func(t *testing.T) { readBack(t, random(t), o) })
	}
}

// some returns a third of the cases, drawn by chance, and all of them in the long form.
func some(t *testing.T, cases []writerOptions) []writerOptions {
	if long() {
		return cases
	}
	random(t).Shuffle(len(cases), func(i, j int) { cases[i], cases[j] = cases[j], cases[i] })
	return cases[:(len(cases)+2)/3]
}

// codecs are the codecs of RocksDB except snappy.
var codecs = map[string]grocksdb.CompressionType{
	"none": grocksdb.NoCompression, "zlib": grocksdb.ZLibCompression, "bz2": grocksdb.Bz2Compression,
	"lz4": grocksdb.LZ4Compression, "lz4hc": grocksdb.LZ4HCCompression, "zstd": grocksdb.ZSTDCompression,
}

// blobs stores values from a size on in blob files, small files that are collected soon.
func blobs(d *grocksdb.Options, size uint64, codec grocksdb.CompressionType) {
	d.EnableBlobFiles(true)
	d.SetMinBlobSize(size)
	d.SetBlobFileSize(20 << 10)
	d.SetBlobCompressionType(codec)
	d.EnableBlobGC(true)
	d.SetBlobGCAgeCutoff(0.5)
	d.SetWriteBufferSize(64 << 10)
}

// TestReadsMixtures: what modern RocksDB has, mixed by chance.
func TestReadsMixtures(t *testing.T) {
	n := 2
	if long() {
		n = 12
	}
	for i := range n {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			r := random(t)
			o := mixture(r)
			t.Log(o.name)
			readBack(t, r, o)
		})
	}
}

// mixture picks options at random; their name lists them.
func mixture(r *rand.Rand) writerOptions {
	all := []grocksdb.CompressionType{grocksdb.NoCompression, grocksdb.SnappyCompression, grocksdb.ZLibCompression,
		grocksdb.LZ4Compression, grocksdb.LZ4HCCompression, grocksdb.ZSTDCompression}
	draw := func() grocksdb.CompressionType { return all[r.Intn(len(all))] }
	o := writerOptions{format: 3 + r.Intn(3), checksum: int8(r.Intn(5)), codec: draw(), batches: 6 + r.Intn(10), levels: 1}
	if r.Intn(2) == 0 && o.codec != grocksdb.SnappyCompression && o.codec != grocksdb.NoCompression {
		o.dictionary = 4 << 10
	}
	if r.Intn(2) == 0 {
		o.index = grocksdb.KTwoLevelIndexSearchIndexType
	}
	partitions, hash, restarts := r.Intn(2) == 0, r.Intn(2) == 0, 1+r.Intn(16)
	o.table = func(b *grocksdb.BlockBasedTableOptions) {
		b.SetBlockSize(256 << (r.Intn(6)))
		b.SetMetadataBlockSize(256)
		b.SetIndexBlockRestartInterval(restarts)
		b.SetPartitionFilters(partitions && o.index == grocksdb.KTwoLevelIndexSearchIndexType)
		if hash {
			b.SetDataBlockIndexType(grocksdb.KDataBlockIndexTypeBinarySearchAndHash)
		}
	}
	size, codec, wal := uint64(r.Intn(100)), draw(), r.Intn(2) == 0
	if r.Intn(3) == 0 {
		size = 1 << 30 // no blobs
	}
	o.db = func(d *grocksdb.Options) {
		if size < 1<<30 {
			blobs(d, size, codec)
		}
		if wal {
			d.SetWALCompression(grocksdb.ZSTDCompression)
		}
	}
	o.name = fmt.Sprintf("format %d, checksum %d, codec %d, dictionary %d, index %d (restarts %d), partitioned filters %t, hash %t, blobs from %d with codec %d, compressed log %t",
		o.format, o.checksum, o.codec, o.dictionary, o.index, restarts, partitions, hash, size, codec, wal)
	return o
}

// shapes are databases that differ in the place of entries and in the way to find them.
func shapes() []writerOptions {
	return []writerOptions{
		with("defaults of the old engines", func(*writerOptions) {}),
		with("in the log alone", func(o *writerOptions) { o.noFlush, o.levels = true, 0 }),
		with("recycled logs", func(o *writerOptions) {
			o.db = func(d *grocksdb.Options) { d.SetRecycleLogFileNum(4); d.SetWriteBufferSize(64 << 10) }
		}),
		with("compressed logs", func(o *writerOptions) {
			o.noFlush, o.levels = true, 0
			o.db = func(d *grocksdb.Options) { d.SetWALCompression(grocksdb.ZSTDCompression) }
		}),
		with("compressed and recycled logs", func(o *writerOptions) {
			o.db = func(d *grocksdb.Options) {
				d.SetWALCompression(grocksdb.ZSTDCompression)
				d.SetRecycleLogFileNum(4)
				d.SetWriteBufferSize(64 << 10)
			}
		}),
		with("many levels", func(o *writerOptions) {
			o.batches, o.levels = 20, 4
			o.db = func(d *grocksdb.Options) {
				d.SetTargetFileSizeBase(32 << 10)
				d.SetMaxBytesForLevelBase(64 << 10)
				d.SetMaxBytesForLevelMultiplier(2)
				d.SetWriteBufferSize(64 << 10)
			}
		}),
		with("level 0 alone", func(o *writerOptions) {
			o.batches, o.levels = 12, 1
			o.db = func(d *grocksdb.Options) { d.SetDisableAutoCompactions(true) }
		}),
		with("small blocks", func(o *writerOptions) {
			o.table = func(b *grocksdb.BlockBasedTableOptions) { b.SetBlockSize(64); b.SetBlockRestartInterval(1) }
		}),
		with("delta-encoded index", func(o *writerOptions) {
			o.table = func(b *grocksdb.BlockBasedTableOptions) { b.SetIndexBlockRestartInterval(8) }
		}),
		with("two-level index", func(o *writerOptions) {
			o.index = grocksdb.KTwoLevelIndexSearchIndexType
			o.table = func(b *grocksdb.BlockBasedTableOptions) { b.SetMetadataBlockSize(256) }
		}),
		with("two-level index and filter", func(o *writerOptions) {
			o.index, o.format = grocksdb.KTwoLevelIndexSearchIndexType, 5
			o.table = func(b *grocksdb.BlockBasedTableOptions) { b.SetMetadataBlockSize(256); b.SetPartitionFilters(true) }
		}),
		with("data block hash index", func(o *writerOptions) {
			o.table = func(b *grocksdb.BlockBasedTableOptions) {
				b.SetDataBlockIndexType(grocksdb.KDataBlockIndexTypeBinarySearchAndHash)
			}
		}),
		with("index with first keys", func(o *writerOptions) { o.index, o.format = 3, 5 }),
	}
}

// encodings are databases that differ in how blocks are written.
func encodings() []writerOptions {
	cases := []writerOptions{
		with("zstd with a dictionary", func(o *writerOptions) {
			o.mustHaveDictionary = true
			o.codec, o.dictionary, o.format = grocksdb.ZSTDCompression, 4<<10, 5
		}),
		with("zstd with a trained dictionary", func(o *writerOptions) {
			o.codec, o.dictionary, o.format = grocksdb.ZSTDCompression, 4<<10, 5
			o.db = func(d *grocksdb.Options) { d.SetCompressionOptionsZstdMaxTrainBytes(64 << 10) }
		}),
		with("a codec for each level", func(o *writerOptions) {
			o.batches, o.format = 20, 5
			o.db = func(d *grocksdb.Options) {
				d.SetTargetFileSizeBase(32 << 10)
				d.SetMaxBytesForLevelBase(64 << 10)
				d.SetMaxBytesForLevelMultiplier(2)
				d.SetWriteBufferSize(64 << 10)
				d.SetCompressionPerLevel([]grocksdb.CompressionType{grocksdb.NoCompression, grocksdb.NoCompression,
					grocksdb.SnappyCompression,
					grocksdb.LZ4Compression, grocksdb.ZSTDCompression, grocksdb.ZLibCompression, grocksdb.LZ4HCCompression})
			}
		}),
		with("lz4 with a dictionary", func(o *writerOptions) {
			o.mustHaveDictionary = true
			o.codec, o.dictionary = grocksdb.LZ4Compression, 4<<10
		}),
		with("zlib with a dictionary", func(o *writerOptions) {
			o.mustHaveDictionary = true
			o.codec, o.dictionary = grocksdb.ZLibCompression, 4<<10
		}),
	}
	for name, codec := range codecs {
		if codec == grocksdb.Bz2Compression {
			continue // Debian's RocksDB has it not, which fails for blobs
		}
		for _, size := range []uint64{0, 10} { // from 0 empty values are in them too
			cases = append(cases, with(fmt.Sprintf("blob files from %d bytes, codec %s", size, name), func(o *writerOptions) {
				o.format, o.batches = 5, 10
				o.db = func(d *grocksdb.Options) { blobs(d, size, codec) }
			}))
		}
	}
	for v := range 6 {
		cases = append(cases, with(fmt.Sprintf("format version %d", v), func(o *writerOptions) { o.format = v }))
	}
	for sum, name := range []string{"none", "CRC32c", "xxHash", "xxHash64", "XXH3"} {
		cases = append(cases, with("checksum "+name, func(o *writerOptions) { o.checksum, o.format = int8(sum), 5 }))
	}
	for name, codec := range codecs {
		for _, v := range []int{0, 2, 5} {
			if v == 0 && name != "none" && name != "zlib" {
				continue
			}
			cases = append(cases, with(fmt.Sprintf("codec %s, format version %d", name, v), func(o *writerOptions) {
				o.codec, o.format = codec, v
				o.table = func(b *grocksdb.BlockBasedTableOptions) { b.SetBlockSize(16 << 10) } // bz2 takes long over each
			}))
		}
	}
	return cases
}

// writeRandom lets RocksDB write a random database and returns its directory.
func writeRandom(t *testing.T, r *rand.Rand, o writerOptions) string {
	dir := filepath.Join(t.TempDir(), "db")
	w := newWriter(t, r, dir, o)
	for range o.batches {
		w.batch(100 + r.Intn(300))
		w.settle()
	}
	w.close()
	return dir
}

// readBack lets RocksDB write a random database and compares its rows with ours.
func readBack(t *testing.T, r *rand.Rand, o writerOptions) {
	dir := writeRandom(t, r, o)
	before := snapshot(t, dir)
	opts := &store.Options{Comparers: comparers(), Merger: appendMerger, TempDir: t.TempDir()}
	theirs := openRocks(t, dir, opts)
	ours, err := rocks.Open(context.Background(), dir, opts)
	must(t, err)
	defer ours.Close()
	compare(t, r, ours, theirs)
	if found, err := checkFiles(t, dir); err != nil || len(found) > 0 {
		t.Errorf("a sound database: findings %+v, %v", found, err)
	}
	levels := map[int]bool{}
	dictionaries := 0
	for _, f := range ours.Files() {
		if f.Kind == "table" {
			levels[f.Level] = true
			data, err := os.ReadFile(filepath.Join(dir, f.Path))
			must(t, err)
			if bytes.Contains(data, []byte("rocksdb.compression_dict")) {
				dictionaries++
			}
		}
	}
	if o.dictionary > 0 && dictionaries == 0 && o.mustHaveDictionary {
		t.Error("no table has a dictionary")
	}
	// Compaction goes on in the background and may empty a level before the database is closed.
	if o.levels > 0 && len(levels) < min(o.levels, 2) || o.noFlush && len(levels) > 0 {
		t.Errorf("tables at levels %v, want up to %d levels", levels, o.levels)
	}
	wantUnchanged(t, dir, before)
}

// compare reads two stores of the same database in every way there is.
func compare(t *testing.T, r *rand.Rand, ours store.Store, theirs *database) {
	t.Helper()
	if len(ours.Keyspaces()) != len(theirs.spaces) {
		t.Fatalf("%d column families, RocksDB has %d", len(ours.Keyspaces()), len(theirs.spaces))
	}
	for i, k := range ours.Keyspaces() {
		their := theirs.spaces[i]
		if k.Name() != their.Name() || k.Comparer().Name != their.Comparer().Name {
			t.Fatalf("column family %d is %q with %q, RocksDB says %q with %q", i, k.Name(), k.Comparer().Name, their.Name(),
				their.Comparer().Name)
		}
		f := family{name: k.Name(), rows: scan(t, their, nil, nil)}
		for _, o := range orders {
			if o.cmp.Name == k.Comparer().Name {
				f.order = o
			}
		}
		if len(f.rows) < 20 {
			t.Fatalf("%s: only %d rows", f.name, len(f.rows))
		}
		wantRows(t, f.name, scan(t, k, nil, nil), f.rows)
		spans(t, r, k, f)
		seeks(t, r, k, f)
		wantRows(t, f.name+" from its entries", rowsOfEntries(t, k), f.rows)
	}
}

// rowsOfEntries derives the visible rows from the physical entries, and compares the entries with an unordered read.
func rowsOfEntries(t *testing.T, k store.Keyspace) (out []row) {
	t.Helper()
	it, err := k.Entries(nil, nil)
	must(t, err)
	defer it.Close()
	seen := map[string]int{}
	var g group
	for {
		e, err := it.Next()
		if err == io.EOF {
			break
		}
		must(t, err)
		seen[fmt.Sprintf("%s %d %q %q", e.Kind, e.Seq, e.Key, e.Value)]++
		if e.Kind == store.RangeDelete {
			continue
		}
		if g.key == nil || k.Comparer().Compare(g.key, e.Key) != 0 {
			out = g.end(t, out)
			g = group{key: bytes.Clone(e.Key)}
		}
		g.add(e)
	}
	out = g.end(t, out)
	must(t, k.Unordered(func(e *store.Entry) error {
		seen[fmt.Sprintf("%s %d %q %q", e.Kind, e.Seq, e.Key, e.Value)]--
		return nil
	}))
	for e, n := range seen {
		if n != 0 {
			t.Fatalf("%s: %+d times more in order than without: %s", k.Name(), n, cut(e))
		}
	}
	return out
}

// group is the entries of one key, newest first, as far as they count.
type group struct {
	key, base []byte
	exists    bool
	operands  [][]byte
	ended     bool
}

func (g *group) add(e *store.Entry) {
	switch {
	case g.ended:
	case e.Covered || e.Kind == store.Delete || e.Kind == store.SingleDelete:
		g.ended = true
	case e.Kind == store.Merge:
		g.operands, g.exists = append(g.operands, bytes.Clone(e.Value)), true
	default:
		g.base, g.exists, g.ended = bytes.Clone(e.Value), true, true
	}
}

// end appends the row that the group shows, if any.
func (g *group) end(t *testing.T, out []row) []row {
	if !g.exists {
		return out
	}
	slices.Reverse(g.operands)
	value, _, err := appendMerger.Fold(nil, g.key, g.base, g.operands)
	must(t, err)
	return append(out, row{string(g.key), string(value)})
}

// writer makes random changes to a database.
type writer struct {
	t        *testing.T
	r        *rand.Rand
	o        writerOptions
	dir      string
	families []family
	w        *writable
	wo       *grocksdb.WriteOptions
	once     []map[string]bool // of each family: keys that are put once and deleted singly
	snapshot *grocksdb.Snapshot
	files    int
}

func newWriter(t *testing.T, r *rand.Rand, dir string, o writerOptions) *writer {
	w := &writer{t: t, r: r, o: o, dir: dir, wo: grocksdb.NewDefaultWriteOptions()}
	w.families = []family{{name: "default", order: orders[0]}}
	for i := range orders[:4] { // the callback comparer is slow, and unused by formats
		w.families = append(w.families, family{name: fmt.Sprintf("cf%d", i), order: orders[i]})
	}
	for range w.families {
		w.once = append(w.once, map[string]bool{})
	}
	w.open()
	return w
}

// open opens the database for writing with the options under test.
func (w *writer) open() {
	w.w = &writable{}
	var names []string
	for i := range w.families {
		names = append(names, w.families[i].name)
		w.w.options = append(w.w.options, w.options(&w.families[i].order.cmp))
	}
	var err error
	w.w.db, w.w.handles, err = grocksdb.OpenDbColumnFamilies(w.w.options[0], w.dir, names, w.w.options)
	must(w.t, err)
}

func (w *writer) options(c *store.Comparer) *grocksdb.Options {
	b := grocksdb.NewDefaultBlockBasedTableOptions()
	b.SetFormatVersion(w.o.format)
	b.SetChecksum(w.o.checksum)
	b.SetIndexType(w.o.index)
	b.SetBlockSize(1024)
	b.SetFilterPolicy(grocksdb.NewBloomFilter(10))
	if w.o.table != nil {
		w.o.table(b)
	}
	d := grocksdb.NewDefaultOptions()
	d.SetCreateIfMissing(true)
	d.SetCreateIfMissingColumnFamilies(true)
	d.SetBlockBasedTableFactory(b)
	d.SetCompression(w.o.codec)
	if w.o.dictionary > 0 {
		co := grocksdb.NewDefaultCompressionOptions()
		co.MaxDictBytes = w.o.dictionary
		d.SetCompressionOptions(co)
	}
	d.SetMergeOperator(&merger{m: appendMerger})
	setComparator(d, c)
	if w.o.db != nil {
		w.o.db(d)
	}
	return d
}

// close closes the database as it is. Options with a merge operator cannot be destroyed.
func (w *writer) close() {
	if w.snapshot != nil {
		w.w.db.ReleaseSnapshot(w.snapshot)
		w.snapshot = nil
	}
	for _, h := range w.w.handles {
		h.Destroy()
	}
	w.w.db.Close()
}

// batch makes n changes to every family.
func (w *writer) batch(n int) {
	for i := range w.families {
		for range n {
			must(w.t, w.change(i))
		}
		if w.r.Intn(3) == 0 && !w.o.noFlush {
			w.ingest(i)
		}
	}
}

// change makes one change. Some keys are only ever put when absent and deleted singly: RocksDB
// leaves all other uses of single deletes undefined.
func (w *writer) change(i int) error {
	db, h, f := w.w.db, w.w.handles[i], &w.families[i]
	key := f.order.key(w.r)
	value := []byte(randomValue(w.r))
	if single(key) {
		if w.once[i][string(key)] {
			delete(w.once[i], string(key))
			return db.SingleDeleteCF(w.wo, h, key)
		}
		w.once[i][string(key)] = true
		return db.PutCF(w.wo, h, key, value)
	}
	switch n := w.r.Intn(200); {
	case n == 0:
		return w.deleteRange(i)
	case n < 20:
		return db.DeleteCF(w.wo, h, key)
	case n < 60:
		return db.MergeCF(w.wo, h, key, value[:min(len(value), 20)])
	}
	return db.PutCF(w.wo, h, key, value)
}

// single marks one key in eight, by bytes that no order takes for equal to others.
func single(key []byte) bool {
	sum := 0
	for _, c := range key {
		sum += int(c)
	}
	return sum%8 == 3
}

// deleteRange deletes a span that ends at a key not far from its start.
func (w *writer) deleteRange(i int) error {
	f := &w.families[i]
	keys := make([][]byte, 40)
	for j := range keys {
		keys[j] = f.order.key(w.r)
	}
	sortKeys(keys, f.order.cmp.Compare)
	j := w.r.Intn(len(keys) - 1)
	lo, hi := keys[j], keys[j+1]
	if f.order.cmp.Compare(lo, hi) == 0 {
		return nil
	}
	for key := range w.once[i] {
		if f.order.cmp.Compare(lo, []byte(key)) <= 0 && f.order.cmp.Compare([]byte(key), hi) < 0 {
			delete(w.once[i], key)
		}
	}
	return w.w.db.DeleteRangeCF(w.wo, w.w.handles[i], lo, hi)
}

// ingest adds a table from outside, whose keys all get one sequence number.
func (w *writer) ingest(i int) {
	f := &w.families[i]
	o := w.options(&f.order.cmp)
	eo := grocksdb.NewDefaultEnvOptions()
	s := grocksdb.NewSSTFileWriter(eo, o)
	path := filepath.Join(w.t.TempDir(), fmt.Sprintf("ingest%d.sst", w.files))
	w.files++
	must(w.t, s.Open(path))
	for _, row := range randomRows(w.r, f.order, 50+w.r.Intn(100)) {
		if key := []byte(row.key); !single(key) {
			if w.r.Intn(10) == 0 {
				must(w.t, s.Delete(key))
			} else {
				must(w.t, s.Put(key, []byte(row.value)))
			}
		}
	}
	must(w.t, s.Finish())
	s.Destroy()
	io := grocksdb.NewDefaultIngestExternalFileOptions()
	defer io.Destroy()
	err := w.w.db.IngestExternalFileCF(w.w.handles[i], []string{path}, io)
	for range 100 { // RocksDB asks for another try if a flush or a compaction ended meanwhile
		if err == nil || !strings.Contains(err.Error(), "Try again") {
			break
		}
		time.Sleep(10 * time.Millisecond)
		err = w.w.db.IngestExternalFileCF(w.w.handles[i], []string{path}, io)
	}
	must(w.t, err)
}

// settle flushes, compacts, holds snapshots or reopens, now and then.
func (w *writer) settle() {
	if w.o.noFlush {
		return
	}
	fo := grocksdb.NewDefaultFlushOptions()
	defer fo.Destroy()
	for _, h := range w.w.handles {
		switch w.r.Intn(6) {
		case 0: // the log keeps what this family has
		case 1:
			w.w.db.CompactRangeCF(h, grocksdb.Range{})
		default:
			must(w.t, w.w.db.FlushCF(h, fo))
		}
	}
	switch {
	case w.snapshot != nil:
		w.w.db.ReleaseSnapshot(w.snapshot)
		w.snapshot = nil
	case w.r.Intn(2) == 0:
		w.snapshot = w.w.db.NewSnapshot() // older versions stay in the tables
	}
	if w.r.Intn(6) == 0 {
		w.close()
		w.open()
	}
}
