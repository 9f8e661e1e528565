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

// Options configures a Reader.
type Options struct {
	Keyspace string          // the column family, for errors
	Comparer *store.Comparer // its order
	LevelDB  bool            // LevelDB's codec ids; rows are readable without a metaindex
	// Sequence is the table's largest sequence number in the MANIFEST. All rows of an ingested table have it.
	Sequence uint64
	// Unlisted is set for a table that the MANIFEST does not list; only the table describes itself.
	Unlisted bool
	// Own is set for a table that must be as a Writer wrote it.
	Own bool
	// Salvage replaces a damaged index; see mend.go.
	Salvage bool
	// Shared by all tables of a store.
	Cache     *Cache
	Hot       *store.Hot
	Windows   *files.Windows
	Unpackers *Unpackers
}

// Reader reads a table. All walks share metadata that is read once. It is safe for concurrent use.
type Reader struct {
	file     *files.File
	opts     *Options
	withDict *Unpackers // for data blocks of a table with a dictionary

	once sync.Once
	info Info
	err  error
	// metaErr is the error of a LevelDB table whose metaindex or metadata is unreadable; its rows are still readable.
	metaErr error

	indexMu sync.Mutex
	index   map[uint64]*cachedBlock // by offset; guarded by the cache's mutex

	mendOnce sync.Once
	mended   *mended

	audit audit
}

// Info is the metadata of a table.
type Info struct {
	Footer
	Properties
	// RangeDel is the block of range tombstones; size 0 if the table has none. If TombstoneErr is set, the tombstones
	// are unreadable, but the rows are not.
	RangeDel     blocks.Handle
	Tombstones   []Tombstone
	TombstoneErr error
	// FixedSeq is the sequence number of every key of an ingested table; valid if UseFixed is set.
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

// NewReader returns the reader of a file without reading from it.
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
			return r.Fail(record.NoOffset, "properties",
				fmt.Errorf("comparator %q, the column family has %q", c, r.opts.Comparer.Name))
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
	if r.opts.Own {
		if err := r.checkOwn(tail); err != nil {
			return err
		}
	}
	return r.loadMetaindex()
}

// loadMetaindex finds the metadata blocks and reads those needed. LevelDB's rows need none, so LevelDB tables are read
// despite a damaged metaindex; it names filters and, in tables from other writers, properties.
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

// EachMeta calls f with the name and the value of every metaindex entry. Most values are block handles. f's error ends
// the walk.
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
	var stop error // of f
	err = blocks.Each(b, func(e *blocks.Entries) error {
		stop = f(string(e.Key), e.Val)
		return stop
	})
	if err != nil && stop == nil {
		err = r.Fail(int64(r.info.Metaindex.Off), "metaindex", err)
	}
	return err
}

// metaIndex is the metaindex entry of the index from format_version 6 on.
const metaIndex = "rocksdb.index"

// isRowMeta reports whether reading rows needs the metadata block called name.
func isRowMeta(name string) bool {
	switch name {
	case "rocksdb.properties", "rocksdb.stats", "rocksdb.compression_dict", "rocksdb.range_del", "rocksdb.range_del2", metaIndex:
		return true
	}
	return false
}

// metaBlock reads one metadata block if rows need it.
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
	case "rocksdb.range_del", "rocksdb.range_del2": // the latter is Pebble's, with the same layout
		r.info.RangeDel = h
	case "rocksdb.compression_dict":
		d, err := r.readBlock(h, "dictionary", checkBlock)
		if err != nil {
			return err
		}
		r.info.dict, r.withDict = d, &Unpackers{Max: r.opts.Unpackers.Max}
	default:
		check := checkProperties
		if r.opts.Own {
			check = checkBlock
		}
		b, err := r.readBlock(h, "properties", check)
		if err != nil {
			return err
		}
		if r.info.Properties, err = decodeProperties(b); err != nil {
			return r.Fail(int64(h.Off), "properties", err)
		}
	}
	return nil
}

