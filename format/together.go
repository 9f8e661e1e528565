package format

import "kvferry/record"

// Together partitions types of a database so that those of different sets share no keyspace: reading one
// set does not read the rows of another. Where tells which keyspaces a type has rows in.
func Together(src Source, db string, types record.TypeSet) []record.TypeSet {
	shared := make(map[string]record.TypeSet)
	for _, r := range src.Where(db, []byte("x")) {
		of := record.Of(r.Type)
		if r.Type == 0 { // the range is of all types
			of = types
		}
		shared[r.Keyspace] |= of
	}
	sets := make([]record.TypeSet, 0, len(shared))
	for _, s := range shared {
		sets = append(sets, s)
	}
	var out []record.TypeSet
	for rest := types; rest != 0; {
		set := Closure(record.Of(rest.Types()[0]), sets) & types
		out = append(out, set)
		rest &^= set
	}
	return out
}

// Closure widens a set of types until it holds every set that it has a type of.
func Closure(t record.TypeSet, sets ...[]record.TypeSet) record.TypeSet {
	for again := true; again; {
		again = false
		for _, list := range sets {
			for _, s := range list {
				if s&t != 0 && s&^t != 0 {
					t |= s
					again = true
				}
			}
		}
	}
	return t
}
