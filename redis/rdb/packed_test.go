package rdb

import (
	"encoding/hex"
	"fmt"
	"math"
	"strings"
	"testing"
)

// unhex decodes hexadecimal digits; x*n is a byte n times.
func unhex(t *testing.T, text string) (out []byte) {
	t.Helper()
	for _, f := range strings.Fields(text) {
		digits, times, _ := strings.Cut(f, "*")
		b, err := hex.DecodeString(digits)
		if err != nil {
			t.Fatal(err)
		}
		n := 1
		fmt.Sscan(times, &n)
		for range n {
			out = append(out, b...)
		}
	}
	return out
}

// unpacked renders the entries of a packed encoding: integers as they are, short strings quoted, the length of long ones;
// and the error that ends them.
func unpacked(kind packing, b []byte) string {
	var p packed
	var out []string
	err := p.open(kind, b)
	for err == nil {
		var e item
		var ok bool
		if ok, err = p.next(&e); err != nil || !ok {
			break
		}
		switch {
		case e.isInt:
			out = append(out, fmt.Sprint(e.n))
		case len(e.text) > 8:
			out = append(out, fmt.Sprintf("%d bytes", len(e.text)))
		default:
			out = append(out, fmt.Sprintf("%q", e.text))
		}
	}
	if err != nil {
		out = append(out, err.Error())
	}
	return strings.Join(out, " ")
}