// setGlobalSeq sets the sequence number of an ingested table (GetGlobalSequenceNumber of
// table/block_based/block_based_table_reader.cc).
func (r *Reader) setGlobalSeq() error {
	p := &r.info.Properties
	if !p.External {
		return nil
	}
	r.info.UseFixed, r.info.FixedSeq = true, r.opts.Sequence
	if p.GlobalSeq != 0 && p.GlobalSeq != r.opts.Sequence {
		return r.Fail(record.NoOffset, "properties",
			fmt.Errorf("%s is %d, but %d in the MANIFEST", propGlobalSeq, p.GlobalSeq, r.opts.Sequence))
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

// readBlock reads, verifies and decompresses a block other than a data block into new memory.
func (r *Reader) readBlock(h blocks.Handle, field string, check func(byte, []byte, uint32) error) ([]byte, error) {
	unpack := func(codec byte, b []byte) ([]byte, error) {
		return r.opts.Unpackers.unpack(nil, codec, b, r.info.format, nil)
	}
	return r.readWith(h, field, check, unpack)
}

// dataBlock is readBlock for a data block.
func (r *Reader) dataBlock(h blocks.Handle) ([]byte, error) {
	return r.readWith(h, "block", checkBlock, func(codec byte, b []byte) ([]byte, error) { return r.unpack(nil, codec, b) })
}

// readWith reads and verifies a block and decompresses it with unpack.
func (r *Reader) readWith(h blocks.Handle, field string, check func(byte, []byte, uint32) error,
	unpack func(byte, []byte) ([]byte, error)) ([]byte, error) {
	raw, err := r.stored(h, field)
	if err != nil {
		return nil, err
	}
	if err := r.verify(raw, h, check); err != nil {
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

// stored reads a block as it is stored, with its trailer.
func (r *Reader) stored(h blocks.Handle, field string) ([]byte, error) {
	if err := h.Check(r.file.Size); err != nil {
		return nil, r.Fail(int64(h.Off), field, err)
	}
	raw := make([]byte, h.Size+blocks.TrailerLen)
	return raw, r.file.ReadFull(raw, int64(h.Off))
}

// verify checks the checksum in the trailer of a stored block.
func (r *Reader) verify(raw []byte, h blocks.Handle, check func(byte, []byte, uint32) error) error {
	return check(r.info.Checksum, raw[:h.Size+1], binary.LittleEndian.Uint32(raw[h.Size+1:])-r.info.context(h.Off))
}

// loadBlock returns a verified, decompressed block: a view of the window or of dst. It returns dst for reuse.
func (r *Reader) loadBlock(w *files.Window, h blocks.Handle, dst []byte) (b, reuse []byte, err error) {
	if err := h.Check(r.file.Size); err != nil {
		return nil, dst, err
	}
	raw, err := w.Read(int64(h.Off), int(h.Size)+blocks.TrailerLen)
	if err != nil {
		return nil, dst, err
	}
	n := h.Size
	if err := r.verify(raw, h, checkBlock); err != nil {
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
	err = blocks.Each(b, func(e *blocks.Entries) error {
		if len(e.Key) < base.TrailerLen {
			return record.ErrShort
		}
		user, tr := base.SplitKey(e.Key)
		if byte(tr) != base.KindRangeDelete {
			return fmt.Errorf("entry of kind %#x", byte(tr))
		}
		seq := tr >> 8
		if r.info.UseFixed {
			seq = r.info.FixedSeq
		}
		r.info.Tombstones = append(r.info.Tombstones, Tombstone{Start: bytes.Clone(user), End: bytes.Clone(e.Val), Seq: seq})
		return nil
	})
	if err != nil {
		err = r.Fail(int64(h.Off), "range_del", err)
	}
	return err
}

// Codec returns the name of the table's codec from its properties, else from its first block; "" if unknown.
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
