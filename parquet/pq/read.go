package pq

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"sort"

	"github.com/golang/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/zeebo/xxh3"

	"kvferry/record"
)

const (
	tailBytes  = 8 // the length of the footer, and the magic
	maxFooter  = 1 << 30
	headBytes  = 256 // read to find the length of a page's header
	maxHead    = 64 << 10
	sumBytes   = 8
	maxWindow  = 128 << 20
	grownBytes = 1 << 20
)

// File is an open file.
type File struct {
	Meta *Meta
	r    io.ReaderAt
	size int64
}

// Open reads the footer of a file.
func Open(r io.ReaderAt, size int64) (*File, error) {
	if size < int64(len(magic))+tailBytes {
		return nil, &record.CorruptError{Off: record.NoOffset, Field: "file", Err: fmt.Errorf("%d bytes: %w", size, record.ErrShort)}
	}
	head, tail := make([]byte, len(magic)), make([]byte, tailBytes)
	for off, b := range map[int64][]byte{0: head, size - tailBytes: tail} {
		if err := readAt(r, b, off); err != nil {
			return nil, err
		}
	}
	if string(tail[4:]) == "PARE" || string(head) == "PARE" {
		return nil, record.Unknown(int(size-4), "file", "an encrypted footer")
	}
	if string(head) != magic || string(tail[4:]) != magic {
		return nil, &record.CorruptError{Off: 0, Field: "file", Err: fmt.Errorf("it begins with %q and ends in %q, want %s", head, tail[4:], magic)}
	}
	n := int64(binary.LittleEndian.Uint32(tail))
	if n > min(size-int64(len(magic))-tailBytes, maxFooter) {
		return nil, &record.CorruptError{Off: size - tailBytes, Field: "footer", Err: fmt.Errorf("%d bytes in a file of %d", n, size)}
	}
	footer := make([]byte, n)
	if err := readAt(r, footer, size-tailBytes-n); err != nil {
		return nil, err
	}
	m, err := decodeMeta(footer, size)
	if c := (*record.CorruptError)(nil); errors.As(err, &c) {
		c.Shift(size - tailBytes - n)
	}
	return &File{m, r, size}, err
}

// SumTail returns the XXH3 of the bytes from an offset on.
func (f *File) SumTail(off int64) (uint64, error) {
	h := xxh3.New()
	_, err := io.Copy(h, io.NewSectionReader(f.r, off, f.size-off))
	return h.Sum64(), err
}

// readAt reads all of b.
func readAt(r io.ReaderAt, b []byte, off int64) error {
	n, err := r.ReadAt(b, off)
	if n == len(b) {
		return nil
	}
	if err == io.EOF {
		return record.Short(int(off), "file", len(b), n)
	}
	return err
}

// Unpacker decompresses pages. It is for one goroutine.
type Unpacker struct {
	zstd *zstd.Decoder
}

// Close releases it.
func (u *Unpacker) Close() {
	if u.zstd != nil {
		u.zstd.Close()
	}
}

// unpack decompresses src, which becomes raw bytes.
func (u *Unpacker) unpack(dst, src []byte, codec, raw int) (out []byte, err error) {
	switch codec {
	case codecNone:
		out = src
	case codecSnappy:
		if n, err := snappy.DecodedLen(src); err != nil || n != raw || n > 64*len(src)+64 {
			return nil, fmt.Errorf("snappy: %d bytes from %d, want %d: %w", n, len(src), raw, snappy.ErrCorrupt)
		}
		out, err = snappy.Decode(dst[:cap(dst)], src)
	case codecZstd:
		out, err = u.unzstd(dst, src, raw)
	case codecGzip:
		out, err = gunzip(src, raw)
	case codecLZ4Raw:
		if raw > 256*len(src)+64 {
			return nil, fmt.Errorf("lz4: %d bytes from %d", raw, len(src))
		}
		out = make([]byte, raw)
		var n int
		n, err = lz4.UncompressBlock(src, out)
		out = out[:max(n, 0)]
	default:
		return nil, record.Unknown(record.NoOffset, "codec", codecName(codec))
	}
	if err == nil && len(out) != raw {
		err = fmt.Errorf("%d bytes decompressed, want %d", len(out), raw)
	}
	return out, err
}

