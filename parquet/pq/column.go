package pq

import (
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"math"

	"github.com/zeebo/xxh3"
)

// Kind is the kind of a written column.
type Kind uint8

// The kinds.
const (
	Binary    Kind = iota // BYTE_ARRAY
	UTF8                  // BYTE_ARRAY of UTF-8
	Integer               // INT64
	Timestamp             // INT64, milliseconds since 1970, UTC
	Number                // DOUBLE
)

// Coding is how the values of a column are expected to be.
type Coding uint8

// The codings.
const (
	Any     Coding = iota // a dictionary if values repeat
	Runs                  // a dictionary of values that repeat only in runs
	Unique                // no dictionary
	Counted               // integers in small steps
)

// Column describes a column of a file to write.
type Column struct {
	Name     string
	Kind     Kind
	Coding   Coding
	Optional bool
}

const (
	// pageBytes is the size of values at which a page ends, and pageRows the number of rows.
	pageBytes = 128 << 10
	pageRows  = 20000
	// sumsKey names the checksums of a chunk's pages in its metadata.
	sumsKey = "kvferry.pages"
	// retry is the number of row groups after which a column without a dictionary tries one again.
	retry = 16
)

// column is a column of the current row group.
type column struct {
	Column
	z *compressor

	rows, nulls int
	levels      []byte // of the page's rows; empty while they are alike
	plain       []byte
	ids         []uint32
	ints        []int64
	bounds      bounds

	dict    *dictionary
	tries   int // row groups until a dictionary is tried again
	chunk   bounds
	pages   []page
	size    int // of the pages
	raw     int64
	sums    []byte
	encoded [encSplit + 1]bool
	total   int64 // rows of the row group
}

// page is a finished page, with its header.
type page struct {
	data        []byte // nil once it is written
	size        int
	rows, nulls int
	least, most []byte
	bounded     bool
}

func newColumn(c Column, z *compressor) *column {
	out := &column{Column: c, z: z}
	if c.Coding == Any || c.Coding == Runs {
		out.dict = newDictionary(c.Coding == Runs)
	}
	return out
}

// present notes n rows that are not null.
func (c *column) present(n int) {
	if c.nulls > 0 {
		c.mix()
		for range n {
			c.levels = append(c.levels, 1)
		}
	}
	c.rows += n
}

// null adds n nulls.
func (c *column) null(n int) {
	for n > 0 {
		k := min(n, pageRows-c.rows)
		if c.nulls < c.rows {
			c.mix()
		}
		if len(c.levels) > 0 {
			c.levels = append(c.levels, make([]byte, k)...)
		}
		c.rows, c.nulls, n = c.rows+k, c.nulls+k, n-k
		c.endFull()
	}
}

// mix writes down the levels of the page's rows, which were alike so far.
func (c *column) mix() {
	if len(c.levels) > 0 || c.rows == 0 {
		return
	}
	level := byte(1)
	if c.nulls > 0 {
		level = 0
	}
	for range c.rows {
		c.levels = append(c.levels, level)
	}
}

// bytes adds a value n times.
func (c *column) bytes(v []byte, n int) {
	for n > 0 {
		k := min(n, pageRows-c.rows)
		if len(v) > pageBytes {
			k = 1
		}
		if len(c.plain) > 0 && len(c.plain)+len(v)*k > pageBytes {
			c.endPage()
			continue
		}
		c.bounds.bytes(v)
		c.add(v, k)
		c.present(k)
		n -= k
		c.endFull()
	}
}

// add adds k values to the dictionary or the page.
func (c *column) add(v []byte, k int) {
	if c.dict != nil && c.tries == 0 && len(c.plain) == 0 {
		if id, ok := c.dict.find(v); ok {
			for range k {
				c.ids = append(c.ids, id)
			}
			return
		}
		c.plainInstead()
	}
	for range k {
		c.plain = append(binary.LittleEndian.AppendUint32(c.plain, uint32(len(v))), v...)
	}
}

// plainInstead makes the page plain: it has a value that is not in the dictionary.
func (c *column) plainInstead() {
	for _, id := range c.ids {
		v := c.dict.entry(id)
		c.plain = append(binary.LittleEndian.AppendUint32(c.plain, uint32(len(v))), v...)
	}
	c.ids = c.ids[:0]
}

// int adds a value n times.
func (c *column) int(v int64, n int) {
	for n > 0 {
		k := min(n, pageRows-c.rows)
		c.bounds.int(v)
		for range k {
			if c.Coding == Counted {
				c.ints = append(c.ints, v)
			} else {
				c.plain = binary.LittleEndian.AppendUint64(c.plain, uint64(v))
			}
		}
		c.present(k)
		n -= k
		c.endFull()
	}
}

// float adds a value.
func (c *column) float(v float64) {
	c.bounds.float(v)
	c.plain = binary.LittleEndian.AppendUint64(c.plain, math.Float64bits(v))
	c.present(1)
	c.endFull()
}

// endFull ends the page if it is full.
func (c *column) endFull() {
	if c.rows == pageRows || len(c.plain) >= pageBytes {
		c.endPage()
	}
}

// worthless reports whether the dictionary costs more than it saves, by its first page.
func (c *column) worthless() bool {
	return c.Coding == Any && len(c.pages) == 0 && len(c.ids) > minRun && len(c.dict.ends)*2 > len(c.ids)
}

