package ardb

import (
	"bytes"
	"testing"
)

// TestStaleMarks: the mark of a stale count moves from Ardb's place to Redis's and back; all other bytes stay.
func TestStaleMarks(t *testing.T) {
	s, _, err := pfAdd(nil, [][]byte{[]byte("a"), []byte("b")})
	if err != nil {
		t.Fatal(err)
	}
	kept := bytes.Clone(s)
	got := hllToRedis(s)
	if !bytes.Equal(s, kept) {
		t.Error("the string was changed")
	}
	for i := range got {
		want := s[i]
		switch i {
		case hllFirst:
			want = s[i] &^ hllStale
		case hllLast:
			want = s[i] | hllStale
		}
		if got[i] != want {
			t.Errorf("byte %d is %x, want %x", i, got[i], want)
		}
	}
	if !RedisStale(got) || RedisStale(s) {
		t.Error("the mark is not where it should be")
	}
	if back := FromRedis(got); !bytes.Equal(back, s) {
		t.Errorf("back: %x, want %x", back, s)
	}
	s[hllFirst] &^= hllStale // a count that is not stale
	if same := hllToRedis(s); !bytes.Equal(same, s) {
		t.Errorf("a cached count became %x, want %x", same, s)
	}
	if same := hllToRedis([]byte("HYLLO")); string(same) != "HYLLO" {
		t.Errorf("a text became %q", same)
	}
}