func codecName(codec int) string {
	names := map[int]string{3: "LZO", 4: "BROTLI", 5: "LZ4 of Hadoop"}
	if name := names[codec]; name != "" {
		return name + ", which kvferry does not read"
	}
	return fmt.Sprint(codec)
}

func (u *Unpacker) unzstd(dst, src []byte, raw int) (out []byte, err error) {
	if u.zstd == nil {
		u.zstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, err
		}
	}
	for room := min(raw, max(grownBytes, 16*len(src))); ; room = min(raw, 4*room) {
		if cap(dst) < room {
			dst = make([]byte, 0, room)
		}
		out, err = u.zstd.DecodeAll(src, dst[:0])
		if room == raw || !errors.Is(err, zstd.ErrDecoderSizeExceeded) {
			return out, err
		}
	}
}

func gunzip(src []byte, raw int) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(src))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(z, int64(raw)+1))
}

// ColumnReader reads the values of a column in a row group, page by page.
type ColumnReader struct {
	f    *File
	leaf *Leaf
	c    *Chunk
	u    *Unpacker
	off  int64 // of the next page
	left int64 // rows after the current page
	sums []byte
	page int // number of the next page

	dict   values
	vals   values
	ids    []uint32
	byID   bool
	levels []byte // nil: all rows are alike
	store  []byte
	rows   int // of the page
	nulls  int
	at     int // next row
	value  int // next value
	raw    []byte
	packed []byte
	text   []byte // of the dictionary
}

// Open moves the reader to a column in a row group of a file. The zero reader is ready for it. Its buffers stay.
func (r *ColumnReader) Open(f *File, group, leaf int, u *Unpacker) {
	c := &f.Meta.Groups[group].Chunks[leaf]
	*r = ColumnReader{f: f, leaf: &f.Meta.Leaves[leaf], c: c, u: u, off: c.Off, left: c.Values, sums: r.sums[:0], dict: r.dict, vals: r.vals, ids: r.ids[:0],
		store: r.store[:0], raw: r.raw, packed: r.packed, text: r.text}
	r.dict.spans, r.dict.nums = r.dict.spans[:0], r.dict.nums[:0]
	if c.Sums != "" { // a missing sum is an error when its page is read
		r.sums, _ = base64.StdEncoding.AppendDecode(r.sums, []byte(c.Sums))
	}
}

// Rows returns the rows of the current page that are not read.
func (r *ColumnReader) Rows() int { return r.rows - r.at }

// Nulls reports whether the rest of the page is null.
func (r *ColumnReader) Nulls() bool { return r.nulls == r.rows }

// More moves to the next page if all rows of the current one were read. It returns io.EOF after the last.
func (r *ColumnReader) More() error {
	for r.at == r.rows {
		if r.left == 0 {
			return io.EOF
		}
		if err := r.next(); err != nil {
			return err
		}
	}
	return nil
}

// Skip passes over n rows of the page.
func (r *ColumnReader) Skip(n int) {
	switch {
	case r.levels != nil:
		for _, level := range r.levels[r.at : r.at+n] {
			r.value += int(level)
		}
	case r.nulls == 0:
		r.value += n
	}
	r.at += n
}

// Next moves to the next row of the page and returns the number of its value; false if it is null.
func (r *ColumnReader) Next() (int, bool) {
	present := r.nulls == 0
	if r.levels != nil {
		present = r.levels[r.at] == 1
	}
	r.at++
	if !present {
		return 0, false
	}
	r.value++
	return r.value - 1, true
}

// Bytes returns a value. It is valid until the next page is read.
func (r *ColumnReader) Bytes(i int) []byte {
	if r.byID {
		return r.dict.at(int(r.ids[i]))
	}
	return r.vals.at(i)
}

