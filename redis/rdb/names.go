package rdb

import (
	"hash/maphash"
	"math/bits"
	"slices"

	"github.com/zeebo/xxh3"

	"kvferry/internal/repeats"
	"kvferry/record"
)

// names finds fields and members that a value has more than once, by their hashes: of 64 bits, or of 128 if there are many.
type names struct {
	slots []uint64 // by the low bits of the hash; zero is free
	n     int
	more  *repeats.Finder[[2]uint64] // of hashes, once there are many
	wide  bool                       // they have 128 bits

	twins int64
	first string // of the twins
}

// seed makes hashes of names that no file can be made for.
var seed = maphash.MakeSeed()

const (
	leastSlots = 32
	// mostNames is how many names are looked up in memory; the hashes of more are sorted, and are known to be twins
	// when all elements were returned.
	mostNames = 1 << 16
	// sortMemory is what sorting them takes, unless more is granted.
	sortMemory = 1 << 20
)

// reset forgets all names.
func (s *names) reset() error {
	if s.n == 0 && s.more == nil && !s.wide {
		return nil
	}
	if s.n > 0 {
		clear(s.slots)
	}
	s.slots = s.slots[:min(len(s.slots), leastSlots)]
	s.n, s.twins, s.first, s.wide = 0, 0, "", false
	return s.close()
}

// expect makes room for so many names, before the first.
func (s *names) expect(n int64) {
	if s.wide = n > mostNames; s.wide || 2*n <= int64(len(s.slots)) {
		return
	}
	s.room(max(leastSlots, 1<<bits.Len64(uint64(2*n-1))))
}

// room makes so many free slots.
func (s *names) room(n int) {
	if n <= cap(s.slots) {
		s.slots = s.slots[:n]
		clear(s.slots)
	} else {
		s.slots = make([]uint64, n)
	}
}

func (s *names) close() (err error) {
	if s.more != nil {
		err = s.more.Close()
		s.more = nil
	}
	return err
}

// isTwin notes a name and reports whether it was there before. Many are sorted in so much memory, in a directory.
func (s *names) isTwin(name []byte, memory int64, tempDir string) (bool, error) {
	if s.wide {
		s.open(memory, tempDir)
		h := xxh3.Hash128(name)
		return false, s.more.Add([2]uint64{h.Hi, h.Lo})
	}
	h := max(maphash.Bytes(seed, name), 1)
	switch {
	case s.more != nil:
		return false, s.more.Add([2]uint64{h})
	case s.n == mostNames:
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

// put notes a hash, and reports whether it is new.
func (s *names) put(h uint64) bool {
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

// grow makes room for twice as many hashes.
func (s *names) grow() {
	old := slices.Clone(s.slots)
	s.room(max(2*len(old), leastSlots))
	for _, h := range old {
		if h != 0 {
			s.put(h)
		}
	}
}

func (s *names) open(memory int64, tempDir string) {
	if s.more == nil {
		s.more = repeats.New[[2]uint64](max(memory, sortMemory), tempDir)
	}
}

func (s *names) twin(name []byte) {
	if s.twins++; s.twins == 1 {
		s.first = record.Quote(name)
	}
}

// all counts the twins among many names, too.
func (s *names) all() error {
	if s.more == nil {
		return nil
	}
	err := s.more.Each(func(_ [2]uint64, more int64) error {
		s.twins += more
		return nil
	})
	s.more = nil
	return err
}
