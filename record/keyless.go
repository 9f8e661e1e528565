package record

import (
	"bytes"
	"fmt"
)

// Keyless is the kind of a record of type Other that has no key: data that a server keeps outside its databases.
// Readers of files and servers set it. Header.Key then holds a name; a key of the same name is a different record.
type Keyless uint8

// The kinds of records.
const (
	Keyed     Keyless = iota // an ordinary key
	Library                  // a function library
	ModuleAux                // auxiliary data of a module, outside of keys
)

// Names in JSON, and prefixes of the names in Header.Key, which show users the kind.
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

// ParseKeyless parses a name returned by String. "" is a key.
func ParseKeyless(s string) (Keyless, error) {
	for k, name := range keylessNames {
		if name == s {
			return Keyless(k), nil
		}
	}
	return 0, fmt.Errorf("%q has no key, or is not known: want %s or %s", s, Library, ModuleAux)
}

// AppendName appends the Header.Key of a record with this name.
func (k Keyless) AppendName(dst []byte, name string) []byte {
	return append(append(dst, keylessPrefix[k]...), name...)
}

// Name returns the name in a Header.Key, as a view.
func (k Keyless) Name(key []byte) []byte { return bytes.TrimPrefix(key, []byte(keylessPrefix[k])) }
