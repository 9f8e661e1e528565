package pack

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"kvferry/internal/testkit/formattest"
)

// unpacked renders the entries of a packed encoding: integers, short strings quoted, long strings by length; and the
// final error.
func unpacked(kind Kind, b []byte) string {
	var p Reader
	var out []string
	err := p.Open(kind, b)
	for err == nil {
		var e Item
		var ok bool
		if ok, err = p.Next(&e); err != nil || !ok {
			break
		}
		switch {
		case e.IsInt:
			out = append(out, fmt.Sprint(e.N))
		case len(e.Text) > 8:
			out = append(out, fmt.Sprintf("%d bytes", len(e.Text)))
		default:
			out = append(out, fmt.Sprintf("%q", e.Text))
		}
	}
	if err != nil {
		out = append(out, err.Error())
	}
	return strings.Join(out, " ")
}

// TestPackedBytes: packed encodings byte by byte, at the bounds of every entry encoding.
func TestPackedBytes(t *testing.T) {
	for _, c := range []struct {
		kind Kind
		b    string // size, count and end are added around the entries of listpacks "n: …" and ziplists "n tail: …"
		want string
	}{
		{Listpack, "0:", ""},
		{Listpack, "3: 00 01  7f 01  80 01", `0 127 ""`},
		{Listpack, "4: c001 02  d000 02  dfff 02  cfff 02", "1 -4096 -1 4095"},
		{Listpack, "2: bf 61*63 40  e040 61*64 42", "63 bytes 64 bytes"},
		{Listpack, "2: efff 61*4095 20 81  f0 00100000 61*4096 20 85", "4095 bytes 4096 bytes"},
		{Listpack, "2: f1 0080 03  f1 ff7f 03", "-32768 32767"},
		{Listpack, "2: f2 000080 04  f2 ffff7f 04", "-8388608 8388607"},
		{Listpack, "2: f3 00000080 05  f3 ffffff7f 05", "-2147483648 2147483647"},
		{Listpack, "2: f4 0000000000000080 09  f4 ffffffffffffff7f 09", "-9223372036854775808 9223372036854775807"},
		{Listpack, "1: 00 01  01 01", "0 1 the number of entries differs from the header"},
		{Listpack, "3: 00 01  01 01", "0 1 the number of entries differs from the header"},
		{Listpack, "65535: 00 01  01 01", "0 1"},
		{Listpack, "1: 00 02", "an entry has a wrong length of the previous entry"},
		{Listpack, "1: e040 61*64 c2", "an entry has a wrong length of the previous entry"},
		{Listpack, "1: efff 61*4095 a0 81", "an entry has a wrong length of the previous entry"},
		{Listpack, "1: 00", "an entry reaches beyond the end"},
		{Listpack, "1: 83 6161", "an entry reaches beyond the end"},
		{Listpack, "1: c0", "an entry reaches beyond the end"},
		{Listpack, "1: f0 000000", "an entry reaches beyond the end"},
		{Listpack, "1: f0", "an entry reaches beyond the end"},
		{Listpack, "1: f0 00000000 05", `""`},
		{Listpack, "1: f1 00", "an entry reaches beyond the end"},
		{Listpack, "1: f5 01", "an entry has an unknown encoding"},
		{Listpack, "06000000 0000", "offset 0: listpack: need 7 bytes, have 6: too short"},
		{Listpack, "08000000 0000 ff", "the header gives a size of 8 bytes, but it has 7"},
		{Listpack, "07000000 0000 fe", "does not end in FF"},

		{Ziplist, "0 10:", ""},
		{Ziplist, "3 14: 00 f1  02 fd  02 00", `0 12 ""`},
		{Ziplist, "2 13: 00 fe80  03 fe7f", "-128 127"},
		{Ziplist, "2 14: 00 c0 0080  04 c0 ff7f", "-32768 32767"},
		{Ziplist, "2 15: 00 f0 000080  05 f0 ffff7f", "-8388608 8388607"},
		{Ziplist, "2 16: 00 d0 00000080  06 d0 ffffff7f", "-2147483648 2147483647"},
		{Ziplist, "2 20: 00 e0 0000000000000080  0a e0 ffffffffffffff7f", "-9223372036854775808 9223372036854775807"},
		{Ziplist, "3 142: 00 3f 61*63  41 4040 61*64  43 f3", "63 bytes 64 bytes 2"},
		{Ziplist, "3 517: 00 40fa 61*250  fd 40fb 61*251  fe fe000000 f2", "250 bytes 251 bytes 1"},
		{Ziplist, "2 16396: 00 7fff 61*16383  fe 02400000 80 00004000 61*16384", "16383 bytes 16384 bytes"},
		{Ziplist, "1 10: 00 80 00000000", `""`},
		{Ziplist, "2 10: 00 f1  03 f1", "0 an entry has a wrong length of the previous entry"},
		{Ziplist, "1 10: fe 000000", "an entry reaches beyond the end"},
		{Ziplist, "1 10: fe 00000000", "an entry reaches beyond the end"},
		{Ziplist, "1 10: 00", "an entry reaches beyond the end"},
		{Ziplist, "1 10: 00 40", "an entry reaches beyond the end"},
		{Ziplist, "1 10: 00 80 000000", "an entry reaches beyond the end"},
		{Ziplist, "1 10: 00 80", "an entry reaches beyond the end"},
		{Ziplist, "1 10: fe", "an entry reaches beyond the end"},
		{Ziplist, "1 10: 00 0261", "an entry reaches beyond the end"},
		{Ziplist, "1 10: 00 f061 61", "an entry reaches beyond the end"},
		{Ziplist, "1 10: 00 81", "an entry has an unknown encoding"},
		{Ziplist, "1 10: 00 ff", "an entry has an unknown encoding"},
		{Ziplist, "2 10: 00 f1", "0 the number of entries differs from the header"},
		{Ziplist, "65535 10: 00 f1", "0"},
		{Ziplist, "1 11: 00 f1", "0 the last entry is not at the offset in the header"},
		{Ziplist, "0b000000 09000000 0000 ff", "the last entry is not at the offset in the header"},
		{Ziplist, "0b000000 0a000000 0000 fe", "does not end in FF"},
		{Ziplist, "0a000000 0a000000 0000", "offset 0: ziplist: need 11 bytes, have 10: too short"},
		{Ziplist, "0c000000 0a000000 0000 ff", "the header gives a size of 12 bytes, but it has 11"},
		{Ziplist, "0b000000 0b000000 0000 ff", "its last entry would be at 11 of 11 bytes"},

		{Intset, "02000000 00000000", ""},
		{Intset, "02000000 03000000 0080 ffff ff7f", "-32768 -1 32767"},
		{Intset, "04000000 02000000 00000080 ffffff7f", "-2147483648 2147483647"},
		{Intset, "08000000 02000000 0000000000000080 ffffffffffffff7f", "-9223372036854775808 9223372036854775807"},
		{Intset, "02000000 02000000 0000 0000", "0 integers do not ascend"},
		{Intset, "02000000 02000000 0100 0000", "1 integers do not ascend"},
		{Intset, "02000000 02000000 0000", "2 integers of 2 bytes in 2 bytes"},
		{Intset, "02000000 01000000 0000 00", "1 integers of 2 bytes in 3 bytes"},
		{Intset, "03000000 01000000 000000", "integers of 3 bytes"},
		{Intset, "02000000 000000", "offset 0: intset: need 8 bytes, have 7: too short"},

		{Zipmap, "00 ff", ""},
		{Zipmap, "01 0161 01 00 62 ff", `"a" "b"`},
		{Zipmap, "02 0161 02 03 6262 000000  00 00 00 ff", `"a" "bb" "" ""`},
		{Zipmap, "01 fd 61*253 fe fe000000 00 62*254 ff", "253 bytes 254 bytes"},
		{Zipmap, "fd 0161 01 00 62 ff", `"a" "b" the number of entries differs from the header`},
		{Zipmap, "fe 0161 01 00 62 ff", `"a" "b"`},
		{Zipmap, "01 fe01000000 61 01 00 62 ff", "an entry has an unknown encoding"},
		{Zipmap, "01 0161 ff", `"a" the number of entries differs from the header`},
		{Zipmap, "01 0161 ff 00 ff", `"a" an entry reaches beyond the end`},
		{Zipmap, "01 0161 00 ff", `"a" an entry reaches beyond the end`},
		{Zipmap, "01 0161 01 01 62 ff", `"a" an entry reaches beyond the end`},
		{Zipmap, "01 0161 02 00 62 ff", `"a" an entry reaches beyond the end`},
		{Zipmap, "01 fe 000000 ff", "an entry reaches beyond the end"},
		{Zipmap, "01 fe ff", "an entry reaches beyond the end"},
		{Zipmap, "ff", "offset 0: zipmap: need 2 bytes, have 1: too short"},
		{Zipmap, "00 fe", "does not end in FF"},
	} {
		head, entries, framed := strings.Cut(c.b, ":")
		b := formattest.Unhex(t, entries)
		if framed {
			var count, tail int
			fmt.Sscan(head, &count, &tail)
			size := len(b) + listpackHead + 1
			head = ""
			if c.kind == Ziplist {
				size = len(b) + ziplistHead + 1
				head = fmt.Sprintf("%02x%02x0000", byte(tail), tail>>8)
			}
			head = fmt.Sprintf("%02x%02x%02x00 %s %02x%02x", byte(size), byte(size>>8), size>>16, head, byte(count), count>>8)
			b = append(append(formattest.Unhex(t, head), b...), endByte)
		} else {
			b = formattest.Unhex(t, c.b)
		}
		if got := unpacked(c.kind, b); got != c.want {
			t.Errorf("%s %.60s: %s\nwant %s", c.kind, c.b, got, c.want)
		}
	}
}

