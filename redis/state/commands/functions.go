package commands

import (
	"bytes"

	"kvferry/internal/shared/argument"
	"kvferry/redis/rdb"
	"kvferry/redis/state"
)

func cmdFunctionLoad(s *state.Server, a [][]byte) error {
	for _, option := range a[2 : len(a)-1] {
		if !argument.Is(option, "REPLACE") {
			return s.Option("FUNCTION LOAD", option)
		}
	}
	return s.LoadFunction(a[len(a)-1], len(a) > 3)
}

func cmdFunctionDelete(s *state.Server, a [][]byte) error {
	if !s.HasFunction(string(a[2])) {
		return argument.Refuse("ERR Library not found")
	}
	s.DeleteFunction(a[2])
	return nil
}

func cmdFunctionFlush(s *state.Server, a [][]byte) error {
	err := flushing(s, []byte("FUNCTION FLUSH"), a[2:])
	if err == nil {
		s.FlushFunctions()
	}
	return err
}

// cmdFunctionRestore is FUNCTION RESTORE, which loads either all libraries of a payload or no library.
func cmdFunctionRestore(s *state.Server, a [][]byte) error {
	policy := "APPEND"
	switch {
	case len(a) > 4:
		return argument.ErrArgs
	case len(a) == 4:
		policy = string(s.Upper(a[3]))
	}
	if policy != "APPEND" && policy != "REPLACE" && policy != "FLUSH" {
		return s.Option("FUNCTION RESTORE", a[3])
	}
	if s.RestoreFunctions == nil {
		return state.Unsupported("FUNCTION RESTORE", "payloads are not read here")
	}
	libraries, err := s.RestoreFunctions(a[2])
	if err != nil {
		return argument.Refuse("ERR DUMP payload version or checksum are wrong")
	}
	there := map[string]bool{}
	for _, code := range libraries {
		name := rdb.LibraryName(code)
		if there[name] || !bytes.HasPrefix(code, []byte("#!")) || policy == "APPEND" && s.HasFunction(name) {
			return argument.Refuse("ERR Library already exists")
		}
		there[name] = true
	}
	if policy == "FLUSH" {
		s.FlushFunctions()
	}
	for _, code := range libraries {
		if err := s.LoadFunction(code, true); err != nil {
			return err
		}
	}
	return nil
}
