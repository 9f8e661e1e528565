package sst

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"

	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/blocks"
	"kvferry/store/rocks/files"
)

// Options is what a reader has to know beside the file.
type Options struct {
	Keyspace string          // the column family, for errors
	Comparer *store.Comparer // its order
	LevelDB  bool            // codec ids are LevelDB's, and its rows need no metaindex
	// Sequence is the largest sequence number that the MANIFEST has of the table: that of all rows of one which was
	// ingested.
	Sequence uint64
	// Unlisted says that the MANIFEST does not name the table, so that nothing is known of it but what it says itself.
	Unlisted bool
	// Shared by all tables of a store.
	Cache     *Cache
	Windows   *files.Windows
	Unpackers *Unpackers
}

// Reader reads a table. What all walks through it share is read once. It is safe for concurrent use.
type Reader struct {
	file     *files.File
	opts     *Options
	withDict *Unpackers // for the data blocks of a table with a dictionary

	once sync.Once
	info Info
	err  error
	// metaErr says that the metaindex of LevelDB's table, or what it names, cannot be read; all rows can.
	metaErr error

	indexMu sync.Mutex
	index   map[uint64]*cachedBlock // by offset; guarded by the cache's mutex

	audit audit
}

// Info is what stands around a table's rows.
type Info struct {
	Footer
	Properties
	// RangeDel is where the range tombstones are; size 0: there are none. TombstoneErr says that they cannot be read;
	// the other rows can.
	RangeDel     blocks.Handle
	Tombstones   []Tombstone
	TombstoneErr error
	// FixedSeq is the sequence number of every key of an ingested table; UseFixed says it counts.
	FixedSeq uint64
	UseFixed bool

	dict   []byte
	format int // compress format
}

// Tombstone is a range delete: keys in [Start, End) older than Seq do not exist.
type Tombstone struct {
	Start, End []byte
	Seq        uint64
}

// NewReader makes the reader of a file; nothing of it is read yet.
func NewReader(file *files.File, o *Options) *Reader { return &Reader{file: file, opts: o} }

// Open reads footer, properties, dictionary and range tombstones, once.
func (r *Reader) Open() (*Info, error) {
	r.once.Do(func() { r.err = r.open() })
	return &r.info, r.err
}

// Fail places an error in the table's file.
func (r *Reader) Fail(off int64, field string, err error) error {
	return &record.CorruptError{Keyspace: r.opts.Keyspace, File: r.file.Path, Off: off, Field: field, Err: err}
}

func (r *Reader) open() error {
	if err := r.readInfo(); err != nil {
		return err
	}
	if !r.opts.Unlisted {
		if c := r.info.Comparator; c != "" && c != r.opts.Comparer.Name {
			return r.Fail(record.NoOffset, "properties", fmt.Errorf("comparator %q, the column family has %q", c, r.opts.Comparer.Name))
		}
		if err := r.setGlobalSeq(); err != nil {
			return err
		}
	}
	if r.info.TombstoneErr = r.loadTombstones(); r.info.TombstoneErr != nil {
		r.info.Tombstones = nil
	}
	return nil
}

// readInfo reads footer, properties and dictionary.
func (r *Reader) readInfo() error {
	n := min(r.file.Size, footerLen)
	tail := make([]byte, n)
	if err := r.file.ReadFull(tail, r.file.Size-n); err != nil {
		return err
	}
	ft, err := DecodeFooter(tail, r.file.Size)
	if err != nil {
		return r.Fail(r.file.Size-n, "footer", err)
	}
	r.info.Footer = ft
	r.info.format = 1
	if ft.Version >= 2 {
		r.info.format = 2
	}
	r.info.Properties = unknownProperties
	return r.loadMetaindex()
}

// loadMetaindex finds the blocks that are not data, and reads those needed. LevelDB's rows need none: it reads them
// although its metaindex is damaged, which leads to filters, and in tables that others wrote to properties.
func (r *Reader) loadMetaindex() error {
	err := r.eachMeta(r.metaBlock)
	if err == nil && r.info.Version >= contextVersion && r.info.Index.Size == 0 {
		err = r.Fail(int64(r.info.Metaindex.Off), "metaindex", errors.New("it names no index"))
	}
	if r.opts.LevelDB && base.IsDamage(err) && !errors.Is(err, base.ErrUnsupported) {
		r.metaErr, r.info.Properties, err = err, unknownProperties, nil
	}
	return err
}

