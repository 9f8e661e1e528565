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

// placer tells instances of keys that come in order: what a key begins with has mostly been summed up for the key before.
type placer struct {
	slots, instances int
	last             []byte
	sums             []uint32 // of what last begins with, by its length; inverted, as CRC-32 computes
}

// longKey is the length from which keys are summed up as a whole.
const longKey = 512

func (p *placer) instance(key []byte) int {
	key = tagOf(key)
	if len(key) >= longKey {
		return int(crc32.ChecksumIEEE(key)%uint32(p.slots)) % p.instances
	}
	n := 0
	for most := min(len(key), len(p.last)); n < most && key[n] == p.last[n]; n++ {
	}
	if p.sums == nil {
		p.sums = make([]uint32, 1, longKey)
		p.sums[0] = ^uint32(0)
	}
	p.last, p.sums = append(p.last[:n], key[n:]...), p.sums[:n+1]
	sum := p.sums[n]
	for _, c := range key[n:] {
		sum = crc32.IEEETable[byte(sum)^c] ^ sum>>8
		p.sums = append(p.sums, sum)
	}
	return int(^sum%uint32(p.slots)) % p.instances
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
