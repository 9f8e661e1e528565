package commands

import (
	"slices"

	"kvferry/internal/shared/argument"
	"kvferry/redis/state"
)

// access is how a command uses a key.
type access uint8

const (
	reads  access = 1 << iota // its effect depends on the key's value
	writes                    // it may change the key
	update = reads | writes
)

// use is a key of a command.
type use struct {
	db  int
	key []byte
	access
}

// finder returns the keys of a command that has its least number of arguments, or none if it cannot find them.
type finder func(s *state.Server, a [][]byte) []use

// uses returns the keys of some arguments, of the selected database.
func uses(s *state.Server, how access, args ...[]byte) []use {
	out := make([]use, len(args))
	for i, key := range args {
		out[i] = use{s.DB.Selected(), key, how}
	}
	return out
}

// accesses maps the letters of the table.
var accesses = map[byte]access{'r': reads, 'w': writes, 'u': update}

// uses returns the keys of a command, by its finder or by the table.
func (c *command) uses(s *state.Server, a [][]byte) []use {
	switch {
	case c.Log[0] == '.':
		return nil
	case c.keys != nil:
		return c.keys(s, a)
	}
	keys, counted, _ := c.Keys(a)
	keys = append(keys, counted...)
	out := uses(s, accesses[c.Log[0]], keys...)
	if others, ok := accesses[c.Log[len(c.Log)-1]]; ok {
		for i := range out[min(1, len(out)):] {
			out[i+1].access = others
		}
	}
	return out
}

// stored is the finder of GEORADIUS and SORT: a key, and the keys named by options.
func stored(from int, names ...string) finder {
	return func(s *state.Server, a [][]byte) []use {
		out := uses(s, reads, a[1])
		for i := from; i+1 < len(a); i++ {
			for _, name := range names {
				if argument.Is(a[i], name) {
					out = append(out, uses(s, writes, a[i+1])...)
				}
			}
		}
		return out
	}
}

// setKeys is the finder of SET: without a condition it overwrites any value.
func setKeys(s *state.Server, a [][]byte) []use {
	if len(a) == 3 || len(a) == 5 && expiryUnits[string(s.Upper(a[3]))] != 0 {
		return uses(s, writes, a[1])
	}
	return uses(s, update, a[1])
}

// msetexKeys is the finder of MSETEX: numkeys, numkeys pairs of key and value, and options.
func msetexKeys(s *state.Server, a [][]byte) (out []use) {
	pairs, _, err := msetexPairs(a)
	if err != nil {
		return nil
	}
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, uses(s, update, pairs[i])...)
	}
	return out
}

// pfcountKeys is the finder of PFCOUNT, which writes the count of a single key into it.
func pfcountKeys(s *state.Server, a [][]byte) []use {
	if len(a) > 2 {
		return uses(s, reads, a[1:]...)
	}
	return uses(s, update, a[1])
}

// moveKeys is the finder of MOVE: a key in two databases.
func moveKeys(s *state.Server, a [][]byte) []use {
	db, err := database(a[2])
	if err != nil {
		return nil
	}
	return append(uses(s, update, a[1]), use{db, a[1], replaced(a[3:])})
}

// replaced is the access to a target: with REPLACE its old value does not count.
func replaced(options [][]byte) access {
	if slices.ContainsFunc(options, func(option []byte) bool { return argument.Is(option, "REPLACE") }) {
		return writes
	}
	return update
}

// copyKeys is the finder of COPY: source, and target, which DB puts into another database. It skips unknown options.
func copyKeys(s *state.Server, a [][]byte) []use {
	to := use{s.DB.Selected(), a[2], replaced(a[3:])}
	for i := 3; i < len(a); i++ {
		if argument.Is(a[i], "DB") {
			var err error
			if to.db, err = database(a[min(i+1, len(a)-1)]); err != nil {
				return nil
			}
		}
	}
	return append(uses(s, reads, a[1]), to)
}

// restoreKeys is the finder of RESTORE.
func restoreKeys(s *state.Server, a [][]byte) []use { return uses(s, replaced(a[4:]), a[1]) }

// migrateKeys is the finder of MIGRATE: the arguments after KEYS, or else the third.
func migrateKeys(s *state.Server, a [][]byte) []use {
	for i := range a {
		if i > 0 && argument.Is(a[i], "KEYS") {
			return uses(s, update, a[i+1:]...)
		}
	}
	return uses(s, update, a[3])
}

// Lose handles a command of unknown effect: it marks the keys that the command writes as lost, for a reason that only the
// caller interprets. named is false if their names cannot be found. Lose then marks every argument that is a key, and any
// other key of the database may differ, too.
func Lose(s *state.Server, args [][]byte, reason []byte) (named bool, err error) {
	c, ok := find(s, args)
	if ok && len(args) >= max(c.Newest, -c.Newest) {
		named = lose(s, c.uses(s, args), reason)
	}
	if named || ok && (c.wild || c.write && c.Log == ".") {
		return named, s.DB.Err()
	}
	for i, arg := range args[1:] {
		s.DB.Lose(s.DB.Selected(), arg, reason, ok || i > 0)
	}
	return false, s.DB.Err()
}

// lose marks the keys that a command writes. It reports false if there are none.
func lose(s *state.Server, keys []use, reason []byte) (some bool) {
	for _, k := range keys {
		if k.access&writes != 0 {
			s.DB.Lose(k.db, k.key, reason, false)
			some = true
		}
	}
	return some
}

// spread reports whether a command reads a lost value; if so, it loses the keys that the command writes.
func spread(s *state.Server, c *command, args [][]byte) bool {
	keys := c.uses(s, args)
	for _, k := range keys {
		if k.access&reads == 0 {
			continue
		}
		if v := s.DB.FindIn(k.db, k.key); v.Lost() != nil {
			s.DB.Lose(k.db, k.key, v.Lost(), false)
			lose(s, keys, v.Lost())
			return true
		}
	}
	return false
}
