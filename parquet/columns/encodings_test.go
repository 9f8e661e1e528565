package columns

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/encoding"

	"kvferry/internal/testkit/redistest"
)

// lengths are those at which packs, blocks and pages end, begin and are missing.
var lengths = []int{0, 1, 7, 8, 9, 2049}

// encoded is a column of a type in an encoding.
type encoded struct {
	name  string
	node  parquet.Node
	value func(v uint64) (parquet.Value, string) // and its text
	duck  string                                 // the text in DuckDB, in which x is the column; "": it does not read that
}

func intText(v uint64) string { return strconv.FormatInt(int64(v), 10) }

// encodings returns a column of every type in every encoding that the format allows for it.
func encodings() (out []encoded) {
	add := func(name string, n parquet.Node, duck string, value func(v uint64) (parquet.Value, string),
		encodings ...encoding.Encoding) {
		for i, e := range encodings {
			out = append(out, encoded{fmt.Sprintf("%s%d", name, i), parquet.Optional(parquet.Encoded(n, e)), value, duck})
		}
	}
	dict, plain, split := &parquet.RLEDictionary, &parquet.Plain, &parquet.ByteStreamSplit
	delta, sized, folded := &parquet.DeltaBinaryPacked, &parquet.DeltaLengthByteArray, &parquet.DeltaByteArray
	bits := func(v uint64, n int) []byte { return binary.LittleEndian.AppendUint64(nil, v)[:n] }
	flag := func(v uint64) (parquet.Value, string) {
		return parquet.BooleanValue(v&1 == 1), strconv.FormatBool(v&1 == 1)
	}
	add("bool", parquet.Leaf(parquet.BooleanType), "x", flag, plain)
	add("boolrun", parquet.Leaf(parquet.BooleanType), "", flag, &parquet.RLE) // its trues are 255, which DuckDB refuses
	add("int32", parquet.Leaf(parquet.Int32Type), "x", func(v uint64) (parquet.Value, string) {
		return parquet.Int32Value(int32(v)), intText(uint64(int32(v)))
	}, plain, dict, delta, split)
	add("int64", parquet.Leaf(parquet.Int64Type), "x", func(v uint64) (parquet.Value, string) {
		return parquet.Int64Value(int64(v)), intText(v)
	}, plain, dict, delta, split)
	add("uint32", parquet.Uint(32), "x", func(v uint64) (parquet.Value, string) {
		return parquet.Int32Value(int32(v)), strconv.FormatUint(uint64(uint32(v)), 10)
	}, plain, dict, delta)
	add("uint64", parquet.Uint(64), "x", func(v uint64) (parquet.Value, string) {
		return parquet.Int64Value(int64(v)), strconv.FormatUint(v, 10)
	}, plain, dict, delta)
	add("float", parquet.Leaf(parquet.FloatType), "", func(v uint64) (parquet.Value, string) {
		f := float32(int32(v)) / 3
		return parquet.FloatValue(f), strconv.FormatFloat(float64(f), 'g', -1, 32)
	}, plain, dict, split)
	add("double", parquet.Leaf(parquet.DoubleType), "", func(v uint64) (parquet.Value, string) {
		f := float64(int64(v)) / 3
		return parquet.DoubleValue(f), strconv.FormatFloat(f, 'g', -1, 64)
	}, plain, dict, split)
	add("int96", parquet.Leaf(parquet.Int96Type), "strftime(x, '%Y-%m-%dT%H:%M:%SZ')", func(v uint64) (parquet.Value, string) {
		return parquet.Int96Value(deprecated.Int96{0, 0, uint32(2440588 + v%30)}), fmt.Sprintf("1970-01-%02dT00:00:00Z", 1+v%30)
	}, plain, dict)
	text := func(v uint64) (parquet.Value, string) {
		s := ""
		if v%3 > 0 {
			s = fmt.Sprintf("%s%d", strings.Repeat("ab", int(v%7)), v%1000)
		}
		return parquet.ByteArrayValue([]byte(s)), s
	}
	add("text", parquet.String(), "x", text, plain, dict, sized, folded)
	add("bytes", parquet.Leaf(parquet.ByteArrayType), "decode(x)", text, plain, dict, sized, folded)
	add("fixed", parquet.Leaf(parquet.FixedLenByteArrayType(5)), "decode(x)", func(v uint64) (parquet.Value, string) {
		s := fmt.Sprintf("%05d", v%100000)
		return parquet.FixedLenByteArrayValue([]byte(s)), s
	}, plain, dict, folded)
	add("split", parquet.Leaf(parquet.FixedLenByteArrayType(5)), "", func(v uint64) (parquet.Value, string) {
		s := fmt.Sprintf("%05d", v%100000)
		return parquet.FixedLenByteArrayValue([]byte(s)), s
	}, split)
	add("uuid", parquet.UUID(), "x", func(v uint64) (parquet.Value, string) {
		return parquet.FixedLenByteArrayValue(append(make([]byte, 8), bits(v, 8)...)),
			fmt.Sprintf("00000000-0000-0000-%x-%x", bits(v, 2), bits(v, 8)[2:])
	}, plain, dict)
	add("decimal", parquet.Decimal(2, 18, parquet.Int64Type), "x", func(v uint64) (parquet.Value, string) {
		n := int64(v % 1000000)
		return parquet.Int64Value(-n), strings.TrimPrefix(fmt.Sprintf("-%d.%02d", n/100, n%100), "-"[:1-int(min(1, n))])
	}, plain, dict, delta)
	add("interval", parquet.IntervalNode(), "", func(v uint64) (parquet.Value, string) {
		return parquet.FixedLenByteArrayValue(append(append([]byte{1, 0, 0, 0}, bits(v%9+1, 4)...), bits(1500, 4)...)),
			fmt.Sprintf("P1M%dDT1.5S", v%9+1)
	}, plain, dict)
	return out
}

