package columns

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// packedLengthList are those of pages where packs and blocks end, begin and are missing.
var packedLengthList = []int{0, 1, 7, 8, 9, 2049}

// packedShapes make the value of a row from a random number: constant, in runs of several lengths, alternating and random.
var packedShapes = []func(i int, random uint64) uint64{
	func(int, uint64) uint64 { return math.MaxUint64 },
	func(i int, _ uint64) uint64 { return uint64(i / 9) },
	func(i int, _ uint64) uint64 { return math.MaxUint64 * uint64(i/100%2) },
	func(i int, _ uint64) uint64 { return math.MaxUint64 * uint64(i%2) },
	func(_ int, random uint64) uint64 { return random },
	func(i int, random uint64) uint64 { return random * uint64(i/8%3/2) },
}

// bitWriter packs values, the lowest bit first.
type bitWriter struct {
	b []byte
	n int
}

func (w *bitWriter) add(v uint64, width int) {
	for i := range width {
		if w.n%8 == 0 {
			w.b = append(w.b, 0)
		}
		w.b[w.n/8] |= byte(v>>i&1) << (w.n % 8)
		w.n++
	}
}

// packedRunsOf encodes values: those that repeat 8 times or more as a run, and others in packs, of which the last is filled up.
func packedRunsOf(values []uint64, width int) (out []byte) {
	for at := 0; at < len(values); {
		same := at + 1
		for same < len(values) && values[same] == values[at] {
			same++
		}
		if same-at >= 8 {
			out = binary.AppendUvarint(out, uint64(same-at)<<1)
			for i := range (width + 7) / 8 {
				out = append(out, byte(values[at]>>(8*i)))
			}
			at = same
			continue
		}
		end := min(at+8, len(values))
		var w bitWriter
		for _, v := range values[at:end] {
			w.add(v, width)
		}
		out = append(binary.AppendUvarint(out, 3), w.b...)
		out = append(out, make([]byte, width-len(w.b))...)
		at = end
	}
	return out
}

// TestRuns decodes runs and packs of every width, shape and length, whatever follows them; nothing less is enough.
func TestRuns(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(1, 2))
	for width := range 33 {
		for shape, f := range packedShapes {
			for _, n := range packedLengthList {
				values := make([]uint64, n)
				want := make([]uint32, n)
				for i := range values {
					values[i] = f(i, rnd.Uint64()) & (1<<width - 1)
					want[i] = uint32(values[i])
				}
				b := packedRunsOf(values, width)
				got, err := packedRuns([]uint32{7}, append(bytes.Clone(b), 1, 2, 3), width, n)
				if err != nil || got[0] != 7 || !slices.Equal(got[1:], want) {
					t.Fatalf("%d bits, shape %d, %d values: %v", width, shape, n, err)
				}
				if width > 0 && width <= 8 {
					small, err := packedRuns([]uint8(nil), b, width, n)
					for i := range small {
						if uint32(small[i]) != want[i] {
							t.Fatalf("%d bits, shape %d, value %d: %d, want %d", width, shape, i, small[i], want[i])
						}
					}
					if err != nil || len(small) != n {
						t.Fatalf("%d bits, shape %d: %d values, %v", width, shape, len(small), err)
					}
				}
				for cut := 1; width > 0 && cut < len(b); cut += 1 + len(b)/9 {
					if got, err := packedRuns([]uint32(nil), b[:cut], width, n); err == nil && !slices.Equal(got, want) {
						t.Fatalf("%d bits, shape %d: %d of %d bytes make other values", width, shape, cut, len(b))
					}
				}
			}
		}
	}
	for _, c := range []struct {
		b        []byte
		width, n int
	}{{[]byte{6}, 1, 3}, {[]byte{6, 1}, 1, 4}, {[]byte{6, 1}, 33, 3}, {[]byte{0x80}, 1, 3},
		{binary.AppendUvarint(nil, 1<<40|1), 1, 9},
		{append(binary.AppendUvarint(nil, 1<<40), 1), 1, 9}, {append(binary.AppendUvarint(nil, math.MaxUint64), 1), 1, 9}, {nil, 1, 1}} {
		if got, err := packedRuns([]uint8(nil), c.b, c.width, c.n); err == nil {
			t.Errorf("%x: %v", c.b, got)
		}
	}
}

