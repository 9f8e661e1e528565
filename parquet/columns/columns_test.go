package columns

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"kvferry/record"
)

// allKinds has a column of every kind and coding.
var allKinds = []Column{
	{Name: "runs", Kind: UTF8, Coding: Repeats},
	{Name: "unique", Kind: Binary},
	{Name: "any", Kind: Binary, Coding: Repeats, Optional: true},
	{Name: "count", Kind: Integer, Coding: Counted, Optional: true},
	{Name: "time", Kind: Timestamp, Optional: true},
	{Name: "score", Kind: Number, Optional: true},
	{Name: "none", Kind: UTF8, Coding: Repeats, Optional: true},
	{Name: "text", Kind: UTF8, Optional: true},
}

// cell is a value of a row: text, or the number in bits; null if text is "-".
type cell struct {
	text string
	num  int64
}

// table is a file with the values that were written.
type table struct {
	file   []byte
	rows   [][]cell
	groups []Section
}

// build writes rows of random values with many shapes: runs, nulls, values that repeat, long ones and edges.
func build(t testing.TB, seed uint64, n int, limit int64) *table {
	t.Helper()
	return buildAs(t, seed, n, limit, "")
}

func buildAs(t testing.TB, seed uint64, n int, limit int64, compression string) *table {
	t.Helper()
	rnd := rand.New(rand.NewPCG(seed, 1))
	var out bytes.Buffer
	w := NewWriter(&out, &Options{Columns: allKinds, Sorted: []string{"runs"}, Creator: "test",
		Pairs: map[string]string{"a": "b"}, Limit: limit,
		Compression: compression})
	tab := &table{}
	for i := 0; i < n; {
		run := min(1+rnd.IntN(4)*rnd.IntN(40), n-i)
		key := fmt.Sprintf("key%06d", i)
		w.Bytes(0, []byte(key), run)
		w.Null(6, run)
		for range run {
			row := make([]cell, len(allKinds))
			row[0], row[6] = cell{text: key}, cell{text: "-"}
			for c := range allKinds {
				if c != 0 && c != 6 {
					row[c] = writeCell(w, rnd, c, i)
				}
			}
			tab.rows = append(tab.rows, row)
			i++
		}
		if _, err := w.Rows(run); err != nil {
			t.Fatal(err)
		}
	}
	groups, _, err := w.Close()
	if err != nil {
		t.Fatal(err)
	}
	tab.file, tab.groups = out.Bytes(), groups
	return tab
}

// writeCell writes a random value of a column.
func writeCell(w *Writer, rnd *rand.Rand, c, i int) (out cell) {
	edges := []int64{0, 1, -1, math.MaxInt64, math.MinInt64, 1 << 40}
	if allKinds[c].Optional && rnd.IntN(3) == 0 && i/500%3 > 0 {
		w.Null(c, 1)
		return cell{text: "-"}
	}
	switch allKinds[c].Kind {
	case Integer, Timestamp:
		out.num = int64(i)
		if c == 4 || rnd.IntN(100) == 0 {
			out.num = edges[rnd.IntN(len(edges))] + int64(i%2)
		}
		w.Int(c, out.num, 1)
	case Number:
		f := []float64{0, math.Copysign(0, -1), 1.5, math.Inf(1), math.NaN(), -float64(i)}[rnd.IntN(6)]
		out.num = int64(math.Float64bits(f))
		w.Float(c, f)
	default:
		out.text = fmt.Sprintf("%s%d", strings.Repeat("v", rnd.IntN(20)), rnd.IntN(1+i/(1+c*3)))
		switch rnd.IntN(300) {
		case 0:
			out.text = ""
		case 1:
			out.text = strings.Repeat("é", 700+rnd.IntN(400))
		case 2:
			out.text = strings.Repeat("long", pendingBytes/4)
		}
		w.Bytes(c, []byte(out.text), 1)
	}
	return out
}

// readAll reads the file and compares it with the rows if compare is set.
func (tab *table) readAll(t testing.TB, b []byte, compare bool) error {
	t.Helper()
	f, err := Open(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return err
	}
	if err := f.Have(allKinds); err != nil {
		return err
	}
	at := 0
	for g, group := range f.Groups() {
		for c := range allKinds {
			null, err := f.AllNull(g, c)
			if err != nil {
				return err
			}
			if compare && null != (c == 6) {
				t.Errorf("column %d is null: %v", c, null)
			}
			var r Reader
			if err := r.Open(f, g, c); err != nil {
				return err
			}
			rows, err := tab.readColumn(t, &r, c, at, compare)
			r.Close()
			if err != nil {
				return err
			}
			if compare && int64(rows) != group.Rows {
				t.Fatalf("column %d has %d rows of %d", c, rows, group.Rows)
			}
		}
		at += int(group.Rows)
	}
	return nil
}