// shapes make the value of a row from a random number; null if not ok.
var shapes = map[string]func(i int, random uint64) (v uint64, ok bool){
	"constant": func(int, uint64) (uint64, bool) { return math.MaxUint64, true },
	"runs":     func(i int, _ uint64) (uint64, bool) { return uint64(i/20) * 7, true },
	"random":   func(_ int, random uint64) (uint64, bool) { return random, true },
	"nulls":    func(i int, random uint64) (uint64, bool) { return random, i/50%3 == 1 || i/50%3 == 2 && i%3 > 0 },
	"all null": func(int, uint64) (uint64, bool) { return 0, false },
}

// TestEncodings reads every type in every encoding, both versions of pages, several shapes and lengths: the values that were
// written, which DuckDB reads, too.
func TestEncodings(t *testing.T) {
	t.Parallel()
	columns, dir := encodings(), t.TempDir()
	schema := parquet.Group{}
	for _, c := range columns {
		schema[c.name] = c.node
	}
	leaf := map[string]int{}
	for i, path := range parquet.NewSchema("schema", schema).Columns() {
		leaf[path[0]] = i
	}
	queries, want := "", []string{}
	for _, version := range []int{1, 2} {
		for shape, f := range shapes {
			for _, n := range lengths {
				rnd := rand.New(rand.NewPCG(uint64(n), uint64(version)))
				rows := make([]parquet.Row, n)
				texts := map[string][]string{}
				for i := range rows {
					v, ok := f(i, rnd.Uint64())
					rows[i] = make(parquet.Row, len(columns))
					for _, c := range columns {
						value, text := parquet.NullValue(), "-"
						level := 0
						if ok {
							value, text = c.value(v)
							level = 1
						}
						rows[i][leaf[c.name]] = value.Level(0, level, leaf[c.name])
						texts[c.name] = append(texts[c.name], text)
					}
				}
				var out bytes.Buffer
				w := parquet.NewGenericWriter[any](&out, parquet.NewSchema("schema", schema), parquet.DataPageVersion(version),
					parquet.PageBufferSize(1<<14))
				if _, err := w.WriteRows(rows); err != nil {
					t.Fatal(err)
				}
				if err := w.Close(); err != nil {
					t.Fatal(err)
				}
				name := filepath.Join(dir, fmt.Sprintf("%d-%s-%d.parquet", version, shape, n))
				if err := os.WriteFile(name, out.Bytes(), 0o666); err != nil {
					t.Fatal(err)
				}
				for _, c := range columns {
					if got, err := readOthers(out.Bytes(), c.name); err != nil || !slices.Equal(got, texts[c.name]) {
						t.Fatalf("%s, version %d, %s, %d values: %v\n got %.200q\nwant %.200q", c.name, version, shape, n, err,
							got, texts[c.name])
					}
					if c.duck != "" {
						queries += fmt.Sprintf("SELECT coalesce(string_agg(coalesce((%s)::varchar, '-'), ' ' ORDER BY file_row_number), '') AS v FROM read_parquet('%s', file_row_number=true);\n",
							strings.ReplaceAll(c.duck, "x", c.name), name)
						want = append(want, strings.Join(texts[c.name], " "))
					}
				}
			}
		}
	}
	for i, got := range duckDB(t, queries) {
		if got["v"] != want[i] {
			t.Fatalf("DuckDB reads %.200q, want %.200q: %s", got["v"], want[i], strings.Split(queries, "\n")[i])
		}
	}
}

