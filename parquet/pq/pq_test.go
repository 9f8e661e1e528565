package pq

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"kvferry/record"
)

// allKinds has a column of every kind and coding.
var allKinds = []Column{
	{Name: "runs", Kind: UTF8, Coding: Runs},
	{Name: "unique", Kind: Binary, Coding: Unique},
	{Name: "any", Kind: Binary, Coding: Any, Optional: true},
	{Name: "count", Kind: Integer, Coding: Counted, Optional: true},
	{Name: "time", Kind: Timestamp, Optional: true},
	{Name: "score", Kind: Number, Optional: true},
	{Name: "none", Kind: UTF8, Coding: Any, Optional: true},
	{Name: "text", Kind: UTF8, Coding: Any},
}

// cell is a value of a row: text, or the number in bits; null if text is "-".
type cell struct {
	text string
	num  int64
}

// table is a file with the values that were written.
type table struct {
	file []byte
	rows [][]cell
}

// build writes rows of random values with many shapes: runs, nulls, values that repeat, long ones and edges.
func build(t testing.TB, seed uint64, n, limit int) *table {
	t.Helper()
	rnd := rand.New(rand.NewPCG(seed, 1))
	z, err := NewEncoder()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w := NewWriter(&out, allKinds, []int{0}, limit, z)
	tab := &table{}
	edges := []int64{0, 1, -1, math.MaxInt64, math.MinInt64, 1 << 40}
	for i := 0; i < n; {
		run := min(1+rnd.IntN(4)*rnd.IntN(40), n-i)
		key := fmt.Sprintf("key%06d", i)
		w.Bytes(0, []byte(key), run)
		w.Null(6, run)
		for range run {
			row := make([]cell, len(allKinds))
			row[0], row[6] = cell{text: key}, cell{text: "-"}
			for c := range allKinds {
				null := allKinds[c].Optional && rnd.IntN(3) == 0 && i/500%3 > 0
				if c == 0 || c == 6 {
					continue
				}
				if null {
					w.Null(c, 1)
					row[c].text = "-"
					continue
				}
				switch allKinds[c].Kind {
				case Integer, Timestamp:
					row[c].num = int64(i)
					if c == 4 || rnd.IntN(100) == 0 {
						row[c].num = edges[rnd.IntN(len(edges))] + int64(i%2)
					}
					w.Int(c, row[c].num, 1)
				case Number:
					f := []float64{0, math.Copysign(0, -1), 1.5, math.Inf(1), math.NaN(), -float64(i)}[rnd.IntN(6)]
					row[c].num = int64(math.Float64bits(f))
					w.Float(c, f)
				default:
					v := fmt.Sprintf("%s%d", strings.Repeat("v", rnd.IntN(20)), rnd.IntN(1+i/(1+c*3)))
					switch rnd.IntN(300) {
					case 0:
						v = ""
					case 1:
						v = strings.Repeat("é", 700+rnd.IntN(400))
					}
					row[c].text = v
					w.Bytes(c, []byte(v), 1)
				}
			}
			tab.rows = append(tab.rows, row)
			i++
		}
		if _, err := w.Rows(run); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Close("test", map[string]string{"a": "b"}); err != nil {
		t.Fatal(err)
	}
	tab.file = out.Bytes()
	return tab
}

// readAll reads the file and compares it with the rows if compare is set.
func (tab *table) readAll(t testing.TB, b []byte, compare bool, change func(*Meta)) error {
	t.Helper()
	f, err := Open(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return err
	}
	if change != nil {
		change(f.Meta)
	}
	var u Unpacker
	defer u.Close()
	var r ColumnReader
	at := 0
	for g := range f.Meta.Groups {
		for c := range f.Meta.Leaves {
			r.Open(f, g, c, &u)
			for row := at; ; row++ {
				err := r.More()
				if err == io.EOF {
					if compare && int64(row-at) != f.Meta.Groups[g].Rows {
						t.Fatalf("column %d has %d rows of %d", c, row-at, f.Meta.Groups[g].Rows)
					}
					break
				}
				if err != nil {
					return err
				}
				got := cellOf(&r)
				if compare && got != tab.rows[row][c] {
					t.Fatalf("row %d, column %s: %v, want %v", row, allKinds[c].Name, got, tab.rows[row][c])
				}
			}
		}
		at += int(f.Meta.Groups[g].Rows)
	}
	return nil
}

func cellOf(r *ColumnReader) cell {
	i, ok := r.Next()
	switch {
	case !ok:
		return cell{text: "-"}
	case isBytes(r.Leaf().Type):
		return cell{text: string(r.Bytes(i))}
	}
	return cell{num: r.Num(i)}
}

// TestRoundTrip reads back what was written, in row groups of several sizes, and finds rows by their number.
func TestRoundTrip(t *testing.T) {
	for _, limit := range []int{1 << 10, 100 << 10, 1 << 30} {
		tab := build(t, 7, 30000, limit)
		if err := tab.readAll(t, tab.file, true, nil); err != nil {
			t.Fatal(err)
		}
		f, err := Open(bytes.NewReader(tab.file), int64(len(tab.file)))
		if err != nil {
			t.Fatal(err)
		}
		if m := f.Meta; m.Rows != int64(len(tab.rows)) || m.Pairs["a"] != "b" || m.Creator != "test" || !slices.Equal(m.Groups[0].Sorted, []int{0}) {
			t.Errorf("%+v", m.Pairs)
		}
		if groups := len(f.Meta.Groups); (limit == 1<<30) != (groups == 1) {
			t.Errorf("%d row groups with a limit of %d", groups, limit)
		}
		seek(t, tab, f)
	}
}

// seek looks for rows of the first row group.
func seek(t *testing.T, tab *table, f *File) {
	t.Helper()
	var u Unpacker
	defer u.Close()
	for c := range allKinds {
		for row := int64(0); row < f.Meta.Groups[0].Rows; row += 1 + f.Meta.Groups[0].Rows/7 {
			var r ColumnReader
			r.Open(f, 0, c, &u)
			if err := r.SeekRow(row); err != nil {
				t.Fatalf("column %d, row %d: %v", c, row, err)
			}
			if got := cellOf(&r); got != tab.rows[row][c] {
				t.Errorf("column %d, row %d: %v, want %v", c, row, got, tab.rows[row][c])
			}
		}
		var r ColumnReader
		r.Open(f, 0, c, &u)
		if err := r.SeekRow(f.Meta.Groups[0].Rows); err != io.EOF {
			t.Errorf("a row beyond the last: %v", err)
		}
	}
}

// TestBounds checks statistics: the bounds enclose all values, and text stays text when it is cut.
func TestBounds(t *testing.T) {
	long := strings.Repeat("é", 60)
	for _, c := range []struct {
		kind      Kind
		values    []string
		low, high string
		ok        bool
	}{
		{Binary, []string{"b", "a", "c"}, "a", "c", true},
		{Binary, []string{long}, long[:64], long[:63] + "\xaa", true},
		{UTF8, []string{"x" + long}, "x" + long[:62], "x" + long[:60] + "ê", true},
		{Binary, []string{strings.Repeat("\xff", 65)}, "", "", false},
		{Binary, []string{strings.Repeat("\xff", 64)}, strings.Repeat("\xff", 64), strings.Repeat("\xff", 64), true},
		{UTF8, []string{strings.Repeat("\U0010ffff", 17)}, "", "", false},
		{UTF8, []string{strings.Repeat("\ud7ff", 30)}, strings.Repeat("\ud7ff", 21), strings.Repeat("\ud7ff", 20) + "\ue000", true},
		{Binary, nil, "", "", false},
	} {
		var one, sum bounds
		for _, v := range c.values {
			one.bytes([]byte(v))
		}
		sum.add(&one)
		sum.add(&one)
		low, high, ok := sum.ends(c.kind)
		if ok != c.ok || ok && (string(low) != c.low || string(high) != c.high) {
			t.Errorf("%q: %q to %q, %v", c.values, low, high, ok)
		}
	}
	var f bounds
	f.float(math.NaN())
	f.float(0)
	low, high, _ := f.ends(Number)
	if math.Float64frombits(binary.LittleEndian.Uint64(low)) != 0 || low[7] != 0x80 || high[7] != 0 {
		t.Errorf("zero: %x to %x", low, high)
	}
}

// TestCodings decodes what was encoded, for every width.
func TestCodings(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for width := 1; width <= 32; width++ {
		values := make([]uint32, 1000)
		for i := range values {
			if values[i] = uint32(rnd.Uint64() >> (64 - width)); i > 0 && rnd.IntN(20) > 0 && i/100%2 == 0 {
				values[i] = values[i-1]
			}
		}
		var got []uint32
		err := hybrid(appendHybrid(nil, values, width), width, len(values), func(v uint32, n int) {
			for range n {
				got = append(got, v)
			}
		})
		if err != nil || !slices.Equal(got, values) {
			t.Errorf("width %d: %v, %d values", width, err, len(got))
		}
	}
	for _, n := range []int{0, 1, 2, 32, 33, 128, 129, 1000} {
		for shift := 0; shift < 64; shift += 9 {
			values := make([]int64, n)
			for i := range values {
				values[i] = int64(rnd.Uint64()) >> shift
			}
			var v values64
			rest, err := v.delta(append(appendDelta(nil, values), 7), n)
			if err != nil || !slices.Equal(v.nums, values) || len(rest) != 1 {
				t.Errorf("%d values: %v, rest %x", n, err, rest)
			}
		}
	}
}

type values64 = values

// TestForeignEncodings decodes encodings that this package does not write.
func TestForeignEncodings(t *testing.T) {
	lengths, tails := appendDelta(nil, []int64{3, 1, 0}), []byte("abcd")
	bytesOf := func(parts ...[]byte) []byte { return slices.Concat(parts...) }
	for _, c := range []struct {
		leaf     Leaf
		encoding int
		n        int
		b        []byte
		want     string
	}{
		{Leaf{Type: ByteArray}, encDeltaLength, 3, bytesOf(lengths, tails), "abc,d,"},
		{Leaf{Type: ByteArray}, encDeltaBytes, 3, bytesOf(appendDelta(nil, []int64{0, 2, 3}), lengths, tails), "abc,abd,abd"},
		{Leaf{Type: FixedBytes, Length: 2}, encPlain, 2, []byte("abcd"), "ab,cd"},
		{Leaf{Type: Int96}, encPlain, 1, []byte("0123456789ab"), "0123456789ab"},
		{Leaf{Type: Int32}, encPlain, 2, []byte{1, 0, 0, 0, 255, 255, 255, 255}, "1,-1"},
		{Leaf{Type: Int32, Meaning: Unsigned}, encPlain, 1, []byte{255, 255, 255, 255}, "4294967295"},
		{Leaf{Type: Boolean}, encPlain, 3, []byte{5}, "1,0,1"},
		{Leaf{Type: Boolean}, encRLE, 3, []byte{2, 0, 0, 0, 6, 1}, "1,1,1"},
		{Leaf{Type: Int32}, encSplit, 2, []byte{1, 2, 0, 0, 0, 0, 0, 1}, "1,16777218"},
		{Leaf{Type: Float}, encPlain, 1, []byte{0, 0, 128, 63}, fmt.Sprint(int64(math.Float64bits(1)))},
	} {
		var v values
		err := v.decode(c.b, c.encoding, c.n, &c.leaf)
		var got []string
		for i := range v.spans {
			got = append(got, string(v.at(i)))
		}
		for _, n := range v.nums {
			got = append(got, fmt.Sprint(n))
		}
		if err != nil || strings.Join(got, ",") != c.want {
			t.Errorf("encoding %d of %s: %q, %v", c.encoding, c.leaf.Type, got, err)
		}
		for n := range c.b {
			if err := v.decode(c.b[:n], c.encoding, c.n, &c.leaf); err == nil {
				t.Errorf("encoding %d of %s: %d of %d bytes are enough", c.encoding, c.leaf.Type, n, len(c.b))
			}
		}
	}
	var v values
	if err := v.decode([]byte{1}, 77, 1, &Leaf{}); !record.IsNewer(err) {
		t.Error(err)
	}
}

// TestDamage reads files that are cut and changed: with checksums nothing differs unnoticed, and without them nothing
// panics.
func TestDamage(t *testing.T) {
	tab := build(t, 3, 60, 1<<10)
	for n := range tab.file {
		if err := tab.readAll(t, tab.file[:n], false, nil); err == nil {
			t.Fatalf("%d of %d bytes are enough", n, len(tab.file))
		}
	}
	f, err := Open(bytes.NewReader(tab.file), int64(len(tab.file)))
	if err != nil {
		t.Fatal(err)
	}
	last := f.Meta.Groups[len(f.Meta.Groups)-1].Chunks
	tail := int(last[len(last)-1].Off + last[len(last)-1].Size)
	bare := func(m *Meta) {
		for i := range m.Groups {
			for j := range m.Groups[i].Chunks {
				m.Groups[i].Chunks[j].Sums = ""
			}
		}
	}
	for i := range tab.file {
		for _, bit := range []byte{1, 0x10, 0x80} {
			b := bytes.Clone(tab.file)
			b[i] ^= bit
			if err := tab.readAll(t, b, false, nil); err == nil && i < tail {
				t.Fatalf("byte %d of the pages is changed unnoticed", i)
			}
			_ = tab.readAll(t, b, false, bare)
		}
	}
}

func FuzzDecodeMeta(f *testing.F) {
	tab := build(f, 3, 40, 1<<10)
	n := binary.LittleEndian.Uint32(tab.file[len(tab.file)-8:])
	f.Add(tab.file[len(tab.file)-8-int(n) : len(tab.file)-8])
	f.Fuzz(func(t *testing.T, b []byte) {
		if m, err := decodeMeta(b, 1<<20); err == nil && m == nil {
			t.Error("neither metadata nor an error")
		}
	})
}

func FuzzDecodeHeader(f *testing.F) {
	tab := build(f, 3, 40, 1<<10)
	f.Add(tab.file[4:60])
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, n, err := decodeHeader(b); err == nil && n > len(b) {
			t.Errorf("%d bytes of %d", n, len(b))
		}
	})
}

func FuzzDecodeValues(f *testing.F) {
	f.Add(appendDelta(nil, []int64{1, 5, 9}), uint8(encDelta), uint8(Int64), uint16(3))
	f.Add([]byte{1, 0, 0, 0, 'a'}, uint8(encPlain), uint8(ByteArray), uint16(1))
	f.Add(slices.Concat(appendDelta(nil, []int64{0, 1}), appendDelta(nil, []int64{1, 1}), []byte("ab")), uint8(encDeltaBytes), uint8(ByteArray), uint16(2))
	f.Fuzz(func(t *testing.T, b []byte, encoding, typ uint8, n uint16) {
		leaf := Leaf{Type: Physical(typ % 8), Length: 3}
		var v values
		if err := v.decode(b, int(encoding%10), int(n), &leaf); err == nil && v.len() != int(n) {
			t.Errorf("%d values, want %d", v.len(), n)
		}
		if _, _, err := decodeLevels(nil, b, int(n)); err != nil {
			return
		}
		ids, err := decodeIDs(nil, b, int(n), 9)
		if err == nil && len(ids) != int(n) {
			t.Errorf("%d indexes, want %d", len(ids), n)
		}
	})
}
