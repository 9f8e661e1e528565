package blocks

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/bits"
	"slices"
	"testing"

	"kvferry/store/rocks/base"
)

// TestBloomHash compares with the values in LevelDB's own test, util/hash_test.cc.
func TestBloomHash(t *testing.T) {
	for key, want := range map[string]uint32{"": 0xbc9f1d34, "\x62": 0xef1345c4, "\xc3\x97": 0x5b663814,
		"\xe2\x99\xa5": 0x323c078f, "\xe1\x80\xb9\x32": 0xed21633a} {
		if got := bloomHash([]byte(key), false); got != want {
			t.Errorf("%q: %#x, want %#x", key, got, want)
		}
	}
}

// bloom makes LevelDB's filter of keys in 8 bytes, with 6 probes.
func bloom(keys ...string) []byte {
	f := make([]byte, 9)
	for _, k := range keys {
		h := bloomHash([]byte(k), false)
		for range 6 {
			f[h%64/8] |= 1 << (h % 64 % 8)
			h += bits.RotateLeft32(bloomHash([]byte(k), false), 15)
		}
	}
	f[8] = 6
	return f
}

// filterBlock puts filters together, one for each 2^base bytes of the file.
func filterBlock(base byte, filters ...[]byte) (out []byte) {
	var offsets []byte
	for _, f := range filters {
		offsets = binary.LittleEndian.AppendUint32(offsets, uint32(len(out)))
		out = append(out, f...)
	}
	at := uint32(len(out))
	out = binary.LittleEndian.AppendUint32(append(out, offsets...), at)
	return append(out, base)
}

// blockOf is a block of entries with these user keys.
func blockOf(keys ...string) *Block {
	b := new(Block)
	for _, k := range keys {
		b.Entries = append(b.Entries, 0, byte(len(k)+base.TrailerLen), 0)
		b.Entries = binary.LittleEndian.AppendUint64(append(b.Entries, k...), base.Trailer(1, base.KindPut))
	}
	return b
}

// TestDenied: the filter of the range that a block starts in must have its keys. Where LevelDB has no filter, it reads.
func TestDenied(t *testing.T) {
	f, err := OpenBlockFilters(filterBlock(11, bloom("a", "b"), nil, bloom("c")), true)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		off  uint64
		keys []string
		want string
	}{
		{0, []string{"a", "b"}, ""}, {2047, []string{"a"}, ""}, {0, []string{"a", "zebra"}, "zebra"}, {2048, []string{"a"}, "a"},
		{4096, []string{"c"}, ""}, {4096, []string{"c", "a"}, "a"}, {6144, []string{"q"}, ""}, {1 << 40, []string{"q"}, ""},
	} {
		if got := blockOf(c.keys...).Denied(f, c.off); string(got) != c.want {
			t.Errorf("%d: %q: %q, want %q", c.off, c.keys, got, c.want)
		}
	}
	if got := (&Block{Entries: []byte{0, 3, 0, 'z', 'z', 'z'}}).Denied(f, 0); got != nil {
		t.Errorf("an entry without a trailer: %q", got)
	}
	many := bloom()
	many[8] = maxProbes + 1
	odd, err := OpenBlockFilters(filterBlock(0, many), true)
	if err != nil || blockOf("x").Denied(odd, 0) != nil {
		t.Errorf("more probes than LevelDB knows: %v", err)
	}
}

// TestFilterBlocks: what is no filter block is refused, and an offset out of bounds is no filter.
func TestFilterBlocks(t *testing.T) {
	good := filterBlock(11, bloom("a"))
	far := slices.Clone(good)
	binary.LittleEndian.PutUint32(far[len(far)-5:], uint32(len(far)))
	wide := append(bytes.Clone(good[:len(good)-1]), 64)
	for name, b := range map[string][]byte{"short": good[len(good)-4:], "offsets beyond the end": far, "a base of 64": wide} {
		if _, err := OpenBlockFilters(b, true); !errors.Is(err, ErrFilter) {
			t.Errorf("%s: %v", name, err)
		}
	}
	beyond := slices.Clone(good)
	binary.LittleEndian.PutUint32(beyond[len(beyond)-9:], 1<<20)
	f, err := OpenBlockFilters(beyond, true)
	if err != nil || blockOf("q").Denied(f, 0) != nil {
		t.Errorf("a filter that begins beyond the end: %v", err)
	}
}
