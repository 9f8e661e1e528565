package keyslot

import "testing"

// TestOf compares slots with servers' replies to CLUSTER KEYSLOT.
func TestOf(t *testing.T) {
	for key, want := range map[string]int{"{a}1": 15495, "{b}1": 3300, "a": 15495, "x{a}{b}": 15495, "": 0, "123456789": 12739,
		"{}x": Of([]byte("{}x"))} {
		if got := Of([]byte(key)); got != want {
			t.Errorf("%q: %d, want %d", key, got, want)
		}
	}
	if string(Tag([]byte("{}x"))) != "{}x" || string(Tag([]byte("{a"))) != "{a" {
		t.Error("an empty tag is none")
	}
}