// TestPackerBytes: packed bytes at the bounds of every encoding, which also read back.
func TestPackerBytes(t *testing.T) {
	text := func(n int) []byte { return []byte(strings.Repeat("a", n)) }
	for _, c := range []struct {
		add               func(p *Writer)
		listpack, ziplist string // entries, without their back length or previous size
		want              string
	}{
		{func(p *Writer) { p.AddInt(0); p.AddInt(12); p.AddInt(13) }, "00 01 0c 01 0d 01", "00 f1 02 fd 02 fe0d", "0 12 13"},
		{func(p *Writer) { p.AddInt(127); p.AddInt(128) }, "7f 01 c080 02", "00 fe7f 03 c0 8000", "127 128"},
		{func(p *Writer) { p.AddInt(-1); p.AddInt(-128); p.AddInt(-129) }, "dfff 02 df80 02 df7f 02", "00 feff 03 fe80 03 c0 7fff", "-1 -128 -129"},
		{func(p *Writer) { p.AddInt(4095); p.AddInt(4096) }, "cfff 02 f1 0010 03", "00 c0 ff0f 04 c0 0010", "4095 4096"},
		{func(p *Writer) { p.AddInt(-4096); p.AddInt(-4097) }, "d000 02 f1 ffef 03", "00 c0 00f0 04 c0 ffef", "-4096 -4097"},
		{func(p *Writer) { p.AddInt(32767); p.AddInt(32768) }, "f1 ff7f 03 f2 008000 04", "00 c0 ff7f 04 f0 008000", "32767 32768"},
		{func(p *Writer) { p.AddInt(-32768); p.AddInt(-32769) }, "f1 0080 03 f2 ff7fff 04", "00 c0 0080 04 f0 ff7fff", "-32768 -32769"},
		{func(p *Writer) { p.AddInt(1<<23 - 1); p.AddInt(1 << 23) }, "f2 ffff7f 04 f3 00008000 05", "00 f0 ffff7f 05 d0 00008000", "8388607 8388608"},
		{func(p *Writer) { p.AddInt(-1 << 23); p.AddInt(-1<<23 - 1) }, "f2 000080 04 f3 ffff7fff 05", "00 f0 000080 05 d0 ffff7fff", "-8388608 -8388609"},
		{func(p *Writer) { p.AddInt(math.MaxInt32); p.AddInt(math.MaxInt32 + 1) }, "f3 ffffff7f 05 f4 0000008000000000 09",
			"00 d0 ffffff7f 06 e0 0000008000000000", "2147483647 2147483648"},
		{func(p *Writer) { p.AddInt(math.MinInt32); p.AddInt(math.MinInt32 - 1) }, "f3 00000080 05 f4 ffffff7fffffffff 09",
			"00 d0 00000080 06 e0 ffffff7fffffffff", "-2147483648 -2147483649"},
		{func(p *Writer) { p.Add(text(63)); p.Add(text(64)) }, "bf 61*63 40 e040 61*64 42", "00 3f 61*63 41 4040 61*64", "63 bytes 64 bytes"},
		{func(p *Writer) { p.Add(text(4095)); p.Add(text(4096)) }, "efff 61*4095 2081 f0 00100000 61*4096 2085",
			"00 4fff 61*4095 fe 02100000 5000 61*4096", "4095 bytes 4096 bytes"},
		{func(p *Writer) { p.Add(text(16383)); p.Add(text(16384)) }, "f0 ff3f0000 61*16383 018084 f0 00400000 61*16384 018085",
			"00 7fff 61*16383 fe 02400000 80 00004000 61*16384", "16383 bytes 16384 bytes"},
		{func(p *Writer) { p.Add(text(250)); p.Add(text(251)); p.AddInt(1) }, "e0fa 61*250 01fc e0fb 61*251 01fd 01 01",
			"00 40fa 61*250 fd 40fb 61*251 fe fe000000 f2", "250 bytes 251 bytes 1"},
		{func(p *Writer) { p.Add([]byte("-7")); p.Add([]byte("0")); p.Add([]byte("-")); p.Add(nil) }, "dff9 02 00 01 81 2d 02 80 01",
			"00 fef9 03 f1 02 01 2d 03 00", `-7 0 "-" ""`},
		{func(p *Writer) { p.Add([]byte("-0")); p.Add([]byte("07")); p.Add([]byte("/")); p.Add([]byte(":")) },
			"82 2d30 03 82 3037 03 81 2f 02 81 3a 02", "00 02 2d30 04 02 3037 04 01 2f 03 01 3a", `"-0" "07" "/" ":"`},
		{func(p *Writer) { p.Add([]byte("-9223372036854775808")); p.Add([]byte("9223372036854775807")) }, "f4 0000000000000080 09 f4 ffffffffffffff7f 09",
			"00 e0 0000000000000080 0a e0 ffffffffffffff7f", "-9223372036854775808 9223372036854775807"},
		{func(p *Writer) { p.Add([]byte("-9223372036854775809")); p.Add([]byte("9223372036854775808")) },
			"94 2d393232333337323033363835343737353830 39 15 93 39323233333732303336383534373735383038 14",
			"00 14 2d393232333337323033363835343737353830 39 16 13 39323233333732303336383534373735383038", "20 bytes 19 bytes"},
		{func(p *Writer) { p.AddScore(3); p.AddScore(1.5); p.AddScore(math.Copysign(0, -1)) }, "03 01 83 312e35 04 82 2d30 03",
			"00 f4 02 03 312e35 05 02 2d30", `3 "1.5" "-0"`},
		{func(p *Writer) { p.AddScore(math.Inf(-1)); p.AddScore(1e18) }, "84 2d696e66 05 85 31652b3138 06", "00 04 2d696e66 06 05 31652b3138", `"-inf" "1e+18"`},
	} {
		for kind, want := range map[Kind]string{Listpack: c.listpack, Ziplist: c.ziplist} {
			var p Writer
			p.Begin(kind)
			c.add(&p)
			size := p.Size()
			b := p.End()
			head := map[Kind]int{Listpack: listpackHead, Ziplist: ziplistHead}[kind]
			if got := string(b[head : len(b)-1]); got != string(formattest.Unhex(t, want)) || size != len(b)-1 {
				t.Errorf("%s: entries %x of %d bytes, want %s", kind, got[:min(len(got), 40)], size, want)
			}
			if got := unpacked(kind, b); got != c.want {
				t.Errorf("%s unpacked: %s, want %s", kind, got, c.want)
			}
		}
	}
}

