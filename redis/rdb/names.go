package rdb

import (
	"encoding/binary"
	"errors"
	"io"

	"github.com/zeebo/xxh3"

	"kvferry/internal/extsort"
	"kvferry/record"
)

// names finds fields and members that a value has more than once, by their 128-bit hashes.
type names struct {
	slots []xxh3.Uint128 // by the low bits of the hash; zero is free
	n     int
	more  *extsort.Sorter // of hashes, once there are many

	twins int64
	first string // of the twins
}

const (
	leastSlots = 32
	// mostNames is how many names are looked up in memory; the hashes of more are sorted, and are known to be twins
	// when all elements were returned.
	mostNames = 1 << 16
	// sortMemory is what sorting them takes.
	sortMemory = 1 << 20
)

// reset forgets all names.
func (s *names) reset() error {
	if s.n > 0 {
		clear(s.slots)
	}
	s.slots = s.slots[:min(len(s.slots), leastSlots)]
	s.n, s.twins, s.first = 0, 0, ""
	return s.close()
}

func (s *names) close() (err error) {
	if s.more != nil {
		err = s.more.Close()
		s.more = nil
	}
	return err
}

// isTwin notes a name and reports whether it was there before.
func (s *names) isTwin(name []byte, tempDir string) (bool, error) {
	h := xxh3.Hash128(name)
	if h.Hi|h.Lo == 0 {
		h.Lo = 1
	}
	switch {
	case s.more != nil:
		return false, s.sort(h)
	case s.n == mostNames:
		s.more = extsort.New(extsort.Options{Memory: sortMemory, TempDir: tempDir})
		for _, x := range s.slots {
			if x.Hi|x.Lo != 0 {
				if err := s.sort(x); err != nil {
					return false, err
				}
			}
		}
		return false, s.sort(h)
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
func (s *names) put(h xxh3.Uint128) bool {
	mask := uint64(len(s.slots) - 1)
	for i := h.Lo & mask; ; i = (i + 1) & mask {
		switch s.slots[i] {
		case h:
			return false
		case xxh3.Uint128{}:
			s.slots[i] = h
			return true
		}
	}
}

// grow makes room for twice as many hashes.
func (s *names) grow() {
	old := s.slots
	n := max(2*len(old), leastSlots)
	if n <= cap(old) { // what is behind is free
		old = append([]xxh3.Uint128(nil), old...)
		s.slots = s.slots[:n]
		clear(s.slots)
	} else {
		s.slots = make([]xxh3.Uint128, n)
	}
	for _, h := range old {
		if h.Hi|h.Lo != 0 {
			s.put(h)
		}
	}
}

func (s *names) twin(name []byte) {
	if s.twins++; s.twins == 1 {
		s.first = record.Quote(name)
	}
}

func (s *names) sort(h xxh3.Uint128) error {
	return s.more.Add(h.Hi, binary.BigEndian.AppendUint64(nil, h.Lo), nil)
}

// all counts the twins among many names, too.
func (s *names) all() error {
	if s.more == nil {
		return nil
	}
	rows, err := s.more.Sort()
	var last xxh3.Uint128
	for err == nil {
		var hi uint64
		var lo []byte
		if hi, lo, _, err = rows.Next(); err == nil {
			h := xxh3.Uint128{Hi: hi, Lo: binary.BigEndian.Uint64(lo)}
			if h == last {
				s.twins++
			}
			last = h
		}
	}
	if err == io.EOF {
		err = nil
	}
	return errors.Join(err, s.close())
}
