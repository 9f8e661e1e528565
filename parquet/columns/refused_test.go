package columns

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
	"github.com/zeebo/xxh3"

	"kvferry/record"
)

// TestCompressions reads files in every compression; each is smaller than the next one.
func TestCompressions(t *testing.T) {
	t.Parallel()
	last := 0
	for _, compression := range Compressions {
		tab := buildAs(t, 7, 3000, 1<<30, compression)
		if err := tab.readAll(t, tab.file, true); err != nil {
			t.Fatalf("%s: %v", compression, err)
		}
		if len(tab.file) <= last {
			t.Errorf("%s: %d bytes, the one before has %d", compression, len(tab.file), last)
		}
		last = len(tab.file)
	}
}

// TestDictionary reads integers and numbers from dictionaries, and columns with nulls in and between pending values.
func TestDictionary(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w := NewWriter(
		&out, &Options{Columns: []Column{{Name: "i", Kind: Integer, Coding: Repeats}, {Name: "f", Kind: Number, Coding: Repeats},
			{Name: "n", Kind: Integer, Optional: true}}, Limit: 1 << 30})
	null := func(i int) bool { return i >= 1000 && i < 1200 || i >= 1201 && i < 1601 }
	const rows = 1700
	for i := range rows {
		w.Int(0, int64(i%3)-1, 1)
		w.Float(1, float64(i%5)/2)
		switch i {
		case 1000:
			w.Null(2, 200)
		case 1201:
			w.Null(2, 400)
		}
		if !null(i) {
			w.Int(2, int64(i), 1)
		}
	}
	if _, err := w.Rows(rows); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.Close(); err != nil || w.Size() != int64(out.Len()) {
		t.Fatalf("%d bytes of %d: %v", w.Size(), out.Len(), err)
	}
	f, err := Open(bytes.NewReader(out.Bytes()), w.Size())
	if err != nil {
		t.Fatal(err)
	}
	var readers [3]Reader
	for c := range readers {
		if err := readers[c].Open(f, 0, c); err != nil {
			t.Fatal(err)
		}
	}
	ints, floats, nulls := &readers[0], &readers[1], &readers[2]
	ids := map[uint32]int64{}
	for i := range rows {
		if err := errors.Join(ints.More(), floats.More(), nulls.More()); err != nil {
			t.Fatal(err)
		}
		before := ints.Rows()
		a, _ := ints.Next()
		b, _ := floats.Next()
		c, ok := nulls.Next()
		if ints.Int(a) != int64(i%3)-1 || floats.Float(b) != float64(i%5)/2 || ok == null(i) || ok && nulls.Int(c) != int64(i) ||
			ints.Rows() != before-1 {
			t.Fatalf("row %d: %d, %g, %v", i, ints.Int(a), floats.Float(b), ok)
		}
		id, ok := ints.ID(a)
		if have, again := ids[id]; !ok || again && have != ints.Int(a) {
			t.Fatalf("row %d: %d in the dictionary, which was %d", i, id, have)
		}
		ids[id] = ints.Int(a)
		if _, ok := nulls.ID(c); ok {
			t.Fatalf("row %d has a dictionary", i)
		}
	}
	if len(ids) != 3 {
		t.Errorf("%d values in the dictionary", len(ids))
	}
}

// TestPanic: a panic of the library is an error.
func TestPanic(t *testing.T) {
	t.Parallel()
	if err := guard(func() error { panic("odd bytes") }); err == nil || err.Error() != "cannot be decoded: odd bytes" {
		t.Error(err)
	}
}

// errDisk is the error of a disk.
var errDisk = errors.New("disk failure")

// flaky fails after some reads or writes.
type flaky struct {
	io.ReaderAt
	io.Writer
	left int
}

func (f *flaky) fail() error {
	if f.left--; f.left < 0 {
		return errDisk
	}
	return nil
}

// ReadAt fails after some reads.
func (f *flaky) ReadAt(b []byte, off int64) (int, error) {
	if err := f.fail(); err != nil {
		return 0, err
	}
	return f.ReaderAt.ReadAt(b, off)
}

// Write fails after some writes.
func (f *flaky) Write(b []byte) (int, error) {
	if err := f.fail(); err != nil {
		return 0, err
	}
	return f.Writer.Write(b)
}

