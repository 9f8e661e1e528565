package columns

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"kvferry/record"
)

// elements makes the schema that a text describes: columns separated by commas, each with its repetition, its kind, its
// name, and for a group the number of its children and its annotation. The root has the children that are left.
func elements(t *testing.T, text string) (out []format.SchemaElement) {
	t.Helper()
	within := 0
	for i, line := range strings.Split(text, ",") {
		part := strings.Fields(line)
		e := format.SchemaElement{Name: part[2]}
		e.RepetitionType.Set(map[string]format.FieldRepetitionType{"required": format.Required, "optional": format.Optional,
			"repeated": format.Repeated}[part[0]])
		switch part[1] {
		case "group":
			n, err := strconv.Atoi(part[3])
			if err != nil {
				t.Fatal(err)
			}
			e.NumChildren.Set(int32(n))
			within += n
		case "text":
			e.Type.Set(format.ByteArray)
			e.ConvertedType.Set(deprecated.UTF8)
		case "bytes":
			e.Type.Set(format.ByteArray)
		case "decimal":
			e.Type.Set(format.ByteArray)
			e.ConvertedType.Set(deprecated.Decimal)
			e.Precision.Set(9)
			e.Scale.Set(1)
		case "int":
			e.Type.Set(format.Int32)
		case "fixed":
			e.Type.Set(format.FixedLenByteArray)
		default:
			t.Fatalf("column %d is %q", i, line)
		}
		switch part[len(part)-1] {
		case "LIST":
			e.ConvertedType.Set(deprecated.List)
		case "MAP":
			e.ConvertedType.Set(deprecated.Map)
		case "MAP_KEY_VALUE":
			e.ConvertedType.Set(deprecated.MapKeyValue)
		case "list":
			e.LogicalType.Value = new(format.ListType)
		case "map":
			e.LogicalType.Value = new(format.MapType)
		case "variant":
			e.LogicalType.Value = new(format.VariantType)
		}
		out = append(out, e)
	}
	root := format.SchemaElement{Name: "schema"}
	root.NumChildren.Set(int32(len(out) - within))
	return append([]format.SchemaElement{root}, out...)
}

// levelled is a column with a digit for each level. Values are separated by spaces.
type levelled struct{ defs, reps, values string }

// runs encodes each level as a run of one.
func runs(digits string) (out []byte) {
	for _, d := range digits {
		out = append(out, 2, byte(d-'0'))
	}
	return out
}

// nested is a footer whose pairs have keys and no values, as some writers leave them.
type nested struct {
	Version   int32                              `thrift:"1,required"`
	Schema    thrift.Slice[format.SchemaElement] `thrift:"2,required"`
	NumRows   int64                              `thrift:"3,required"`
	RowGroups thrift.Slice[format.RowGroup]      `thrift:"4,required"`
	Pairs     thrift.Slice[key]                  `thrift:"5,optional"`
}

type key struct {
	Key string `thrift:"1,required"`
}

