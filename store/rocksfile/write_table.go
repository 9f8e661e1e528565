package rocksfile

import (
	"os"

	"github.com/cockroachdb/pebble/bloom"
	"github.com/cockroachdb/pebble/sstable"

	"kvferry/store"
)

// bloomBits is the bits per key of the filters that RocksDB's users take by default.
const bloomBits = 10

// singleIndex is a size of index block that no table reaches: RocksDB 5.0.1 as nemo uses it knows
// no two-level index.
const singleIndex = 1 << 30

// tableOptions are the options of every table of a column family.
type tableOptions struct {
	sstable.WriterOptions
}

// newTableOptions chooses what RocksDB 5.0.1 (or LevelDB) reads: format version 2, CRC32c, snappy,
// a full filter over whole keys, a single-level binary-search index.
func newTableOptions(f flavour, c store.Comparer) tableOptions {
	o := sstable.WriterOptions{
		Comparer:       tableComparer(c),
		Compression:    sstable.SnappyCompression,
		Checksum:       sstable.ChecksumTypeCRC32c,
		TableFormat:    sstable.TableFormatRocksDBv2,
		FilterPolicy:   bloom.FilterPolicy(bloomBits),
		FilterType:     sstable.TableFilter,
		IndexBlockSize: singleIndex,
		MergerName:     "nullptr",
	}
	if f.levelDB {
		o.TableFormat = sstable.TableFormatLevelDB
		o.FilterPolicy = nil // Pebble writes RocksDB's filters only; LevelDB would not find one
	}
	return tableOptions{o}
}

// tableComparer wraps a comparer. Split stays nil: with one, tables would claim filters over
// prefixes that the original engine's own prefix extractor would then trust. Index keys are
// shortened in the bytewise order alone, the only one where that is known to be sound.
func tableComparer(c store.Comparer) *sstable.Comparer {
	if c.IsBytewise() {
		return sstable.DefaultComparer
	}
	return &sstable.Comparer{
		Name:      c.Name,
		Compare:   c.Compare,
		Equal:     func(a, b []byte) bool { return c.Compare(a, b) == 0 },
		FormatKey: sstable.DefaultComparer.FormatKey,
		Separator: func(dst, a, _ []byte) []byte { return append(dst, a...) },
		Successor: func(dst, a []byte) []byte { return append(dst, a...) },
	}
}

// tableWriter writes one table.
type tableWriter struct {
	w       *sstable.Writer
	out     *tableFile
	prev    sstable.PreviousPointKeyOpt
	entries int64
}

// newTable starts a table in a file of that path, replacing what an interrupted run left there.
func (b *builder) newTable(path string, s *space) (*tableWriter, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return nil, err
	}
	t := &tableWriter{out: &tableFile{f: f, pool: &b.buffers, limit: b.opts.Buffer, sync: b.syncs}}
	t.w = sstable.NewWriter(t.out, s.opts.WriterOptions, &t.prev)
	return t, nil
}

func (t *tableWriter) add(key, value []byte) error {
	if err := t.w.Set(key, value); err != nil {
		return err
	}
	t.entries++
	return nil
}

// lastKey is the key last added; nil when there is none.
func (t *tableWriter) lastKey() []byte {
	if t.entries == 0 {
		return nil
	}
	return t.prev.UnsafeKey().UserKey
}

// close writes the rest of the table and returns its bounds.
func (t *tableWriter) close() (first, last []byte, err error) {
	if err := t.w.Close(); err != nil {
		return nil, nil, err
	}
	m, err := t.w.Metadata()
	if err != nil {
		return nil, nil, err
	}
	return m.SmallestPoint.UserKey, m.LargestPoint.UserKey, nil
}

// abort closes the file without finishing the table. The writer's goroutine ends too.
func (t *tableWriter) abort() {
	t.out.err = os.ErrClosed
	t.w.Close()
	t.out.Abort()
}