// readColumn reads a column of a row group and returns its rows.
func (tab *table) readColumn(t testing.TB, r *Reader, c, at int, compare bool) (n int, err error) {
	for {
		if err := r.More(); err == io.EOF {
			return n, nil
		} else if err != nil {
			return n, err
		}
		got := cellOf(r, c)
		if compare && got != tab.rows[at+n][c] {
			t.Fatalf("row %d, column %s: %v, want %v", at+n, allKinds[c].Name, got, tab.rows[at+n][c])
		}
		n++
	}
}

func cellOf(r *Reader, c int) cell {
	i, ok := r.Next()
	if !ok {
		return cell{text: "-"}
	}
	switch allKinds[c].Kind {
	case Integer, Timestamp:
		return cell{num: r.Int(i)}
	case Number:
		return cell{num: int64(math.Float64bits(r.Float(i)))}
	}
	return cell{text: string(r.Value(i))}
}

// TestRoundTrip reads back what was written, in row groups of several sizes, and finds rows by their number.
func TestRoundTrip(t *testing.T) {
	for _, limit := range []int64{1 << 10, 100 << 10, 1 << 30} {
		tab := build(t, 7, 9000, limit)
		if err := tab.readAll(t, tab.file, true); err != nil {
			t.Fatal(err)
		}
		f, err := Open(bytes.NewReader(tab.file), int64(len(tab.file)))
		if err != nil {
			t.Fatal(err)
		}
		whole, err := parquet.OpenFile(bytes.NewReader(tab.file), int64(len(tab.file)))
		if err != nil {
			t.Fatal(err)
		}
		m := whole.Metadata()
		v, _ := whole.Lookup("a")
		if f.NumRows != int64(len(tab.rows)) || v != "b" || m.CreatedBy != "test" ||
			m.RowGroups[0].SortingColumns[0].ColumnIdx != 0 {
			t.Errorf("%+v", m.KeyValueMetadata)
		}
		if groups := len(m.RowGroups); (limit == 1<<30) != (groups == 1) || groups != len(tab.groups) {
			t.Errorf("%d row groups with a limit of %d", groups, limit)
		}
		for i, g := range tab.groups {
			if err := f.CheckSum(g); err != nil || f.Groups()[i].End != g.End {
				t.Errorf("row group %d: %v", i, err)
			}
		}
		seek(t, tab, f)
	}
}

// seek looks for rows of the first row group.
func seek(t *testing.T, tab *table, f *File) {
	t.Helper()
	rows := f.Groups()[0].Rows
	for c := range allKinds {
		var r Reader
		for row := int64(0); row < rows; row += 1 + rows/7 {
			if err := r.Open(f, 0, c); err != nil {
				t.Fatal(err)
			}
			if err := r.SeekRow(row); err != nil {
				t.Fatalf("column %d, row %d: %v", c, row, err)
			}
			if err := r.More(); err != nil {
				t.Fatalf("column %d, row %d: %v", c, row, err)
			}
			if got := cellOf(&r, c); got != tab.rows[row][c] {
				t.Errorf("column %d, row %d: %v, want %v", c, row, got, tab.rows[row][c])
			}
		}
		if err := r.Open(f, 0, c); err != nil {
			t.Fatal(err)
		}
		if err := r.SeekRow(rows); err != nil || r.More() != io.EOF {
			t.Errorf("a row beyond the last: %v", err)
		}
		r.Close()
	}
}