// duckDB returns the rows of all statements.
func duckDB(t *testing.T, sql string) (rows []map[string]any) {
	t.Helper()
	duckdb := redistest.DuckDB()
	if duckdb == "" {
		t.Skip("SKIPPED: no duckdb in $" + redistest.EnginesVariable + " or on the PATH")
	}
	cmd := exec.Command(duckdb, "-jsonlines")
	cmd.Stdin = strings.NewReader("SET TimeZone='UTC';\n" + sql)
	var failed strings.Builder
	cmd.Stderr = &failed
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %.500s", err, failed.String())
	}
	d := json.NewDecoder(bytes.NewReader(out))
	for d.More() {
		var row map[string]any
		if err := d.Decode(&row); err != nil {
			t.Fatalf("%v: %.300s", err, out)
		}
		rows = append(rows, row)
	}
	return rows
}

// duckTypes are columns as DuckDB writes them, of row i, and what makes their texts ours; "" is a cast.
var duckTypes = []struct{ name, value, text string }{
	{"flag", "i % 3 = 0", ""}, {"flags", "i // 20 % 2 = 0", ""}, {"tiny", "(i % 256 - 128)::tinyint", ""}, {"int", "(i * 1000003 % 4294967296 - 2147483648)::int", ""},
	{"falling", "(-i)::int", ""}, {"same", "7::int", ""}, {"big", "(i * 636413622384679)::bigint", ""}, {"usmall", "(i * 37 % 65536)::usmallint", ""},
	{"uint", "(i * 1000003 % 4294967296)::uinteger", ""}, {"ubig", "(18446744073709551615 - i)::ubigint", ""}, {"text", "'v' || i", ""}, {"few", "'v' || (i % 5)", ""},
	{"long", "repeat('x', (i % 300)::int) || i", ""}, {"none", "''", ""}, {"blob", "encode('b' || (i % 9))", "decode(x)"}, {"dec", "(-i / 10)::decimal(9, 3)", ""},
	{"dec18", "i::decimal(18, 2)", ""}, {"dec38", "i::decimal(38, 10)", ""}, {"day", "date '1960-01-01' + i::int", ""},
	{"stamp", "timestamp '1965-01-01' + interval (i * 777777) second", "strftime(x, '%Y-%m-%dT%H:%M:%S')"},
	{"zone", "timestamptz '1965-01-01' + interval (i * 777777) second", "strftime(x, '%Y-%m-%dT%H:%M:%SZ')"},
	{"uuid", "('00000000-0000-0000-0000-' || lpad(i::varchar, 12, '0'))::uuid", ""}, {"list", "range(i % 4)", "to_json(x)"},
	{"nulls", "['a' || i, NULL]", "to_json(x)"}, {"struct", "{'a': i, 'b': [i::varchar], 'c': {'d': NULL::int}}", "to_json(x)"},
	{"map", "map {'k' || i: [i, NULL]}", "to_json(x)"}, {"deep", "[[], [i], [i, i + 1]]", "to_json(x)"}, {"single", "(i / 8)::float", ""}, {"double", "(i / 8 + 0.5)::double", ""},
}

// TestDuckDB reads what DuckDB writes: types, both versions of pages, nulls in several shapes, and lengths.
func TestDuckDB(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var names []string
	sql := ""
	for _, version := range []string{"V1", "V2"} {
		for k, null := range []string{"false", "i % 3 = 1", "i // 50 % 2 = 1", "true"} {
			for _, n := range lengths {
				name := filepath.Join(dir, fmt.Sprintf("%s-%d-%d.parquet", version, k, n))
				names = append(names, name)
				values, texts := "", ""
				for _, c := range duckTypes {
					values += fmt.Sprintf(", CASE WHEN NOT (%s) THEN %s END AS %s", null, c.value, c.name)
					text := c.text
					if text == "" {
						text = "x"
					}
					texts += fmt.Sprintf(", list(coalesce((%s)::varchar, '-') ORDER BY file_row_number) AS %s",
						strings.ReplaceAll(text, "x", c.name), c.name)
				}
				sql += fmt.Sprintf("COPY (SELECT %s FROM range(%d) t(i) ORDER BY i) TO '%s' (FORMAT parquet, PARQUET_VERSION '%s');\nSELECT %s FROM read_parquet('%s', file_row_number=true);\n",
					values[2:], n, name, version, texts[2:], name)
			}
		}
	}
	rows := duckDB(t, sql)
	if len(rows) != len(names) {
		t.Fatalf("%d answers of %d", len(rows), len(names))
	}
	for i, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range duckTypes {
			var want []string
			if list, ok := rows[i][c.name].([]any); ok {
				for _, v := range list {
					text := v.(string)
					if c.name == "single" || c.name == "double" {
						text = strings.TrimSuffix(text, ".0")
					}
					want = append(want, text)
				}
			}
			if got, err := readOthers(b, c.name); err != nil || !slices.Equal(got, want) {
				t.Errorf("%s, column %s: %v\n got %.200q\nwant %.200q", filepath.Base(name), c.name, err, got, want)
			}
		}
	}
}
