package transfer

import (
	"bytes"
	"encoding/binary"
	"io"
	"slices"
	"sync"

	"kvferry/internal/sys/extsort"
	"kvferry/record"
)

// namesakes collects the names of the source that look like new names: key, ":", a type and any number of "_". They
// are sorted externally, so that one pass over them assigns all new names with bounded memory.
type namesakes struct {
	mu     sync.Mutex
	sorter *extsort.Sorter
	buf    []byte
}

func newNamesakes(memory int64, temp string) *namesakes {
	return &namesakes{sorter: extsort.New(extsort.Options{Memory: memory, TempDir: temp})}
}

// likeNew splits a name that looks like a new one into plain name and number of "_".
func likeNew(name []byte) (plain []byte, tail int, ok bool) {
	plain = bytes.TrimRight(name, "_")
	colon := bytes.LastIndexByte(plain, ':')
	if colon < 0 || !typeNames[string(plain[colon+1:])] {
		return nil, 0, false
	}
	return plain, len(name) - len(plain), true
}

// typeNames holds the names of all types.
var typeNames = func() map[string]bool {
	out := map[string]bool{}
	for _, t := range record.AllTypes.Types() {
		out[t.String()] = true
	}
	return out
}()

// appendNamesake appends the sort key of a name. Names that differ only in their tails are adjacent.
//
//	+-------------+----------+-------------+-----------------------+-----------+
//	| length (4B) | database | length (4B) | name without its tail | tail (4B) |
//	+-------------+----------+-------------+-----------------------+-----------+
//
// Numbers are big endian. The tail is the number of "_".
func appendNamesake(dst []byte, db string, plain []byte, tail int) []byte {
	dst = append(binary.BigEndian.AppendUint32(dst, uint32(len(db))), db...)
	dst = append(binary.BigEndian.AppendUint32(dst, uint32(len(plain))), plain...)
	return binary.BigEndian.AppendUint32(dst, uint32(tail))
}

// note adds a name of the source.
func (s *namesakes) note(db string, name []byte) error {
	plain, tail, ok := likeNew(name)
	if !ok {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buf = appendNamesake(s.buf[:0], db, plain, tail)
	return s.sorter.Add(0, s.buf, nil)
}

// give assigns the new names: the old one with ":" and the type, and enough "_" to make it unique. New names differ
// without their tails. It sorts the records by new name.
func (s *namesakes) give(all []Rename) error {
	for i := range all {
		all[i].to = all[i].plain()
	}
	slices.SortFunc(all, func(a, b Rename) int {
		return bytes.Compare(appendNamesake(nil, a.db, a.to, 0), appendNamesake(nil, b.db, b.to, 0))
	})
	it, err := s.sorter.Sort()
	if err != nil {
		return err
	}
	key, err := nextNamesake(it)
	var want []byte
	for i := range all {
		n := &all[i]
		want = appendNamesake(want[:0], n.db, n.to, 0)
		for ; key != nil && err == nil && bytes.Compare(key, want) <= 0; key, err = nextNamesake(it) {
			if bytes.Equal(key, want) {
				n.to = append(n.to, '_')
				binary.BigEndian.PutUint32(want[len(want)-4:], binary.BigEndian.Uint32(want[len(want)-4:])+1)
			}
		}
	}
	slices.SortFunc(all, byName)
	return err
}

// nextNamesake returns the next sort key, or nil after the last.
func nextNamesake(it *extsort.Iterator) ([]byte, error) {
	_, key, _, err := it.Next()
	if err == io.EOF {
		return nil, nil
	}
	return key, err
}
