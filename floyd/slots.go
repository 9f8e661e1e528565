package floyd

import (
	"bytes"
	"hash/crc32"
	"iter"
	"math"
	"slices"
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

// ownSlots are the engine's own numbers of slots: of the configuration that it is shipped with, and where that names none.
var ownSlots = []int{defaultSlots, 1}

// maxSlots is up to which number any is looked for, and farther the limit where none of them fits.
const (
	maxSlots = 16384
	farther  = 8 * maxSlots
)

// spread is how keys lie over instances: the number of slots, and of the instances that the slots are dealt out to.
type spread struct{ slots, instances int }

// keySums are the sums of some keys of each instance, by its number, each once: what the slot of a key is computed from.
type keySums [][]uint32

func (s keySums) total() (n int) {
	for i := range s {
		n += len(s[i])
	}
	return n
}

// guess returns the spread by which most keys lie in the instance where they are; the sums are those of the instances that are
// there, by number. Numbers of slots that put all keys seen into the same instances are one; of them the engine's own is
// named, or the smallest. fits says that next to no key lies elsewhere. More instances than are there are believed if the keys
// prove it: they lie where these say, and fewer would have them elsewhere, too.
func (s keySums) guess() (sp spread, fits bool) {
	total := s.total()
	few := total / strayKeys
	sp, wrong := s.best(slices.Values(ownSlots), total)
	if more, ok := s.more(few, wrong == 0); ok {
		return more, true
	}
	if wrong > few {
		other, least := s.other(few)
		// By chance a number fits few keys: it is believed if the engine's own are as wrong as any.
		if least <= few && (s.decisive() || 2*len(s)*wrong >= total*(len(s)-1)) || s.decisive() && 2*least < wrong {
			sp, wrong = other, least
		}
	}
	return sp, wrong <= few
}

// other returns the best of all numbers of slots, and how many keys lie elsewhere by it.
func (s keySums) other(few int) (sp spread, wrong int) {
	for _, most := range []int{maxSlots, farther} {
		if sp, wrong = s.best(upTo(most), few); wrong <= few {
			return sp, wrong
		}
	}
	return s.best(upTo(maxSlots), s.total())
}

func upTo(most int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for n := 1; n <= most && yield(n); n++ {
		}
	}
}

// best returns the first number of slots by which the fewest keys lie in another instance than theirs, and how many do; above
// most that is not counted.
func (s keySums) best(numbers iter.Seq[int], most int) (sp spread, wrong int) {
	wrong = most + 1
	for slots := range numbers {
		if n := s.misplaced(spread{slots, len(s)}, wrong-1); n < wrong {
			sp, wrong = spread{slots, len(s)}, n
		}
		if wrong == 0 {
			break
		}
	}
	return sp, wrong
}

// chanceBits is how many bits of what keys say are chance at most, among all numbers of slots.
const chanceBits = 14 + 14

// decisive reports whether there are so many keys that a number of slots that fits all of them is no chance.
func (s keySums) decisive() bool {
	return float64(s.total())*math.Log2(float64(len(s))) >= chanceBits
}

// probes are how many keys at once are asked for a number of instances, and tries how often: a key that lies where it does not
// belong says something wrong.
const (
	probes = 16
	tries  = 5
)

// more returns a spread over more instances than are there, if keys prove it: what is left of each slot when the number of its
// instance is taken off is a multiple of the number of instances. sure says that no key lies where it does not belong.
func (s keySums) more(few int, sure bool) (sp spread, ok bool) {
	if s.distinct(math.MaxUint32) < provingSlots {
		return sp, false
	}
	keys := s.inTurn()
	for try := 0; (try == 0 || !sure) && try < tries && (try+1)*probes <= len(keys); try++ {
		some := keys[try*probes : (try+1)*probes]
		for slots := len(s) + 1; slots <= maxSlots; slots++ {
			of := common(some, slots, len(s))
			if of == 0 {
				of = slots
			}
			for n := min(of, maxInstances); n > max(len(s), sp.instances); n-- {
				if of%n == 0 && s.proves(spread{slots, n}, few) {
					sp = spread{slots, n}
				}
			}
		}
		if sp.instances > 0 {
			break
		}
	}
	if own := (spread{defaultSlots, sp.instances}); sp.instances > 0 && s.proves(own, few) {
		sp = own
	}
	return sp, sp.instances > 0
}

// proves reports whether keys lie where a spread says, and have so many slots that this is no chance.
func (s keySums) proves(sp spread, few int) bool {
	return s.misplaced(sp, few) <= few && s.distinct(sp.slots) >= provingSlots
}

// placed is a key in an instance.
type placed struct {
	sum      uint32
	instance int
}

// inTurn returns the keys, one of each instance after the other.
func (s keySums) inTurn() (out []placed) {
	for k, n := 0, s.total(); len(out) < n; k++ {
		for i := range s {
			if k < len(s[i]) {
				out = append(out, placed{s[i][k], i})
			}
		}
	}
	return out
}

// common returns the largest number that divides what is left of all slots; 0 if that is nothing, and any number up to most
// for one that is no larger.
func common(keys []placed, slots, most int) int {
	of := 0
	for _, k := range keys {
		a, b := int(k.sum%uint32(slots))-k.instance, of
		for a = max(a, -a); a != 0; {
			a, b = b%a, a
		}
		if of = b; of != 0 && of <= most {
			break
		}
	}
	return of
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