// nestedFile returns a file with a row group, whose columns have one page each.
func nestedFile(t *testing.T, schema []format.SchemaElement, rows int, first bool, change func(f *nested),
	cols ...levelled) []byte {
	t.Helper()
	b := []byte(magic)
	g := format.RowGroup{NumRows: int64(rows)}
	for i := range schema {
		e := &schema[i]
		if i == 0 || !e.Type.Valid {
			continue
		}
		if len(g.Columns) == len(cols) {
			break
		}
		c := cols[len(g.Columns)]
		var data []byte
		for _, v := range strings.Fields(c.values) {
			if e.Type.V == format.Int32 {
				n, err := strconv.Atoi(v)
				if err != nil {
					t.Fatal(err)
				}
				data = binary.LittleEndian.AppendUint32(data, uint32(n))
				continue
			}
			data = append(binary.LittleEndian.AppendUint32(data, uint32(len(v))), v...)
		}
		reps, defs := runs(c.reps), runs(c.defs)
		n := max(len(c.defs), len(c.reps))
		if n == 0 {
			n = len(strings.Fields(c.values))
		}
		p := forged{values: int32(n), nulls: int32(n - len(strings.Fields(c.values))), first: first, data: data}
		if first {
			p.data = nil
			for _, l := range [][]byte{reps, defs} {
				if len(l) > 0 {
					p.data = append(binary.LittleEndian.AppendUint32(p.data, uint32(len(l))), l...)
				}
			}
			p.data = append(p.data, data...)
			p.header = func(h *format.PageHeader) {
				h.DataPageHeader.V.DefinitionLevelEncoding, h.DataPageHeader.V.RepetitionLevelEncoding = format.RLE, format.RLE
			}
		} else {
			p.levels = append(reps, defs...)
			p.header = func(h *format.PageHeader) {
				h.DataPageHeaderV2.V.DefinitionLevelsByteLength, h.DataPageHeaderV2.V.RepetitionLevelsByteLength = int32(
					len(defs)), int32(len(reps))
			}
		}
		off := int64(len(b))
		b = append(b, p.page(t)...)
		g.Columns = append(g.Columns, format.ColumnChunk{MetaData: format.ColumnMetaData{Type: e.Type.V, NumValues: int64(n),
			TotalCompressedSize: int64(len(b)) - off,
			DataPageOffset:      off}})
	}
	f := nested{Version: 1, Schema: schema, NumRows: int64(rows), RowGroups: []format.RowGroup{g}, Pairs: []key{{"k"}}}
	if change != nil {
		change(&f)
	}
	foot, err := thrift.Marshal(new(thrift.CompactProtocol), &f)
	if err != nil {
		t.Fatal(err)
	}
	return append(binary.LittleEndian.AppendUint32(append(b, foot...), uint32(len(foot))), magic...)
}

