package blocks

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"kvferry/record"
	"kvferry/store/rocks/base"
)

// entry encodes an entry of a block.
func entry(shared int, rest, value string) []byte {
	b := binary.AppendUvarint(nil, uint64(shared))
	b = binary.AppendUvarint(b, uint64(len(rest)))
	b = binary.AppendUvarint(b, uint64(len(value)))
	return append(append(b, rest...), value...)
}

// block ends entries with restarts.
func block(entries []byte, restarts ...uint32) []byte {
	for _, r := range restarts {
		entries = binary.LittleEndian.AppendUint32(entries, r)
	}
	return binary.LittleEndian.AppendUint32(entries, uint32(len(restarts)))
}

func walk(b []byte) (string, error) {
	bl, err := Parse(b)
	if err != nil {
		return "", err
	}
	var out []string
	e := Entries{Data: bl.Entries}
	for {
		ok, err := e.Next()
		if !ok || err != nil {
			return strings.Join(out, " "), err
		}
		out = append(out, fmt.Sprintf("%d:%s=%s", e.At, e.Key, e.Val))
	}
}

func TestEntries(t *testing.T) {
	long := strings.Repeat("v", 300)
	body := append(append(entry(0, "apple", "1"), entry(3, "ricot", "")...), entry(0, "b", long)...)
	b := block(body, 0, 18)
	if got, err := walk(b); err != nil || got != "0:apple=1 9:appricot= 17:b="+long {
		t.Errorf("%s, %v", got, err)
	}
	bl, _ := Parse(b)
	if bl.NumRestarts() != 2 || bl.Restart(0) != 0 || bl.Restart(1) != 18 || bl.Restart(2) != -1 {
		t.Errorf("restarts %v", bl)
	}
	// A hash index between the restarts and their number is skipped.
	hashed := append(append([]byte{}, b[:len(b)-4]...), 9, 9, 9, 3, 0)
	hashed = binary.LittleEndian.AppendUint32(hashed, 2|1<<31)
	if got, err := walk(hashed); err != nil || !strings.HasPrefix(got, "0:apple=1 ") {
		t.Errorf("with a hash index: %s, %v", got, err)
	}
	if got, err := walk(block(nil)); got != "" || err != nil {
		t.Errorf("empty block: %s, %v", got, err)
	}
	// RocksDB 11's hint for evenly distributed keys, and its layout with values behind all keys, which is refused.
	uniform := binary.LittleEndian.AppendUint32(append([]byte{}, b[:len(b)-4]...), 2|1<<29)
	if got, err := walk(uniform); err != nil || !strings.HasPrefix(got, "0:apple=1 ") {
		t.Errorf("with a hint: %s, %v", got, err)
	}
	if _, err := Parse(binary.LittleEndian.AppendUint32(append([]byte{}, b[:len(b)-4]...), 2|1<<28)); !errors.Is(err,
		base.ErrUnsupported) {
		t.Errorf("keys and values apart: %v", err)
	}
	if bl, _ := Parse(block([]byte{1, 2}, 2, 1, 5)); bl.NumRestarts() != 3 || bl.Restart(0) != -1 || bl.Restart(1) != 1 ||
		bl.Restart(2) != -1 {
		t.Errorf("restarts at the end of the entries, before it and beyond: %d %d %d of %d", bl.Restart(0), bl.Restart(1),
			bl.Restart(2), bl.NumRestarts())
	}
	if bl, err := Parse(block(nil, 0, 0)); bl.NumRestarts() != 2 || err != nil {
		t.Errorf("nothing but restarts: %d, %v", bl.NumRestarts(), err)
	}
	if got, err := walk(block(append(entry(0, "k", "v"), entry(1, "ey", "")...), 0)); got != "0:k=v 5:key=" || err != nil {
		t.Errorf("an empty value at the end: %s, %v", got, err)
	}
}

// TestEntryHeader: lengths of up to 32 bits.
func TestEntryHeader(t *testing.T) {
	for _, tt := range []struct {
		lengths []uint64
		next    int
	}{
		{[]uint64{0, 1, 2}, 4}, {[]uint64{1, 300, 2}, 5}, {[]uint64{300, 1, 2}, 5}, {[]uint64{math.MaxUint32, 300, math.MaxUint32}, 13}, {[]uint64{math.MaxUint32 + 1, 1, 1}, -1},
		{[]uint64{1, math.MaxUint32 + 1, 1}, -1}, {[]uint64{1, 1, math.MaxUint32 + 1}, -1}, {[]uint64{1, 1}, -1}, {nil, -1},
		{[]uint64{1, 2, 127, 1}, 4}, {[]uint64{1, 2, 128}, 5}, {[]uint64{1, 2, 129, 0}, 5}, {[]uint64{1, 2, 127<<7 | 1}, 5}, {[]uint64{127, 127, 128 << 7}, 6},
		{[]uint64{0, 128, 1}, 5},
	} {
		b := []byte{9}
		for _, n := range tt.lengths {
			b = binary.AppendUvarint(b, n)
		}
		want := []uint64{0, 0, 0}
		if tt.next > 0 {
			want = tt.lengths[:3]
		}
		shared, unshared, value, next := EntryHeader(b, 1)
		got := []uint64{uint64(shared), uint64(unshared), uint64(value)}
		if next != tt.next || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%d: %d, next %d, want %d and %d", tt.lengths, got, next, want, tt.next)
		}
	}
}

