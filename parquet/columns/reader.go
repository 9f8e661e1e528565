package columns

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"

	"github.com/parquet-go/parquet-go/format"

	"kvferry/record"
)

const (
	// maxPageValues bounds the values of a page: a run of equal ones takes few bytes. Writers end a page of nulls with
	// its row group.
	maxPageValues = 1 << 22
	// plainDictionary is what old writers call both the values of a dictionary and their numbers in pages.
	plainDictionary format.Encoding = 2
	// dictionaryHead is the most that the header of a dictionary takes, which Impala 1.2 and parquet-mr before 1.2.9 leave
	// out of the size of a column.
	dictionaryHead = 100
)

// Reader reads the values of a column in a row group, page by page.
type Reader struct {
	f       *File
	leaf    *node
	c       *chunk
	bounded bool                  // pages of zeros have a limit
	at, end int64                 // of the next page, and of the column
	left    int64                 // values and nulls after the page
	places  []format.PageLocation // of the pages from there on, if a row was sought

	head, packed, raw []byte // of the page; reused

	dict   *packedValues
	values packedValues // in the page
	ids    []uint32     // in the dictionary, instead
	inDict bool
	room   struct {
		defs, reps []byte
		from, ids  []uint32
	}

	defs, reps []byte // levels; nil: no value is null, none is repeated
	rows       int    // values and nulls
	next       int
	value      int // number of the next value
}

// Open moves the reader to a column in a row group of a file.
func (r *Reader) Open(f *File, group, leaf int) error {
	r.Close()
	g := &f.RowGroups[group]
	c := &g.Columns[leaf]
	*r = Reader{f: f, leaf: f.leaves[leaf], c: c, left: c.Meta.Values, at: c.first(), head: r.head, packed: r.packed, raw: r.raw,
		room: r.room}
	r.end = r.at + c.Meta.Size
	var err error
	switch {
	case c.FilePath != "":
		err = record.Unknown(int(r.at), "column "+r.leaf.path, fmt.Sprintf("a column in the file %q", c.FilePath))
	case c.Meta.Type != r.leaf.Type.V:
		err = fmt.Errorf("pages of %s, want %s", c.Meta.Type, r.leaf.Type.V)
	case r.leaf.rep == 0 && c.Meta.Values != g.NumRows, c.Meta.Values < g.NumRows:
		err = fmt.Errorf("%s values in %s rows", record.Number(c.Meta.Values), record.Number(g.NumRows))
	}
	if err != nil {
		return corrupt(r.at, "column "+r.leaf.path, err)
	}
	return nil
}

// Close forgets the page.
func (r *Reader) Close() {
	r.rows, r.next, r.left, r.places, r.dict, r.values, r.inDict = 0, 0, 0, nil, nil, packedValues{}, false
}

// Rows returns the rows of the current page that are not read.
func (r *Reader) Rows() int { return r.rows - r.next }

// More moves to the next page if all rows of the current one were read. It returns io.EOF after the last.
func (r *Reader) More() error {
	for r.next == r.rows {
		if r.left == 0 {
			return io.EOF
		}
		off := r.at
		if err := r.page(); err != nil {
			return corrupt(off, "page of "+r.leaf.path, err)
		}
	}
	return nil
}

// page reads the next page. Values of the previous one become invalid.
func (r *Reader) page() error {
	if r.at >= r.end {
		return fmt.Errorf("%s rows are missing: %w", record.Number(r.left), record.ErrShort)
	}
	h, n, err := r.header()
	if err != nil {
		return err
	}
	from, left, off := r.at, r.left, r.at+n
	r.at = off + int64(h.CompressedPageSize)
	r.rows, r.next, r.value = 0, 0, 0
	v1, v2, d := &h.DataPageHeader, &h.DataPageHeaderV2, &h.DictionaryPageHeader
	data := h.Type == format.DataPage && v1.Valid || h.Type == format.DataPageV2 && v2.Valid
	if !data && (h.Type != format.DictionaryPage || !d.Valid) {
		if h.Type == format.IndexPage {
			return nil
		}
		return record.Unknown(record.NoOffset, "page", h.Type.String())
	}
	b, err := r.load(off, &h)
	if err != nil {
		return err
	}
	switch {
	case !data:
		return r.dictionary(b, &h)
	case h.Type == format.DataPage:
		err = r.dataV1(b, &h)
	default:
		err = r.dataV2(b, &h)
	}
	if err == nil {
		err = r.placed(from, r.at-from, left)
	}
	return err
}

// dictionary keeps the values that pages refer to.
func (r *Reader) dictionary(b []byte, h *format.PageHeader) error {
	d := &h.DictionaryPageHeader.V
	if v, raw := d.NumValues, h.UncompressedPageSize; v < 0 || v > raw {
		return fmt.Errorf("%s values in a dictionary of %s bytes", record.Number(v), record.Number(raw))
	}
	if d.Encoding != format.Plain && d.Encoding != plainDictionary {
		return record.Unknown(record.NoOffset, "encoding", d.Encoding.String())
	}
	b, err := r.unpack(b, int64(h.UncompressedPageSize), h)
	if err != nil {
		return err
	}
	v, err := r.decode(b, int(d.NumValues), format.Plain, nil)
	r.dict = &v
	return err
}