// EachMeta calls f with the name and the value of every entry of the metaindex, most of them handles of blocks; its error
// ends the walk.
func (r *Reader) EachMeta(f func(name string, value []byte) error) error {
	if _, err := r.Open(); err != nil {
		return err
	}
	return r.eachMeta(f)
}

func (r *Reader) eachMeta(f func(name string, value []byte) error) error {
	b, err := r.readBlock(r.info.Metaindex, "metaindex", checkBlock)
	if err != nil {
		return err
	}
	bl, err := blocks.Parse(b)
	if err != nil {
		return r.Fail(int64(r.info.Metaindex.Off), "metaindex", err)
	}
	e := blocks.Entries{Data: bl.Entries}
	for {
		ok, err := e.Next()
		if err != nil {
			return r.Fail(int64(r.info.Metaindex.Off), "metaindex", err)
		}
		if !ok {
			return nil
		}
		if err := f(string(e.Key), e.Val); err != nil {
			return err
		}
	}
}

// metaIndex names the index, of format_version 6 and later.
const metaIndex = "rocksdb.index"

// isRowMeta reports whether reading rows needs the block that the metaindex names so.
func isRowMeta(name string) bool {
	switch name {
	case "rocksdb.properties", "rocksdb.stats", "rocksdb.compression_dict", "rocksdb.range_del", "rocksdb.range_del2", metaIndex:
		return true
	}
	return false
}

// metaBlock reads one of the blocks that the metaindex names.
func (r *Reader) metaBlock(name string, value []byte) error {
	if !isRowMeta(name) {
		return nil
	}
	f := &base.Fields{Buf: value}
	h := blocks.ReadHandle(f, name)
	if f.Err != nil {
		return r.Fail(int64(r.info.Metaindex.Off), "metaindex", f.Err)
	}
	switch name {
	case metaIndex:
		if r.info.Version >= contextVersion {
			r.info.Index = h
		}
	case "rocksdb.range_del", "rocksdb.range_del2": // the latter is Pebble's, of the same layout
		r.info.RangeDel = h
	case "rocksdb.compression_dict":
		d, err := r.readBlock(h, "dictionary", checkBlock)
		if err != nil {
			return err
		}
		r.info.dict, r.withDict = d, &Unpackers{Max: r.opts.Unpackers.Max}
	default:
		b, err := r.readBlock(h, "properties", checkProperties)
		if err != nil {
			return err
		}
		if r.info.Properties, err = decodeProperties(b); err != nil {
			return r.Fail(int64(h.Off), "properties", err)
		}
	}
	return nil
}

// setGlobalSeq finds the sequence number of an ingested table (GetGlobalSequenceNumber of
// table/block_based/block_based_table_reader.cc).
func (r *Reader) setGlobalSeq() error {
	p := &r.info.Properties
	if !p.External {
		return nil
	}
	r.info.UseFixed, r.info.FixedSeq = true, r.opts.Sequence
	if p.GlobalSeq != 0 && p.GlobalSeq != r.opts.Sequence {
		return r.Fail(record.NoOffset, "properties", fmt.Errorf("%s is %d, the MANIFEST says %d", propGlobalSeq, p.GlobalSeq, r.opts.Sequence))
	}
	return nil
}

// unpack decompresses a data block.
func (r *Reader) unpack(dst []byte, codec byte, src []byte) ([]byte, error) {
	if r.withDict != nil {
		return r.withDict.unpack(dst, codec, src, r.info.format, r.info.dict)
	}
	return r.opts.Unpackers.unpack(dst, codec, src, r.info.format, nil)
}

// readBlock reads, verifies and decompresses a block other than a data block into memory of its own.
func (r *Reader) readBlock(h blocks.Handle, field string, check func(byte, []byte, uint32) error) ([]byte, error) {
	unpack := func(codec byte, b []byte) ([]byte, error) {
		return r.opts.Unpackers.unpack(nil, codec, b, r.info.format, nil)
	}
	return r.readWith(h, field, check, unpack)
}

// dataBlock does so for a data block.
func (r *Reader) dataBlock(h blocks.Handle) ([]byte, error) {
	return r.readWith(h, "block", checkBlock, func(codec byte, b []byte) ([]byte, error) { return r.unpack(nil, codec, b) })
}

