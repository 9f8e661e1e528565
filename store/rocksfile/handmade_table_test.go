package rocksfile

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"hash/crc32"
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

// testEntry is an entry of a table or a log made by hand.
type testEntry struct {
	key   string
	seq   uint64
	kind  byte
	value string
}

func (e *testEntry) internal() []byte {
	return base.AppendKey(nil, []byte(e.key), base.Trailer(e.seq, e.kind))
}

// tableSpec says how to write a table by hand; the zero spec is RocksDB's format_version 2 with
// CRC32c, uncompressed.
type tableSpec struct {
	version     uint32 // 0 means 2; format_version 0 is levelDB
	levelDB     bool
	checksum    byte // 0 means CRC32c; noChecksum turns it off
	noChecksum  bool
	codec       byte
	label       byte // data blocks, uncompressed, claim this codec
	indexType   uint32
	delta       bool
	userKeys    bool
	hash        bool
	dict        []byte
	blockSize   int // 0 means 256
	restarts    int // 0 means 4
	comparator  string
	external    bool
	globalSeq   uint64 // patched in without renewing the checksum, as RocksDB does
	tombstones  []testEntry
	props       map[string][]byte // more properties
	keepOrder   bool              // entries are written as they come
	metaEntries map[string][]byte // more entries of the metaindex
	filter      string            // name of a filter of random bytes, "" for none
}

// handTable writes a table.
type handTable struct {
	t    testing.TB
	spec tableSpec
	out  []byte
}

// makeTable returns the bytes of a table.
func makeTable(t testing.TB, spec tableSpec, entries []testEntry) []byte {
	t.Helper()
	if spec.version == 0 {
		spec.version = 2
	}
	if spec.checksum == 0 && !spec.noChecksum {
		spec.checksum = checksumCRC32C
	}
	spec.blockSize, spec.restarts = max(spec.blockSize, 1), max(spec.restarts, 1)
	h := &handTable{t: t, spec: spec}
	index, first, seps := h.dataBlocks(entries)
	metas := map[string][]byte{}
	for k, v := range spec.metaEntries {
		metas[k] = v
	}
	if len(spec.dict) > 0 {
		metas["rocksdb.compression_dict"] = handleBytes(h.write(spec.dict, codecNone))
	}
	if len(spec.tombstones) > 0 {
		var b handBlock
		for i := range spec.tombstones {
			b.add(spec.tombstones[i].internal(), []byte(spec.tombstones[i].value), true)
		}
		metas["rocksdb.range_del"] = handleBytes(h.write(b.finish(nil), codecNone))
	}
	if !spec.levelDB {
		metas["rocksdb.properties"] = handleBytes(h.properties(len(entries)))
	}
	if spec.filter != "" {
		metas[spec.filter] = handleBytes(h.filter(seps))
	}
	indexHandle := h.index(index, first, seps)
	var b handBlock
	names := make([]string, 0, len(metas))
	for k := range metas {
		names = append(names, k)
	}
	slices.Sort(names)
	for _, k := range names {
		b.add([]byte(k), metas[k], true)
	}
	meta := h.write(b.finish(nil), codecNone)
	h.footer(meta, indexHandle)
	return h.out
}

// dataBlocks writes the rows and returns handles, first keys and last keys of the blocks.
func (h *handTable) dataBlocks(entries []testEntry) (handles []blocks.Handle, first, last [][]byte) {
	var b handBlock
	var prev []byte
	flush := func() {
		if b.n == 0 {
			return
		}
		var hash []byte
		if h.spec.hash {
			hash = binary.LittleEndian.AppendUint16([]byte{255, 0, 255}, 3)
		}
		handles = append(handles, h.writeAs(b.finish(hash), h.spec.codec, cmp.Or(h.spec.label, h.spec.codec)))
		last = append(last, prev)
		b = handBlock{}
	}
	for i := range entries {
		k := entries[i].internal()
		if b.n == 0 {
			first = append(first, k)
		}
		b.add(k, []byte(entries[i].value), b.n%h.spec.restarts == 0)
		prev = k
		if len(b.buf) >= h.spec.blockSize {
			flush()
		}
	}
	flush()
	return handles, first, last
}

