package sst

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/s2"
	"github.com/zeebo/xxh3"

	"kvferry/internal/sys/bufpool"
	"kvferry/internal/testkit/testsst"
	"kvferry/store"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/blocks"
)

// TestSessionDigits: the identity of a table is 128 bits in base 36, cut to what 20 digits take: 62 bits in the last twelve,
// 41 in the first eight.
func TestSessionDigits(t *testing.T) {
	for i := range uint64(20) {
		w := &Writer{o: &WriterOptions{Identity: fmt.Sprint("identity ", i)}}
		sum := xxh3.Hash128(append([]byte(w.o.Identity), 0))
		all := new(big.Int).SetUint64(sum.Hi)
		all.Lsh(all, 64).Add(all, new(big.Int).SetUint64(sum.Lo))
		low := new(big.Int).And(all, new(big.Int).SetUint64(1<<62-1))
		high := new(big.Int).Rsh(all, 62)
		high.And(high, new(big.Int).SetUint64(1<<41-1))
		if want := fmt.Sprintf("%08s%012s", strings.ToUpper(high.Text(36)), strings.ToUpper(low.Text(36))); w.session() != want {
			t.Errorf("%s: session differs from %s", w.o.Identity, want)
		}
	}
}

// noise is bytes that cannot be compressed.
func noise(n int) []byte {
	b := make([]byte, n)
	x := uint32(1)
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return b
}

// TestEighth: a block is compressed when that saves more than an eighth.
func TestEighth(t *testing.T) {
	var codecs [2]int
	for zeros := 400; zeros < 700; zeros++ {
		raw := slices.Concat(noise(4096-zeros), make([]byte, zeros))
		want := byte(codecNone)
		if len(s2.EncodeSnappy(nil, raw)) < 4096-512 {
			want = codecSnappy
		}
		out := packBlock([]byte("before"), raw, RocksDB2, true)
		if got := out[len(out)-blocks.TrailerLen]; got != want {
			t.Fatalf("%d zeros: codec %d, want %d", zeros, got, want)
		}
		codecs[want]++
	}
	if codecs[0] < 20 || codecs[1] < 20 {
		t.Errorf("blocks by codec: %d", codecs)
	}
}

// TestSizesOfWriter: buffers have the requested size, at most the size of a write; a block has its predicted size; a
// filter has a line per 51 keys, and an odd number of lines; a large buffer has no excess byte.
func TestSizesOfWriter(t *testing.T) {
	for n, want := range map[int]int{-1: writeSize, 0: writeSize, 1: 1, writeSize: writeSize, writeSize + 1: writeSize} {
		if got := (&WriterOptions{Buffer: n}).buffer(); got != want {
			t.Errorf("buffer of %d: %d bytes, want %d", n, got, want)
		}
	}
	var b blockWriter
	for i := range 100 {
		b.entry(fmt.Appendf(nil, "key%03d", i), []byte("value"), i%7 == 0)
		if i%30 == 0 {
			if size, n := b.size(), len(b.finish()); size != n {
				t.Errorf("block of %d bytes, foreseen %d", n, size)
			}
		}
	}
	for _, n := range []int{1, bufpool.Large - 10, 2*bufpool.Large + 1} {
		b := growExact(append(make([]byte, 0, 10), "0123456789"...), n)
		if string(b) != "0123456789" || cap(b)-len(b) < n || n > bufpool.Large && cap(b) != 10+n {
			t.Errorf("room for %d bytes: %d of %d", n, len(b), cap(b))
		}
		if c := growExact(b, cap(b)-len(b)); &c[0] != &b[0] {
			t.Errorf("room for %d bytes is made anew where there is enough", n)
		}
	}
}

// TestSeparators: the key of an index entry is as short as possible, not below its block's last key, and below the next
// key.
func TestSeparators(t *testing.T) {
	for _, c := range []struct{ last, next, want string }{
		{"abcdef", "abzz", "abd"}, {"abcdef", "abd", "abcdef"}, {"abcdef", "abe", "abd"}, {"abc", "abe", "abc"}, {"abcd", "abe", "abd"},
		{"abcd", "abcdef", "abcd"}, {"ab\xfed", "ab\xff", "ab\xfed"}, {"ab\xffd", "b", "ab\xffd"}, {"a", "c", "a"}, {"ax", "c", "b"}, {"", "c", ""},
		{"abcd", "ab", "abcd"}, // not in order
	} {
		w := &Writer{o: &WriterOptions{Format: RocksDB5}, bytes: true, last: []byte(c.last)}
		w.appendSeparator([]byte(c.next))
		if string(w.sep) != c.want {
			t.Errorf("between %q and %q: %q, want %q", c.last, c.next, w.sep, c.want)
		}
		w.appendSeparator(nil)
		if string(w.sep) != c.last {
			t.Errorf("behind %q: %q", c.last, w.sep)
		}
	}
}

