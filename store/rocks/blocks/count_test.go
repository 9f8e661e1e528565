package blocks

import (
	"errors"
	"slices"
	"testing"

	"kvferry/store/rocks/base"
)

// internal is an internal key.
func internal(user string, kind byte) string {
	return string(base.AppendKey(nil, []byte(user), base.Trailer(5, kind)))
}

// TestCounts: the counting of each kind of entry, and the sum over blocks.
func TestCounts(t *testing.T) {
	for kind, want := range map[byte]Counts{
		base.KindPut: {}, base.KindDelete: {Deletes: 1}, base.KindSingleDelete: {Deletes: 1}, base.KindDeleteTimestamp: {Deletes: 1}, base.KindMerge: {Merges: 1},
		base.KindBlobIndex: {}, base.KindWideColumns: {}, base.KindRangeDelete: {},
	} {
		var c Counts
		c.Kind(kind)
		if c != want {
			t.Errorf("kind %#x: %+v, want %+v", kind, c, want)
		}
	}
	c, other := Counts{1, 2, 3, 4, 5}, Counts{10, 20, 30, 40, 50}
	c.Add(&other)
	if c != (Counts{11, 22, 33, 44, 55}) || other != (Counts{10, 20, 30, 40, 50}) {
		t.Errorf("%+v after adding %+v", c, other)
	}
	err := &CountError{What: Tombstones, Said: 3, Found: 2}
	if got := err.Error(); got != "tombstones by its properties: 3, found: 2" {
		t.Error(got)
	}
}

// TestRestartAt: unchecked restarts, also without entries.
func TestRestartAt(t *testing.T) {
	b, err := Parse(block([]byte{1, 2}, 0, 2, 1<<31))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{0, 2, 1 << 31, -1, -1} {
		if got := b.RestartAt(i); got != want {
			t.Errorf("restart %d is at %d, want %d", i, got, want)
		}
	}
}

// TestCount: counting entries; every restart must be at an entry with an unshared key.
func TestCount(t *testing.T) {
	put, merge, del := entry(0, internal("apple", base.KindPut), "one"), entry(0, internal("b", base.KindMerge), "+"), entry(0,
		internal("c", base.KindDelete), "")
	shares := entry(3, internal("ricot", base.KindSingleDelete), "")
	all := slices.Concat(put, shares, merge, del)
	second, third, fourth := uint32(len(put)), uint32(len(put)+len(shares)), uint32(len(put)+len(shares)+len(merge))
	// The keys have 5, 8, 1 and 1 bytes, and trailers.
	whole := Counts{Entries: 4, Deletes: 2, Merges: 1, KeyBytes: 15 + 4*base.TrailerLen, ValueBytes: 4}
	for _, tt := range []struct {
		name     string
		entries  []byte
		restarts []uint32
		want     Counts
		err      error
	}{
		{"one restart", all, []uint32{0}, whole, nil},
		{"all restarts", all, []uint32{0, third, fourth}, whole, nil},
		{"no restart", all, nil, whole, nil},
		{"one entry", put, []uint32{0}, Counts{Entries: 1, KeyBytes: 5 + base.TrailerLen, ValueBytes: 3}, nil},
		{"no entry", nil, []uint32{0}, Counts{}, ErrEmpty},
		{"neither", nil, nil, Counts{}, ErrEmpty},
		{"a restart within an entry", all, []uint32{0, third + 1}, whole, ErrRestart},
		{"a restart at a key that is not whole", all, []uint32{0, second}, whole, ErrRestart},
		{"a restart at the end", all, []uint32{0, uint32(len(all))}, whole, ErrRestart},
		{"a restart beyond", all, []uint32{0, 1 << 31}, whole, ErrRestart},
		{"a restart twice", all, []uint32{0, third, third}, whole, ErrRestart},
		{"restarts that descend", all, []uint32{0, fourth, third}, whole, ErrRestart},
		{"a wrong first restart", all, []uint32{1, third}, whole, ErrRestart},
		{"a key without room for a trailer", slices.Concat(put, entry(0, "1234567", "v")), []uint32{0}, Counts{}, ErrEntry},
		{"nothing but a trailer", entry(0, internal("", base.KindMerge), ""), []uint32{0}, Counts{Entries: 1, Merges: 1, KeyBytes: base.TrailerLen}, nil},
		{"an entry that ends early", all[:len(all)-1], []uint32{0}, Counts{}, ErrEntry},
	} {
		b, err := Parse(block(slices.Clone(tt.entries), tt.restarts...))
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		if got, err := b.Count(); got != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("%s: %+v, %v, want %+v, %v", tt.name, got, err, tt.want, tt.err)
		}
	}
}

// TestCounter: a used counter can be restarted, and advances only at restarts.
func TestCounter(t *testing.T) {
	a, b := entry(0, internal("a", base.KindPut), ""), entry(1, internal("b", base.KindPut), "")
	at := len(a)
	bl, err := Parse(block(slices.Concat(a, b, a), 0, uint32(at), uint32(at+len(b))))
	if err != nil {
		t.Fatal(err)
	}
	c := Counter{Counts: Counts{Entries: 9}, Restart: 7, next: 3}
	c.Start(&bl)
	if c != (Counter{}) {
		t.Errorf("started as %+v", c)
	}
	for i := range 2 { // the second is at an entry that shares a byte, which it does not pass
		c.AtRestart(&bl)
		if c.Restart != at {
			t.Errorf("after restart %d: the next is at %d, want %d", i, c.Restart, at)
		}
	}
	if err := c.End(&bl); !errors.Is(err, ErrRestart) {
		t.Errorf("in the middle: %v", err)
	}
	one, _ := Parse(block(slices.Clone(a), 0))
	c.Start(&one)
	c.AtRestart(&one)
	if c.Restart != -1 || c.End(&one) != nil {
		t.Errorf("after the last restart: %+v, %v", c, c.End(&one))
	}
}
