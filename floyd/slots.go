package floyd

import (
	"bytes"
	"hash/crc32"
)

// Defaults of Pika's configuration as it is shipped: db-instance-num and default-slot-num.
const (
	defaultInstances = 3
	defaultSlots     = 1024
)

// Slot returns the slot of a user key: the CRC-32 of its tag, or of all of it where it has none. The tag is what stands
// between the first { and the } after it, and may be empty.
func Slot(key []byte, slots int) int {
	return int(crc32.ChecksumIEEE(tagOf(key)) % uint32(slots))
}

// tagOf returns what decides about the slot of a key.
func tagOf(key []byte) []byte {
	if i := bytes.IndexByte(key, '{'); i >= 0 {
		if n := bytes.IndexByte(key[i+1:], '}'); n >= 0 {
			return key[i+1 : i+1+n]
		}
	}
	return key
}

// placer tells instances of keys that come in order: the sum of what a key begins with is mostly that of the key before.
type placer struct {
	slots, instances int
	head             []byte // of the last key, but for up to eight bytes
	sum              uint32 // of head
}

func (p *placer) instance(key []byte) int {
	key = tagOf(key)
	n := max(len(key)-1, 0) &^ 7
	if !bytes.Equal(key[:n], p.head) {
		p.head = append(p.head[:0], key[:n]...)
		p.sum = crc32.ChecksumIEEE(p.head)
	}
	return int(crc32.Update(p.sum, crc32.IEEETable, key[n:])%uint32(p.slots)) % p.instances
}

// instanceOf returns the instance that a user key belongs to.
func instanceOf(key []byte, slots, instances int) int { return Slot(key, slots) % instances }

// usualSlots are the numbers of slots that are tried when nothing says how many a dataset has. One slot is what the engine
// takes when its configuration names none.
var usualSlots = []int{defaultSlots, 1, 2048, 4096, 8192, 16384, 512, 256, 128, 64, 32, 16, 100, 1000, 10000}

// guessSlots returns the number of slots by which most keys lie in the instance where they are. Of several the first of those
// that are usual.
func guessSlots(keys [][][]byte) (slots int) {
	least := -1
	for _, n := range append([]int{defaultSlots, len(keys)}, usualSlots...) {
		if wrong := misplaced(keys, n); least < 0 || wrong < least {
			slots, least = n, wrong
		}
	}
	return slots
}

// misplaced counts the keys that lie in another instance than theirs.
func misplaced(keys [][][]byte, slots int) (n int) {
	for i := range keys {
		for _, key := range keys[i] {
			if instanceOf(key, slots, len(keys)) != i {
				n++
			}
		}
	}
	return n
}
