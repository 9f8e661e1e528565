package sst

import (
	"bytes"
	"errors"
	"testing"

	"kvferry/internal/testkit/testsst"
	"kvferry/store/rocks/blocks"
)

// TestEnds: the ends of a table equal its first and last entry, with either index.
func TestEnds(t *testing.T) {
	for _, n := range []int{1, 5, 200} {
		for _, kind := range []uint32{0, testsst.TwoLevelIndex} {
			entries := testsst.SomeEntries(n)
			r := memoryReader(testsst.MakeTable(t, testsst.Spec{IndexType: kind}, entries), Options{})
			if _, err := r.Open(); err != nil {
				t.Fatal(err)
			}
			first, last, err := r.Ends(1 << 20)
			if err != nil || !bytes.Equal(first, entries[0].Internal()) ||
				!bytes.Equal(last, entries[len(entries)-1].Internal()) {
				t.Errorf("%d entries, index %d: %q to %q, %v", n, kind, first, last, err)
			}
			if first, last, err := r.Ends(1); first != nil || last != nil || err != nil {
				t.Errorf("blocks that are too large: %q to %q, %v", first, last, err)
			}
		}
	}
}

// TestEndsOfShortKeys: the empty user key is valid at either end; a key too short for a trailer is not.
func TestEndsOfShortKeys(t *testing.T) {
	empty := testsst.Put("", 7, "v")
	for _, entries := range [][]testsst.Entry{{empty}, {empty, testsst.Put("a", 5, "v")}, {empty, testsst.Put("", 6, "w")}} {
		for _, size := range []int{1, 1 << 10} {
			r := memoryReader(testsst.MakeTable(t, testsst.Spec{BlockSize: size}, entries), Options{})
			first, last, err := r.Ends(1 << 20)
			if err != nil || !bytes.Equal(first, entries[0].Internal()) ||
				!bytes.Equal(last, entries[len(entries)-1].Internal()) {
				t.Errorf("%v: %q to %q, %v", entries, first, last, err)
			}
		}
	}
	short := func(_ int, b []byte) []byte { return append([]byte{0, 7, 0, 1, 2, 3, 4, 5, 6, 7}, b[len(b)-8:]...) }
	r := memoryReader(testsst.MakeTable(t, testsst.Spec{EditBlock: short}, []testsst.Entry{empty}), Options{})
	if first, last, err := r.Ends(1 << 20); !errors.Is(err, blocks.ErrEntry) {
		t.Errorf("a key of 7 bytes: %q to %q, %v", first, last, err)
	}
}

// TestEndsOfDamage: every changed byte of a table results in an error or in the same ends.
func TestEndsOfDamage(t *testing.T) {
	entries := testsst.SomeEntries(40)
	for _, kind := range []uint32{0, testsst.TwoLevelIndex} {
		table := testsst.MakeTable(t, testsst.Spec{IndexType: kind}, entries)
		failed := 0
		for i := range table {
			b := bytes.Clone(table)
			b[i] ^= 0x55
			r := memoryReader(b, Options{})
			if _, err := r.Open(); err != nil {
				continue
			}
			first, last, err := r.Ends(1 << 20)
			if err != nil {
				failed++
			} else if !bytes.Equal(first, entries[0].Internal()) || !bytes.Equal(last, entries[len(entries)-1].Internal()) {
				t.Errorf("index %d, byte %d: %q to %q", kind, i, first, last)
			}
		}
		if failed == 0 {
			t.Errorf("index %d: no damage of the ends is noticed", kind)
		}
	}
}

// TestUniqueID: the halves of a session's identity and the file number decide the id, and only digits are valid.
// RocksDB's own ids are compared with those of the databases that it wrote in store/rocks.
func TestUniqueID(t *testing.T) {
	o := origin{database: "db", session: "ABCDEFGH0123456789XY", number: 7}
	id, ok := o.UniqueID()
	if !ok {
		t.Fatal("no id")
	}
	for name, other := range map[string]origin{
		"database": {"dc", o.session, o.number}, "upper half": {o.database, "BBCDEFGH0123456789XY", o.number},
		"lower half": {o.database, "ABCDEFGH0123456789XZ", o.number}, "number": {o.database, o.session, 8},
	} {
		if got, ok := other.UniqueID(); !ok || got == id {
			t.Errorf("another %s: %x, %v", name, got, ok)
		}
	}
	lower := origin{o.database, "abcdefgh0123456789xy", o.number}
	if got, ok := lower.UniqueID(); !ok || got != id {
		t.Errorf("in small letters: %x, %v, want %x", got, ok, id)
	}
	for name, none := range map[string]origin{
		"no database": {"", o.session, 7}, "no number": {"db", o.session, 0}, "short": {"db", "ABCDEFGH0123", 7},
		"long": {"db", "ABCDEFGH0123456789XYZABCD", 7}, "no digit above": {"db", "A-CDEFGH0123456789XY", 7}, "no digit below": {"db", "ABCDEFGH0123456789X-", 7},
	} {
		if got, ok := none.UniqueID(); ok {
			t.Errorf("%s: %x", name, got)
		}
	}
}
