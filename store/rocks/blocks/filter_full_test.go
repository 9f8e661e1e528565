package blocks

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
)

// TestPreviewHash compares with the values in RocksDB's own test, util/hash_test.cc: hashes of keys of each length, each as
// one of 61 letters.
func TestPreviewHash(t *testing.T) {
	const letters = "abcdefghijklmnopqrstuvwxyz123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	const want = "cRhyWsY67B6klRA1udmOuiYuX7IthyGBKqbeosz2hzVglWCmQx8nEdnpkvPfYX56Up2OWOTV" +
		"lTzfAoYwvtqKzjD8E9xttR2unelbXbIV67NUe6bOO23BxaSFRcA3njGu5cUWfgwOqNoTsszp" +
		"uPvKRP6qaUR5VdoBkJUCFIefd7edlNK5mv6JYWaGdwxehg65hTkTmjZoPKxTZo4PLyzbL9U4" +
		"xt12ITSfeP2MfBHuLI2z2pDlBb44UQKVMx27LEoAHsdLp3WfWfgH3sdRBRCHm33UxCM4QmE2" +
		"xJ7gqSvNwTeH7v9GlC8zWbGroyD3UVNeShMLx29O7tH1biemLULwAHyIw8zdtLMDpEJ8m2ic" +
		"l6Lb4fDuuFNAs1GCVUthjK8CV8SWI8Rsz5THSwn5CGhpqUwSZcFknjwWIl5rNCvDxXJqYr"
	key, got := strings.Repeat("foo", 144), ""
	for n := range len(want) {
		got += string(letters[previewHash([]byte(key[:n]))%61])
	}
	if got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// TestSignedHash compares with the values in RocksDB's own test, util/hash_test.cc.
func TestSignedHash(t *testing.T) {
	for key, want := range map[string]uint32{"": 3164544308, "\x9a": 3195034349, "\x91\xf7": 31066776, "\x56\xdc\xd6": 2157698265,
		"\xb6\xc0\xdd\x05\x3f\xc4\x86\x4c\xef": 2355554696} {
		if got := bloomHash([]byte(key), true); got != want {
			t.Errorf("%q: %d, want %d", key, got, want)
		}
	}
}

// withBits returns a filter of the given lines with every bit set, and its tail.
func withBits(n int, tail ...byte) []byte {
	return append([]byte(strings.Repeat("\xff", n)), tail...)
}

// TestFullFilters: what RocksDB takes to match every key is nil, and a cleared bit denies keys.
func TestFullFilters(t *testing.T) {
	lines := func(probes byte, n uint32) []byte {
		return binary.LittleEndian.AppendUint32([]byte{probes}, n)
	}
	for _, c := range []struct {
		name string
		b    []byte
		any  bool // nil
	}{
		{"one line of 64 bytes", withBits(64, lines(6, 1)...), false},
		{"three lines", withBits(192, lines(6, 3)...), false},
		{"lines of 128 bytes", withBits(384, lines(127, 3)...), false},
		{"no probes", withBits(64, lines(0, 1)...), true},
		{"no lines", withBits(64, lines(6, 0)...), true},
		{"lines that do not add up", withBits(64, lines(6, 5)...), true},
		{"lines of 48 bytes", withBits(96, lines(6, 2)...), true},
		{"a reserved form", withBits(64, lines(0xf0, 1)...), true},
		{"local", withBits(192, 0xff, 0, 6, 0, 0), false},
		{"Ribbon", withBits(192, 0xfe, 0, 6, 0, 0), true},
		{"local of another form", withBits(192, 0xff, 1, 6, 0, 0), true},
		{"local, lines of 128 bytes", withBits(192, 0xff, 0, 1<<5|6, 0, 0), true},
		{"local, 31 probes", withBits(192, 0xff, 0, 31, 0, 0), true},
		{"local, no probe", withBits(192, 0xff, 0, 0, 0, 0), true},
		{"local, a seed", withBits(192, 0xff, 0, 6, 0, 1), true},
		{"local, half a line", withBits(32, 0xff, 0, 6, 0, 0), true},
	} {
		f := OpenFullFilter(c.b)
		if (f == nil) != c.any {
			t.Errorf("%s: %v", c.name, f)
		}
		if f == nil {
			continue
		}
		bits := c.b[:len(c.b)-fullTail]
		for i := range 100 {
			key := fmt.Appendf(nil, "key:%d", i)
			if !f.Has(0, key) {
				t.Errorf("%s: %s is denied by a filter with all bits set", c.name, key)
			}
			clear(bits)
			if f.Has(0, key) {
				t.Errorf("%s: %s is in a filter without bits", c.name, key)
			}
			copy(bits, withBits(len(bits)))
		}
	}
	if f := OpenFullFilter(withBits(0, 6, 0, 0, 0, 0)); f == nil || f.Has(0, []byte("a")) {
		t.Errorf("a filter without lines: %v", f)
	}
}

// TestPartitions: a key is looked up in the first partition whose last key is not before it, in any order; keys behind all
// in the last.
func TestPartitions(t *testing.T) {
	p := Partitions{Compare: bytes.Compare}
	if !p.Empty() {
		t.Error("partitions of nothing")
	}
	full, none := withBits(64, 6, 1, 0, 0, 0), append(make([]byte, 64), 6, 1, 0, 0, 0)
	for i, b := range [][]byte{full, none, withBits(64, 0, 1, 0, 0, 0), none} {
		p.Add([]byte{'b' + byte(3*i)}, Handle{Off: uint64(i)}, b)
	}
	for _, c := range []struct {
		key string
		off uint64
		has bool
	}{{"a", 0, true}, {"b", 0, true}, {"c", 1, false}, {"e", 1, false}, {"f", 2, true}, {"h", 2, true}, {"i", 3, false},
		{"z", 3, false}, {"a", 0, true}, {"g", 2, true}, {"d", 1, false}} {
		if has := p.Has(0, []byte(c.key)); has != c.has || p.Handle().Off != c.off || p.Empty() {
			t.Errorf("%s: %t in partition %d", c.key, has, p.Handle().Off)
		}
	}
}