// TestPackedBytes: packed encodings to the byte, at the bounds of every encoding of an entry.
func TestPackedBytes(t *testing.T) {
	for _, c := range []struct {
		kind packing
		b    string // size, count and end are put around the entries of listpacks "n: …" and ziplists "n tail: …"
		want string
	}{
		{listpack, "0:", ""},
		{listpack, "3: 00 01  7f 01  80 01", `0 127 ""`},
		{listpack, "4: c001 02  d000 02  dfff 02  cfff 02", "1 -4096 -1 4095"},
		{listpack, "2: bf 61*63 40  e040 61*64 42", "63 bytes 64 bytes"},
		{listpack, "2: efff 61*4095 20 81  f0 00100000 61*4096 20 85", "4095 bytes 4096 bytes"},
		{listpack, "2: f1 0080 03  f1 ff7f 03", "-32768 32767"},
		{listpack, "2: f2 000080 04  f2 ffff7f 04", "-8388608 8388607"},
		{listpack, "2: f3 00000080 05  f3 ffffff7f 05", "-2147483648 2147483647"},
		{listpack, "2: f4 0000000000000080 09  f4 ffffffffffffff7f 09", "-9223372036854775808 9223372036854775807"},
		{listpack, "1: 00 01  01 01", "0 1 holds another number of entries than it says"},
		{listpack, "3: 00 01  01 01", "0 1 holds another number of entries than it says"},
		{listpack, "65535: 00 01  01 01", "0 1"},
		{listpack, "1: 00 02", "an entry says another length of the one before"},
		{listpack, "1: e040 61*64 c2", "an entry says another length of the one before"},
		{listpack, "1: efff 61*4095 a0 81", "an entry says another length of the one before"},
		{listpack, "1: 00", "an entry reaches beyond the end"},
		{listpack, "1: 83 6161", "an entry reaches beyond the end"},
		{listpack, "1: c0", "an entry reaches beyond the end"},
		{listpack, "1: f0 000000", "an entry reaches beyond the end"},
		{listpack, "1: f0", "an entry reaches beyond the end"},
		{listpack, "1: f0 00000000 05", `""`},
		{listpack, "1: f1 00", "an entry reaches beyond the end"},
		{listpack, "1: f5 01", "an entry has an encoding that there is not"},
		{listpack, "06000000 0000", "offset 0: listpack: need 7 bytes, have 6: too short"},
		{listpack, "08000000 0000 ff", "says that it has 8 bytes, and has 7"},
		{listpack, "07000000 0000 fe", "does not end in FF"},

		{ziplist, "0 10:", ""},
		{ziplist, "3 14: 00 f1  02 fd  02 00", `0 12 ""`},
		{ziplist, "2 12: 00 fe80  03 fe7f", "-128 127"},
		{ziplist, "2 13: 00 c0 0080  04 c0 ff7f", "-32768 32767"},
		{ziplist, "2 14: 00 f0 000080  05 f0 ffff7f", "-8388608 8388607"},
		{ziplist, "2 15: 00 d0 00000080  06 d0 ffffff7f", "-2147483648 2147483647"},
		{ziplist, "2 19: 00 e0 0000000000000080  0a e0 ffffffffffffff7f", "-9223372036854775808 9223372036854775807"},
		{ziplist, "3 10: 00 3f 61*63  41 4040 61*64  43 f3", "63 bytes 64 bytes 2"},
		{ziplist, "3 10: 00 40fa 61*250  fd 40fb 61*251  fe fe000000 f2", "250 bytes 251 bytes 1"},
		{ziplist, "2 10: 00 7fff 61*16383  fe 02400000 80 00004000 61*16384", "16383 bytes 16384 bytes"},
		{ziplist, "1 10: 00 80 00000000", `""`},
		{ziplist, "2 10: 00 f1  03 f1", "0 an entry says another length of the one before"},
		{ziplist, "1 10: fe 000000", "an entry reaches beyond the end"},
		{ziplist, "1 10: fe 00000000", "an entry reaches beyond the end"},
		{ziplist, "1 10: 00", "an entry reaches beyond the end"},
		{ziplist, "1 10: 00 40", "an entry reaches beyond the end"},
		{ziplist, "1 10: 00 80 000000", "an entry reaches beyond the end"},
		{ziplist, "1 10: 00 80", "an entry reaches beyond the end"},
		{ziplist, "1 10: fe", "an entry reaches beyond the end"},
		{ziplist, "1 10: 00 0261", "an entry reaches beyond the end"},
		{ziplist, "1 10: 00 f061 61", "an entry reaches beyond the end"},
		{ziplist, "1 10: 00 81", "an entry has an encoding that there is not"},
		{ziplist, "1 10: 00 ff", "an entry has an encoding that there is not"},
		{ziplist, "2 10: 00 f1", "0 holds another number of entries than it says"},
		{ziplist, "65535 10: 00 f1", "0"},
		{ziplist, "0b000000 0a000000 0000 fe", "does not end in FF"},
		{ziplist, "0a000000 0a000000 0000", "offset 0: ziplist: need 11 bytes, have 10: too short"},
		{ziplist, "0c000000 0a000000 0000 ff", "says that it has 12 bytes, and has 11"},
		{ziplist, "0b000000 0b000000 0000 ff", "its last entry would be at 11 of 11 bytes"},

		{intset, "02000000 00000000", ""},
		{intset, "02000000 03000000 0080 ffff ff7f", "-32768 -1 32767"},
		{intset, "04000000 02000000 00000080 ffffff7f", "-2147483648 2147483647"},
		{intset, "08000000 02000000 0000000000000080 ffffffffffffff7f", "-9223372036854775808 9223372036854775807"},
		{intset, "02000000 02000000 0000 0000", "0 integers do not ascend"},
		{intset, "02000000 02000000 0000", "2 integers of 2 bytes in 2 bytes"},
		{intset, "02000000 01000000 0000 00", "1 integers of 2 bytes in 3 bytes"},
		{intset, "03000000 01000000 000000", "integers of 3 bytes"},
		{intset, "02000000 000000", "offset 0: intset: need 8 bytes, have 7: too short"},

		{zipmap, "00 ff", ""},
		{zipmap, "01 0161 01 00 62 ff", `"a" "b"`},
		{zipmap, "02 0161 02 03 6262 000000  00 00 00 ff", `"a" "bb" "" ""`},
		{zipmap, "01 fd 61*253 fe fe000000 00 62*254 ff", "253 bytes 254 bytes"},
		{zipmap, "fd 0161 01 00 62 ff", `"a" "b" holds another number of entries than it says`},
		{zipmap, "fe 0161 01 00 62 ff", `"a" "b"`},
		{zipmap, "01 0161 ff", `"a" holds another number of entries than it says`},
		{zipmap, "01 0161 ff 00 ff", `"a" an entry reaches beyond the end`},
		{zipmap, "01 0161 00 ff", `"a" an entry reaches beyond the end`},
		{zipmap, "01 0161 01 01 62 ff", `"a" an entry reaches beyond the end`},
		{zipmap, "01 0161 02 00 62 ff", `"a" an entry reaches beyond the end`},
		{zipmap, "01 fe 000000 ff", "an entry reaches beyond the end"},
		{zipmap, "01 fe ff", "an entry reaches beyond the end"},
		{zipmap, "ff", "offset 0: zipmap: need 2 bytes, have 1: too short"},
		{zipmap, "00 fe", "does not end in FF"},
	} {
		head, entries, framed := strings.Cut(c.b, ":")
		b := unhex(t, entries)
		if framed {
			var count, tail int
			fmt.Sscan(head, &count, &tail)
			size := len(b) + listpackHead + 1
			head = ""
			if c.kind == ziplist {
				size = len(b) + ziplistHead + 1
				head = fmt.Sprintf("%02x%02x0000", byte(tail), tail>>8)
			}
			head = fmt.Sprintf("%02x%02x%02x00 %s %02x%02x", byte(size), byte(size>>8), size>>16, head, byte(count), count>>8)
			b = append(append(unhex(t, head), b...), packedEnd)
		} else {
			b = unhex(t, c.b)
		}
		if got := unpacked(c.kind, b); got != c.want {
			t.Errorf("%s %.60s: %s\nwant %s", packingNames[c.kind], c.b, got, c.want)
		}
	}
}