// readWith reads and verifies a block and decompresses it with unpack.
func (r *Reader) readWith(h blocks.Handle, field string, check func(byte, []byte, uint32) error, unpack func(byte, []byte) ([]byte, error)) ([]byte, error) {
	if err := h.Check(r.file.Size); err != nil {
		return nil, r.Fail(int64(h.Off), field, err)
	}
	raw := make([]byte, h.Size+blocks.TrailerLen)
	if err := r.file.ReadFull(raw, int64(h.Off)); err != nil {
		return nil, err
	}
	if err := check(r.info.Checksum, raw[:h.Size+1], binary.LittleEndian.Uint32(raw[h.Size+1:])-r.info.context(h.Off)); err != nil {
		return nil, r.Fail(int64(h.Off), field, err)
	}
	codec := r.codec(raw[h.Size])
	if codec == codecNone {
		return raw[:h.Size:h.Size], nil
	}
	b, err := unpack(codec, raw[:h.Size])
	if err != nil {
		return nil, r.Fail(int64(h.Off), field, err)
	}
	return b, nil
}

// loadBlock returns a block of the table, verified and decompressed: a view of the window or of dst, which it
// returns for reuse.
func (r *Reader) loadBlock(w *files.Window, h blocks.Handle, dst []byte) (b, reuse []byte, err error) {
	if err := h.Check(r.file.Size); err != nil {
		return nil, dst, err
	}
	raw, err := w.Read(int64(h.Off), int(h.Size)+blocks.TrailerLen)
	if err != nil {
		return nil, dst, err
	}
	n := h.Size
	if err := checkBlock(r.info.Checksum, raw[:n+1], binary.LittleEndian.Uint32(raw[n+1:])-r.info.context(h.Off)); err != nil {
		return nil, dst, err
	}
	codec := r.codec(raw[n])
	if codec == codecNone {
		return raw[:n], dst, nil
	}
	out, err := r.unpack(dst, codec, raw[:n])
	if w.Crowded() {
		w.GiveBack()
	}
	if err != nil {
		return nil, dst, err
	}
	return out, out, nil
}

// codec translates the codec byte of a block.
func (r *Reader) codec(b byte) byte {
	if r.opts.LevelDB && b == codecLevelDBZstd {
		return codecZstdLevelDB
	}
	return b
}

// loadTombstones reads the range tombstones.
func (r *Reader) loadTombstones() error {
	h := r.info.RangeDel
	if h.Size == 0 {
		return nil
	}
	b, err := r.readBlock(h, "range_del", checkBlock)
	if err != nil {
		return err
	}
	bl, err := blocks.Parse(b)
	if err != nil {
		return r.Fail(int64(h.Off), "range_del", err)
	}
	e := blocks.Entries{Data: bl.Entries}
	for {
		ok, err := e.Next()
		if err == nil && ok && len(e.Key) < base.TrailerLen {
			err = record.ErrShort
		}
		if err != nil {
			return r.Fail(int64(h.Off), "range_del", err)
		}
		if !ok {
			return nil
		}
		user, tr := base.SplitKey(e.Key)
		if byte(tr) != base.KindRangeDelete {
			return r.Fail(int64(h.Off), "range_del", fmt.Errorf("entry of kind %#x", byte(tr)))
		}
		seq := tr >> 8
		if r.info.UseFixed {
			seq = r.info.FixedSeq
		}
		r.info.Tombstones = append(r.info.Tombstones, Tombstone{Start: bytes.Clone(user), End: bytes.Clone(e.Val), Seq: seq})
	}
}

// Codec names the codec of a table: as its properties say, else as its first block has it. "" is not known.
func (r *Reader) Codec() string {
	names := map[string]string{"NoCompression": "none", "Snappy": "snappy", "Zlib": "zlib", "BZip2": "bzip2",
		"LZ4": "lz4", "LZ4HC": "lz4hc", "ZSTD": "zstd", "ZSTDNotFinal": "zstd", "Xpress": "xpress"}
	info, err := r.Open()
	if err != nil {
		return ""
	}
	if n, ok := names[info.Compression]; ok {
		return n
	}
	if _, ids, ok := strings.Cut(info.Compression, ";"); ok {
		return codecNames(ids)
	}
	if info.Compression != "" {
		return strings.ToLower(info.Compression)
	}
	var idx tableIndex
	defer idx.close()
	if idx.open(r) != nil {
		return ""
	}
	if ok, err := idx.next(); !ok || err != nil {
		return ""
	}
	h := idx.handle()
	var b [1]byte
	if h.Check(r.file.Size) != nil || r.file.ReadFull(b[:], int64(h.Off+h.Size)) != nil {
		return ""
	}
	return CodecName(r.codec(b[0]))
}
