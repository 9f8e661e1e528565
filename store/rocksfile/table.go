package rocksfile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"sync"

	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/blocks"
	"kvferry/store/rocks/files"
	"kvferry/store/rocks/manifest"
)

// table is one sorted table: a file that the MANIFEST names, or a spool of our own. What all
// readers of it share is read once.
type table struct {
	meta     manifest.Table
	smallest []byte // user keys, inclusive
	largest  []byte
	file     *files.File
	keyspace string
	cmp      *store.Comparer
	levelDB  bool
	origins  []string // of a spool: the files its entries came from; see originLen
	levels   []int    // of origins, when they are not all of the table's
	cache    *indexCache
	packers  *unpackers // the store's
	withDict *unpackers // for the data blocks of a table with a dictionary

	once sync.Once
	info tableInfo
	err  error
	// tombErr says that the range tombstones cannot be read; the other rows can.
	tombErr error
	// metaErr says that the metaindex of LevelDB's table, or what it names, cannot be read; all rows can.
	metaErr error

	skips skips

	indexMu sync.Mutex
	index   map[uint64]*cachedBlock // by offset; guarded by cache.mu
}

// tableInfo is what stands around a table's rows.
type tableInfo struct {
	footer
	properties
	dict       []byte
	rangeDel   blocks.Handle // size 0: none
	tombstones []tombstone
	// fixedSeq is the sequence number of every key of an ingested table; useFixed says it counts.
	fixedSeq uint64
	useFixed bool
	legacyZ  bool // codec ids are LevelDB's
	format   int  // compress format
}

// newTable makes the table of a file; nothing of it is read yet.
func newTable(file *files.File, meta manifest.Table, ks *keyspace) *table {
	t := &table{meta: meta, file: file, keyspace: ks.name, cmp: ks.cmp, levelDB: ks.st.levelDB,
		cache: &ks.st.indexes, packers: &ks.st.packers}
	t.smallest, _ = base.SplitKey(meta.Smallest)
	t.largest, _ = base.SplitKey(meta.Largest)
	return t
}

// load reads footer, properties, dictionary and range tombstones, once. Those that cannot be read are none, see tombErr.
func (t *table) load() (*tableInfo, error) {
	t.once.Do(func() { t.err = t.loadInfo() })
	return &t.info, t.err
}

// fail places an error in the table's file.
func (t *table) fail(off int64, field string, err error) error {
	return &record.CorruptError{Keyspace: t.keyspace, File: t.file.Path, Off: off, Field: field, Err: err}
}

func (t *table) loadInfo() error {
	if err := t.readInfo(); err != nil {
		return err
	}
	if c := t.info.comparator; c != "" && c != t.cmp.Name {
		return t.fail(record.NoOffset, "properties", fmt.Errorf("comparator %q, the column family has %q", c, t.cmp.Name))
	}
	if err := t.setGlobalSeq(); err != nil {
		return err
	}
	if t.tombErr = t.loadTombstones(); t.tombErr != nil {
		t.info.tombstones = nil
	}
	for i := range t.info.tombstones {
		t.clip(&t.info.tombstones[i])
	}
	return nil
}

// readInfo reads footer, properties and dictionary.
func (t *table) readInfo() error {
	n := min(t.file.Size, footerLen)
	tail := make([]byte, n)
	if err := t.file.ReadFull(tail, t.file.Size-n); err != nil {
		return err
	}
	ft, err := decodeFooter(tail)
	if err != nil {
		return t.fail(t.file.Size-n, "footer", err)
	}
	t.info.footer = ft
	t.info.legacyZ = t.levelDB
	t.info.format = 1
	if ft.version >= 2 {
		t.info.format = 2
	}
	t.info.properties = unknownProperties
	return t.loadMetaindex()
}

