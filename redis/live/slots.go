package live

import (
	"bytes"
	"strconv"

	"kvferry/internal/shared/keyslot"
)

// slots is the number of slots of a cluster.
const slots = keyslot.Count

// slot returns the slot of a key.
func slot(key []byte) int { return keyslot.Of(key) }

// besides returns a temporary name in the slot of key that begins with unique. If the key has no usable hash tag, it
// tries suffixes: one in 16384 hits the slot.
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
