package blocks

import (
	"bytes"
	"encoding/binary"
	"sort"
	"sync"

	"kvferry/store/rocks/base"
)

// Kept is a data block that is kept for lookups.
type Kept struct {
	Block
	once   sync.Once
	sorted bool
}

// Sorted reports whether all entries and restart points are in bytewise order, and no key is above last, so that Get finds
// every key. It checks them once.
func (k *Kept) Sorted(last []byte) bool {
	k.once.Do(func() { k.sorted = k.isSorted(last) })
	return k.sorted
}

func (k *Kept) isSorted(last []byte) bool {
	if k.RestartAt(0) != 0 {
		return false
	}
	var prev []byte
	e, restart, below := Entries{Data: k.Entries}, 0, uint64(0)
	for {
		more, err := e.Next()
		if err != nil || more && len(e.Key) < base.TrailerLen {
			return false
		}
		if !more {
			return restart == k.NumRestarts() && prev != nil && bytes.Compare(prev, last) <= 0
		}
		if e.At == k.RestartAt(restart) {
			if e.Data[e.At] != 0 { // the key is not complete
				return false
			}
			restart++
		}
		user, tr := base.SplitKey(e.Key)
		if prev != nil {
			if c := bytes.Compare(prev, user); c > 0 || c == 0 && below <= tr {
				return false
			}
		}
		prev, below = append(prev[:0], user...), tr
	}
}

// Get returns the value and the trailer of the newest entry of a user key in a sorted block.
func (k *Kept) Get(key []byte) (value []byte, tr uint64, found bool) {
	next := sort.Search(k.NumRestarts(), func(i int) bool {
		_, n, _, p := EntryHeader(k.Entries, k.RestartAt(i))
		return bytes.Compare(k.Entries[p:p+n-base.TrailerLen], key) >= 0
	})
	var room [128]byte
	full := room[:0]
	for p := k.RestartAt(max(next-1, 0)); p < len(k.Entries); {
		shared, n, size, at := EntryHeader(k.Entries, p)
		full = append(full[:shared], k.Entries[at:at+n]...)
		end := len(full) - base.TrailerLen
		c := bytes.Compare(full[:end], key)
		if c == 0 {
			return k.Entries[at+n : at+n+size : at+n+size], binary.LittleEndian.Uint64(full[end:]), true
		}
		if c > 0 {
			break
		}
		p = at + n + size
	}
	return nil, 0, false
}
