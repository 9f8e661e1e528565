package testsst

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"hash/crc32"
	"math/bits"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/golang/snappy"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/zeebo/xxh3"

	"kvferry/store/rocks/base"
	"kvferry/store/rocks/blocks"
)

// The encoding of tables, defined independently of the code under test.
const (
	LevelFooter = 48
	RocksFooter = 53
	LevelMagic  = 0xdb4775248b80fb57
	RocksMagic  = 0x88e241b785f4cff7

	Raw       = 0
	Snappy    = 1
	Zlib      = 2
	LevelZstd = 2
	Bzip2     = 3
	LZ4       = 4
	LZ4HC     = 5
	Zstd      = 7

	CRC32C = 1
	XXH32  = 2
	XXH64  = 3
	XXH3   = 4

	BinaryIndex   = 0
	HashIndex     = 1
	TwoLevelIndex = 2
	FirstKeyIndex = 3
)

// Entry is an entry of a handmade table or log.
type Entry struct {
	Key   string
	Seq   uint64
	Kind  byte
	Value string
}

func (e *Entry) Internal() []byte {
	return base.AppendKey(nil, []byte(e.Key), base.Trailer(e.Seq, e.Kind))
}

// Spec describes a handmade table. The zero Spec is RocksDB's format_version 2 with CRC32c, uncompressed.
type Spec struct {
	Version     uint32 // 0 means 2; format_version 0 is LevelDB's
	LevelDB     bool
	Checksum    byte // 0 means CRC32c, unless NoChecksum is set
	NoChecksum  bool
	Codec       byte
	Label       byte // data blocks are uncompressed, but claim this codec
	IndexType   uint32
	Delta       bool
	UserKeys    bool
	Hash        bool
	Dict        []byte
	BlockSize   int // 0 means 256
	Restarts    int // 0 means 4
	Comparator  string
	External    bool
	GlobalSeq   uint64 // patched in without updating the checksum, like RocksDB
	Tombstones  []Entry
	Props       map[string][]byte // additional properties
	KeepOrder   bool              // do not sort the entries
	MetaEntries map[string][]byte // additional entries of the metaindex
	Filter      string            // name of a filter with arbitrary content; "" for no filter
	EmptyParts  bool              // a partition without entries follows each partition of the index
	// EditBlock changes a data block before it is compressed; EditIndex changes the handles and keys of the index.
	EditBlock func(i int, b []byte) []byte
	EditIndex func(handles []blocks.Handle, keys [][]byte) ([]blocks.Handle, [][]byte)
}

// TableWriter writes a table.
type TableWriter struct {
	T    testing.TB
	Spec Spec
	Out  []byte
}

// MakeTable returns the bytes of a table.
func MakeTable(t testing.TB, spec Spec, entries []Entry) []byte {
	t.Helper()
	if spec.Version == 0 {
		spec.Version = 2
	}
	if spec.Checksum == 0 && !spec.NoChecksum {
		spec.Checksum = CRC32C
	}
	spec.BlockSize, spec.Restarts = max(spec.BlockSize, 1), max(spec.Restarts, 1)
	h := &TableWriter{T: t, Spec: spec}
	index, first, seps := h.dataBlocks(entries)
	if spec.EditIndex != nil {
		index, seps = spec.EditIndex(index, seps)
	}
	metas := map[string][]byte{}
	for k, v := range spec.MetaEntries {
		metas[k] = v
	}
	if len(spec.Dict) > 0 {
		metas["rocksdb.compression_dict"] = HandleBytes(h.write(spec.Dict, Raw))
	}
	if len(spec.Tombstones) > 0 {
		var b Block
		for i := range spec.Tombstones {
			b.Add(spec.Tombstones[i].Internal(), []byte(spec.Tombstones[i].Value), true)
		}
		metas["rocksdb.range_del"] = HandleBytes(h.write(b.Finish(nil), Raw))
	}
	if !spec.LevelDB {
		metas["rocksdb.properties"] = HandleBytes(h.properties(entries))
	}
	if spec.Filter != "" {
		metas[spec.Filter] = HandleBytes(h.filter(seps))
	}
	indexHandle := h.index(index, first, seps)
	if h.context() != 0 {
		metas["rocksdb.index"] = HandleBytes(indexHandle)
	}
	var b Block
	names := make([]string, 0, len(metas))
	for k := range metas {
		names = append(names, k)
	}
	slices.Sort(names)
	for _, k := range names {
		b.Add([]byte(k), metas[k], true)
	}
	meta := h.write(b.Finish(nil), Raw)
	h.Footer(meta, indexHandle)
	return h.Out
}