// TestLiterals: the first literal of a compressed block.
func TestLiterals(t *testing.T) {
	pad := "0123456789"
	for _, c := range []struct {
		block, text string
		at          int
		ok          bool
	}{
		{"", "", 0, false}, {"\x80", "", 0, false}, {"\x05\x08abc", "", 0, false}, {"\x05\x08abc" + pad, "abc", 2, true}, {"\x05\x00a" + pad, "a", 2, true},
		{"\x05\x09abc" + pad, "", 0, false}, {"\x05\x0aabc" + pad, "", 0, false}, // copies
		{"\x05\x34abc" + pad, "", 0, false}, {"\x05\x30abc" + pad, "abc" + pad, 2, true}, // one byte more than there is, all
		{"\x05\xfc\x02\x00\x00\x00abc" + pad, "abc", 6, true}, {"\x05\xfc\xff\xff\xff\xffabc" + pad, "", 0, false},
		{"\x05\xf0\x02\x00\x00\x00abc" + pad, "", 0, false}, // lengths of another size are not written here
	} {
		text, at, ok := literal([]byte(c.block))
		if string(text) != c.text || at != c.at && ok || ok != c.ok {
			t.Errorf("%q: %q at %d, %t, want %q at %d, %t", c.block, text, at, ok, c.text, c.at, c.ok)
		}
	}
	head := func(shared, unshared byte, key string) []byte {
		entry := append([]byte{shared, unshared, 0}, key...)
		return append([]byte{99, byte(len(entry)-1) << 2}, append(entry, pad...)...)
	}
	for _, c := range []struct {
		head []byte
		at   int
	}{{head(0, 9, "012345678"), 2 + 3 + 1}, {head(0, 8, "01234567"), 2 + 3}, {head(1, 9, "012345678"), 0},
		{head(0, 7, "0123456"), 0},
		{head(0, 9, "01234567"), 0}, {head(0, 9, "0123456789"), 0}, {head(0x80, 0x80, "\x80"), 0}, {nil, 0}} {
		if at, err := largeTrailer(c.head); at != c.at || (err == nil) != (c.at > 0) {
			t.Errorf("%q: trailer at %d, %v, want %d", c.head, at, err, c.at)
		}
	}
}

// TestNumbers: numbers of files at their edges.
func TestNumbers(t *testing.T) {
	for n, ok := range map[uint64]bool{0: true, 1<<61 + 1: true, 1 << 62: true, 1<<62 + 1: false} {
		f := &base.Fields{Buf: binary.AppendUvarint(nil, n)}
		if got := count(f); (f.Err == nil) != ok || ok && uint64(got) != n {
			t.Errorf("%d entries: %d, %v", n, got, f.Err)
		}
	}
	if MaxRow != 1<<30 || DefaultMax != 528<<20 {
		t.Errorf("rows of up to %d bytes, blocks of up to %d", MaxRow, DefaultMax)
	}
	ft := &Footer{Context: 0x01020304}
	for off, want := range map[uint64]uint32{0: 0x01020304, 5: 0x01020301, 3<<32 + 5: 0x0102030c, 1<<31 + 1: 0x81020305} {
		if got := ft.context(off); got != want {
			t.Errorf("context at %#x: %#x, want %#x", off, got, want)
		}
	}
	for size, ok := range map[int]bool{0: false, 1: true, 255*4 + 64: true, 255*4 + 65: false} {
		if _, err := unpackLZ4(nil, []byte{0x10, 'a', 0, 0}, size, nil); errors.Is(err, errSize) == ok {
			t.Errorf("LZ4 of 4 bytes to %d: %v", size, err)
		}
	}
	o := origin{database: "db", session: "ABCDEFGH0123456789XY", number: 7}
	id, _ := o.UniqueID()
	o.session = "ABCDEFGL0123456789XY" // the lowest bit that goes into the hash
	if other, ok := o.UniqueID(); !ok || other[1] == id[1] || other[0] != id[0] {
		t.Errorf("%x and %x", id, other)
	}
}

// TestRoomOfLargeBlock: the buffer of a single large row is not kept for small rows, but is kept for large ones.
func TestRoomOfLargeBlock(t *testing.T) {
	large, half := strings.Repeat("L", 4*bigBlock), string(noise(bigBlock))
	entries := []testsst.Entry{testsst.Put("a", 5, large), testsst.Put("b", 4, half), testsst.Put("c", 3, "small")}
	b := testsst.MakeTable(t, testsst.Spec{Codec: codecSnappy, BlockSize: 1}, entries)
	bw, err := memoryReader(b, Options{}).Walk(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer bw.Close()
	w := bw.(*Walk)
	var kept []bool
	for {
		ok, err := w.Next()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			break
		}
		if _, err := w.Load(); err != nil {
			t.Fatal(err)
		}
		kept = append(kept, cap(w.plain) > bigBlock)
	}
	if !slices.Equal(kept, []bool{true, true, false}) {
		t.Errorf("large room after each block: %t", kept)
	}
}

