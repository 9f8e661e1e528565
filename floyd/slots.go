package floyd

import (
	"bytes"
	"hash/crc32"
	"math"
)

// Defaults of Pika's configuration as it is shipped: db-instance-num and default-slot-num.
const (
	defaultInstances = 3
	defaultSlots     = 1024
)

// Slot returns the slot of a user key: the CRC-32 of its tag, or of all of it where it has none. The tag is what stands
// between the first { and the } after it, and may be empty.
func Slot(key []byte, slots int) int {
	return int(sumOf(key) % uint32(slots))
}

// sumOf sums up what decides about the slot of a key.
func sumOf(key []byte) uint32 { return crc32.ChecksumIEEE(tagOf(key)) }

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

// spread is how keys lie over instances: the number of slots, and of the instances that the slots are dealt out to.
type spread struct{ slots, instances int }

// keySums are the sums of some keys of each instance, by its number: what the slot of a key is computed from.
type keySums [][]uint32

// guess returns the spread by which most keys lie in the instance where they are; the sums are those of the instances that are
// there, by number. Of several the first of those that are usual. fits says that next to none lies elsewhere. More instances
// than are there are believed if the keys prove it: they lie where these say, and fewer would have them elsewhere, too.
func (s keySums) guess() (sp spread, fits bool) {
	total := 0
	for i := range s {
		total += len(s[i])
	}
	least := -1
	for _, slots := range append([]int{defaultSlots, len(s)}, usualSlots...) {
		if wrong := s.misplaced(spread{slots, len(s)}, total); least < 0 || wrong < least {
			sp, least = spread{slots, len(s)}, wrong
		}
	}
	for n := maxInstances; n > len(s); n-- {
		for _, slots := range append([]int{defaultSlots, n}, usualSlots...) {
			more := spread{slots, n}
			few := total / strayKeys
			if n <= slots && s.misplaced(more, few) <= few && s.distinct(slots) >= provingSlots {
				return more, true
			}
		}
	}
	return sp, least <= total/strayKeys
}

// strayKeys: of so many keys one may lie in another instance than its own, and the others prove what they prove.
const strayKeys = 50

// provingSlots is how many slots keys have that prove how they are spread. Keys of one slot lie together. That those of another
// slot lie where twice the instances would have them is chance at one half.
const provingSlots = 40

// misplaced counts the keys that lie in another instance than theirs, and stops above most.
func (s keySums) misplaced(sp spread, most int) (n int) {
	for i := range s {
		for _, sum := range s[i] {
			if int(sum%uint32(sp.slots))%sp.instances != i {
				if n++; n > most {
					return n
				}
			}
		}
	}
	return n
}

// distinct counts the slots that keys have.
func (s keySums) distinct(slots int) int {
	seen := map[uint32]bool{}
	for i := range s {
		for _, sum := range s[i] {
			seen[sum%uint32(slots)] = true
		}
	}
	return len(seen)
}

// barren reports whether it cannot be chance that an instance has none of the keys: its share of the slots is too large for
// that.
func (s keySums) barren(sp spread, i int) bool {
	share := 0
	for slot := i; slot < sp.slots; slot += sp.instances {
		share++
	}
	chance := math.Pow(1-float64(share)/float64(sp.slots), float64(s.distinct(sp.slots)))
	return chance < impossible
}

// impossible is what is not taken for chance.
const impossible = 1e-9