// reads calls read with a disk that fails after 0, 1, 2, … reads until there are enough.
func reads(t *testing.T, b []byte, read func(r io.ReaderAt) error) {
	t.Helper()
	for n := 0; ; n++ {
		switch err := read(&flaky{ReaderAt: bytes.NewReader(b), left: n}); {
		case err == nil && n > 3:
			return
		case !errors.Is(err, errDisk):
			t.Fatalf("the disk fails after %d reads: %v", n, err)
		}
	}
}

// TestDiskFailure: what a disk says is not lost, whichever read or write fails.
func TestDiskFailure(t *testing.T) {
	t.Parallel()
	tab := build(t, 3, 40, 1<<30)
	reads(t, tab.file, func(r io.ReaderAt) error {
		f, err := Open(r, int64(len(tab.file)))
		if err != nil {
			return err
		}
		for c := range allKinds {
			if _, err := f.AllNull(0, c); err != nil {
				return err
			}
			var r Reader
			if err := r.Open(f, 0, c); err != nil {
				return err
			}
			if err := r.SeekRow(1); err != nil {
				return err
			}
			if err := r.More(); err != nil {
				return err
			}
		}
		return CheckSum(r, tab.groups[0])
	})
	others := writeOthers(t)
	reads(t, others, func(r io.ReaderAt) error {
		f, err := Open(r, int64(len(others)))
		if err != nil {
			return err
		}
		l, err := f.Leaf("text")
		if err != nil {
			return err
		}
		c, err := f.Cells(0, l)
		if err != nil {
			return err
		}
		return c.Next()
	})
	for n := 0; ; n++ {
		w := NewWriter(&flaky{Writer: io.Discard, left: n}, &Options{Columns: allKinds[1:2], Limit: 1 << 10, Compression: "none"})
		var err error
		for i := 0; i < 10 && err == nil; i++ {
			w.Bytes(0, make([]byte, bufferBytes), 1)
			_, err = w.Rows(1)
		}
		if err == nil {
			_, _, err = w.Close()
		}
		if err == nil && n > 3 {
			break
		}
		if !errors.Is(err, errDisk) {
			t.Fatalf("the disk fails after %d writes: %v", n, err)
		}
	}
}

// TestSection compares sections of a file with their checksums.
func TestSection(t *testing.T) {
	t.Parallel()
	b := []byte("0123456789")
	s := Section{Off: 2, End: 8, Sum: xxh3.Hash(b[2:8])}
	if err := CheckSum(bytes.NewReader(b), s); err != nil {
		t.Error(err)
	}
	if err := CheckSum(bytes.NewReader(b[:7]), s); !errors.Is(err, record.ErrShort) {
		t.Error(err)
	}
	b[3]++
	var c *record.CorruptError
	if err := CheckSum(bytes.NewReader(b), s); !errors.As(err, &c) || c.Off != 2 || !strings.Contains(err.Error(), "checksum mismatch up to offset 8") {
		t.Error(err)
	}
	w := NewWriter(io.Discard, &Options{Columns: allKinds[:2], Limit: 1 << 20})
	w.Bytes(0, b, 1)
	if _, err := w.Rows(1); err != nil {
		t.Error(err)
	}
	if _, _, err := w.Close(); err == nil || err.Error() != "column 1 has 0 rows of 1" {
		t.Error(err)
	}
}

// TestThrift passes over a structure of every type; each part of it is too short.
func TestThrift(t *testing.T) {
	t.Parallel()
	b := append([]byte{0x08, 4, 2, 'a', 'b', 0x19, 0xf5, 16}, make([]byte, 16)...)
	b = append(append(b, 0x13, 7, 0x17), make([]byte, 8)...)
	b = append(b, 0x1c, 0x11, 0, 0)
	if n, err := checkStruct(append(b, 1, 2)); n != len(b) || err != nil {
		t.Errorf("%d bytes of %d: %v", n, len(b), err)
	}
	for n := range b {
		if _, err := checkStruct(b[:n]); !errors.Is(err, record.ErrShort) {
			t.Errorf("%d of %d bytes: %v", n, len(b), err)
		}
	}
}

