package plan

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"kvferry/format"
	"kvferry/internal/text/jsonl"
)

// Database names may be any bytes, but JSON strings must be UTF-8. In journals and reports other names are written
// like keys in dumps: {"base64":"…"}.

// Names is a list of database names.
type Names []string

// MarshalJSON writes the names.
func (n Names) MarshalJSON() ([]byte, error) {
	out := make([]jsonl.Text, len(n))
	for i, s := range n {
		out[i] = jsonl.Text(s)
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (n *Names) UnmarshalJSON(data []byte) error {
	var in []jsonl.Text
	err := json.Unmarshal(data, &in)
	*n = nil
	for _, s := range in {
		*n = append(*n, string(s))
	}
	return err
}

// TargetNames returns the names of the databases in a target. The source's default database gets the name of the
// target's default database, or namespace if set; namespace also names a single database. In a target with numbered
// databases names become numbers, see format.Numbers. A single database becomes 0 in a flat layout, and if servers of
// the target do not support its number.
func TargetNames(dbs []string, from, to format.Limits, flat bool, namespace string) []string {
	if to.Numbered && len(dbs) == 1 && (flat || Unseen(dbs[0], to)) {
		return []string{"0"}
	}
	if to.Numbered {
		return format.Numbers(dbs, from)
	}
	out := slices.Clone(dbs)
	home := cmp.Or(namespace, to.DefaultDB, "0")
	for i, db := range dbs {
		own := db == cmp.Or(from.DefaultDB, "0") || namespace != "" && len(dbs) == 1
		if own && !slices.Contains(dbs, home) {
			out[i] = home
		}
	}
	if format.IsNumber(cmp.Or(from.DefaultDB, "0")) {
		prefixNumbers(out, to.DBPrefix)
	}
	return out
}

// Rename changes names, those of the databases dbs in a target. A wanted name is A=B: database A gets the name B.
func Rename(dbs, names, wanted []string) error {
	for _, w := range wanted {
		db, name, ok := strings.Cut(w, "=")
		i := slices.Index(dbs, db)
		if !ok {
			return format.Usagef("--rename-db %s: want A=B, the names of a database in source and target", w)
		}
		if i < 0 {
			return format.Usagef("--rename-db %s: the source has no database %q, or it is not converted", w, db)
		}
		names[i] = name
	}
	for i, name := range names {
		if len(wanted) > 0 && slices.Contains(names[:i], name) {
			return format.Usagef("--rename-db: two databases would be %q in the target", name)
		}
	}
	return nil
}

// prefixNumbers adds a prefix to names that are numbers above 0, unless the new name exists.
func prefixNumbers(names []string, prefix string) {
	for i, db := range names {
		if format.IsNumber(db) && db != "0" && !slices.Contains(names, prefix+db) {
			names[i] = prefix + db
		}
	}
}

// Unseen reports whether servers of a target have no database of that name.
func Unseen(db string, to format.Limits) bool {
	n, err := strconv.ParseUint(db, 10, 32)
	return err == nil && to.MaxDBs > 0 && n >= uint64(to.MaxDBs)
}