// TestPackedMany: the count of a packed encoding is capped at 65535, which means unknown.
func TestPackedMany(t *testing.T) {
	for _, kind := range []Kind{Listpack, Ziplist} {
		for n, want := range map[int]string{65534: "feff", 65535: "ffff", 65536: "ffff"} {
			var p Writer
			p.Begin(kind)
			for range n {
				p.AddInt(1)
			}
			b := p.End()
			at := map[Kind]int{Listpack: 4, Ziplist: 8}[kind]
			if got := hex.EncodeToString(b[at : at+2]); got != want || strings.Count(unpacked(kind, b), "1") != n {
				t.Errorf("%s of %d entries: count %s, want %s", kind, n, got, want)
			}
		}
	}
}

// TestBacklenSize: the bounds of Redis' listpack.c, where the largest size that would fit takes one more byte.
func TestBacklenSize(t *testing.T) {
	for size, want := range map[int]int{0: 1, 127: 1, 128: 2, 16382: 2, 16383: 3, 2097150: 3, 2097151: 4, 268435454: 4,
		268435455: 5} {
		if got := backlenSize(size); got != want {
			t.Errorf("an entry of %d bytes: %d, want %d", size, got, want)
		}
	}
}

// TestAlone: both ways to build a ziplist of one long text give equal bytes.
func TestAlone(t *testing.T) {
	length := func(dst []byte, n uint64) []byte { return binary.AppendUvarint(dst, n) }
	for _, n := range []int{8 << 10, 1<<14 - 1, 1 << 14, 1 << 20} {
		text := bytes.Repeat([]byte("x"), n)
		var p, q Writer
		p.Begin(Ziplist)
		p.Add(text)
		b := p.End()
		got := q.Alone([]byte("before"), text, length)
		if !bytes.Equal(got, append(length([]byte("before"), uint64(len(b))), b...)) {
			t.Errorf("%d bytes: another ziplist", n)
		}
	}
}