// TestRefusedColumns: a column without a text is named with its type, and a file with many columns names some of them.
func TestRefusedColumns(t *testing.T) {
	t.Parallel()
	g := parquet.Group{"wide": parquet.Decimal(77, 78, parquet.FixedLenByteArrayType(40))}
	for i := range 25 {
		g[fmt.Sprintf("c%02d", i)] = parquet.String()
	}
	var out bytes.Buffer
	if err := parquet.NewGenericWriter[any](&out, parquet.NewSchema("schema", g)).Close(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"wide": "for which there is no text", "none": "c18, c19, …"} {
		_, err := readOthers(out.Bytes(), name)
		if err == nil || !strings.HasSuffix(strings.TrimSuffix(err.Error(), ": write it as a string"), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}

// forgedOthers returns a file of other programs whose column has the pages of a test in 40 rows.
func forgedOthers(t *testing.T, file []byte, name string, codec format.CompressionCodec, pages ...forged) (*File, *Leaf) {
	t.Helper()
	f, err := Open(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	l, err := f.Leaf(name)
	if err != nil {
		t.Fatal(err)
	}
	b := bytes.Clone(file)
	g := &f.RowGroups[0]
	m := &g.Columns[l.from].Meta
	m.Data, m.Dictionary = int64(len(b)), 0
	for i := range pages {
		if !pages[i].dictionary {
			m.Data = int64(len(b))
		}
		b = append(b, pages[i].page(t)...)
		if pages[i].dictionary {
			m.Dictionary = int64(len(file))
		}
	}
	m.Size, m.Codec, m.Values, g.NumRows = int64(len(b)-len(file)), codec, 40, 40
	f.r, f.end = bytes.NewReader(b), int64(len(b))
	return f, l
}

// compressed returns b in a codec.
func compressed(t *testing.T, codec format.CompressionCodec, b []byte) []byte {
	t.Helper()
	out, err := parquet.LookupCompressionCodec(codec).Encode(nil, b)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestForgedOthers reads pages of other programs whose counts and bytes do not agree.
func TestForgedOthers(t *testing.T) {
	t.Parallel()
	const rows = 40
	all, doubles := []byte{2 * rows, 1}, []byte{}
	for i := range rows {
		doubles = binary.LittleEndian.AppendUint64(doubles, math.Float64bits(float64(i)))
	}
	text := bytes.Repeat([]byte{1, 0, 0, 0, 'x'}, rows)
	type file struct {
		column string
		codec  format.CompressionCodec
		pages  []forged
	}
	one := func(column string, e format.Encoding, levels, data []byte, change ...func(p *forged)) file {
		p := forged{values: rows, encoding: e, levels: levels, data: data}
		for _, f := range change {
			f(&p)
		}
		return file{column: column, pages: []forged{p}}
	}
	double := func(change ...func(p *forged)) file { return one("double", format.Plain, nil, doubles, change...) }
	in := func(codec format.CompressionCodec, data []byte, raw int) file {
		f := double(func(p *forged) { p.data, p.raw = data, raw })
		f.codec = codec
		return f
	}
	v1 := func(p *forged) { p.first = true }
	set := func(f func(h *format.PageHeader)) func(p *forged) { return func(p *forged) { p.header = f } }
	dict := forged{dictionary: true, data: []byte("\x01\x00\x00\x00x"),
		header: func(h *format.PageHeader) { h.DictionaryPageHeader.V.NumValues = 1 }}
	ids := func(n byte) file {
		return file{"text", 0, []forged{dict, {values: rows, encoding: plainDictionary, levels: all, data: []byte{1, n * 2, 0}}}}
	}
	whole := writeOthers(t)
	for name, c := range map[string]struct {
		file file
		want string
	}{
		"plain":         {double(), ""},
		"version 1":     {double(v1), ""},
		"gzip":          {in(format.Gzip, compressed(t, format.Gzip, doubles), len(doubles)), ""},
		"booleans":      {one("flag", format.RLE, nil, []byte{2, 0, 0, 0, 2 * rows, 1}), ""},
		"text":          {one("text", format.Plain, all, text), ""},
		"ids":           {ids(rows), ""},
		"fewer ids":     {ids(rows - 1), record.ErrShort.Error()},
		"no dictionary": {one("text", format.RLEDictionary, all, []byte{1, 2 * rows, 0}), "no dictionary"},
		"fewer rows":    {double(func(p *forged) { p.values-- }), "1 rows are missing"},
		"fewer texts":   {one("text", format.Plain, all, text[5:]), record.ErrShort.Error()},
		"fewer values":  {double(func(p *forged) { p.data = doubles[8:] }), record.ErrShort.Error()},
		"fewer levels":  {one("text", format.Plain, []byte{2*rows - 2, 1}, text), record.ErrShort.Error()},
		"more levels":   {one("text", format.Plain, []byte{0xfe, 0x7f, 1}, text), "a run of 8,191 values, 40 are left"},
		"more rows":     {double(func(p *forged) { p.values++ }), "41 values, 40 are left"},
		"more rows 1":   {double(v1, func(p *forged) { p.values++ }), "41 values, 40 are left"},
		"level coding":  {one("text", format.Plain, nil, text, v1, set(func(h *format.PageHeader) { h.DataPageHeader.V.DefinitionLevelEncoding = format.BitPacked })), "BIT_PACKED"},
		"cut levels": {one("text", format.Plain, nil, []byte{9, 0, 0, 0, 80}, v1, set(func(h *format.PageHeader) {
			h.DataPageHeader.V.DefinitionLevelEncoding = format.RLE
		})), record.ErrShort.Error()},
		"lists":         {double(set(func(h *format.PageHeader) { h.DataPageHeaderV2.V.RepetitionLevelsByteLength = 1 })), record.ErrShort.Error()},
		"nulls":         {double(func(p *forged) { p.nulls = rows + 1 }), "0 nulls, want 41"},
		"checksum":      {double(set(func(h *format.PageHeader) { h.CRC = 1 })), "checksum mismatch in a page of 320 bytes"},
		"codec":         {in(format.Lz4, doubles, len(doubles)), "LZ4"},
		"no gzip":       {in(format.Gzip, doubles, len(doubles)), "gzip: invalid header"},
		"long gzip":     {in(format.Gzip, compressed(t, format.Gzip, append(doubles, 1)), len(doubles)), "321 bytes, want 320"},
		"long snappy":   {in(format.Snappy, binary.AppendUvarint(nil, 1<<30), len(doubles)), "hold 1,073,741,824, want 320"},
		"long zstd":     {in(format.Zstd, compressed(t, format.Zstd, append(doubles, 1)), len(doubles)), "more than 320 bytes"},
		"bomb":          {in(format.Brotli, []byte{1}, maxPage+1), "1 bytes, decompressed 67,108,865"},
		"plain size":    {double(func(p *forged) { p.raw = 321 }), "320 bytes, decompressed 321"},
		"plain size 1":  {double(v1, func(p *forged) { p.raw = 321 }), "320 bytes, decompressed 321"},
		"coding":        {one("text", format.DeltaBinaryPacked, all, text), "DELTA_BINARY_PACKED of BYTE_ARRAY"},
		"booleans' run": {one("flag", format.RLE, nil, []byte{3, 0, 0, 0, 0xfe, 0x7f, 1}), "a run of 8,191 values, 40 are left"},
	} {
		f, l := forgedOthers(t, whole, c.file.column, c.file.codec, c.file.pages...)
		rows := 0
		cells, err := f.Cells(0, l)
		for ; err == nil; rows++ {
			err = cells.Next()
		}
		var damage *record.CorruptError
		sound := err == io.EOF
		if sound != (c.want == "") || sound && rows != 41 ||
			!sound && (rows > 1 && name != "fewer rows" || !errors.As(err, &damage) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %d rows, %v, want %q", name, rows-1, err, c.want)
		}
	}
}

// TestForgedSizes: a page becomes as many bytes as its header says, and no more are allocated.
func TestForgedSizes(t *testing.T) {
	t.Parallel()
	raw := make([]byte, 320)
	long := compressed(t, format.Zstd, make([]byte, 321))
	for name, c := range map[string]struct {
		codec format.CompressionCodec
		data  []byte
		raw   int
		want  string
	}{
		"plain":      {format.Uncompressed, raw, 321, "320 bytes, decompressed 321"},
		"gzip":       {format.Gzip, raw, 320, "invalid header"},
		"snappy":     {format.Snappy, compressed(t, format.Snappy, raw), 320, ""},
		"snappy too": {format.Snappy, compressed(t, format.Snappy, raw), 321, "hold 320, want 321"},
		"zstd":       {format.Zstd, long, 320, "more than 320 bytes"},
		"no zstd":    {format.Zstd, raw, 320, "magic"},
	} {
		f, l := forgedOthers(t, writeOthers(t), "double", c.codec, forged{values: 40, data: c.data, raw: c.raw})
		if err := readColumn(f, l.from); (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