// loadMetaindex finds the blocks that are not data, and reads those needed. LevelDB's rows need none: it reads them
// although its metaindex is damaged, which leads to filters, and in tables that others wrote to properties.
func (t *table) loadMetaindex() error {
	err := t.eachMeta(t.metaBlock)
	if t.levelDB && base.IsDamage(err) {
		t.metaErr, t.info.properties, err = err, unknownProperties, nil
	}
	return err
}

// eachMeta calls f for every entry of the metaindex; its error ends the walk.
func (t *table) eachMeta(f func(name string, value []byte) error) error {
	b, err := t.readBlock(t.info.metaindex, "metaindex", checkBlock)
	if err != nil {
		return err
	}
	bl, err := blocks.Parse(b)
	if err != nil {
		return t.fail(int64(t.info.metaindex.Off), "metaindex", err)
	}
	e := blocks.Entries{Data: bl.Entries}
	for {
		ok, err := e.Next()
		if err != nil {
			return t.fail(int64(t.info.metaindex.Off), "metaindex", err)
		}
		if !ok {
			return nil
		}
		if err := f(string(e.Key), e.Val); err != nil {
			return err
		}
	}
}

// isRowMeta reports whether reading rows needs the block that the metaindex names so.
func isRowMeta(name string) bool {
	switch name {
	case "rocksdb.properties", "rocksdb.stats", "rocksdb.compression_dict", "rocksdb.range_del", "rocksdb.range_del2":
		return true
	}
	return false
}

// metaBlock reads one of the blocks that the metaindex names.
func (t *table) metaBlock(name string, value []byte) error {
	if !isRowMeta(name) {
		return nil
	}
	f := &base.Fields{Buf: value}
	h := blocks.ReadHandle(f, name)
	if f.Err != nil {
		return t.fail(int64(t.info.metaindex.Off), "metaindex", f.Err)
	}
	switch name {
	case "rocksdb.range_del", "rocksdb.range_del2": // the latter is Pebble's, of the same layout
		t.info.rangeDel = h
	case "rocksdb.compression_dict":
		d, err := t.readBlock(h, "dictionary", checkBlock)
		if err != nil {
			return err
		}
		t.info.dict, t.withDict = d, new(unpackers)
	default:
		b, err := t.readBlock(h, "properties", checkProperties)
		if err != nil {
			return err
		}
		if t.info.properties, err = decodeProperties(b); err != nil {
			return t.fail(int64(h.Off), "properties", err)
		}
	}
	return nil
}

// setGlobalSeq finds the sequence number of an ingested table (GetGlobalSequenceNumber of
// table/block_based/block_based_table_reader.cc).
func (t *table) setGlobalSeq() error {
	p := &t.info.properties
	if !p.external {
		return nil
	}
	t.info.useFixed, t.info.fixedSeq = true, t.meta.MaxSeq
	if p.globalSeq != 0 && p.globalSeq != t.meta.MaxSeq {
		return t.fail(record.NoOffset, "properties", fmt.Errorf("%s is %d, the MANIFEST says %d", propGlobalSeq, p.globalSeq, t.meta.MaxSeq))
	}
	return nil
}

// unpack decompresses a data block.
func (t *table) unpack(dst []byte, codec byte, src []byte) ([]byte, error) {
	if t.withDict != nil {
		return t.withDict.unpack(dst, codec, src, t.info.format, t.info.dict)
	}
	return t.packers.unpack(dst, codec, src, t.info.format, nil)
}

// readBlock reads, verifies and decompresses a block other than a data block into memory of its own.
func (t *table) readBlock(h blocks.Handle, field string, check func(byte, []byte, uint32) error) ([]byte, error) {
	if err := h.Check(t.file.Size); err != nil {
		return nil, t.fail(int64(h.Off), field, err)
	}
	raw := make([]byte, h.Size+blocks.TrailerLen)
	if err := t.file.ReadFull(raw, int64(h.Off)); err != nil {
		return nil, err
	}
	if err := check(t.info.checksum, raw[:h.Size+1], binary.LittleEndian.Uint32(raw[h.Size+1:])); err != nil {
		return nil, t.fail(int64(h.Off), field, err)
	}
	codec := t.codec(raw[h.Size])
	if codec == codecNone {
		return raw[:h.Size:h.Size], nil
	}
	b, err := t.packers.unpack(nil, codec, raw[:h.Size], t.info.format, nil)
	if err != nil {
		return nil, t.fail(int64(h.Off), field, err)
	}
	return b, nil
}