// TestIntset: the width is determined by the widest number.
func TestIntset(t *testing.T) {
	length := func(dst []byte, n uint64) []byte { return append(dst, byte(n)) }
	for want, numbers := range map[string][]int64{
		"-32768 0 32767": {-32768, 0, 32767}, "-32769 1": {-32769, 1}, "7 2147483647": {7, math.MaxInt32}, "7 2147483648": {7, math.MaxInt32 + 1},
		"-2147483649 -9": {math.MinInt32 - 1, -9},
	} {
		b := AppendIntset([]byte("x"), numbers, length)
		if b[0] != 'x' || int(b[1]) != len(b)-2 {
			t.Errorf("%s: begins with %q", want, b[:2])
		}
		if got := unpacked(Intset, b[2:]); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestScores: integers and texts as scores, valid and invalid.
func TestScores(t *testing.T) {
	for _, c := range []struct {
		item Item
		want float64
		bad  bool
	}{
		{Item{N: -3, IsInt: true}, -3, false}, {Item{Text: []byte("1.5")}, 1.5, false}, {Item{Text: []byte("-inf")}, math.Inf(-1), false},
		{Item{Text: []byte("1e999")}, math.Inf(1), false}, {Item{Text: []byte("x")}, 0, true}, {Item{Text: []byte("1_0")}, 0, true}, {Item{}, 0, true},
	} {
		if got, err := c.item.Score(); got != c.want || (err != nil) != c.bad {
			t.Errorf("%+v: %v, %v", c.item, got, err)
		}
	}
	if got := string(AppendScore(nil, math.Inf(1))); got != "inf" {
		t.Error(got)
	}
}

// TestMust: an entry that must exist, and does or does not; its text.
func TestMust(t *testing.T) {
	var w Writer
	w.Begin(Listpack)
	w.AddInt(-70000)
	w.Add([]byte("text"))
	b := w.End()
	var p Reader
	if err := p.Open(Listpack, b); err != nil || p.Kind() != Listpack || p.Size() != len(b) || p.Count() != 2 {
		t.Fatal(err, p)
	}
	var e Item
	arena := []byte("before ")
	for range 2 {
		if err := p.Must(&e); err != nil {
			t.Fatal(err)
		}
		var s []byte
		s, arena = e.AppendTo(arena)
		if want := map[bool]string{true: "-70000", false: "text"}[e.IsInt]; string(s) != want {
			t.Errorf("%s, want %s", s, want)
		}
	}
	if string(arena) != "before -70000" {
		t.Errorf("%q: texts are views", arena)
	}
	if err := p.Must(&e); err != errOdd {
		t.Error(err)
	}
}

func FuzzReader(f *testing.F) {
	for kind := range Zipmap + 1 {
		f.Add(uint8(kind), []byte("\x02\x00\x00\x00\x00\x00\xff"))
	}
	for _, kind := range []Kind{Ziplist, Listpack} {
		var p Writer
		p.Begin(kind)
		p.Add([]byte("text"))
		p.AddInt(-70000)
		p.AddScore(1.5)
		f.Add(uint8(kind), bytes.Clone(p.End()))
	}
	f.Fuzz(func(t *testing.T, kind uint8, b []byte) {
		var p Reader
		if p.Open(Kind(kind%4), b) != nil {
			return
		}
		var e Item
		for n := 0; ; n++ {
			ok, err := p.Next(&e)
			if !ok || err != nil {
				return
			}
			if n > len(b) {
				t.Fatal("does not end")
			}
		}
	})
}

// TestShortDecimals: shortDecimal agrees with strconv to the last bit, and rejects texts that are not numbers.
func TestShortDecimals(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	short := 0
	for i := range 200_000 {
		n := 1 + r.IntN(18)
		b := make([]byte, 0, 20)
		if r.IntN(3) == 0 {
			b = append(b, '-')
		}
		for range n {
			b = append(b, "0123456789012345678901234567890123456789."[r.IntN(41)])
		}
		if i%50 == 0 {
			b[r.IntN(len(b))] = "e+_xX 9"[r.IntN(7)]
		}
		f, ok := shortDecimal(b)
		want, err := strconv.ParseFloat(string(b), 64)
		if ok && (err != nil || math.Float64bits(f) != math.Float64bits(want)) {
			t.Fatalf("%q: %v, want %v, %v", b, f, want, err)
		}
		if ok {
			short++
		}
	}
	if short < 50_000 {
		t.Errorf("only %d were read the short way", short)
	}
	for _, s := range []string{"", "-", ".", "-.5", "5.", "1.2.3", "9007199254740993", "1e5", "12345678901234567"} {
		if f, ok := shortDecimal([]byte(s)); ok {
			t.Errorf("%q is %v", s, f)
		}
	}
	for s, want := range map[string]float64{"-0": math.Copysign(0, -1), "0.1": 0.1, "00012.50": 12.5,
		"9007199254740991": 1<<53 - 1} {
		if f, ok := shortDecimal([]byte(s)); !ok || math.Float64bits(f) != math.Float64bits(want) {
			t.Errorf("%q is %v, %t", s, f, ok)
		}
	}
}