// filter writes a filter; nobody looks into it. A partitioned one has a partition for each data block.
func (h *handTable) filter(seps [][]byte) blocks.Handle {
	if !strings.HasPrefix(h.spec.filter, partitionedFilter) {
		return h.write([]byte("the bits of a filter"), codecNone)
	}
	var handles []blocks.Handle
	for i := range seps {
		handles = append(handles, h.write(bytes.Repeat([]byte{byte(i)}, 20+i%3), codecNone))
	}
	g := *h
	g.spec.indexType = indexBinary
	top := h.write(g.indexBlock(handles, nil, seps), codecNone)
	return top
}

// properties writes the properties block.
func (h *handTable) properties(entries int) blocks.Handle {
	p := map[string][]byte{propEntries: binary.AppendUvarint(nil, uint64(entries)), propDeletes: {0},
		propIndexType: binary.LittleEndian.AppendUint32(nil, h.spec.indexType)}
	if h.spec.comparator != "" {
		p[propComparator] = []byte(h.spec.comparator)
	}
	if h.spec.delta {
		p[propIndexDelta] = []byte{1}
	}
	if h.spec.userKeys {
		p[propIndexUserKeys] = []byte{1}
	}
	if h.spec.external {
		p[propExternal] = binary.LittleEndian.AppendUint32(nil, 2)
		p[propGlobalSeq] = make([]byte, 8)
	}
	for k, v := range h.spec.props {
		p[k] = v
	}
	names := make([]string, 0, len(p))
	for k := range p {
		names = append(names, k)
	}
	slices.Sort(names)
	var b handBlock
	for _, k := range names {
		b.add([]byte(k), p[k], true)
	}
	handle := h.write(b.finish(nil), codecNone)
	if h.spec.globalSeq != 0 {
		block := h.out[handle.Off : handle.Off+handle.Size]
		props, err := decodeProperties(block)
		if err != nil {
			h.t.Fatal(err)
		}
		binary.LittleEndian.PutUint64(block[props.globalSeqAt:], h.spec.globalSeq)
	}
	return handle
}

// index writes the index blocks; two-level ones have partitions of three entries.
func (h *handTable) index(handles []blocks.Handle, first, seps [][]byte) blocks.Handle {
	if h.spec.indexType != indexTwoLevel {
		return h.write(h.indexBlock(handles, first, seps), codecNone)
	}
	var tops []blocks.Handle
	var topSeps [][]byte
	for i := 0; i < len(handles); i += 3 {
		j := min(i+3, len(handles))
		tops = append(tops, h.write(h.indexBlock(handles[i:j], first[i:j], seps[i:j]), codecNone))
		topSeps = append(topSeps, seps[j-1])
	}
	return h.write(h.indexBlock(tops, nil, topSeps), codecNone)
}

func (h *handTable) indexBlock(handles []blocks.Handle, first, seps [][]byte) []byte {
	var b handBlock
	for i, s := range seps {
		if h.spec.userKeys {
			s = s[:len(s)-base.TrailerLen]
		}
		v := handleBytes(handles[i])
		if h.spec.indexType == indexFirstKey {
			v = append(binary.AppendUvarint(v, uint64(len(first[i]))), first[i]...)
		}
		if !h.spec.delta {
			b.add(s, v, i%2 == 0)
			continue
		}
		delta := []byte(nil)
		if i > 0 {
			delta = binary.AppendVarint(nil, int64(handles[i].Size)-int64(handles[i-1].Size))
			if h.spec.indexType == indexFirstKey {
				delta = append(binary.AppendUvarint(delta, uint64(len(first[i]))), first[i]...)
			}
		}
		b.addDelta(s, v, delta, i%2 == 0 || handles[i].Off != handles[i-1].Off+handles[i-1].Size+blocks.TrailerLen)
	}
	return b.finish(nil)
}

func handleBytes(h blocks.Handle) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(nil, h.Off), h.Size)
}

// footer ends the table.
func (h *handTable) footer(meta, index blocks.Handle) {
	b := append(handleBytes(meta), handleBytes(index)...)
	b = append(b, make([]byte, legacyFooterLen-8-len(b))...)
	if h.spec.levelDB {
		h.out = binary.LittleEndian.AppendUint64(append(h.out, b...), magicLevelDB)
		return
	}
	h.out = append(append(h.out, h.spec.checksum), b...)
	h.out = binary.LittleEndian.AppendUint32(h.out, h.spec.version)
	h.out = binary.LittleEndian.AppendUint64(h.out, magicRocksDB)
}