// TestPackerBytes: what is packed, to the byte, at the bounds of every encoding, and that it is unpacked again.
func TestPackerBytes(t *testing.T) {
	text := func(n int) []byte { return []byte(strings.Repeat("a", n)) }
	for _, c := range []struct {
		add               func(p *packer)
		listpack, ziplist string // entries, the size of that before or their own left out
		want              string
	}{
		{func(p *packer) { p.addInt(0); p.addInt(12); p.addInt(13) }, "00 01 0c 01 0d 01", "00 f1 02 fd 02 fe0d", "0 12 13"},
		{func(p *packer) { p.addInt(127); p.addInt(128) }, "7f 01 c080 02", "00 fe7f 03 c0 8000", "127 128"},
		{func(p *packer) { p.addInt(-1); p.addInt(-128); p.addInt(-129) }, "dfff 02 df80 02 df7f 02", "00 feff 03 fe80 03 c0 7fff", "-1 -128 -129"},
		{func(p *packer) { p.addInt(4095); p.addInt(4096) }, "cfff 02 f1 0010 03", "00 c0 ff0f 04 c0 0010", "4095 4096"},
		{func(p *packer) { p.addInt(-4096); p.addInt(-4097) }, "d000 02 f1 ffef 03", "00 c0 00f0 04 c0 ffef", "-4096 -4097"},
		{func(p *packer) { p.addInt(32767); p.addInt(32768) }, "f1 ff7f 03 f2 008000 04", "00 c0 ff7f 04 f0 008000", "32767 32768"},
		{func(p *packer) { p.addInt(-32768); p.addInt(-32769) }, "f1 0080 03 f2 ff7fff 04", "00 c0 0080 04 f0 ff7fff", "-32768 -32769"},
		{func(p *packer) { p.addInt(1<<23 - 1); p.addInt(1 << 23) }, "f2 ffff7f 04 f3 00008000 05", "00 f0 ffff7f 05 d0 00008000", "8388607 8388608"},
		{func(p *packer) { p.addInt(-1 << 23); p.addInt(-1<<23 - 1) }, "f2 000080 04 f3 ffff7fff 05", "00 f0 000080 05 d0 ffff7fff", "-8388608 -8388609"},
		{func(p *packer) { p.addInt(math.MaxInt32); p.addInt(math.MaxInt32 + 1) }, "f3 ffffff7f 05 f4 0000008000000000 09",
			"00 d0 ffffff7f 06 e0 0000008000000000", "2147483647 2147483648"},
		{func(p *packer) { p.addInt(math.MinInt32); p.addInt(math.MinInt32 - 1) }, "f3 00000080 05 f4 ffffff7fffffffff 09",
			"00 d0 00000080 06 e0 ffffff7fffffffff", "-2147483648 -2147483649"},
		{func(p *packer) { p.add(text(63)); p.add(text(64)) }, "bf 61*63 40 e040 61*64 42", "00 3f 61*63 41 4040 61*64", "63 bytes 64 bytes"},
		{func(p *packer) { p.add(text(4095)); p.add(text(4096)) }, "efff 61*4095 2081 f0 00100000 61*4096 2085",
			"00 4fff 61*4095 fe 02100000 5000 61*4096", "4095 bytes 4096 bytes"},
		{func(p *packer) { p.add(text(16383)); p.add(text(16384)) }, "f0 ff3f0000 61*16383 018084 f0 00400000 61*16384 018085",
			"00 7fff 61*16383 fe 02400000 80 00004000 61*16384", "16383 bytes 16384 bytes"},
		{func(p *packer) { p.add(text(250)); p.add(text(251)); p.addInt(1) }, "e0fa 61*250 01fc e0fb 61*251 01fd 01 01",
			"00 40fa 61*250 fd 40fb 61*251 fe fe000000 f2", "250 bytes 251 bytes 1"},
		{func(p *packer) { p.add([]byte("-7")); p.add([]byte("0")); p.add([]byte("-")); p.add(nil) }, "dff9 02 00 01 81 2d 02 80 01",
			"00 fef9 03 f1 02 01 2d 03 00", `-7 0 "-" ""`},
		{func(p *packer) { p.add([]byte("-0")); p.add([]byte("07")); p.add([]byte("/")); p.add([]byte(":")) },
			"82 2d30 03 82 3037 03 81 2f 02 81 3a 02", "00 02 2d30 04 02 3037 04 01 2f 03 01 3a", `"-0" "07" "/" ":"`},
		{func(p *packer) { p.add([]byte("-9223372036854775808")); p.add([]byte("9223372036854775807")) }, "f4 0000000000000080 09 f4 ffffffffffffff7f 09",
			"00 e0 0000000000000080 0a e0 ffffffffffffff7f", "-9223372036854775808 9223372036854775807"},
		{func(p *packer) { p.add([]byte("-9223372036854775809")); p.add([]byte("9223372036854775808")) },
			"94 2d393232333337323033363835343737353830 39 15 93 39323233333732303336383534373735383038 14",
			"00 14 2d393232333337323033363835343737353830 39 16 13 39323233333732303336383534373735383038", "20 bytes 19 bytes"},
		{func(p *packer) { p.addScore(3); p.addScore(1.5); p.addScore(math.Copysign(0, -1)) }, "03 01 83 312e35 04 82 2d30 03",
			"00 f4 02 03 312e35 05 02 2d30", `3 "1.5" "-0"`},
		{func(p *packer) { p.addScore(math.Inf(-1)); p.addScore(1e18) }, "84 2d696e66 05 85 31652b3138 06", "00 04 2d696e66 06 05 31652b3138", `"-inf" "1e+18"`},
	} {
		for kind, want := range map[packing]string{listpack: c.listpack, ziplist: c.ziplist} {
			var p packer
			p.begin(kind)
			c.add(&p)
			size := p.size()
			b := p.end()
			head := map[packing]int{listpack: listpackHead, ziplist: ziplistHead}[kind]
			if got := string(b[head : len(b)-1]); got != string(unhex(t, want)) || size != len(b)-1 {
				t.Errorf("%s: entries %x of %d bytes, want %s", packingNames[kind], got[:min(len(got), 40)], size, want)
			}
			if got := unpacked(kind, b); got != c.want {
				t.Errorf("%s unpacked: %s, want %s", packingNames[kind], got, c.want)
			}
		}
	}
}