// TestBefore: the last index key before another key, which is at a restart, next to one, or missing.
func TestBefore(t *testing.T) {
	var b testsst.Block
	for i := range 12 {
		b.Add(fmt.Appendf(nil, "k%02d", 2*i), []byte{1, 2}, i%3 == 0)
	}
	bl, err := blocks.Parse(b.Finish(nil))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 26 {
		x := &indexBlock{Block: bl, userKeys: true}
		want := ""
		if i > 0 {
			want = fmt.Sprintf("k%02d", min((i-1)/2*2, 22))
		}
		if got := x.before(store.Bytewise.Compare, fmt.Appendf(nil, "k%02d", i)); string(got) != want {
			t.Errorf("before k%02d: %q, want %q", i, got, want)
		}
	}
	if !bytes.Equal(nil, (&indexBlock{userKeys: true}).before(store.Bytewise.Compare, []byte("a"))) {
		t.Error("an empty index has a key")
	}
}

// TestEighthOfLargeRow: the same holds for the block of a large row.
func TestEighthOfLargeRow(t *testing.T) {
	var codecs [2]int
	for zeros := 450; zeros < 650; zeros++ {
		value := slices.Concat(noise(4096-zeros), make([]byte, zeros))
		var out bytes.Buffer
		w := NewWriter(&out, &WriterOptions{Comparer: store.Bytewise, Format: RocksDB2})
		if err := w.large([]byte("key"), value, nil); err != nil {
			t.Fatal(err)
		}
		r := newLargeRow([]byte("key"), w.trailer, value, nil)
		want := byte(codecNone)
		if r.packedSize(make([]byte, s2.MaxEncodedLen(len(value))), 1<<20) < r.size()-r.size()/8 {
			want = codecSnappy
		}
		if got := out.Bytes()[out.Len()-blocks.TrailerLen]; got != want || uint64(out.Len()) != w.off {
			t.Fatalf("%d zeros: codec %d, want %d; %d bytes at %d", zeros, got, want, out.Len(), w.off)
		}
		codecs[want]++
	}
	if codecs[0] < 20 || codecs[1] < 20 {
		t.Errorf("blocks by codec: %d", codecs)
	}
}

// TestMetaindexOfFilters: a filter's metaindex entry must be exactly one handle within the file.
func TestMetaindexOfFilters(t *testing.T) {
	for name, value := range map[string][]byte{"cut": {0x80},
		"more":   append(testsst.HandleBytes(blocks.Handle{Off: 0, Size: 1}), 7),
		"beyond": testsst.HandleBytes(blocks.Handle{Off: 1 << 30, Size: 1})} {
		for _, filter := range []string{"fullfilter.x", "partitionedfilter.x", "other"} {
			b := testsst.MakeTable(t, testsst.Spec{MetaEntries: map[string][]byte{filter: value}}, testsst.SomeEntries(3))
			var got []string
			_, err := memoryReader(b, Options{}).CheckBlocks(nil, func(_ uint64, err error) { got = append(got, err.Error()) })
			want := []string{filter + ": the metaindex names no block of the file"}
			if filter == "other" {
				want = nil
			}
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%s, %s: %q, %v", filter, name, got, err)
			}
		}
	}
}

// TestExternal: tables of external version 2 have a field for their sequence number, older ones do not.
func TestExternal(t *testing.T) {
	for version, want := range map[byte]bool{0: false, 1: false, 2: true, 3: true} {
		var p Properties
		if err := p.set(propExternal, []byte{version, 0, 0, 0}); err != nil || p.External != want {
			t.Errorf("version %d: %t, %v", version, p.External, err)
		}
	}
}

// TestEndsOfSize: the ends of a block of the maximum size are read, those of a larger block are not.
func TestEndsOfSize(t *testing.T) {
	entries := testsst.SomeEntries(5)
	r := memoryReader(testsst.MakeTable(t, testsst.Spec{BlockSize: 1 << 20}, entries), Options{})
	bw, err := r.Walk(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer bw.Close()
	if ok, err := bw.Next(); !ok || err != nil {
		t.Fatal(err)
	}
	h := bw.(*Walk).Handle()
	for most, ends := range map[uint64]bool{h.Size - 1: false, h.Size: true} {
		first, last, err := r.ends(h, most)
		if err != nil || (first != nil) != ends ||
			ends && (!bytes.Equal(first, entries[0].Internal()) || !bytes.Equal(last, entries[4].Internal())) {
			t.Errorf("block of %d bytes, at most %d: %q to %q, %v", h.Size, most, first, last, err)
		}
	}
}

// TestHasRoom: a block accepts rows until it is nearly full, then one that fits exactly, and no row beyond its size.
func TestHasRoom(t *testing.T) {
	const last = blockSize - blockFull - 1 - base.TrailerLen // a row that exactly fits a nearly full block
	for _, c := range []struct {
		size, n int
		want    bool
	}{
		{0, 1 << 20, true}, {blockFull, 1 << 20, true}, {blockFull + 1, last, true}, {blockFull + 1, last + 1, false},
		{blockSize - base.TrailerLen, 0, true}, {blockSize - 1, 0, false}, {blockSize, 0, false},
	} {
		if got := hasRoom(c.size, c.n); got != c.want {
			t.Errorf("a row of %d bytes in a block of %d: %v", c.n, c.size, got)
		}
	}
}