// dataBlocks writes the rows and returns the handles, first keys and last keys of the blocks.
func (h *TableWriter) dataBlocks(entries []Entry) (handles []blocks.Handle, first, last [][]byte) {
	var b Block
	var prev []byte
	flush := func() {
		if b.n == 0 {
			return
		}
		var hash []byte
		if h.Spec.Hash {
			hash = binary.LittleEndian.AppendUint16([]byte{255, 0, 255}, 3)
		}
		data := b.Finish(hash)
		if h.Spec.EditBlock != nil {
			data = h.Spec.EditBlock(len(handles), data)
		}
		handles = append(handles, h.writeAs(data, h.Spec.Codec, cmp.Or(h.Spec.Label, h.Spec.Codec)))
		last = append(last, prev)
		b = Block{}
	}
	for i := range entries {
		k := entries[i].Internal()
		if b.n == 0 {
			first = append(first, k)
		}
		b.Add(k, []byte(entries[i].Value), b.n%h.Spec.Restarts == 0)
		prev = k
		if len(b.buf) >= h.Spec.BlockSize {
			flush()
		}
	}
	flush()
	return handles, first, last
}

// filter writes a filter block that matches every key: it has filters for no block, and as a full filter it is none. A
// partitioned filter has a partition for each data block.
func (h *TableWriter) filter(seps [][]byte) blocks.Handle {
	if !strings.HasPrefix(h.Spec.Filter, "partitionedfilter.") {
		return h.write([]byte("the bits of a f\x0f\x00\x00\x00\x0b"), Raw)
	}
	var handles []blocks.Handle
	for i := range seps {
		handles = append(handles, h.write(bytes.Repeat([]byte{byte(i)}, 20+i%3), Raw))
	}
	g := *h
	g.Spec.IndexType = BinaryIndex
	return h.write(g.indexBlock(handles, nil, seps), Raw)
}

// properties writes the properties block.
func (h *TableWriter) properties(entries []Entry) blocks.Handle {
	p := map[string][]byte{"rocksdb.block.based.table.index.type": binary.LittleEndian.AppendUint32(nil, h.Spec.IndexType)}
	var deletes, merges, keys, values int
	for _, e := range entries {
		keys, values = keys+len(e.Internal()), values+len(e.Value)
		switch e.Kind {
		case base.KindDelete, base.KindSingleDelete, base.KindDeleteTimestamp:
			deletes++
		case base.KindMerge:
			merges++
		}
	}
	for name, n := range map[string]int{"num.entries": len(entries), "deleted.keys": deletes, "merge.operands": merges,
		"raw.key.size": keys, "raw.value.size": values} {
		p["rocksdb."+name] = binary.AppendUvarint(nil, uint64(n))
	}
	if h.Spec.Comparator != "" {
		p["rocksdb.comparator"] = []byte(h.Spec.Comparator)
	}
	if h.Spec.Delta {
		p["rocksdb.index.value.is.delta.encoded"] = []byte{1}
	}
	if h.Spec.UserKeys {
		p["rocksdb.index.key.is.user.key"] = []byte{1}
	}
	if h.Spec.External {
		p["rocksdb.external_sst_file.version"] = binary.LittleEndian.AppendUint32(nil, 2)
		p["rocksdb.external_sst_file.global_seqno"] = make([]byte, 8)
	}
	for k, v := range h.Spec.Props {
		p[k] = v
	}
	names := make([]string, 0, len(p))
	for k := range p {
		names = append(names, k)
	}
	slices.Sort(names)
	var b Block
	for _, k := range names {
		b.Add([]byte(k), p[k], true)
	}
	handle := h.write(b.Finish(nil), Raw)
	if h.Spec.GlobalSeq != 0 {
		block := h.Out[handle.Off : handle.Off+handle.Size]
		name := []byte("external_sst_file.global_seqno") // the part of the name not shared with the previous name
		at := bytes.Index(block, name) + len(name)
		binary.LittleEndian.PutUint64(block[at:], h.Spec.GlobalSeq)
	}
	return handle
}

