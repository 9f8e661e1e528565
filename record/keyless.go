package record

import (
	"bytes"
	"fmt"
)

// Keyless tells what a record of type Other is that has no key: something that a server keeps beside its databases. The
// readers of files and servers set it, which know. Header.Key has its name then, which a key may have as well: such a key is
// another record.
type Keyless uint8

// What a record may be.
const (
	Keyed     Keyless = iota // a key, like nearly all
	Library                  // a library of functions
	ModuleAux                // what a module keeps beside its values
)

// The names in JSON, and the words that names in Header.Key begin with, so that people see what they are.
var (
	keylessNames  = [...]string{Keyed: "", Library: "function", ModuleAux: "module-aux"}
	keylessPrefix = [...]string{Keyed: "", Library: "FUNCTION ", ModuleAux: "MODULE_AUX "}
)

// String returns the name used in dumps and patches; "" for a key.
func (k Keyless) String() string {
	if int(k) < len(keylessNames) {
		return keylessNames[k]
	}
	return fmt.Sprintf("keyless(%d)", uint8(k))
}

// ParseKeyless reads the name of what has no key; "" is a key.
func ParseKeyless(s string) (Keyless, error) {
	for k, name := range keylessNames {
		if name == s {
			return Keyless(k), nil
		}
	}
	return 0, fmt.Errorf("%q has no key, or is not known: want %s or %s", s, Library, ModuleAux)
}

// AppendName appends what Header.Key is for something of this name.
func (k Keyless) AppendName(dst []byte, name string) []byte {
	return append(append(dst, keylessPrefix[k]...), name...)
}

// Name returns the name that is in a Header.Key, as a view.
func (k Keyless) Name(key []byte) []byte { return bytes.TrimPrefix(key, []byte(keylessPrefix[k])) }
