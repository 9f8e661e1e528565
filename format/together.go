package format

import "kvferry/record"

// Together partitions the types of a database into sets that share no keyspace, so that reading one set
// does not read the rows of another. It uses Where to find the keyspaces of a type.
func Together(src Source, db string, types record.TypeSet) []record.TypeSet {
	shared := make(map[string]record.TypeSet)
	for _, r := range src.Where(db, []byte("x")) {
		of := record.Of(r.Type)
		if r.Type == 0 { // the range holds all types
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

// Closure extends a set of types by every set that shares a type with it, transitively.
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
