package live

import (
	"bytes"
	"strconv"

	"kvferry/internal/shared/keyslot"
)

// slots is how many a cluster has.
const slots = keyslot.Count

// slot is where a key lies in a cluster.
func slot(key []byte) int { return keyslot.Of(key) }

// besides returns a temporary name that begins with a unique text, in the slot of a key. Where no tag leads there, names
// are tried: one of 16384 does.
func besides(key []byte, unique string) []byte {
	name := []byte(unique)
	if tag := keyslot.Tag(key); len(tag) > 0 && bytes.IndexByte(tag, '}') < 0 {
		return append(append(append(name, '{'), tag...), '}')
	}
	for at, n := slot(key), uint64(0); ; n++ {
		if try := strconv.AppendUint(append(name, '-'), n, 36); slot(try) == at {
			return try
		}
	}
}
