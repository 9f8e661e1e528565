package record

import "bytes"

// Records of type Other that have no key: what a server keeps beside its databases. The word that their names begin with says
// what they are.
const (
	LibraryPrefix   = "FUNCTION "   // a library of functions, and its name
	ModuleAuxPrefix = "MODULE_AUX " // what a module keeps beside its values, and the module's name
)

// IsLibrary reports whether a record is a library of functions.
func (h *Header) IsLibrary() bool {
	return h.Type == Other && bytes.HasPrefix(h.Key, []byte(LibraryPrefix))
}

// Keyless reports whether no key has the name of a record.
func (h *Header) Keyless() bool {
	return h.IsLibrary() || h.Type == Other && bytes.HasPrefix(h.Key, []byte(ModuleAuxPrefix))
}