// TestBoolRuns decodes booleans in runs: a run of a true has the byte 1, or 255 of the library.
func TestBoolRuns(t *testing.T) {
	t.Parallel()
	for shape, f := range packedShapes[:4] {
		for _, n := range packedLengthList {
			values := make([]uint64, n)
			want := make([]byte, n)
			for i := range values {
				values[i] = f(i, 0) & 1
				want[i] = byte(values[i])
			}
			b := packedRunsOf(values, 1)
			v, err := packedBools(append(binary.LittleEndian.AppendUint32(nil, uint32(len(b))), b...), n)
			if err != nil || !bytes.Equal(v.Data, want) || v.Len() != n {
				t.Errorf("shape %d, %d values: %v", shape, n, err)
			}
		}
	}
	if v, err := packedBools([]byte{2, 0, 0, 0, 32, 1}, 16); err != nil || !bytes.Equal(v.Data, bytes.Repeat([]byte{1}, 16)) {
		t.Errorf("16 trues: %v, %v", v.Data, err)
	}
	if _, err := packedBools([]byte{3, 0, 0, 0, 32, 1}, 16); err == nil {
		t.Error("a length beyond the page")
	}
}

// differences packs values in blocks of so many values and parts, with the least width of each part or a wider one.
func differences(values []int64, block, parts, wider int) []byte {
	out := binary.AppendUvarint(binary.AppendUvarint(binary.AppendUvarint(nil, uint64(block)), uint64(parts)),
		uint64(len(values)))
	if len(values) == 0 {
		return append(out, 0)
	}
	out = binary.AppendVarint(out, values[0])
	for at := 1; at < len(values); at += block {
		n := min(block, len(values)-at)
		diffs := make([]uint64, n)
		least := int64(math.MaxInt64)
		for i := range diffs {
			least = min(least, values[at+i]-values[at+i-1])
		}
		for i := range diffs {
			diffs[i] = uint64(values[at+i] - values[at+i-1] - least)
		}
		out = binary.AppendVarint(out, least)
		var widths, data []byte
		for part := range parts {
			from := min(part*block/parts, n)
			to := min(from+block/parts, n)
			width := 0
			for _, d := range diffs[from:to] {
				for width < 64 && d>>width > 0 {
					width++
				}
			}
			if from < to {
				width = min(64, width+wider)
			}
			widths = append(widths, byte(width))
			if from < to {
				var w bitWriter
				for _, d := range diffs[from:to] {
					w.add(d, width)
				}
				data = append(append(data, w.b...), make([]byte, block/parts/8*width-len(w.b))...)
			}
		}
		out = append(append(out, widths...), data...)
	}
	return out
}