// TestBounds checks the bounds of pages: they enclose all values, are short, and text stays text when it is cut.
func TestBounds(t *testing.T) {
	long := strings.Repeat("é", 60)
	for _, c := range []struct {
		kind      Kind
		values    []string
		low, high string
	}{
		{Binary, []string{"b", "a", "c"}, "a", "c"},
		{Binary, []string{long}, long[:64], long[:63] + "\xaa"},
		{UTF8, []string{"x" + long}, "x" + long[:62], "x" + long[:60] + "ê"},
		{Binary, []string{strings.Repeat("\xff", 65)}, strings.Repeat("\xff", 64), strings.Repeat("\xff", 65)},
		{Binary, []string{strings.Repeat("\xff", 70) + "a" + long}, strings.Repeat("\xff", 64), strings.Repeat("\xff", 70) + "a" + long[:56] + "\xc4"},
		{UTF8, []string{strings.Repeat("\U0010ffff", 17)}, strings.Repeat("\U0010ffff", 16), strings.Repeat("\U0010ffff", 17)},
		{UTF8, []string{strings.Repeat("\ud7ff", 30)}, strings.Repeat("\ud7ff", 21), strings.Repeat("\ud7ff", 20) + "\ue000"},
	} {
		column := Column{Name: "c", Kind: c.kind}
		b := column.node("").Type().NewColumnBuffer(0, 1)
		for _, v := range c.values {
			if _, err := b.WriteValues([]parquet.Value{parquet.ByteArrayValue([]byte(v))}); err != nil {
				t.Fatal(err)
			}
		}
		low, high, ok := b.Page().Bounds()
		if !ok || string(low.ByteArray()) != c.low || string(high.ByteArray()) != c.high {
			t.Errorf("%q: %q to %q, %v", c.values, low.ByteArray(), high.ByteArray(), ok)
		}
	}
	b := (&Column{Kind: Binary}).node("").Type().NewColumnBuffer(0, 1)
	if _, _, ok := b.Page().Bounds(); ok {
		t.Error("a page without values has bounds")
	}
}

