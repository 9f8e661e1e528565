package floyd

import (
	"bytes"
	"cmp"
	"hash/crc32"
	"iter"
	"math"
	"slices"
)

// Defaults of Pika's shipped configuration: db-instance-num and default-slot-num.
const (
	defaultInstances = 3
	defaultSlots     = 1024
)

// Slot returns the slot of a user key: the CRC-32 of its tag, or of the whole key without one. The tag is the
// text between the first { and the next }; it may be empty.
func Slot(key []byte, slots int) int {
	return int(sumOf(key) % uint32(slots))
}

// sumOf returns the checksum that determines the slot of a key.
func sumOf(key []byte) uint32 { return crc32.ChecksumIEEE(tagOf(key)) }

// tagOf returns the part of a key that determines its slot.
func tagOf(key []byte) []byte {
	if i := bytes.IndexByte(key, '{'); i >= 0 {
		if n := bytes.IndexByte(key[i+1:], '}'); n >= 0 {
			return key[i+1 : i+1+n]
		}
	}
	return key
}

// placer computes the instances of ascending keys. It reuses the checksum of the prefix that a key shares with
// the last.
type placer struct {
	slots, instances int
	last             []byte
	sums             []uint32 // of the prefixes of last, by length; inverted, as CRC-32 computes
}

// longKey is the length from which checksums are computed without caching prefixes.
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

// ownSlots are the engine's own numbers of slots: in the shipped configuration, and without a setting.
var ownSlots = []int{defaultSlots, 1}

// maxSlots is the limit of the search for a number of slots; farther is the limit if no number up to maxSlots
// fits.
const (
	maxSlots = 16384
	farther  = 8 * maxSlots
)

// spread is a distribution of keys: the number of slots, and the number of instances that share the slots.
type spread struct{ slots, instances int }

// keySums are the distinct checksums of sampled keys by instance number. A key's slot is computed from its
// checksum.
type keySums [][]uint32

func (s keySums) total() (n int) {
	for i := range s {
		n += len(s[i])
	}
	return n
}

// guess returns the spread that puts most keys into the instances where they were found; the sums are indexed
// by instance. Among numbers of slots that place all these keys alike it prefers the engine's own, else the
// smallest. fits is true if almost all keys are in the right instance. guess accepts more instances than exist
// if the keys prove it: they fit the larger number, and misfit any smaller one.
func (s keySums) guess() (sp spread, fits bool) {
	total := s.total()
	few := total / strayKeys
	sp, wrong := s.best(slices.Values(ownSlots), total)
	if more, ok := s.more(few, wrong == 0); ok {
		return more, true
	}
	if wrong > few {
		other, least := s.other(few)
		// A number may fit few keys by chance: unless the keys are decisive, it is accepted only if the
		// engine's own numbers are wrong about as often as random ones.
		if least <= few && (s.decisive() || 2*len(s)*wrong >= total*(len(s)-1)) || s.decisive() && 2*least < wrong {
			sp, wrong = other, least
		}
	}
	return sp, wrong <= few
}

// other returns the best of all numbers of slots, and the number of keys misplaced by it.
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

// best returns the first number of slots that misplaces the fewest keys, and the number of these keys, which
// is counted only up to most.
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

// chanceBits bounds the bits of evidence that chance can give when all numbers of slots are tried.
const chanceBits = 14 + 14

// decisive reports whether the keys are too many for one number of slots to fit all of them by chance.
func (s keySums) decisive() bool {
	return float64(s.total())*math.Log2(float64(len(s))) >= chanceBits
}

// probes is the number of keys that one attempt derives a number of instances from, and tries the number of
// attempts: a misplaced key spoils its attempt.
const (
	probes = 16
	tries  = 5
)

// more returns a spread over more instances than exist, if keys prove it: for each key, its slot minus its
// instance is a multiple of the number of instances. sure is true if no key is misplaced.
func (s keySums) more(few int, sure bool) (sp spread, ok bool) {
	if s.distinct(math.MaxUint32) < provingSlots {
		return sp, false
	}
	keys := s.inTurn()
	for try := 0; (try == 0 || !sure) && try < tries && (try+1)*probes <= len(keys); try++ {
		some := keys[try*probes : (try+1)*probes]
		for slots := len(s) + 1; slots <= maxSlots; slots++ {
			of := common(some, slots, len(s))
			of = cmp.Or(of, slots)
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

// proves reports whether the keys fit a spread and have too many distinct slots for that to be chance.
func (s keySums) proves(sp spread, few int) bool {
	return s.misplaced(sp, few) <= few && s.distinct(sp.slots) >= provingSlots
}

// placed is a key in an instance.
type placed struct {
	sum      uint32
	instance int
}

// inTurn returns the keys, alternating between instances.
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

// common returns the greatest common divisor of slot minus instance over all keys; if all of these are 0, it
// returns 0. It stops early when the divisor is at most most.
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

// strayKeys: at most one in strayKeys keys may be misplaced without invalidating the rest.
const strayKeys = 50

// provingSlots is the number of distinct slots of keys that proves a spread. Keys of one slot are always
// together. Each further slot fits a spread over twice the instances with probability one half.
const provingSlots = 40

// misplaced counts the keys that are not in the instance of their slot, and stops above most.
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

// distinct counts the distinct slots of keys.
func (s keySums) distinct(slots int) int {
	seen := map[uint32]bool{}
	for i := range s {
		for _, sum := range s[i] {
			seen[sum%uint32(slots)] = true
		}
	}
	return len(seen)
}

// barren reports whether an instance's share of the slots is too large for it to have no keys by chance.
func (s keySums) barren(sp spread, i int) bool {
	share := 0
	for slot := i; slot < sp.slots; slot += sp.instances {
		share++
	}
	chance := math.Pow(1-float64(share)/float64(sp.slots), float64(s.distinct(sp.slots)))
	return chance < impossible
}

// impossible is the probability below which chance is ruled out.
const impossible = 1e-9