// index writes the index blocks. Partitions of a two-level index have three entries.
func (h *TableWriter) index(handles []blocks.Handle, first, seps [][]byte) blocks.Handle {
	if h.Spec.IndexType != TwoLevelIndex {
		return h.write(h.indexBlock(handles, first, seps), Raw)
	}
	var tops []blocks.Handle
	var topSeps [][]byte
	for i := 0; i < len(handles); i += 3 {
		j := min(i+3, len(handles))
		tops = append(tops, h.write(h.indexBlock(handles[i:j], first[i:j], seps[i:j]), Raw))
		topSeps = append(topSeps, seps[j-1])
		if h.Spec.EmptyParts {
			tops = append(tops, h.write(h.indexBlock(nil, nil, nil), Raw))
			topSeps = append(topSeps, seps[j-1])
		}
	}
	return h.write(h.indexBlock(tops, nil, topSeps), Raw)
}

func (h *TableWriter) indexBlock(handles []blocks.Handle, first, seps [][]byte) []byte {
	var b Block
	for i, s := range seps {
		if h.Spec.UserKeys {
			s = s[:len(s)-base.TrailerLen]
		}
		v := HandleBytes(handles[i])
		if h.Spec.IndexType == FirstKeyIndex {
			v = append(binary.AppendUvarint(v, uint64(len(first[i]))), first[i]...)
		}
		if !h.Spec.Delta {
			b.Add(s, v, i%2 == 0)
			continue
		}
		delta := []byte(nil)
		if i > 0 {
			delta = binary.AppendVarint(nil, int64(handles[i].Size)-int64(handles[i-1].Size))
			if h.Spec.IndexType == FirstKeyIndex {
				delta = append(binary.AppendUvarint(delta, uint64(len(first[i]))), first[i]...)
			}
		}
		b.addDelta(s, v, delta, i%2 == 0 || handles[i].Off != handles[i-1].Off+handles[i-1].Size+blocks.TrailerLen)
	}
	return b.Finish(nil)
}

func HandleBytes(h blocks.Handle) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(nil, h.Off), h.Size)
}

// Footer ends the table.
func (h *TableWriter) Footer(meta, index blocks.Handle) {
	if h.context() != 0 {
		h.contextFooter(meta)
		return
	}
	b := append(HandleBytes(meta), HandleBytes(index)...)
	b = append(b, make([]byte, LevelFooter-8-len(b))...)
	if h.Spec.LevelDB {
		h.Out = binary.LittleEndian.AppendUint64(append(h.Out, b...), LevelMagic)
		return
	}
	h.Out = append(append(h.Out, h.Spec.Checksum), b...)
	h.Out = binary.LittleEndian.AppendUint32(h.Out, h.Spec.Version)
	h.Out = binary.LittleEndian.AppendUint64(h.Out, RocksMagic)
}

// write compresses a block and appends it with its trailer.
func (h *TableWriter) write(b []byte, codec byte) blocks.Handle { return h.writeAs(b, codec, codec) }

// writeAs is write with another codec byte in the trailer.
func (h *TableWriter) writeAs(b []byte, codec, label byte) blocks.Handle {
	handle := blocks.Handle{Off: uint64(len(h.Out))}
	packed := CompressBlock(h.T, b, codec, h.Spec)
	handle.Size = uint64(len(packed))
	packed = append(packed, label)
	h.Out = append(h.Out, packed...)
	h.Out = binary.LittleEndian.AppendUint32(h.Out, h.sum(packed)+h.contextAt(handle.Off))
	return handle
}