// TestDamage reads files that are cut and changed, without a look at their checksums: there is an error or not, but no
// panic, and no more memory than the file is worth.
func TestDamage(t *testing.T) {
	tab := build(t, 3, 40, 1<<30)
	for n := 0; n < len(tab.file); n += 7 {
		if err := tab.readAll(t, tab.file[:n], false); err == nil {
			t.Fatalf("%d of %d bytes are enough", n, len(tab.file))
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	reads, errs := 0, 0
	for i := 0; i < len(tab.file); i += 2 {
		b := bytes.Clone(tab.file)
		b[i] ^= []byte{1, 0x10, 0x80}[i%3]
		reads++
		if err := tab.readAll(t, b, false); err != nil {
			errs++
		}
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / uint64(reads); errs < reads/3 || each > 4<<20 {
		t.Errorf("%d errors in %d reads of %d bytes each", errs, reads, each)
	}
}

// TestLies checks numbers in headers that ask for more than the file holds.
func TestLies(t *testing.T) {
	lists := func(n int) []byte { return binary.AppendUvarint([]byte{0x29, 0xfc}, uint64(n)) }
	file := func(footer []byte) []byte {
		b := append([]byte("PAR1"), footer...)
		return append(binary.LittleEndian.AppendUint32(b, uint32(len(footer))), "PAR1"...)
	}
	deep := bytes.Repeat([]byte{0x1c}, 100)
	for name, b := range map[string][]byte{
		"short":     []byte("PAR1PAR1"),
		"magic":     []byte("PAR1    0000PAR2"),
		"encrypted": append(file(nil)[:8], "PARE"...),
		"length":    append(binary.LittleEndian.AppendUint32([]byte("PAR1"), 1<<30), "PAR1"...),
		"list":      file(append(lists(1<<31-1), 0)),
		"deep":      file(deep),
		"map":       file([]byte{0x1b, 0, 0}),
		"cut":       file([]byte{0x15}),
		"text":      file(append(binary.AppendUvarint([]byte{0x18}, 1<<40), 0)),
		"trailing":  file([]byte{0, 0}),
		"empty":     file([]byte{0}),
		"numbers":   file(append([]byte{0x15}, bytes.Repeat([]byte{0xff}, 11)...)),
		"nested":    file(append(append(lists(100), bytes.Repeat([]byte{0x55, 2, 0}, 100)...), 0)),
	} {
		if f, err := Open(bytes.NewReader(b), int64(len(b))); err == nil {
			t.Errorf("%s: %v", name, f.footer)
		}
	}
	tab := build(t, 3, 40, 1<<30)
	f, err := Open(bytes.NewReader(tab.file), int64(len(tab.file)))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Have(allKinds[:2]); !record.IsNewer(err) {
		t.Error(err)
	}
	other := append([]Column(nil), allKinds...)
	other[2].Optional = false
	if err := f.Have(other); !record.IsNewer(err) {
		t.Error(err)
	}
	for name, change := range map[string]func(){
		"rows":  func() { f.RowGroups[0].NumRows++ },
		"codec": func() { f.RowGroups[0].Columns[1].Meta.Codec = format.Lz4 },
		"size":  func() { f.RowGroups[0].Columns[1].Meta.Size -= 200 },
	} {
		group := f.RowGroups[0]
		group.Columns = slices.Clone(group.Columns)
		change()
		if readColumn(f, 1) == nil {
			t.Error(name)
		}
		f.RowGroups[0] = group
	}
}

// readColumn reads a column of the first row group.
func readColumn(f *File, c int) (err error) {
	var r Reader
	for err = r.Open(f, 0, c); err == nil; r.next = r.rows {
		err = r.More()
	}
	if err == io.EOF {
		err = nil
	}
	return err
}

// forged is a page of 40 rows of a column, whose counts and bytes are what a test says.
type forged struct {
	leaf         int
	values       int32
	nulls        int32
	encoding     format.Encoding
	levels, data []byte
	codec        format.CompressionCodec
	raw          int // bytes of data; 0: as many as there are
	dictionary   bool
	first        bool                       // of version 1
	header       func(h *format.PageHeader) // changes it
}

// page returns the bytes of the page.
func (p *forged) page(t *testing.T) []byte {
	t.Helper()
	h := format.PageHeader{Type: format.DataPageV2, CompressedPageSize: int32(len(p.levels) + len(p.data)),
		UncompressedPageSize: int32(len(p.levels) + max(p.raw, len(p.data)))}
	switch {
	case p.dictionary:
		h.Type = format.DictionaryPage
		h.DictionaryPageHeader.Valid, h.DictionaryPageHeader.V = true, format.DictionaryPageHeader{Encoding: p.encoding}
	case p.first:
		h.Type = format.DataPage
		h.DataPageHeader.Valid, h.DataPageHeader.V = true, format.DataPageHeader{NumValues: p.values, Encoding: p.encoding}
	default:
		h.DataPageHeaderV2.Valid = true
		h.DataPageHeaderV2.V = format.DataPageHeaderV2{NumValues: p.values, NumNulls: p.nulls, NumRows: p.values,
			Encoding:                   p.encoding,
			DefinitionLevelsByteLength: int32(len(p.levels))}
	}
	if p.header != nil {
		p.header(&h)
	}
	b, err := thrift.Marshal(new(thrift.CompactProtocol), &h)
	if err != nil {
		t.Fatal(err)
	}
	return append(append(b, p.levels...), p.data...)
}

// TestForgedPages checks counts within pages: each is refused before anything is allocated by it.
func TestForgedPages(t *testing.T) {
	uv := binary.AppendUvarint
	all := []byte{80, 1} // 40 rows with values
	packed := []byte{11, 255, 255, 255, 255, 255}
	x := bytes.Repeat([]byte{1}, 320)
	frame, err := encode(nil, x, false)
	if err != nil {
		t.Fatal(err)
	}
	sound := func(e format.Encoding, leaf int, data ...byte) forged {
		return forged{leaf: leaf, values: 40, encoding: e, levels: all, data: data}
	}
	change := func(p forged, f func(p *forged)) forged { f(&p); return p }
	ids := sound(format.RLEDictionary, 2, 1, 80, 0)
	delta := sound(format.DeltaBinaryPacked, 3, append(uv(uv([]byte{128, 1}, 4), 40), 0, 0, 0, 0, 0, 0)...)
	zstd := change(sound(format.Plain, 4, frame...), func(p *forged) { p.codec, p.raw = format.Zstd, len(x) })
	for name, c := range map[string]struct {
		page forged
		want string
	}{
		"ids":        {ids, ""},
		"packed":     {change(ids, func(p *forged) { p.levels, p.data = packed, append([]byte{1}, packed...) }), ""},
		"delta":      {delta, ""},
		"plain":      {sound(format.Plain, 4, x...), ""},
		"frame":      {zstd, ""},
		"levels":     {change(ids, func(p *forged) { p.levels = append(uv(nil, 1<<31), 1) }), "a run of 1,073,741,824 values, 40 are left"},
		"two levels": {change(ids, func(p *forged) { p.levels = []byte{80, 1, 2, 1} }), ""},
		"no levels":  {change(ids, func(p *forged) { p.levels = nil }), record.ErrShort.Error()},
		"many packs": {change(ids, func(p *forged) { p.data = append([]byte{1}, uv(nil, 1<<32|1)...) }), "a run of "},
		"many ids":   {change(ids, func(p *forged) { p.data = append(uv([]byte{1}, 1<<32), 0) }), "a run of 2,147,483,648 values"},
		"wide ids":   {change(ids, func(p *forged) { p.data = []byte{33, 80, 0} }), "33 bits"},
		"short ids":  {change(ids, func(p *forged) { p.data = []byte{1, 11, 0} }), record.ErrShort.Error()},
		"no run":     {change(ids, func(p *forged) { p.data = []byte{1, 0x80} }), record.ErrShort.Error()},
		"many": {change(delta, func(p *forged) {
			p.data = append(uv(uv([]byte{128, 1}, 4), 1<<30), 0, 0)
		}), "1,073,741,824 differences of 40 values"},
		"short":      {change(delta, func(p *forged) { p.data = []byte{128} }), record.ErrShort.Error()},
		"text":       {change(delta, func(p *forged) { p.leaf = 2 }), "DELTA_BINARY_PACKED of BYTE_ARRAY"},
		"nulls":      {change(ids, func(p *forged) { p.nulls = -1 << 31 }), "0 nulls, want -2,147,483,648"},
		"values":     {change(ids, func(p *forged) { p.values = 41 }), "41 values, 40 are left"},
		"encoding":   {sound(format.DeltaLengthByteArray, 3, 0), "DELTA_LENGTH_BYTE_ARRAY of INT64"},
		"dictionary": {change(ids, func(p *forged) { p.dictionary = true }), "RLE_DICTIONARY"},
		"level":      {change(ids, func(p *forged) { p.levels = []byte{80, 2} }), "level 2 of 1"},
		"no such id": {change(ids, func(p *forged) { p.data = []byte{2, 80, 2} }), "value 2 of a dictionary of 2"},
		"frames":     {change(zstd, func(p *forged) { p.data = append(bytes.Clone(frame), frame...) }), "more than 320 bytes"},
		"half":       {change(zstd, func(p *forged) { p.data = frame[:len(frame)-2] }), ""},
	} {
		tab := build(t, 3, 40, 1<<30)
		dict := forged{dictionary: true, data: []byte("\x01\x00\x00\x00x\x00\x00\x00\x00"),
			header: func(h *format.PageHeader) { h.DictionaryPageHeader.V.NumValues = 2 }}
		b := append(bytes.Clone(tab.file), dict.page(t)...)
		if c.page.encoding != format.RLEDictionary {
			b = b[:len(tab.file)]
		}
		b = append(b, c.page.page(t)...)
		f, err := Open(bytes.NewReader(tab.file), int64(len(tab.file)))
		if err != nil {
			t.Fatal(err)
		}
		f.r = bytes.NewReader(b)
		m := &f.RowGroups[0].Columns[c.page.leaf].Meta
		off := int64(len(tab.file))
		f.end = int64(len(b))
		m.Data, m.Dictionary, m.Size, m.Codec = off, 0, f.end-off, c.page.codec
		err = readColumn(f, c.page.leaf)
		if failed := err != nil; failed != (c.want != "" || name == "half") || failed && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestForgedIndex checks that an offset index leads to pages only.
func TestForgedIndex(t *testing.T) {
	tab := build(t, 3, 40, 1<<30)
	f, err := Open(bytes.NewReader(tab.file), int64(len(tab.file)))
	if err != nil {
		t.Fatal(err)
	}
	c := &f.RowGroups[0].Columns[4]
	for _, off := range []int64{c.Meta.Data - 1, c.Meta.Data + c.Meta.Size, -1, 1 << 50} {
		b, err := thrift.Marshal(new(thrift.CompactProtocol),
			&format.OffsetIndex{PageLocations: []format.PageLocation{{Offset: off, FirstRowIndex: 1}}})
		if err != nil {
			t.Fatal(err)
		}
		f.r = bytes.NewReader(append(bytes.Clone(tab.file), b...))
		c.Index, c.IndexSize = int64(len(tab.file)), int32(len(b))
		var r Reader
		if err := errors.Join(r.Open(f, 0, 4), r.SeekRow(1)); err == nil || !strings.Contains(err.Error(), "no page begins at") {
			t.Error(err)
		}
	}
}

// TestLargePage writes values that compress to very little: what they become is counted before it is allocated.
func TestLargePage(t *testing.T) {
	var out bytes.Buffer
	w := NewWriter(&out, &Options{Columns: allKinds[1:2], Limit: 1 << 20})
	large := make([]byte, 16<<20)
	w.Bytes(0, large, 1)
	if _, err := w.Rows(1); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	b := out.Bytes()
	f, err := Open(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	var r Reader
	if err := errors.Join(r.Open(f, 0, 0), r.More()); err != nil || len(r.Value(0)) != len(large) || len(b) > 64<<10 {
		t.Errorf("%v, a file of %d bytes", err, len(b))
	}
}

func FuzzOpen(f *testing.F) {
	f.Add(build(f, 3, 40, 1<<10).file)
	f.Fuzz(func(t *testing.T, b []byte) {
		_ = (&table{}).readAll(t, b, false)
	})
}