// TestNested reads nested columns as JSON, in both versions of pages; and refuses levels that do not make rows.
func TestNested(t *testing.T) {
	t.Parallel()
	const (
		list  = "optional group x 1 LIST, repeated group list 1, optional text element"
		twice = "optional group x 1 LIST, repeated group list 1, optional group element 1 list, repeated group list 1, required int element"
		pairs = "optional group x 1 MAP, repeated group key_value 2, required text key, optional int value"
		items = "repeated group x 2, required int n, optional text s"
	)
	for name, c := range map[string]struct {
		schema string
		rows   int
		cols   []levelled
		want   string // the rows
		fails  string // the error after them
	}{
		"list":           {list, 4, []levelled{{"32103", "01000", "a b"}}, `["a",null] [] - ["b"]`, ""},
		"logical list":   {strings.Replace(list, "LIST", "list", 1), 1, []levelled{{"33", "01", "a b"}}, `["a","b"]`, ""},
		"two levels":     {"required group x 1 LIST, repeated text array", 2, []levelled{{"110", "010", "a b"}}, `["a","b"] []`, ""},
		"tuple":          {"optional group x 1 list, repeated group x_tuple 1, required int n", 2, []levelled{{"220", "010", "1 -2"}}, `[{"n":1},{"n":-2}] -`, ""},
		"array":          {"optional group x 1 LIST, repeated group array 1, required int n", 1, []levelled{{"2", "0", "1"}}, `[{"n":1}]`, ""},
		"records":        {"optional group x 1 LIST, repeated group bag 2, required int n, optional text s", 1, []levelled{{"22", "01", "1 2"}, {"32", "01", "a"}}, `[{"n":1,"s":"a"},{"n":2,"s":null}]`, ""},
		"lists of lists": {twice, 3, []levelled{{"444231", "021100", "1 2 3"}}, `[[1,2],[3],null] [[]] []`, ""},
		"map":            {pairs, 3, []levelled{{"2210", "0100", `a b"`}, {"3210", "0100", "7"}}, `{"a":7,"b\"":null} {} -`, ""},
		"old map":        {strings.Replace(pairs, "MAP", "MAP_KEY_VALUE", 1), 1, []levelled{{"2", "0", `a`}, {"3", "0", "7"}}, `{"a":7}`, ""},
		"logical map":    {strings.Replace(pairs, "MAP", "map", 1), 1, []levelled{{"2", "0", `a`}, {"3", "0", "7"}}, `{"a":7}`, ""},
		"keys":           {"required group x 1 MAP, repeated group map 1, required int key", 2, []levelled{{"110", "010", "5 6"}}, `{"5":null,"6":null} {}`, ""},
		"group key": {"required group x 1 MAP, repeated group map 1, required group key 1, required int n", 1, []levelled{{"1", "0", "5"}},
			`{"map":[{"key":{"n":5}}]}`, ""},
		"three in a map": {"required group x 1 MAP, repeated group map 3, required int a, required int b, required int c", 1,
			[]levelled{{"1", "0", "5"}, {"1", "0", "6"}, {"1", "0", "7"}}, `{"map":[{"a":5,"b":6,"c":7}]}`, ""},
		"not a list":   {"required group x 1, repeated int n", 2, []levelled{{"110", "010", "5 6"}}, `{"n":[5,6]} {"n":[]}`, ""},
		"repeated":     {"repeated text x", 2, []levelled{{"110", "010", "a b"}}, `["a","b"] []`, ""},
		"items":        {items, 2, []levelled{{"110", "010", "1 2"}, {"210", "010", "a"}}, `[{"n":1,"s":"a"},{"n":2,"s":null}] []`, ""},
		"group":        {"optional group x 3, optional int n, required group none 0, required text s", 3, []levelled{{"210", "", "1"}, {"110", "", "a b"}}, `{"n":1,"s":"a"} {"n":null,"s":"b"} -`, ""},
		"required":     {"required group x 1, required group y 1, required int n", 2, []levelled{{"", "", "1 2"}}, `{"y":{"n":1}} {"y":{"n":2}}`, ""},
		"null again":   {list, 2, []levelled{{"03", "01", "a"}}, "", "its levels do not make rows"},
		"null after":   {list, 2, []levelled{{"31", "01", "a"}}, "", "its levels do not make rows"},
		"deeper":       {twice, 1, []levelled{{"24", "02", "1"}}, "", "its levels do not make rows"},
		"null key":     {strings.Replace(pairs, "required", "optional", 1), 1, []levelled{{"2", "0", ""}, {"3", "0", "7"}}, "", "its levels do not make rows"},
		"more rows":    {"required group x 2, repeated int n, required text s", 1, []levelled{{"11", "00", "1 2"}, {"", "", "a"}}, "", "column x.s: its levels do not make rows"},
		"high level":   {"repeated int x", 1, []levelled{{"1", "2", "1"}}, "", "level 2 of 1"},
		"few values":   {"repeated int x", 2, []levelled{{"1", "0", "1"}}, "", "1 values in 2 rows"},
		"rows of one":  {"optional int x", 2, []levelled{{"1", "", "1"}}, "", "1 values in 2 rows"},
		"long decimal": {"repeated decimal x", 1, []levelled{{"1", "0", strings.Repeat("x", 1<<16)}}, "", "column x: a decimal of 65,536 bytes"},
	} {
		for _, first := range []bool{false, true} {
			b := nestedFile(t, elements(t, c.schema), c.rows, first, nil, c.cols...)
			got, err := readOthers(b, "x")
			if c.fails != "" {
				var damage *record.CorruptError
				if !errors.As(err, &damage) || !strings.Contains(err.Error(), c.fails) {
					t.Errorf("%s, version 1 is %v: %q, %v, want %q", name, first, got, err, c.fails)
				}
				continue
			}
			if err != nil || strings.Join(got, " ") != c.want {
				t.Errorf("%s, version 1 is %v: %q, want %q: %v", name, first, got, c.want, err)
			}
		}
	}
}