// sum returns the checksum of a block with its codec byte.
func (h *TableWriter) sum(b []byte) uint32 { return SumOf(h.Spec.Checksum, b) }

// SumOf returns a checksum of this kind, without context.
func SumOf(kind byte, b []byte) uint32 {
	switch kind {
	case CRC32C:
		return base.MaskCRC(crc32.Checksum(b, base.Castagnoli))
	case XXH32:
		return sum32(b)
	case XXH64:
		return uint32(xxhash.Sum64(b))
	case XXH3:
		return uint32(xxh3.Hash(b[:len(b)-1])) ^ uint32(b[len(b)-1])*0x6b9083d9
	}
	return 0
}

// Context is the base of the checksum context, used since format_version 6.
const Context = 0x9e3779b1

// context returns the table's checksum context; 0 for older tables.
func (h *TableWriter) context() uint32 {
	if h.Spec.LevelDB || h.Spec.Version < 6 {
		return 0
	}
	return Context
}

// contextAt returns the value added to the checksum of a block at offset off.
func (h *TableWriter) contextAt(off uint64) uint32 {
	if h.context() == 0 {
		return 0
	}
	return Context ^ (uint32(off) + uint32(off>>32))
}

// contextFooter writes the footer of format_version 6 and later. The metaindex must directly precede it.
func (h *TableWriter) contextFooter(meta blocks.Handle) {
	at := len(h.Out)
	h.Out = append(h.Out, h.Spec.Checksum, 0x3e, 0, 0x7a, 0, 0, 0, 0, 0)
	h.Out = binary.LittleEndian.AppendUint32(h.Out, Context)
	h.Out = binary.LittleEndian.AppendUint32(h.Out, uint32(meta.Size))
	h.Out = append(h.Out, make([]byte, 24)...)
	h.Out = binary.LittleEndian.AppendUint32(h.Out, h.Spec.Version)
	h.Out = binary.LittleEndian.AppendUint64(h.Out, RocksMagic)
	if h.Spec.Checksum != 0 {
		binary.LittleEndian.PutUint32(h.Out[at+5:], h.sum(h.Out[at:])+h.contextAt(uint64(at)))
	}
}

// CompressBlock compresses a block like RocksDB does for the spec's format_version.
func CompressBlock(t testing.TB, b []byte, codec byte, spec Spec) []byte {
	t.Helper()
	size := binary.AppendUvarint(nil, uint64(len(b)))
	switch codec {
	case Raw:
		return slices.Clone(b)
	case Snappy:
		return snappy.Encode(nil, b)
	case Zstd, LevelZstd:
		if codec == LevelZstd && !spec.LevelDB {
			break // zlib in RocksDB
		}
		opts := []zstd.EOption{zstd.WithEncoderConcurrency(1)}
		if len(spec.Dict) > 0 {
			opts = append(opts, zstd.WithEncoderDictRaw(0, spec.Dict))
		}
		e, err := zstd.NewWriter(nil, opts...)
		if err != nil {
			t.Fatal(err)
		}
		if spec.LevelDB {
			size = nil
		}
		return e.EncodeAll(b, size)
	case LZ4, LZ4HC:
		if spec.Version < 2 {
			size = binary.LittleEndian.AppendUint64(nil, uint64(len(b)))
		}
		// All literals: a valid block for any bytes, with or without a dictionary.
		return append(size, lz4Literals(b)...)
	case Bzip2:
		return append(sizeIf(spec, size), bzip2Block(t, b)...)
	}
	var out bytes.Buffer
	w, err := flate.NewWriterDict(&out, 6, spec.Dict)
	if err != nil {
		t.Fatal(err)
	}
	w.Write(b)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return append(sizeIf(spec, size), out.Bytes()...)
}

// sizeIf returns the size prefix of compress format 2; older formats have no prefix.
func sizeIf(spec Spec, size []byte) []byte {
	if spec.Version < 2 || spec.LevelDB {
		return nil
	}
	return size
}