// endPage compresses the rows of the page.
func (c *column) endPage() {
	if c.rows == 0 {
		return
	}
	if len(c.ids) > 0 && c.worthless() {
		c.plainInstead()
		c.tries = retry
		c.dict.reset()
	}
	raw, encoding := c.z.raw[:0], encPlain
	if c.Optional {
		raw = c.appendLevels(raw)
	}
	switch {
	case len(c.ids) > 0:
		encoding = encRLEDict
		width := widthOf(len(c.dict.ends))
		raw = appendHybrid(append(raw, byte(width)), c.ids, width)
	case len(c.ints) > 0:
		encoding = encDelta
		raw = appendDelta(raw, c.ints)
	case len(raw) == 0 && len(c.plain) > 0:
		raw, c.plain = c.plain, raw // saves a copy
	default:
		raw = append(raw, c.plain...)
	}
	c.finish(raw, encoding)
	c.z.raw = reuse(raw)
	c.rows, c.nulls, c.bounds = 0, 0, bounds{min: c.bounds.min[:0], max: c.bounds.max[:0]}
	c.levels, c.ids, c.ints, c.plain = c.levels[:0], c.ids[:0], c.ints[:0], reuse(c.plain)
}

// reuse empties a buffer, and drops a large one.
func reuse(b []byte) []byte {
	if cap(b) > 4*pageBytes {
		return nil
	}
	return b[:0]
}

// appendLevels appends the definition levels: 1 for a value and 0 for null, after their length.
func (c *column) appendLevels(dst []byte) []byte {
	from := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	switch {
	case len(c.levels) > 0:
		dst = appendHybrid(dst, c.levels, 1)
	case c.nulls > 0:
		dst = appendRun(dst, 0, c.rows, 1)
	default:
		dst = appendRun(dst, 1, c.rows, 1)
	}
	binary.LittleEndian.PutUint32(dst[from:], uint32(len(dst)-from-4))
	return dst
}

// finish adds the page with these values to the chunk.
func (c *column) finish(raw []byte, encoding int) {
	p := page{rows: c.rows, nulls: c.nulls}
	p.least, p.most, p.bounded = c.bounds.ends(c.Kind)
	p.data = c.z.page(raw, func(e *encoder) {
		e.structure(5)
		e.i32(1, int32(c.rows))
		e.i32(2, int32(encoding))
		e.i32(3, encRLE)
		e.i32(4, encRLE)
		e.end()
	}, pageData, &c.raw)
	c.encoded[encoding] = true
	c.chunk.add(&c.bounds)
	c.pages = append(c.pages, p)
	c.size += len(p.data)
	c.total += int64(c.rows)
	c.sums = binary.LittleEndian.AppendUint64(c.sums, xxh3.Hash(p.data))
}

// dictPage returns the page of the dictionary; nil if no page uses it.
func (c *column) dictPage() []byte {
	if !c.encoded[encRLEDict] {
		return nil
	}
	data := c.z.page(c.dict.plain, func(e *encoder) {
		e.structure(7)
		e.i32(1, int32(len(c.dict.ends)))
		e.i32(2, encPlain)
		e.end()
	}, pageDict, &c.raw)
	c.encoded[encPlain] = true
	c.sums = append(binary.LittleEndian.AppendUint64(nil, xxh3.Hash(data)), c.sums...)
	return data
}

// buffered returns the bytes that the column holds.
func (c *column) buffered() int {
	n := c.size + len(c.plain) + len(c.ids)*4 + len(c.ints)*8
	if c.dict != nil {
		n += len(c.dict.plain) + len(c.dict.ends)*4
	}
	return n
}

// reset prepares the column for the next row group.
func (c *column) reset() {
	if c.Coding == Runs && int64(len(c.dict.ends))*2 > c.total { // nearly every row has a value of its own
		c.tries = retry
	} else if c.tries > 0 {
		c.tries--
	}
	if c.dict != nil {
		c.dict.reset()
	}
	clear(c.pages)
	c.pages, c.size, c.raw, c.total, c.sums = c.pages[:0], 0, 0, 0, c.sums[:0]
	c.encoded = [encSplit + 1]bool{}
	c.chunk = bounds{}
}

// sumsText returns the checksums of the chunk's pages.
func (c *column) sumsText() string { return base64.StdEncoding.EncodeToString(c.sums) }

// compressor makes pages.
type compressor struct {
	zstd interface{ EncodeAll(src, dst []byte) []byte }
	raw  []byte // the values of a page
	out  []byte // compressed
	head encoder
}

// page compresses the values of a page and puts its header before them.
func (z *compressor) page(raw []byte, head func(*encoder), typ int32, total *int64) []byte {
	z.out = z.zstd.EncodeAll(raw, z.out[:0])
	e := &z.head
	e.b, e.last = e.b[:0], e.last[:0]
	e.begin()
	e.i32(1, typ)
	e.i32(2, int32(len(raw)))
	e.i32(3, int32(len(z.out)))
	e.i32(4, int32(crc32.ChecksumIEEE(z.out)))
	head(e)
	e.end()
	*total += int64(len(e.b) + len(raw))
	data := make([]byte, 0, len(e.b)+len(z.out))
	data = append(append(data, e.b...), z.out...)
	z.out = reuse(z.out)
	return data
}
