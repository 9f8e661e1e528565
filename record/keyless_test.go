package record

import (
	"slices"
	"testing"
)

// TestKeyless checks that names are parsed back, and that a keyless record is a different record that follows a key
// of its name and type.
func TestKeyless(t *testing.T) {
	for k, want := range map[Keyless]string{Keyed: "x", Library: "FUNCTION x", ModuleAux: "MODULE_AUX x"} {
		if back, err := ParseKeyless(k.String()); back != k || err != nil {
			t.Errorf("%d is %q, read as %d, %v", k, k, back, err)
		}
		if key := k.AppendName(nil, "x"); string(key) != want || string(k.Name(key)) != "x" {
			t.Errorf("%s: %s, %s", k, key, k.Name(key))
		}
	}
	if _, err := ParseKeyless("library"); err == nil || Keyless(9).String() != "keyless(9)" {
		t.Error("it is read although it is not known")
	}
	list := []Header{
		{Key: []byte("FUNCTION x"), Type: Other, Keyless: Library},
		{Key: []byte("FUNCTION x"), Type: Other},
		{Key: []byte("FUNCTION x"), Type: String},
		{Key: []byte("FUNCTION w"), Type: Other, Keyless: Library},
	}
	slices.SortFunc(list, func(a, b Header) int { return Compare(&a, &b) })
	if list[0].Key[9] != 'w' || list[1].Type != String || list[2].Keyless != Keyed || list[3].Keyless != Library {
		t.Errorf("%+v", list)
	}
}
