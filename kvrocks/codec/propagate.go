package codec

import "strings"

// LeftBehind describes a row of a column family without records, or returns "" if the server recreates the row. known
// is false for a row of an unknown kind.
func LeftBehind(family string, key []byte) (what string, known bool) {
	switch family {
	case FamilySearch:
		return "rows of search indexes (create them again with FT.CREATE)", true
	case FamilyIndex:
		return "labels of time series in the index (commands that search by label find only series that are created again)", true
	case FamilyPropagate:
		for _, x := range propagated {
			if rest, ok := strings.CutPrefix(string(key), x.key); ok && (x.prefix || rest == "") {
				return x.what, true
			}
		}
		return "", false
	}
	return "", true
}

// propagated are the rows of the column family propagate.
var propagated = []struct {
	key    string
	prefix bool
	what   string // "" if the server recreates it
}{
	{"__namespace_keys__", false, "namespace tokens (add them again with NAMESPACE ADD)"},
	{"lua_f_", true, "scripts (load them again with SCRIPT LOAD)"},
	{"lua_lib_code_", true, "function libraries (load them again with FUNCTION LOAD)"},
	{"lua_func_lib_", true, ""},
	{"replication_id_", false, ""},
	{"script", false, ""},
}
