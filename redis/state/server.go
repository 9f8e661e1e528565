package state

import (
	"bytes"
	"maps"
	"slices"

	"kvferry/internal/shared/argument"
	"kvferry/internal/shared/keyslot"
	"kvferry/record"
	"kvferry/redis/rdb"
)

// Server is the server that commands change.
type Server struct {
	DB *State
	// Now is the base of relative expiries, in Unix ms, and the latest time of deliveries.
	Now int64
	// Writer is the server that wrote the log.
	Writer Writer
	// Restore decodes the payload of RESTORE: begin takes its header and returns a Put for its elements. If
	// Restore is nil, the command is not supported.
	Restore func(payload []byte, begin func(*record.Header) *Put) error
	// RestoreFunctions decodes the payload of FUNCTION RESTORE into sources of libraries. If it is nil, the
	// command is not supported.
	RestoreFunctions func(payload []byte) ([][]byte, error)

	// Imports are the slots that the server is importing from other nodes, by the name of the import.
	Imports map[string]keyslot.Ranges

	functions map[string][]byte // source of libraries by name
	word      []byte            // in upper case
}

// Find returns the value of a key, which must have type t; nil if the key does not exist.
func (s *Server) Find(key []byte, t record.Type) (*Value, error) {
	v := s.DB.Find(key)
	if v != nil && v.Type != t {
		return nil, argument.ErrWrongType
	}
	return v, nil
}

// FindOrMake is Find, but makes an empty value if the key does not exist.
func (s *Server) FindOrMake(key []byte, t record.Type) (*Value, error) {
	v, err := s.Find(key, t)
	if v == nil && err == nil {
		v = s.DB.Make(t)
	}
	return v, err
}

// Import begins to import slots. The server deletes their keys when the import fails, or when it loads the log before the end
// of the import.
func (s *Server) Import(name string, slots keyslot.Ranges) {
	if s.Imports == nil {
		s.Imports = map[string]keyslot.Ranges{}
	}
	s.Imports[name] = slots
}

// EndImport ends an import. It removes the keys of the slots if the import failed.
func (s *Server) EndImport(name string, failed bool) {
	if slots := s.Imports[name]; failed && len(slots) > 0 {
		s.DB.FlushWhere(slots.Have)
	}
	delete(s.Imports, name)
}

// LoadFunction adds the source of a library, which begins with #!lua name=….
func (s *Server) LoadFunction(code []byte, replace bool) error {
	if !bytes.HasPrefix(code, []byte("#!")) {
		return argument.Refuse("ERR Missing library metadata")
	}
	name := rdb.LibraryName(code)
	if s.functions[name] != nil && !replace {
		return argument.Refuse("ERR Library already exists")
	}
	if s.functions == nil {
		s.functions = map[string][]byte{}
	}
	s.functions[name] = bytes.Clone(code)
	return nil
}

// HasFunction reports whether a library exists.
func (s *Server) HasFunction(name string) bool { return s.functions[name] != nil }

// DeleteFunction removes a library.
func (s *Server) DeleteFunction(name []byte) { delete(s.functions, string(name)) }

// FlushFunctions removes all libraries.
func (s *Server) FlushFunctions() { clear(s.functions) }

// Functions returns the sources of libraries, by name.
func (s *Server) Functions() [][]byte {
	var out [][]byte
	for _, name := range slices.Sorted(maps.Keys(s.functions)) {
		out = append(out, s.functions[name])
	}
	return out
}
