package format

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Numbers returns the numbers that databases have where databases are numbered: in Redis, Pika and SSDB, and for
// clients of kvferry serve. A name that is a number keeps it. The database that clients start in becomes 0 and db1,
// db2, … (the names in Kvrocks) become 1, 2, … if no other database has that number. Other names get the lowest free
// numbers in the order of dbs.
func Numbers(dbs []string, from Limits) []string {
	out := slices.Clone(dbs)
	if i := slices.Index(dbs, cmp.Or(from.DefaultDB, "0")); i >= 0 && !slices.Contains(dbs, "0") {
		out[i] = "0"
	}
	for i, db := range out {
		if n, ok := strings.CutPrefix(db, "db"); ok && IsNumber(n) && n != "0" && !slices.Contains(out, n) {
			out[i] = n
		}
	}
	next := 0
	for i, db := range out {
		if IsNumber(db) {
			continue
		}
		for slices.Contains(out, strconv.Itoa(next)) {
			next++
		}
		out[i] = strconv.Itoa(next)
		next++
	}
	return out
}

// IsNumber reports whether the name of a database is a number in its shortest form.
func IsNumber(s string) bool {
	n, err := strconv.ParseUint(s, 10, 32)
	return err == nil && strconv.FormatUint(n, 10) == s
}