// Num returns an integer, or the bits of a float64.
func (r *ColumnReader) Num(i int) int64 {
	if r.byID {
		return r.dict.nums[r.ids[i]]
	}
	return r.vals.nums[i]
}

// ID returns the index of a value in the dictionary; false if it is not there.
func (r *ColumnReader) ID(i int) (uint32, bool) {
	if r.byID {
		return r.ids[i], true
	}
	return 0, false
}

// Leaf returns the column.
func (r *ColumnReader) Leaf() *Leaf { return r.leaf }

// corrupt locates an error at the current page.
func (r *ColumnReader) corrupt(off int64, err error) error {
	var c *record.CorruptError
	if errors.As(err, &c) {
		if c.Off == record.NoOffset {
			c.Off = off
		}
		return err
	}
	return &record.CorruptError{Off: off, Field: "page of " + r.leaf.Name, Err: err}
}

// next reads a data page, and the dictionary before the first.
func (r *ColumnReader) next() error {
	for {
		at := r.off
		h, b, err := r.read()
		if err != nil {
			return r.corrupt(at, err)
		}
		switch h.typ {
		case pageData, pageDataV2:
			if err := r.data(&h, b); err != nil {
				return r.corrupt(at, err)
			}
			return nil
		case pageDict:
			if r.page > 1 {
				return r.corrupt(at, errors.New("a dictionary that is not expected"))
			}
			if err := r.dictionary(&h, b); err != nil {
				return r.corrupt(at, err)
			}
		case pageIndex:
		default:
			return r.corrupt(at, record.Unknown(record.NoOffset, "page", fmt.Sprintf("type %d", h.typ)))
		}
	}
}

// read reads the next page: its header and its bytes, compressed.
func (r *ColumnReader) read() (h header, b []byte, err error) {
	left := r.c.Off + r.c.Size - r.off
	var n int
	for size := int64(headBytes); ; size *= 4 {
		r.packed = room(r.packed, int(min(size, left)))
		if err = readAt(r.f.r, r.packed, r.off); err != nil {
			return h, nil, err
		}
		if h, n, err = decodeHeader(r.packed); err == nil {
			break
		}
		if size >= min(left, maxHead) {
			return h, nil, err
		}
	}
	if int64(h.size) > left-int64(n) {
		return h, nil, record.Short(n, "page", h.size, int(left)-n)
	}
	r.packed = room(r.packed, n+h.size)
	if err = readAt(r.f.r, r.packed, r.off); err != nil {
		return h, nil, err
	}
	if r.c.Sums != "" {
		if len(r.sums) < (r.page+1)*sumBytes || binary.LittleEndian.Uint64(r.sums[r.page*sumBytes:]) != xxh3.Hash(r.packed) {
			return h, nil, errors.New("checksum mismatch")
		}
	}
	b = r.packed[n:]
	if h.hasCRC && crc32.ChecksumIEEE(b) != h.crc {
		return h, nil, errors.New("checksum mismatch")
	}
	r.page++
	r.off += int64(n + h.size)
	return h, b, nil
}

// room returns a buffer of n bytes.
func room(b []byte, n int) []byte {
	if n <= cap(b) && (cap(b) <= 4*pageBytes || n > cap(b)/2) {
		return b[:n]
	}
	return make([]byte, n, max(n, headBytes))
}

// dictionary decodes the dictionary.
func (r *ColumnReader) dictionary(h *header, b []byte) error {
	raw, err := r.u.unpack(r.text, b, r.c.Codec, h.raw)
	if err != nil {
		return err
	}
	if r.c.Codec == codecNone {
		raw = bytes.Clone(raw)
	}
	r.text = reuse(raw)
	return r.dict.decode(raw, h.encoding, h.values, r.leaf)
}