// dataV1 reads a page whose levels are compressed with its values.
func (r *Reader) dataV1(b []byte, h *format.PageHeader) error {
	d := &h.DataPageHeader.V
	if err := r.count(d.NumValues); err != nil {
		return err
	}
	b, err := r.unpack(b, int64(h.UncompressedPageSize), h)
	if err != nil {
		return err
	}
	var reps, defs []byte
	for _, l := range []struct {
		level int
		e     format.Encoding
		b     *[]byte
	}{{r.leaf.rep, d.RepetitionLevelEncoding, &reps}, {r.leaf.def, d.DefinitionLevelEncoding, &defs}} {
		if l.level == 0 {
			continue
		}
		if l.e != format.RLE {
			return record.Unknown(record.NoOffset, "levels", l.e.String())
		}
		if *l.b, b, err = packedPart(b); err != nil {
			return err
		}
	}
	return r.open(reps, defs, b, d.NumValues, d.Encoding)
}

// dataV2 reads a page whose levels come before its values.
func (r *Reader) dataV2(b []byte, h *format.PageHeader) error {
	d := &h.DataPageHeaderV2.V
	if err := r.count(d.NumValues); err != nil {
		return err
	}
	reps, defs := int64(d.RepetitionLevelsByteLength), int64(d.DefinitionLevelsByteLength)
	levels := reps + defs
	if reps < 0 || defs < 0 || levels > int64(min(len(b), int(h.UncompressedPageSize))) {
		return fmt.Errorf("levels of %s and %s bytes", record.Number(reps), record.Number(defs))
	}
	values := b[levels:]
	if len(values) > 0 {
		var err error
		if values, err = r.unpack(values, int64(h.UncompressedPageSize)-levels, h); err != nil {
			return err
		}
	}
	if err := r.open(b[:reps], b[reps:levels], values, d.NumValues, d.Encoding); err != nil {
		return err
	}
	if nulls := r.rows - r.count0(); r.leaf.rep == 0 && nulls != int(d.NumNulls) {
		return fmt.Errorf("%s nulls, want %s", record.Number(nulls), record.Number(d.NumNulls))
	}
	return nil
}

// count subtracts the values of a page from the values left.
func (r *Reader) count(n int32) error {
	if int64(n) < 0 || int64(n) > min(r.left, maxPageValues) {
		return fmt.Errorf("%s values, %s are left", record.Number(n), record.Number(r.left))
	}
	r.left -= int64(n)
	return nil
}

// count0 returns the values of the page that are not null.
func (r *Reader) count0() int {
	if r.inDict {
		return len(r.ids)
	}
	return r.values.Len()
}

// open decodes the levels and values of a page.
func (r *Reader) open(reps, defs, b []byte, rows int32, e format.Encoding) (err error) {
	n := int(rows)
	if r.reps, err = levels(&r.room.reps, reps, r.leaf.rep, n); err != nil {
		return err
	}
	if r.defs, err = levels(&r.room.defs, defs, r.leaf.def, n); err != nil {
		return err
	}
	values := n
	if r.defs != nil {
		for _, level := range r.defs {
			if int(level) < r.leaf.def {
				values--
			}
		}
		if values == n {
			r.defs = nil
		}
	}
	r.values, r.ids, r.inDict = packedValues{}, r.ids[:0], e == format.RLEDictionary || e == plainDictionary
	switch {
	case values == 0:
	case r.inDict:
		err = r.refer(b, values)
	default:
		if r.values, err = r.decode(b, values, e, r.room.from); err == nil && cap(r.values.From) < maxGroupRows {
			r.room.from = r.values.From
		}
	}
	if err == nil {
		r.rows = n
	}
	return err
}

// levels decodes n levels of at most a number; nil if all are 0.
func levels(room *[]byte, b []byte, most, n int) (out []byte, err error) {
	if most == 0 {
		return nil, nil
	}
	*room, err = packedRuns((*room)[:0], b, bits.Len(uint(most)), n)
	for _, level := range *room {
		if err == nil && int(level) > most {
			err = fmt.Errorf("level %d of %d", level, most)
		}
	}
	return *room, err
}

// refer decodes the numbers of values in the dictionary.
func (r *Reader) refer(b []byte, n int) (err error) {
	if r.dict == nil {
		return errors.New("no dictionary")
	}
	if len(b) == 0 {
		return record.ErrShort
	}
	if r.ids, err = packedRuns(r.ids[:0], b[1:], int(b[0]), n); err != nil {
		return err
	}
	for _, id := range r.ids {
		if uint64(id) >= uint64(r.dict.Len()) {
			return fmt.Errorf("value %d of a dictionary of %d", id, r.dict.Len())
		}
	}
	return nil
}

// sizes has the types whose values have one size.
var sizes = map[format.Type]int{format.Int32: 4, format.Float: 4, format.Int64: 8, format.Double: 8, format.Int96: 12}