// TestPackedMany: the count of a packed encoding stops at 65535, and then says nothing.
func TestPackedMany(t *testing.T) {
	for _, kind := range []packing{listpack, ziplist} {
		for n, want := range map[int]string{65534: "feff", 65535: "ffff", 65536: "ffff"} {
			var p packer
			p.begin(kind)
			for range n {
				p.addInt(1)
			}
			b := p.end()
			at := map[packing]int{listpack: 4, ziplist: 8}[kind]
			if got := hex.EncodeToString(b[at : at+2]); got != want || strings.Count(unpacked(kind, b), "1") != n {
				t.Errorf("%s of %d entries: count %s, want %s", packingNames[kind], n, got, want)
			}
		}
	}
}

// TestAppends: lengths, strings, scores and heads of files, to the byte, at the bounds of every encoding.
func TestAppends(t *testing.T) {
	for n, want := range map[uint64]string{0: "00", 63: "3f", 64: "4040", 16383: "7fff", 16384: "80 00004000", math.MaxUint32: "80 ffffffff",
		math.MaxUint32 + 1: "81 0000000100000000"} {
		b := appendLen([]byte("x"), n)
		if string(b) != "x"+string(unhex(t, want)) {
			t.Errorf("length %d: %x, want %s", n, b[1:], want)
		}
		var in input
		if in.reset(b, 0); in.byte("x") != 'x' || in.len("n") != n || in.left() != 0 || in.err != nil {
			t.Errorf("length %d is not read: %v", n, in.err)
		}
	}
	for s, want := range map[string]string{
		"": "00", "a": "01 61", "-": "01 2d", "0": "c000", "127": "c07f", "128": "c1 8000", "-128": "c080", "-129": "c1 7fff",
		"32767": "c1 ff7f", "32768": "c2 00800000", "-32768": "c1 0080", "-32769": "c2 ff7fffff",
		"2147483647": "c2 ffffff7f", "2147483648": "0a 32313437343833363438", "-2147483648": "c2 00000080", "-2147483649": "0b 2d32313437343833363439",
		"07": "02 3037", "-0": "02 2d30", "1a": "02 3161", "+1": "02 2b31",
	} {
		b := appendString([]byte("x"), []byte(s))
		if string(b) != "x"+string(unhex(t, want)) {
			t.Errorf("%q: %x, want %s", s, b[1:], want)
		}
		var in input
		in.reset(b, 0)
		in.byte("x")
		if got, _ := in.str("s", nil); string(got) != s || in.left() != 0 || in.err != nil {
			t.Errorf("%q is read as %q: %v", s, got, in.err)
		}
	}
	for f, want := range map[float64]string{0: "\x010", -1.5: "\x04-1.5", math.Inf(1): "\xfe", math.Inf(-1): "\xff", 0.1: "\x130.10000000000000001"} {
		if got := string(appendTextScore([]byte("x"), f)); got != "x"+want {
			t.Errorf("score %v: %q, want %q", f, got, want)
		}
	}
	for name, want := range map[string]string{"6": "", "7": "redis-ver 3.2.0", "8": "redis-ver 4.0.0", "9": "redis-ver 5.0.0", "10": "redis-ver 7.0.0",
		"11": "redis-ver 7.2.0", "12": "redis-ver 7.4.0", "valkey80": "valkey-ver 9.0.0"} {
		v, err := ParseVersion(name)
		if err != nil {
			t.Fatal(err)
		}
		if want != "" {
			name, version, _ := strings.Cut(want, " ")
			want = string(AppendAux(AppendAux(AppendAux(nil, name, version), "redis-bits", "64"), "ctime", "77"))
		}
		if got := string(AppendHead(nil, v, 77)); got[9:] != want || len(got) != 9+len(want) {
			t.Errorf("version %s: %q, want %q", name, got, want)
		}
	}
}
