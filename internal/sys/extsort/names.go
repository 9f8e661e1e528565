package extsort

import (
	"hash/maphash"
	"math/bits"
	"slices"

	"github.com/zeebo/xxh3"

	"kvferry/record"
)

// SeenNames finds duplicate names, such as the members of a set, by their hashes: of 64 bits, or of 128 bits for large
// sets. The zero Names is ready to use.
type SeenNames struct {
	slots []uint64 // open-addressing hash set; zero is free
	n     int
	more  *Duplicates[[2]uint64] // hashes of a large set
	wide  bool                   // hashes have 128 bits

	// Twins is the number of duplicates found so far, and First the first of them.
	Twins int64
	First string
}

// seed is random, so that no file can be crafted to make 64-bit hashes collide.
var seed = maphash.MakeSeed()

const (
	leastSlots = 32
	// MostNames is the size up to which IsTwin detects duplicates at once. The hashes of larger sets are sorted, and
	// All counts the duplicates.
	MostNames = 1 << 16
	// sortMemory is the minimum memory for sorting.
	sortMemory = 1 << 20
)

// Reset removes all names.
func (s *SeenNames) Reset() error {
	if s.n == 0 && s.more == nil && !s.wide {
		return nil
	}
	if s.n > 0 {
		clear(s.slots)
	}
	s.slots = s.slots[:min(len(s.slots), leastSlots)]
	s.n, s.Twins, s.First, s.wide = 0, 0, "", false
	return s.Close()
}

// Expect prepares for n names. Call it before the first name.
func (s *SeenNames) Expect(n int64) {
	if s.wide = n > MostNames; s.wide || 2*n <= int64(len(s.slots)) {
		return
	}
	s.room(max(leastSlots, 1<<bits.Len64(uint64(2*n-1))))
}

// room makes n free slots.
func (s *SeenNames) room(n int) {
	if n <= cap(s.slots) {
		s.slots = s.slots[:n]
		clear(s.slots)
	} else {
		s.slots = make([]uint64, n)
	}
}

// Close removes the temporary file.
func (s *SeenNames) Close() (err error) {
	if s.more != nil {
		err = s.more.Close()
		s.more = nil
	}
	return err
}

// IsTwin adds a name and reports whether it is known to be a duplicate. Large sets are sorted with the given memory
// and temporary directory.
func (s *SeenNames) IsTwin(name []byte, memory int64, tempDir string) (bool, error) {
	if s.wide {
		s.open(memory, tempDir)
		h := xxh3.Hash128(name)
		return false, s.more.Add([2]uint64{h.Hi, h.Lo})
	}
	h := max(maphash.Bytes(seed, name), 1)
	switch {
	case s.more != nil:
		return false, s.more.Add([2]uint64{h})
	case s.n == MostNames:
		s.open(memory, tempDir)
		for _, x := range s.slots {
			if x != 0 {
				if err := s.more.Add([2]uint64{x}); err != nil {
					return false, err
				}
			}
		}
		return false, s.more.Add([2]uint64{h})
	case 2*s.n >= len(s.slots):
		s.grow()
	}
	if !s.put(h) {
		s.twin(name)
		return true, nil
	}
	s.n++
	return false, nil
}

// put adds a hash and reports whether it is new.
func (s *SeenNames) put(h uint64) bool {
	mask := uint64(len(s.slots) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		switch s.slots[i] {
		case h:
			return false
		case 0:
			s.slots[i] = h
			return true
		}
	}
}

// grow doubles the number of slots.
func (s *SeenNames) grow() {
	old := slices.Clone(s.slots)
	s.room(max(2*len(old), leastSlots))
	for _, h := range old {
		if h != 0 {
			s.put(h)
		}
	}
}

func (s *SeenNames) open(memory int64, tempDir string) {
	if s.more == nil {
		s.more = NewDuplicates[[2]uint64](max(memory, sortMemory), tempDir)
	}
}

func (s *SeenNames) twin(name []byte) {
	if s.Twins++; s.Twins == 1 {
		s.First = record.Quote(name)
	}
}

// All adds the duplicates of a large set to Twins.
func (s *SeenNames) All() error {
	if s.more == nil {
		return nil
	}
	err := s.more.Each(func(_ [2]uint64, more int64) error {
		s.Twins += more
		return nil
	})
	s.more = nil
	return err
}