// decode decodes n values.
func (r *Reader) decode(b []byte, n int, e format.Encoding, room []uint32) (packedValues, error) {
	kind := r.leaf.Type.V
	size := sizes[kind]
	if kind == format.FixedLenByteArray {
		if size = int(r.leaf.TypeLength.V); size <= 0 {
			return packedValues{}, fmt.Errorf("values of %s bytes", record.Number(size))
		}
	}
	integer := kind == format.Int32 || kind == format.Int64
	switch {
	case e == format.Plain && kind == format.Boolean:
		return packedBits(b, n)
	case e == format.Plain && kind == format.ByteArray:
		return packedStrings(b, n, room)
	case e == format.Plain:
		return packedFixed(b, n, size)
	case e == format.RLE && kind == format.Boolean:
		return packedBools(b, n)
	case e == format.ByteStreamSplit && size > 0 && kind != format.Int96:
		return packedSplit(b, n, size)
	case e == format.DeltaBinaryPacked && integer:
		return packedDifferences(b, n, size)
	case e == format.DeltaLengthByteArray && kind == format.ByteArray:
		return packedLengths(b, n)
	case e == format.DeltaByteArray && (kind == format.ByteArray || kind == format.FixedLenByteArray):
		return unfoldValues(b, n, max(maxPage, maxRatio*int64(len(b))), size)
	}
	return packedValues{}, record.Unknown(record.NoOffset, "encoding", e.String()+" of "+kind.String())
}

// Next moves to the next row of the page and returns the number of its value; false if it is null.
func (r *Reader) Next() (int, bool) {
	null := r.defs != nil && int(r.defs[r.next]) < r.leaf.def
	r.next++
	if null {
		return 0, false
	}
	r.value++
	return r.value - 1, true
}

// Value returns a value: text and bytes as they are, numbers with the lowest byte first. It is valid until the next page.
func (r *Reader) Value(i int) []byte {
	if r.inDict {
		return r.dict.At(int(r.ids[i]))
	}
	return r.values.At(i)
}

// Int returns an integer of 8 bytes, Float a number.
func (r *Reader) Int(i int) int64     { return int64(binary.LittleEndian.Uint64(r.Value(i))) }
func (r *Reader) Float(i int) float64 { return math.Float64frombits(uint64(r.Int(i))) }

// ID returns the index of a value in the dictionary of the row group; false if it is not there.
func (r *Reader) ID(i int) (uint32, bool) {
	if r.inDict {
		return r.ids[i], true
	}
	return 0, false
}

// AllNull reports whether no row has a value.
func (f *File) AllNull(group, leaf int) (bool, error) {
	var r Reader
	err := r.Open(f, group, leaf)
	for ; err == nil; r.next = r.rows {
		if err = r.More(); err == nil && r.count0() > 0 {
			return false, nil
		}
	}
	if err == io.EOF {
		err = nil
	}
	return err == nil, err
}

// SeekRow moves a new reader to a row of the row group. It uses the offset index, if any, and compares the headers of
// pages with it from there on.
func (r *Reader) SeekRow(row int64) error {
	first, err := r.seekPage(row)
	if err != nil {
		return corrupt(r.c.Index, "offset index of "+r.leaf.path, err)
	}
	for row -= first; row > 0; {
		if err := r.More(); err != nil {
			return err
		}
		for ; row > 0 && r.next < r.rows; row-- {
			r.Next()
		}
	}
	return nil
}

// seekPage moves to the page with a row and returns the first row of it.
func (r *Reader) seekPage(row int64) (int64, error) {
	places, err := r.f.places(r.c)
	if err != nil || len(places) == 0 {
		return 0, err
	}
	if r.at < r.c.Meta.Data { // the dictionary
		if err := r.page(); err != nil {
			return 0, err
		}
	}
	for len(places) > 1 && places[1].FirstRowIndex <= row {
		places = places[1:]
	}
	page := places[0]
	if page.Offset < r.at || page.Offset >= r.end || page.FirstRowIndex > min(row, r.left) || page.FirstRowIndex < 0 {
		return 0, fmt.Errorf("no page begins at %d", page.Offset)
	}
	r.at, r.left, r.places = page.Offset, r.left-page.FirstRowIndex, places
	return page.FirstRowIndex, nil
}

// placed compares a page of n bytes with the offset index, if that is used. The checksum of a page is not one of its
// header, by which the rows of columns would come apart.
func (r *Reader) placed(off, n, left int64) error {
	if len(r.places) == 0 || r.leaf.rep > 0 { // the index counts rows, left are values
		return nil
	}
	p, rows := r.places[0], left-r.left
	r.places = r.places[1:]
	if p.Offset != off || int64(p.CompressedPageSize) != n ||
		len(r.places) > 0 && r.places[0].FirstRowIndex-p.FirstRowIndex != rows || (len(r.places) == 0) != (r.left == 0) {
		return fmt.Errorf("%s bytes of %s rows, which differs from the offset index", record.Number(n), record.Number(rows))
	}
	return nil
}