// write compresses a block and appends it with its trailer.
func (h *handTable) write(b []byte, codec byte) blocks.Handle { return h.writeAs(b, codec, codec) }

// writeAs is write with a codec byte of its own.
func (h *handTable) writeAs(b []byte, codec, label byte) blocks.Handle {
	handle := blocks.Handle{Off: uint64(len(h.out))}
	packed := compressBlock(h.t, b, codec, h.spec)
	handle.Size = uint64(len(packed))
	packed = append(packed, label)
	h.out = append(h.out, packed...)
	var sum uint32
	switch h.spec.checksum {
	case checksumCRC32C:
		sum = base.MaskCRC(crc32.Checksum(packed, base.Castagnoli))
	case checksumXXH32:
		sum = xxh32(packed)
	case checksumXXH64:
		sum = uint32(xxhash.Sum64(packed))
	case checksumXXH3:
		sum = uint32(xxh3.Hash(packed[:len(packed)-1])) ^ uint32(label)*0x6b9083d9
	}
	h.out = binary.LittleEndian.AppendUint32(h.out, sum)
	return handle
}

// compressBlock compresses as RocksDB does for the spec's format_version.
func compressBlock(t testing.TB, b []byte, codec byte, spec tableSpec) []byte {
	t.Helper()
	size := binary.AppendUvarint(nil, uint64(len(b)))
	switch codec {
	case codecNone:
		return slices.Clone(b)
	case codecSnappy:
		return snappy.Encode(nil, b)
	case codecZstd, codecLevelDBZstd:
		if codec == codecLevelDBZstd && !spec.levelDB {
			break // zlib
		}
		opts := []zstd.EOption{zstd.WithEncoderConcurrency(1)}
		if len(spec.dict) > 0 {
			opts = append(opts, zstd.WithEncoderDictRaw(0, spec.dict))
		}
		e, err := zstd.NewWriter(nil, opts...)
		if err != nil {
			t.Fatal(err)
		}
		if spec.levelDB {
			size = nil
		}
		return e.EncodeAll(b, size)
	case codecLZ4, codecLZ4HC:
		if spec.version < 2 {
			size = binary.LittleEndian.AppendUint64(nil, uint64(len(b)))
		}
		// All literals: a valid block whatever the bytes, also with a dictionary.
		return append(size, lz4Literals(b)...)
	case codecBzip2:
		return append(sizeIf(spec, size), bzip2Block(t, b)...)
	}
	var out bytes.Buffer
	w, err := flate.NewWriterDict(&out, 6, spec.dict)
	if err != nil {
		t.Fatal(err)
	}
	w.Write(b)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return append(sizeIf(spec, size), out.Bytes()...)
}

// sizeIf is the size prefix of compress format 2, nothing before.
func sizeIf(spec tableSpec, size []byte) []byte {
	if spec.version < 2 || spec.levelDB {
		return nil
	}
	return size
}

// lz4Literals encodes b with LZ4, or as literals when it does not compress.
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

// bzip2Block runs bzip2, which Go can only read.
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

// handBlock is a block under construction.
type handBlock struct {
	buf      []byte
	restarts []byte
	last     []byte
	n        int
}

func (b *handBlock) add(key, value []byte, restart bool) {
	shared := b.shared(key, restart)
	b.buf = binary.AppendUvarint(b.buf, uint64(shared))
	b.buf = binary.AppendUvarint(b.buf, uint64(len(key)-shared))
	b.buf = binary.AppendUvarint(b.buf, uint64(len(value)))
	b.buf = append(append(b.buf, key[shared:]...), value...)
}

func (b *handBlock) addDelta(key, value, delta []byte, restart bool) {
	shared := b.shared(key, restart)
	b.buf = binary.AppendUvarint(b.buf, uint64(shared))
	b.buf = binary.AppendUvarint(b.buf, uint64(len(key)-shared))
	b.buf = append(b.buf, key[shared:]...)
	if shared > 0 {
		value = delta
	}
	b.buf = append(b.buf, value...)
}

func (b *handBlock) shared(key []byte, restart bool) int {
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

func (b *handBlock) finish(hash []byte) []byte {
	n := uint32(len(b.restarts) / 4)
	if n == 0 {
		n, b.restarts = 1, make([]byte, 4)
	}
	if hash != nil {
		n |= 1 << 31
	}
	return binary.LittleEndian.AppendUint32(slices.Concat(b.buf, b.restarts, hash), n)
}
