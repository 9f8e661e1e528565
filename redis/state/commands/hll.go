package commands

import (
	"encoding/binary"

	"kvferry/internal/shared/argument"
	"kvferry/internal/shared/hll"
	"kvferry/record"
	"kvferry/redis/state"
)

var errHLL = argument.Refuse("WRONGTYPE Key is not a valid HyperLogLog string value.")

// errBadHLL is returned for a damaged HyperLogLog: a server may have changed a part of it.
var errBadHLL = state.Unsupported("PFADD", "the HyperLogLog is damaged")

// Where a HyperLogLog caches its count, with a mark when that is stale.
const (
	hllCount = 8  // LE64
	hllLast  = 15 // byte of the mark
	hllStale = 0x80
)

// hllOf returns the HyperLogLog of a key and its expiry; an empty one if the key does not exist.
func hllOf(s *state.Server, key []byte) (h hll.Sketch, expire int64, there bool, err error) {
	v, err := s.Find(key, record.String)
	if err != nil {
		return nil, 0, false, err
	}
	if v == nil {
		return hll.New(), 0, false, nil
	}
	h = append(hll.Sketch{}, v.Content()...)
	if !hll.Is(h) {
		return nil, 0, false, errHLL
	}
	return h, v.ExpireMS, true, nil
}

// cmdPfadd is PFADD.
func cmdPfadd(s *state.Server, a [][]byte) error {
	h, expire, there, err := hllOf(s, a[1])
	if err != nil {
		return err
	}
	changed := !there
	for _, element := range a[2:] {
		var up, ok bool
		if h, up, ok = h.Add(element); !ok {
			return errBadHLL
		}
		changed = changed || up
	}
	if changed {
		h[hllLast] |= hllStale
		s.DB.SetString(a[1], h, expire)
	}
	return nil
}

// cmdPfmerge is PFMERGE.
func cmdPfmerge(s *state.Server, a [][]byte) error {
	var most hll.Registers
	dense := false
	for _, key := range a[1:] {
		h, _, there, err := hllOf(s, key)
		if err != nil {
			return err
		}
		if !there {
			continue
		}
		regs, ok := h.Registers()
		if !ok {
			return errBadHLL
		}
		dense = dense || h.IsDense()
		for i, v := range regs {
			most[i] = max(most[i], v)
		}
	}
	out, expire, _, err := hllOf(s, a[1])
	if err != nil {
		return err
	}
	if dense {
		out, _ = out.Dense()
	}
	for i, v := range most {
		if v > 0 {
			out, _, _ = out.Raise(i, v)
		}
	}
	out[hllLast] |= hllStale
	s.DB.SetString(a[1], out, expire)
	return nil
}

// cmdPfcount is PFCOUNT of one key, which updates a stale count.
func cmdPfcount(s *state.Server, a [][]byte) error {
	if len(a) > 2 {
		for _, key := range a[1:] {
			h, _, _, err := hllOf(s, key)
			if err != nil {
				return err
			}
			if _, ok := h.Registers(); !ok {
				return argument.Refuse("INVALIDOBJ Corrupted HLL object detected")
			}
		}
		return nil
	}
	h, expire, there, err := hllOf(s, a[1])
	if err != nil || !there || h[hllLast]&hllStale == 0 {
		return err
	}
	regs, ok := h.Registers()
	if !ok {
		return errBadHLL
	}
	binary.LittleEndian.PutUint64(h[hllCount:], regs.Count())
	s.DB.SetString(a[1], h, expire)
	return nil
}
