package blocks_test

import (
	"encoding/binary"
	"fmt"
	"testing"

	"kvferry/store/rocks/base"
	"kvferry/store/rocks/blocks"
)

// blockOf makes a block of entries with the lengths of their shared prefixes, and with restart points at some offsets.
func blockOf(t *testing.T, entries []entry, restarts ...int) blocks.Block {
	t.Helper()
	var b []byte
	for _, e := range entries {
		b = binary.AppendUvarint(b, uint64(e.shared))
		b = binary.AppendUvarint(b, uint64(len(e.rest)))
		b = binary.AppendUvarint(b, uint64(len(e.value)))
		b = append(append(b, e.rest...), e.value...)
	}
	for _, at := range restarts {
		b = binary.LittleEndian.AppendUint32(b, uint32(at))
	}
	out, err := blocks.Parse(binary.LittleEndian.AppendUint32(b, uint32(len(restarts))))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// entry is an entry of a block. rest has the trailer of its key.
type entry struct {
	shared int
	rest   []byte
	value  string
}

func at(shared int, rest string, seq uint64, value string) entry {
	return entry{shared, base.AppendKey(nil, []byte(rest), base.Trailer(seq, base.KindPut)), value}
}

// TestSorted finds the newest entry of each key of a block, and no other.
func TestSorted(t *testing.T) {
	b := blockOf(t, []entry{at(0, "apple", 9, "1"), at(3, "le", 5, "old"), at(2, "ricot", 7, "2"), at(0, "banana", 3, "3"),
		at(6, "s", 4, "4")}, 0, 3*3+13+1+10+3+13+1)
	s := &blocks.Kept{Block: b}
	if !s.Sorted([]byte("bananas")) {
		t.Fatal("it is sorted")
	}
	for key, want := range map[string]string{"apple": "1 9", "apricot": "2 7", "banana": "3 3", "bananas": "4 4", "": "", "app": "",
		"apples": "", "b": "", "bananasa": "", "zoo": ""} {
		value, tr, found := s.Get([]byte(key))
		got := ""
		if found {
			got = fmt.Sprintf("%s %d", value, tr>>8)
		}
		if got != want {
			t.Errorf("%q: %q, want %q", key, got, want)
		}
	}
}

// TestUnsorted: a block is not sorted if a key, an age or a restart point is wrong, or a key is above the separator.
func TestUnsorted(t *testing.T) {
	a, b := at(0, "a", 2, ""), at(0, "b", 2, "")
	for what, block := range map[string]blocks.Block{
		"a key out of order":                 blockOf(t, []entry{b, a}, 0),
		"the older entry first":              blockOf(t, []entry{a, at(0, "a", 3, "")}, 0),
		"the same entry twice":               blockOf(t, []entry{a, a}, 0),
		"a key above the separator":          blockOf(t, []entry{a, at(0, "d", 2, "")}, 0),
		"no entry":                           blockOf(t, nil, 0),
		"no restart point":                   blockOf(t, []entry{a}),
		"no restart point at the first":      blockOf(t, []entry{a, b}, 12),
		"a restart point inside an entry":    blockOf(t, []entry{a, b}, 0, 5),
		"a restart point at a shared key":    blockOf(t, []entry{a, at(1, "b", 2, "")}, 0, 12),
		"a restart point beyond the entries": blockOf(t, []entry{a, b}, 0, 24),
		"a key without a trailer":            blockOf(t, []entry{{0, []byte("short"), ""}}, 0),
		"an entry that is cut off":           {Entries: []byte{0, 200, 1, 'a'}},
	} {
		if (&blocks.Kept{Block: block}).Sorted([]byte("c")) {
			t.Errorf("%s: it counts as sorted", what)
		}
	}
	if !(&blocks.Kept{Block: blockOf(t, []entry{a, b}, 0, 12)}).Sorted([]byte("b")) {
		t.Error("this one is sorted")
	}
}
