package record

// Lookup asks for the string of a key, or for an element of its hash, set or sorted set by name. It may be used again.
type Lookup struct {
	DB   string
	Key  []byte
	Type Type
	Name []byte // of the element
	Now  int64  // Unix milliseconds

	// Exists is set if the key exists, and Found if it has the element. Elem is the element, or the string, valid until the
	// next lookup.
	Exists, Found bool
	Elem          Element

	// Raw and Room are the source's.
	Raw  []byte
	Room any
}