// TestDifferences decodes differences of every width, shape and length, in blocks of several sizes, as this test and the
// library pack them.
func TestDifferences(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(3, 4))
	for width := 0; width <= 64; width++ {
		for shape, f := range packedShapes {
			for _, n := range packedLengthList {
				values, small := make([]int64, n), make([]int32, n)
				var want4, want8 []byte
				for i := range values {
					values[i] = int64(f(i, rnd.Uint64()) << (64 - width) >> (64 - width))
					small[i] = int32(values[i])
					want4, want8 = binary.LittleEndian.AppendUint32(want4,
						uint32(small[i])), binary.LittleEndian.AppendUint64(want8, uint64(values[i]))
				}
				check := func(b []byte, size int, want []byte) {
					t.Helper()
					if v, err := packedDifferences(b, n, size); err != nil || v.Len() != n || !bytes.Equal(v.Data, want) {
						t.Fatalf("%d bits, shape %d, %d values of %d bytes: %v", width, shape, n, size, err)
					}
				}
				for _, block := range [][2]int{{128, 4}, {256, 1}, {1024, 32}, {8, 1}} {
					b := differences(values, block[0], block[1], width%3)
					check(b, 8, want8)
					check(b, 4, want4)
				}
				check(parquet8(t, values), 8, want8)
				b, err := parquet.DeltaBinaryPacked.EncodeInt32(nil, small)
				if err != nil {
					t.Fatal(err)
				}
				check(b, 4, want4)
			}
		}
	}
	whole := differences([]int64{1, 5, 3, math.MaxInt64, math.MinInt64}, 128, 4, 0)
	for n := range len(whole) - 100 {
		if _, err := packedDifferences(whole[:n], 5, 8); err == nil && n < 40 {
			t.Errorf("%d of %d bytes were enough", n, len(whole))
		}
	}
	for _, b := range [][]byte{{8, 0, 2, 0, 0, 0}, {9, 1, 2, 0, 0, 0}, {8, 1, 3, 0}, {8, 1, 2, 0, 0, 65, 0},
		append(binary.AppendUvarint(nil, 1<<40), 1, 2, 0, 0, 0)} {
		if v, err := packedDifferences(b, 2, 8); err == nil {
			t.Errorf("%x: %v", b, v.Data)
		}
	}
}

func parquet8(t *testing.T, values []int64) []byte {
	t.Helper()
	b, err := parquet.DeltaBinaryPacked.EncodeInt64(nil, values)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// texts returns n byte strings that share prefixes, are empty or long, and how the library takes them.
func texts(n int) (values []string, data []byte, offsets []uint32) {
	offsets = []uint32{0}
	for i := range n {
		value := ""
		if i%5 > 0 {
			value = fmt.Sprintf("%s%d", strings.Repeat("key:", i%7), i*i%977)
		}
		values = append(values, value)
		data = append(data, value...)
		offsets = append(offsets, uint32(len(data)))
	}
	return values, data, offsets
}

// TestStrings decodes byte strings in each of their encodings.
func TestStrings(t *testing.T) {
	t.Parallel()
	for _, n := range packedLengthList {
		values, data, offsets := texts(n)
		var plain []byte
		for _, v := range values {
			plain = append(binary.LittleEndian.AppendUint32(plain, uint32(len(v))), v...)
		}
		sized, err := parquet.DeltaLengthByteArray.EncodeByteArray(nil, data, offsets)
		if err != nil {
			t.Fatal(err)
		}
		folded, err := parquet.DeltaByteArray.EncodeByteArray(nil, data, offsets)
		if err != nil {
			t.Fatal(err)
		}
		for name, decode := range map[string]func(cut int) (packedValues, error){
			"plain": func(cut int) (packedValues, error) {
				return packedStrings(plain[:max(0, len(plain)-cut)], n, make([]uint32, 3))
			},
			"sized": func(cut int) (packedValues, error) { return packedLengths(sized[:max(0, len(sized)-cut)], n) },
			"folded": func(cut int) (packedValues, error) {
				return unfoldValues(folded[:max(0, len(folded)-cut)], n, 1<<20, 0)
			},
		} {
			v, err := decode(0)
			if err != nil || v.Len() != n {
				t.Fatalf("%s: %d values of %d: %v", name, v.Len(), n, err)
			}
			for i := range values {
				if got := v.At(i); string(got) != values[i] || got == nil {
					t.Fatalf("%s: value %d is %q, want %q", name, i, got, values[i])
				}
			}
			for cut := 1; n > 1 && cut < 40; cut++ {
				if v, err := decode(cut); err == nil && v.Len() == n && string(v.At(n-1)) != values[n-1] {
					t.Errorf("%s: %d bytes less make other values", name, cut)
				}
			}
		}
	}
	if _, err := packedStrings([]byte{9, 0, 0, 0, 'x'}, 1, nil); err == nil {
		t.Error("a length beyond the page")
	}
}

// TestFixed decodes values of one size, as they are and split by bytes, and bits.
func TestFixed(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(5, 6))
	for _, n := range packedLengthList {
		for _, size := range []int{1, 2, 4, 5, 8, 12, 16} {
			whole, split := make([]byte, n*size), make([]byte, n*size)
			for i := range whole {
				whole[i] = byte(rnd.Uint32())
				split[i%size*n+i/size] = whole[i]
			}
			a, err := packedFixed(whole, n, size)
			b, err2 := packedSplit(split, n, size)
			if err != nil || err2 != nil || a.Len() != n || b.Len() != n {
				t.Fatal(err, err2)
			}
			for i := range n {
				if want := whole[i*size : (i+1)*size]; !bytes.Equal(a.At(i), want) || !bytes.Equal(b.At(i), want) {
					t.Fatalf("value %d of %d bytes", i, size)
				}
			}
			if _, err := packedSplit(append(split, 1), n, size); err == nil {
				t.Error("a byte more")
			}
			if n > 0 {
				_, err = packedFixed(whole[1:], n, size)
				if _, err2 = packedSplit(split[1:], n, size); err == nil || err2 == nil {
					t.Error("a byte less")
				}
			}
		}
		var w bitWriter
		want := make([]byte, n)
		for i := range want {
			want[i] = byte(rnd.Uint32() & 1)
			w.add(uint64(want[i]), 1)
		}
		if v, err := packedBits(w.b, n); err != nil || !bytes.Equal(v.Data, want) {
			t.Errorf("%d bits: %v", n, err)
		}
		if _, err := packedBits(w.b, n+8); err == nil {
			t.Error("8 bits too few")
		}
	}
}

