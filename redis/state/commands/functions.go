package commands

import "kvferry/redis/state/server"

func cmdFunction(s *server.Server, a [][]byte) error {
	switch sub := string(s.Upper(a[1])); {
	case sub == "LOAD" && len(a) > 2:
		code := a[len(a)-1]
		replace := len(a) > 3 && server.Is(a[2], "REPLACE")
		return s.LoadFunction(code, replace)
	case sub == "DELETE" && len(a) > 2:
		s.DeleteFunction(a[2])
	case sub == "FLUSH":
		s.FlushFunctions()
	default:
		return server.Unsupported("FUNCTION "+sub, "kvferry does not know what is in its payload")
	}
	return nil
}