// lz4Literals encodes b with LZ4, or as literals if it does not compress.
func lz4Literals(b []byte) []byte {
	out := make([]byte, lz4.CompressBlockBound(len(b)))
	n, err := lz4.CompressBlock(b, out, nil)
	if err == nil && n > 0 {
		return out[:n]
	}
	out = []byte{15 << 4}
	rest := len(b) - 15
	if rest < 0 {
		return append([]byte{byte(len(b) << 4)}, b...)
	}
	for ; rest >= 255; rest -= 255 {
		out = append(out, 255)
	}
	return append(append(out, byte(rest)), b...)
}

// bzip2Block runs bzip2, as Go has no bzip2 compressor.
func bzip2Block(t testing.TB, b []byte) []byte {
	t.Helper()
	path, err := exec.LookPath("bzip2")
	if err != nil {
		t.Skip("no bzip2 here")
	}
	c := exec.Command(path, "-c")
	c.Stdin = bytes.NewReader(b)
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Block is a block under construction.
type Block struct {
	buf      []byte
	restarts []byte
	last     []byte
	n        int
}

func (b *Block) Add(key, value []byte, restart bool) {
	shared := b.shared(key, restart)
	b.buf = binary.AppendUvarint(b.buf, uint64(shared))
	b.buf = binary.AppendUvarint(b.buf, uint64(len(key)-shared))
	b.buf = binary.AppendUvarint(b.buf, uint64(len(value)))
	b.buf = append(append(b.buf, key[shared:]...), value...)
}

func (b *Block) addDelta(key, value, delta []byte, restart bool) {
	shared := b.shared(key, restart)
	b.buf = binary.AppendUvarint(b.buf, uint64(shared))
	b.buf = binary.AppendUvarint(b.buf, uint64(len(key)-shared))
	b.buf = append(b.buf, key[shared:]...)
	if shared > 0 {
		value = delta
	}
	b.buf = append(b.buf, value...)
}

func (b *Block) shared(key []byte, restart bool) int {
	shared := 0
	if restart || b.n == 0 {
		b.restarts = binary.LittleEndian.AppendUint32(b.restarts, uint32(len(b.buf)))
	} else {
		for shared < min(len(key), len(b.last)) && key[shared] == b.last[shared] {
			shared++
		}
	}
	b.last = key
	b.n++
	return shared
}

func (b *Block) Finish(hash []byte) []byte {
	n := uint32(len(b.restarts) / 4)
	if n == 0 {
		n, b.restarts = 1, make([]byte, 4)
	}
	if hash != nil {
		n |= 1 << 31
	}
	return binary.LittleEndian.AppendUint32(slices.Concat(b.buf, b.restarts, hash), n)
}

// sum32 is xxHash32 with seed 0, implemented from its specification.
func sum32(b []byte) uint32 {
	const p1, p2, p3, p4, p5 = uint32(2654435761), uint32(2246822519), uint32(3266489917), uint32(668265263), uint32(374761393)
	n, h := uint32(len(b)), p5
	if len(b) >= 16 {
		acc := [4]uint32{p1, p2, 0, 0}
		acc[0] += p2
		acc[3] -= p1
		for ; len(b) >= 16; b = b[16:] {
			for i := range acc {
				acc[i] = bits.RotateLeft32(acc[i]+binary.LittleEndian.Uint32(b[4*i:])*p2, 13) * p1
			}
		}
		h = bits.RotateLeft32(acc[0], 1) + bits.RotateLeft32(acc[1], 7) + bits.RotateLeft32(acc[2], 12) +
			bits.RotateLeft32(acc[3], 18)
	}
	h += n
	for ; len(b) >= 4; b = b[4:] {
		h = bits.RotateLeft32(h+binary.LittleEndian.Uint32(b)*p3, 17) * p4
	}
	for _, c := range b {
		h = bits.RotateLeft32(h+uint32(c)*p5, 11) * p1
	}
	h = (h ^ h>>15) * p2
	h = (h ^ h>>13) * p3
	return h ^ h>>16
}
