package transfer

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"io"
	"slices"
	"sync"

	"kvferry/internal/sys/extsort"
	"kvferry/record"
)

// Names collects the records to rename, and the names of the source that look like new names: key, ":", a type and any
// number of "_". They are sorted externally, so that one pass over them assigns all new names with bounded memory.
type Names struct {
	mu         sync.Mutex
	sorter     *extsort.Sorter
	buf        []byte
	size, most int64 // of the renames in memory
}

// The prefixes of the rows in the sorter. The value of a loser's row is its type (1B) and its key.
const (
	loserRow = iota
	namesakeRow
)

// NewNames returns an empty set of names. memory is the limit of the whole pass, of which it takes a part.
func NewNames(memory int64, temp string) *Names {
	return &Names{sorter: extsort.New(extsort.Options{Memory: memory / 16, TempDir: temp}), most: memory / 8}
}

// Save writes the names to a new file, for Load. It has checksums.
func (n *Names) Save(path string) error {
	_, err := n.sorter.Save(path)
	return err
}

// Load adds the names of a file, which must exist until Close.
func (n *Names) Load(path string) error { return n.sorter.Load(path) }

// Close removes what is on disk, but not the files of Load.
func (n *Names) Close() error { return n.sorter.Close() }

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
func (n *Names) note(db string, name []byte) error {
	plain, tail, ok := likeNew(name)
	if !ok {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.buf = appendNamesake(n.buf[:0], db, plain, tail)
	return n.sorter.Add(namesakeRow, n.buf, nil)
}

// lose adds a record to rename.
func (n *Names) lose(r *Rename) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.size += r.size(); n.size > n.most {
		return errManyRenames
	}
	n.buf = appendNamesake(n.buf[:0], r.db, r.plain(), 0)
	return n.sorter.Add(loserRow, n.buf, append([]byte{byte(r.typ)}, r.key...))
}

// Renames assigns the new names: the old one with ":" and the type, and enough "_" to make it unique. New names differ
// without their tails. It returns the records to rename by database and new name; the list is never nil.
func (n *Names) Renames() ([]Rename, error) {
	it, err := n.sorter.Sort()
	if err != nil {
		return nil, err
	}
	all := []Rename{}
	prefix, key, value, err := it.Next()
	for n.size = 0; err == nil && prefix == loserRow; prefix, key, value, err = it.Next() {
		db := key[4:][:binary.BigEndian.Uint32(key)]
		r := Rename{db: string(db), typ: record.Type(value[0]), key: bytes.Clone(value[1:])}
		r.to = r.plain()
		if n.size += r.size(); n.size > n.most {
			return nil, errManyRenames
		}
		all = append(all, r)
	}
	var want []byte
	for i := range all {
		r := &all[i]
		want = appendNamesake(want[:0], r.db, r.to, 0)
		for ; err == nil && bytes.Compare(key, want) <= 0; _, key, _, err = it.Next() {
			if bytes.Equal(key, want) {
				r.to = append(r.to, '_')
				binary.BigEndian.PutUint32(want[len(want)-4:], binary.BigEndian.Uint32(want[len(want)-4:])+1)
			}
		}
	}
	if err != nil && err != io.EOF {
		return nil, err
	}
	slices.SortFunc(all, byName)
	return all, nil
}

// byPreference orders records by key, then by the preference of their types. If the target holds a name under one
// type only, the first record with elements keeps it. Types not in prefer come last, in dump order.
func byPreference(prefer []record.Type) func(a, b *record.Header) int {
	rank := make([]int, record.NumTypes)
	for _, t := range record.AllTypes.Types() {
		rank[t] = int(t)
	}
	for i, t := range prefer {
		rank[t] = i - len(prefer)
	}
	return func(a, b *record.Header) int {
		return cmp.Or(bytes.Compare(a.Key, b.Key), cmp.Compare(rank[a.Type], rank[b.Type]))
	}
}