// TestNestedDamage counts a value more than there are in each column of groups, lists and maps: the rows end in an error.
func TestNestedDamage(t *testing.T) {
	t.Parallel()
	const schema = "optional group x 4, required int n, optional group l 1 LIST, repeated group list 1, required int element, " +
		"optional group m 1 MAP, repeated group key_value 2, required text key, optional int value, required int z"
	cols := []levelled{{"11", "", "1 2"}, {"331", "010", "3 4"}, {"331", "010", "a b"}, {"431", "010", "5"}, {"11", "", "6 7"}}
	b := nestedFile(t, elements(t, schema), 2, false, nil, cols...)
	want := `{"n":1,"l":[3,4],"m":{"a":5,"b":null},"z":6} {"n":2,"l":null,"m":null,"z":7}`
	if got, err := readOthers(b, "x"); err != nil || strings.Join(got, " ") != want {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	for c := range cols {
		f, err := Open(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			t.Fatal(err)
		}
		l, err := f.Leaf("x")
		if err != nil {
			t.Fatal(err)
		}
		f.RowGroups[0].Columns[c].Meta.Values++ // a page is missing
		cells, err := f.Cells(0, l)
		rows := 0
		for ; err == nil; rows++ {
			err = cells.Next()
		}
		want := "1 rows are missing"
		if c == 0 || c == 4 {
			want = "3 values in 2 rows"
		}
		if rows > 2 || !strings.Contains(err.Error(), want) {
			t.Errorf("column %d: %d rows, %v, want %s", c, rows, err, want)
		}
	}
}

// TestNestedLevels: an element of a repeated group begins in all of its columns, and a column with its first row.
func TestNestedLevels(t *testing.T) {
	const group = "repeated group x 2, required int n, required text s"
	for name, c := range map[string]struct {
		schema string
		rows   int
		cols   []levelled
	}{
		"a column ends early":         {group, 1, []levelled{{"11", "01", "1 2"}, {"1", "0", "a"}}},
		"a column has another row":    {group, 2, []levelled{{"111", "010", "1 2 3"}, {"111", "001", "a b c"}}},
		"a column starts in an array": {"repeated int x", 2, []levelled{{"11", "10", "1 2"}}},
	} {
		b := nestedFile(t, elements(t, c.schema), c.rows, false, nil, c.cols...)
		if got, err := readOthers(b, "x"); err == nil || !strings.Contains(err.Error(), errLevels.Error()) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// TestRefusedSchemas: a schema that is no tree, or is too deep, is refused; so are columns that cannot be named or read.
func TestRefusedSchemas(t *testing.T) {
	t.Parallel()
	tree := func(text string) func(f *nested) {
		return func(f *nested) { f.Schema, f.RowGroups = elements(t, text), nil }
	}
	change := func(text string, change func(e []format.SchemaElement)) func(f *nested) {
		return func(f *nested) { tree(text)(f); change(f.Schema) }
	}
	deep := strings.Repeat("required group g 1, ", maxNested) + "required int n"
	for name, c := range map[string]struct {
		column string
		change func(f *nested)
		want   string // "": it is sound, and has no rows
	}{
		"no rows":       {"n", tree("required int n"), ""},
		"no schema":     {"n", func(f *nested) { f.Schema, f.RowGroups = nil, nil }, "footer: 0 columns"},
		"no children":   {"n", change("required int n", func(e []format.SchemaElement) { e[0].NumChildren.Set(0) }), "1 columns are not in the root"},
		"many children": {"n", change("required int n", func(e []format.SchemaElement) { e[0].NumChildren.Set(2) }), record.ErrShort.Error()},
		"less than 0":   {"n", change("required int n", func(e []format.SchemaElement) { e[0].NumChildren.Set(-1) }), record.ErrShort.Error()},
		"in a group":    {"n", change("required group g 1, required int n", func(e []format.SchemaElement) { e[1].NumChildren.Set(2) }), record.ErrShort.Error()},
		"taken":         {"n", change("required group g 1, required int n", func(e []format.SchemaElement) { e[0].NumChildren.Set(2) }), record.ErrShort.Error()},
		"deep":          {"n", tree(deep), "columns nested more than 64 deep"},
		"twice":         {"n", tree("required int n, required int n"), `two columns have the name "n": rename one`},
		"twice in g":    {"g.n", tree("required group g 2, required int n, required int n"), `two columns have the name "g.n": rename one`},
		"not in g":      {"g.m", tree("required group g 1, required int n"), `no column "g.m": it has g.n`},
		"in a list":     {"g.n", tree("repeated group g 1, required int n"), `column "g.n" is within a list: name the column "g", whose value is JSON`},
		"empty":         {"g", tree("required group g 0"), `column "g" is an empty group`},
		"variant":       {"g", tree("required group g 1 variant, required bytes n"), `column "g" is VARIANT`},
		"converted": {"n", change("required bytes n", func(e []format.SchemaElement) { e[1].ConvertedType.Set(deprecated.Interval) }),
			`column "n" is BYTE_ARRAY of converted type 21, for which there is no text: write it as a string`},
		"type": {"n", change("required int n", func(e []format.SchemaElement) { e[1].Type.Set(99) }), `for which there is no text: write it as a string`},
		"encrypted": {"n", func(f *nested) {
			f.RowGroups[0].Columns[0].EncryptedColumnMetadata = []byte{1}
		}, `column "n" is encrypted: let an engine that has the key write it without`},
		"keys": {"n", func(f *nested) {
			f.RowGroups[0].Columns[0].CryptoMetadata.Value = new(format.EncryptionWithFooterKey)
		}, `column "n" is encrypted: let an engine that has the key write it without`},
		"other file": {"n", func(f *nested) { f.RowGroups[0].Columns[0].FilePath = "a.parquet" }, `a column in the file "a.parquet"`},
		"other type": {"n", func(f *nested) { f.RowGroups[0].Columns[0].MetaData.Type = format.Double }, "pages of DOUBLE, want INT32"},
		"empty row group": {"n", func(f *nested) {
			f.NumRows, f.RowGroups = 0, []format.RowGroup{{Columns: f.RowGroups[0].Columns}}
			f.RowGroups[0].Columns[0].MetaData = format.ColumnMetaData{Type: format.Int32}
		}, ""},
	} {
		b := nestedFile(t, elements(t, "required int n"), 1, false, func(f *nested) { f.NumRows = 0; c.change(f) },
			levelled{values: "1"})
		got, err := readOthers(b, c.column)
		if failed := err != nil; failed != (c.want != "") || failed && !strings.Contains(err.Error(), c.want) || len(got) > 0 {
			t.Errorf("%s: %q, %v, want %q", name, got, err, c.want)
		}
	}
	b := nestedFile(t, elements(t, "required int n"), 1, false, nil, levelled{values: "1"})
	if got, err := readOthers(b, "n"); err != nil || !slices.Equal(got, []string{"1"}) {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := Open(bytes.NewReader(b[:len(b)-1]), int64(len(b))); !errors.Is(err, record.ErrShort) {
		t.Errorf("a file that became shorter: %v", err)
	}
}

// TestForgedParts reads pages that are no data, references without a dictionary's bytes, values without a size, and pages of zstd
// that become more or less than they are said to.
func TestForgedParts(t *testing.T) {
	t.Parallel()
	whole := writeOthers(t)
	doubles := make([]byte, 8*40)
	all := []byte{80, 1}
	typed := func(p format.PageType) func(h *format.PageHeader) {
		return func(h *format.PageHeader) { h.Type = p }
	}
	dict := forged{dictionary: true, data: []byte("\x01\x00\x00\x00x"),
		header: func(h *format.PageHeader) { h.DictionaryPageHeader.V.NumValues = 1 }}
	many := dict
	many.header = func(h *format.PageHeader) { h.DictionaryPageHeader.V.NumValues = 6 }
	zstd := func(raw int) []byte { return compressed(t, format.Zstd, make([]byte, raw)) }
	for name, c := range map[string]struct {
		column string
		codec  format.CompressionCodec
		pages  []forged
		want   string
	}{
		"index page":     {"double", 0, []forged{{data: []byte{1, 2}, header: typed(format.IndexPage)}, {values: 40, data: doubles}}, ""},
		"unknown page":   {"double", 0, []forged{{data: []byte{1, 2}, header: typed(9)}}, "PageType(?): written by no known server"},
		"no bytes":       {"text", 0, []forged{dict, {values: 40, encoding: format.RLEDictionary, levels: all}}, record.ErrShort.Error()},
		"many values":    {"text", 0, []forged{many}, "6 values in a dictionary of 5 bytes"},
		"large and less": {"double", format.Zstd, []forged{{values: 40, data: zstd(320), raw: 2 << 20}}, "320 bytes, want 2,097,152"},
		"large and more": {"double", format.Zstd, []forged{{values: 40, data: zstd(3 << 20), raw: 2 << 20}}, "2,097,153 bytes, want 2,097,152"},
		"large, no zstd": {"double", format.Zstd, []forged{{values: 40, data: doubles, raw: 2 << 20}}, "magic"},
		"size": {"double", 0, []forged{{values: 40, data: doubles, header: func(h *format.PageHeader) { h.CompressedPageSize = 1 << 20 }}},
			"1,048,576 bytes, 320 in all"},
	} {
		f, l := forgedOthers(t, whole, c.column, c.codec, c.pages...)
		if name == "index page" {
			f.RowGroups[0].Columns[l.from].Meta.Data = int64(len(whole)) // the index page is the first
		}
		if err := readColumn(f, l.from); (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	f, l := forgedOthers(t, whole, "fixed", 0, forged{values: 40, data: make([]byte, 120)})
	l.TypeLength.Set(0)
	if err := readColumn(f, l.from); err == nil || !strings.Contains(err.Error(), "values of 0 bytes") {
		t.Errorf("fixed values without a size: %v", err)
	}
	f, l = forgedOthers(t, whole, "text", 0, many,
		forged{values: 40, encoding: format.RLEDictionary, levels: all, data: []byte{1, 80, 0}})
	at := &f.RowGroups[0].Columns[l.from]
	var r Reader
	if err := errors.Join(r.Open(f, 0, l.from), r.SeekRow(1)); err == nil || !strings.Contains(err.Error(), "6 values in a dictionary of 5 bytes") {
		t.Errorf("to a row behind a dictionary: %v", err)
	}
	at.Index, at.IndexSize = f.end-2, 2 // the end of the last page
	if err := errors.Join(r.Open(f, 0, l.from), r.SeekRow(1)); err == nil || !strings.Contains(err.Error(), "offset index of text") {
		t.Errorf("an index of other bytes: %v", err)
	}
	at.Index, at.IndexSize = f.end, 9
	if err := errors.Join(r.Open(f, 0, l.from), r.SeekRow(1)); !errors.Is(err, record.ErrShort) ||
		!strings.Contains(err.Error(), "need 9 bytes, have 0") {
		t.Errorf("an index behind the file: %v", err)
	}
}

// TestSeekWithoutIndex moves to a row of a file that has no offset index, and to one behind the last.
func TestSeekWithoutIndex(t *testing.T) {
	t.Parallel()
	b := nestedFile(t, elements(t, "required int n"), 3, false, nil, levelled{values: "5 6 7"})
	f, err := Open(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	var r Reader
	if err := errors.Join(r.Open(f, 0, 0), r.SeekRow(2), r.More()); err != nil || r.Rows() != 1 {
		t.Fatalf("%d rows are left: %v", r.Rows(), err)
	}
	if i, ok := r.Next(); !ok || binary.LittleEndian.Uint32(r.Value(i)) != 7 {
		t.Errorf("row 2 is %v", r.Value(i))
	}
	if err := errors.Join(r.Open(f, 0, 0), r.SeekRow(4)); !errors.Is(err, io.EOF) {
		t.Errorf("row 4 of 3: %v", err)
	}
}

// TestCellValues reads integers and times of other programs as such.
func TestCellValues(t *testing.T) {
	t.Parallel()
	b := writeOthers(t)
	f, err := Open(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	cells := map[string]*Cells{}
	for _, name := range []string{"small", "stamp", "double"} {
		l, err := f.Leaf(name)
		if err != nil {
			t.Fatal(err)
		}
		if cells[name], err = f.Cells(0, l); err != nil {
			t.Fatal(err)
		}
	}
	for i := range int64(3) {
		for name, c := range cells {
			if err := c.Next(); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if n := cells["small"].Int(); n != -i {
			t.Errorf("row %d: %d", i, n)
		}
		if at := cells["stamp"].Time(); !at.Equal(time.UnixMilli(1893456000000 + i)) {
			t.Errorf("row %d: %s", i, at)
		}
		if n, exact, err := cells["double"].Number(); n != 1e300*float64(i) || !exact || err != nil {
			t.Errorf("row %d: %g, %v, %v", i, n, exact, err)
		}
	}
	for _, c := range cells {
		c.Close()
		if err := c.Next(); err != io.EOF {
			t.Errorf("a row after the end: %v", err)
		}
	}
}