// TestUnfold refuses what would have no end, and values of another size.
func TestUnfold(t *testing.T) {
	t.Parallel()
	fixed, err := parquet.DeltaByteArray.EncodeByteArray(nil, []byte("aaaabbbbbccc"), []uint32{0, 4, 9, 12})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := unfoldValues(fixed, 3, 1<<20, 4); err == nil { // 3 values of 4 bytes in all
		t.Error("values of 5 and 3 bytes are two of 4")
	}
	same, rest := make([]int64, 1<<12), make([]int64, 1<<12)
	for i := range same[1:] {
		same[i+1] = 1 << 20
	}
	rest[0] = 1 << 20
	bomb := append(differences(same, 128, 4, 0), differences(rest, 128, 4, 0)...)
	bomb = append(bomb, make([]byte, 1<<20)...) // 4 GiB of a megabyte
	if _, err := unfoldValues(bomb, 1<<12, 64<<20, 0); err == nil || !strings.Contains(err.Error(), "bytes of values") {
		t.Error(err)
	}
}

// FuzzValues decodes any bytes in every encoding: values or an error, and no more memory than the count allows.
func FuzzValues(f *testing.F) {
	f.Add([]byte{6, 1, 3, 0xaa}, 9, 4)
	f.Add(differences([]int64{1, 5, 3}, 128, 4, 0), 3, 8)
	f.Fuzz(func(t *testing.T, b []byte, n, size int) {
		n, size = n&0xfff, size&31
		var all []packedValues
		add := func(v packedValues, err error) {
			if err == nil {
				all = append(all, v)
			}
		}
		add(packedFixed(b, n, size))
		add(packedStrings(b, n, nil))
		add(packedBits(b, n))
		add(packedBools(b, n))
		add(packedLengths(b, n))
		add(unfoldValues(b, n, 1<<20, size))
		add(packedDifferences(b, n, 4))
		add(packedDifferences(b, n, 8))
		if size > 0 {
			add(packedSplit(b, n, size))
		}
		_, _ = packedRuns([]uint32(nil), b, size, n)
		for i := range all {
			if all[i].Len() != n {
				t.Errorf("%d values of %d", all[i].Len(), n)
			}
			for k := range all[i].Len() {
				_ = all[i].At(k)
			}
		}
	})
}