// TestEntryHeaderCut: bytes that end within a length, and one that is longer than it needs to be.
func TestEntryHeaderCut(t *testing.T) {
	if _, _, _, next := EntryHeader([]byte{0, 1, 0x80}, 0); next != -1 {
		t.Errorf("a length that ends early ends at %d", next)
	}
	if shared, unshared, value, next := EntryHeader([]byte{0x80, 0, 1, 2, 3}, 0); shared != 0 || unshared != 1 || value != 2 ||
		next != 4 {
		t.Errorf("zero in two bytes: %d, %d, %d, next %d", shared, unshared, value, next)
	}
}

// TestHashIndexEdges: the smallest block that can have a hash index, and the largest.
func TestHashIndexEdges(t *testing.T) {
	if got, err := walk([]byte{0, 0, 0, 0, 0, 0x80}); got != "" || err != nil {
		t.Errorf("nothing but an index of no buckets: %s, %v", got, err)
	}
	for _, b := range [][]byte{{0, 0, 0, 0x80}, {0, 0, 0, 0, 0x80}, {1, 0, 0, 0, 0, 0x80}} {
		if _, err := Parse(b); !errors.Is(err, record.ErrShort) {
			t.Errorf("%x: %v", b, err)
		}
	}
	for _, size := range []int{64<<10 - 1, 64 << 10, 64<<10 + 1} { // larger ones have 32 bits for the number of restarts
		b := entry(0, "k", strings.Repeat("v", size-len(entry(0, "k", strings.Repeat("v", 60_000)))+60_000-4-2-4))
		b = append(b, 0, 0, 0, 0, 0, 0)
		b = binary.LittleEndian.AppendUint32(b, 1|1<<31)
		_, err := walk(b)
		if len(b) != size || (err == nil) != (size <= 64<<10) {
			t.Errorf("%d bytes: %v", len(b), err)
		}
	}
}

func TestDamagedBlocks(t *testing.T) {
	for _, b := range [][]byte{nil, {1, 2, 3}, {0, 0, 0, 1}, {0xff, 0xff, 0, 0, 0, 0x80}, {1, 0, 0, 0x80},
		{9, 0, 0, 0, 2, 0, 0, 0}, append(make([]byte, 16), 5, 0, 0, 0)} {
		if _, err := Parse(b); !errors.Is(err, record.ErrShort) {
			t.Errorf("%x: %v", b, err)
		}
	}
	for _, body := range [][]byte{{0}, {0, 5, 0, 'a'}, {0, 1, 9, 'a'}, {2, 1, 0, 'a'}, {0xff, 0xff, 0xff, 0xff, 0xff, 1, 0, 0}} {
		if got, err := walk(block(body)); !errors.Is(err, ErrEntry) {
			t.Errorf("%x: %s, %v", body, got, err)
		}
	}
}

func TestHandle(t *testing.T) {
	for size, ok := range map[uint64]bool{1 << 31: true, 1<<31 + 1: false} {
		if err := (Handle{0, size}).Check(1 << 40); (err == nil) != ok {
			t.Errorf("a block of %d bytes: %v", size, err)
		}
	}
	f := &base.Fields{Buf: []byte{0x80, 1, 5, 9}}
	h := ReadHandle(f, "handle")
	if h != (Handle{128, 5}) || f.Left() != 1 || f.Err != nil {
		t.Errorf("%v, %v", h, f.Err)
	}
	for _, tt := range []struct {
		h    Handle
		size int64
		ok   bool
	}{
		{Handle{0, 10}, 15, true}, {Handle{0, 10}, 14, false}, {Handle{20, 0}, 10, false}, {Handle{5, 5}, 15, true},
		{Handle{10, 5}, 15, false}, {Handle{10, 0}, 10, false}, {Handle{math.MaxUint64, 1}, 100, false}, {Handle{0, math.MaxUint64}, 100, false}, {Handle{0, MaxSize + 1}, 1 << 40, false},
	} {
		if err := tt.h.Check(tt.size); (err == nil) != tt.ok {
			t.Errorf("%v in %d bytes: %v", tt.h, tt.size, err)
		}
	}
}

// TestEntryBeyondBlock: no length reaches beyond the block, even if memory follows it.
func TestEntryBeyondBlock(t *testing.T) {
	for _, b := range []string{"\x00\x03\x02abcd", "\x00\x05\x00abcd", "\x01\x01\x01ab", "\x00\x04\x04abcd"} {
		e := Entries{Data: append(make([]byte, 0, 64), b...)}
		if ok, err := e.Next(); ok || !errors.Is(err, ErrEntry) {
			t.Errorf("%q: %q = %q, %v", b, e.Key, e.Val, err)
		}
	}
}
