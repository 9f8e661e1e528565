package state

import (
	"bytes"
	"maps"
	"slices"

	"kvferry/redis/rdb"
)

func cmdFunction(s *State, a [][]byte) error {
	switch sub := string(s.upper(a[1])); {
	case sub == "LOAD" && len(a) > 2:
		code := a[len(a)-1]
		replace := len(a) > 3 && is(a[2], "REPLACE")
		return s.LoadFunction(code, replace)
	case sub == "DELETE" && len(a) > 2:
		delete(s.functions, string(a[2]))
	case sub == "FLUSH":
		clear(s.functions)
	default:
		return unsupported("FUNCTION "+sub, "kvferry does not know what is in its payload")
	}
	return nil
}

// LoadFunction adds the source of a library, which begins with #!lua name=….
func (s *State) LoadFunction(code []byte, replace bool) error {
	if !bytes.HasPrefix(code, []byte("#!")) {
		return &ReplyError{"ERR Missing library metadata"}
	}
	name := rdb.LibraryName(code)
	if s.functions[name] != nil && !replace {
		return &ReplyError{"ERR Library already exists"}
	}
	s.functions[name] = bytes.Clone(code)
	return nil
}

// Functions returns the sources of libraries, by name.
func (s *State) Functions() [][]byte {
	var out [][]byte
	for _, name := range slices.Sorted(maps.Keys(s.functions)) {
		out = append(out, s.functions[name])
	}
	return out
}