// loadBlock returns a block of the table, verified and decompressed: a view of the window or of dst, which it
// returns for reuse.
func (t *table) loadBlock(w *files.Window, h blocks.Handle, dst []byte) (b, reuse []byte, err error) {
	if err := h.Check(t.file.Size); err != nil {
		return nil, dst, err
	}
	raw, err := w.Read(int64(h.Off), int(h.Size)+blocks.TrailerLen)
	if err != nil {
		return nil, dst, err
	}
	n := h.Size
	if err := checkBlock(t.info.checksum, raw[:n+1], binary.LittleEndian.Uint32(raw[n+1:])); err != nil {
		return nil, dst, err
	}
	codec := t.codec(raw[n])
	if codec == codecNone {
		return raw[:n], dst, nil
	}
	out, err := t.unpack(dst, codec, raw[:n])
	if w.Crowded() {
		w.GiveBack()
	}
	if err != nil {
		return nil, dst, err
	}
	return out, out, nil
}

// codec translates the codec byte of a block.
func (t *table) codec(b byte) byte {
	if t.info.legacyZ && b == codecLevelDBZstd {
		return codecZstdLevelDB
	}
	return b
}

// place says where a block of the table is.
func (t *table) place(off uint64) record.Place {
	return record.Place{File: t.file.Name, Off: int64(off), Level: t.meta.Level}
}

// tombstone is a range delete: keys in [start, end) older than seq do not exist.
type tombstone struct {
	start, end []byte
	seq        uint64
	// from and to are what it covers within the bounds of its table.
	from, to bound
	place    record.Place
}

// loadTombstones reads the range tombstones.
func (t *table) loadTombstones() error {
	h := t.info.rangeDel
	if h.Size == 0 {
		return nil
	}
	b, err := t.readBlock(h, "range_del", checkBlock)
	if err != nil {
		return err
	}
	bl, err := blocks.Parse(b)
	if err != nil {
		return t.fail(int64(h.Off), "range_del", err)
	}
	e := blocks.Entries{Data: bl.Entries}
	for {
		ok, err := e.Next()
		if err == nil && ok && len(e.Key) < base.TrailerLen {
			err = record.ErrShort
		}
		if err != nil {
			return t.fail(int64(h.Off), "range_del", err)
		}
		if !ok {
			return nil
		}
		user, tr := base.SplitKey(e.Key)
		if byte(tr) != base.KindRangeDelete {
			return t.fail(int64(h.Off), "range_del", fmt.Errorf("entry of kind %#x", byte(tr)))
		}
		seq := tr >> 8
		if t.info.useFixed {
			seq = t.info.fixedSeq
		}
		d := tombstone{start: bytes.Clone(user), end: bytes.Clone(e.Val), seq: seq, place: t.place(h.Off)}
		d.place.Seq = seq
		t.info.tombstones = append(t.info.tombstones, d)
	}
}

// clip limits a tombstone to the table's bounds. Compactions may keep a wider tombstone than the
// part of it that the table stands for. A largest key that is a range-delete sentinel is exclusive.
func (t *table) clip(d *tombstone) {
	low := bound{key: t.smallest}
	high := bound{key: t.largest, after: true}
	if _, tr := base.SplitKey(t.meta.Largest); tr == base.Trailer(base.MaxSequence, base.KindRangeDelete) {
		high.after = false
	}
	d.from, d.to = bound{key: d.start}, bound{key: d.end}
	d.from = minBound(t.cmp.Compare, maxBound(t.cmp.Compare, d.from, low), high)
	d.to = maxBound(t.cmp.Compare, minBound(t.cmp.Compare, d.to, high), d.from)
}