// data decodes a data page.
func (r *ColumnReader) data(h *header, b []byte) error {
	if int64(h.values) > r.left {
		return fmt.Errorf("%d rows, %d are left in the row group", h.values, r.left)
	}
	var levels []byte
	if h.typ == pageDataV2 {
		if h.repeats != 0 || h.levels > len(b) || h.levels > h.raw {
			return record.ErrShort
		}
		levels, b = b[:h.levels], b[h.levels:]
	}
	codec, size := r.c.Codec, h.raw-h.levels
	if !h.packed {
		codec = codecNone
	}
	raw, err := r.u.unpack(r.raw, b, codec, size)
	if err != nil {
		return err
	}
	if codec != codecNone {
		r.raw = reuse(raw)
	}
	if r.leaf.Optional && h.typ == pageData {
		if h.levelEncoding != encRLE {
			return record.Unknown(record.NoOffset, "encoding of levels", fmt.Sprint(h.levelEncoding))
		}
		if len(raw) < 4 || uint64(binary.LittleEndian.Uint32(raw)) > uint64(len(raw)-4) {
			return record.ErrShort
		}
		n := binary.LittleEndian.Uint32(raw)
		levels, raw = raw[4:4+n], raw[4+n:]
	}
	return r.fill(h, levels, raw)
}

// fill decodes the levels and values of a page.
func (r *ColumnReader) fill(h *header, levels, raw []byte) (err error) {
	r.levels, r.nulls = nil, 0
	if r.leaf.Optional {
		if r.levels, r.nulls, err = decodeLevels(r.store, levels, h.values); err != nil {
			return err
		}
		if r.levels != nil {
			r.store = r.levels
		}
	}
	n := h.values - r.nulls
	if r.byID = h.encoding == encRLEDict || h.encoding == encPlainDict; r.byID {
		r.ids, err = decodeIDs(r.ids, raw, n, r.dict.len())
	} else {
		err = r.vals.decode(raw, h.encoding, n, r.leaf)
	}
	if err != nil {
		return err
	}
	r.rows, r.at, r.value = h.values, 0, 0
	r.left -= int64(h.values)
	return nil
}

// SeekRow moves forward to a row of the row group. It uses the offset index of the chunk, if any.
func (r *ColumnReader) SeekRow(row int64) error {
	pages, err := r.offsets()
	if err != nil {
		return err
	}
	target := sort.Search(len(pages), func(i int) bool { return pages[i].Row > row }) - 1
	if target > 0 && pages[target].Row > r.c.Values-r.left {
		if r.c.dict != 0 && r.dict.len() == 0 {
			if err := r.next(); err != nil { // reads the dictionary, too
				return err
			}
		}
		r.off, r.left, r.at, r.rows, r.page = pages[target].Off, r.c.Values-pages[target].Row, 0, 0, target
		if r.c.dict != 0 {
			r.page++
		}
	}
	for {
		if err := r.More(); err != nil {
			return err
		}
		first := r.c.Values - r.left - int64(r.rows)
		if row < first+int64(r.rows) {
			r.Skip(int(row-first) - r.at)
			return nil
		}
		r.at = r.rows
	}
}

// offsets returns the pages in the offset index of the chunk.
func (r *ColumnReader) offsets() ([]Page, error) {
	if r.c.IndexSize == 0 {
		return nil, nil
	}
	b := make([]byte, r.c.IndexSize)
	if err := readAt(r.f.r, b, r.c.Index); err != nil {
		return nil, err
	}
	pages, err := decodeOffsets(b)
	if err != nil {
		return nil, r.corrupt(r.c.Index, err)
	}
	for i, p := range pages {
		if p.Off < r.c.Off || p.Off > r.c.Off+r.c.Size || p.Row < 0 || p.Row > r.c.Values || i > 0 && (p.Row < pages[i-1].Row || p.Off < pages[i-1].Off) {
			return nil, r.corrupt(r.c.Index, fmt.Errorf("page %d is outside of its column", i))
		}
	}
	return pages, nil
}
