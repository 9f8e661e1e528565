package rocksfile

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// memRun collects entries in memory to sort them: the rows of the logs, or of a table in disorder.
// Entries lie in chunks, each as
//
//	+--------------+-------------+--------------------+--------------+--------------+
//	| key (varint) | internal key| value (varint)     | value        | origin (12B) |
//	+--------------+-------------+--------------------+--------------+--------------+
type memRun struct {
	ks     *keyspace
	chunks [][]byte
	refs   []memRef
	size   int64 // bytes of chunks and refs
	bytes  int64 // of entries, ever
}

// memRef is where an entry lies.
type memRef struct {
	prefix uint64 // the first bytes of the key, big endian: most comparisons need no more
	chunk  uint32
	off    uint32
}

const (
	memChunk   = 256 << 10
	memRefSize = 16
)

// add copies an entry.
func (m *memRun) add(user []byte, tr uint64, value []byte, o origin) {
	need := len(user) + trailerLen + len(value) + originLen + 2*binary.MaxVarintLen64
	n := len(m.chunks)
	if n == 0 || cap(m.chunks[n-1])-len(m.chunks[n-1]) < need {
		m.chunks = append(m.chunks, make([]byte, 0, max(memChunk, need)))
		m.size += int64(max(memChunk, need))
		n++
	}
	c := m.chunks[n-1]
	ref := memRef{prefix: keyPrefix(user), chunk: uint32(n - 1), off: uint32(len(c))}
	c = binary.AppendUvarint(c, uint64(len(user)+trailerLen))
	c = appendKey(c, user, tr)
	c = binary.AppendUvarint(c, uint64(len(value)))
	c = append(c, value...)
	c = binary.LittleEndian.AppendUint32(c, o.file)
	c = binary.LittleEndian.AppendUint64(c, o.off)
	m.chunks[n-1] = c
	m.refs = append(m.refs, ref)
	m.size += memRefSize
	m.bytes += int64(len(user) + trailerLen + len(value))
}

// keyPrefix returns the first 8 bytes of a key as a number, zero-padded.
func keyPrefix(user []byte) uint64 {
	if len(user) >= 8 {
		return binary.BigEndian.Uint64(user)
	}
	var b [8]byte
	copy(b[:], user)
	return binary.BigEndian.Uint64(b[:])
}

// entry returns an entry as views.
func (m *memRun) entry(r memRef) (key, value []byte, o origin) {
	b := m.chunks[r.chunk][r.off:]
	n, k := binary.Uvarint(b)
	key, b = b[k:k+int(n)], b[k+int(n):]
	n, k = binary.Uvarint(b)
	value, b = b[k:k+int(n)], b[k+int(n):]
	return key, value, origin{binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint64(b[4:])}
}

// key returns the internal key of an entry.
func (m *memRun) key(r memRef) []byte {
	b := m.chunks[r.chunk][r.off:]
	n, k := binary.Uvarint(b)
	return b[k : k+int(n)]
}

// sort orders the entries by internal key.
func (m *memRun) sort() {
	bytewise, compare := m.ks.cmp.IsBytewise(), m.ks.cmp.Compare
	slices.SortStableFunc(m.refs, func(a, b memRef) int {
		if bytewise && a.prefix != b.prefix {
			if a.prefix < b.prefix {
				return -1
			}
			return 1
		}
		return compareInternal(compare, m.key(a), m.key(b))
	})
}

// spool sorts the entries into a table of their own and forgets them. Small ones stay in memory.
func (m *memRun) spool(level int, origins []string, toDisk bool) (*table, error) {
	m.sort()
	var file *dataFile
	var mem bytes.Buffer
	s := &spoolWriter{w: &mem}
	if toDisk {
		var err error
		if file, err = m.ks.st.spoolFile(); err != nil {
			return nil, err
		}
		s.w = file.pinned
	}
	var last []byte
	for _, r := range m.refs {
		k, v, o := m.entry(r)
		if bytes.Equal(k, last) {
			continue // the same entry twice, in two logs
		}
		if err := s.add(k, v, o); err != nil {
			return nil, err
		}
		last = k
	}
	if err := s.flush(); err != nil {
		return nil, err
	}
	if !toDisk {
		file = memFile("memory", mem.Bytes())
	}
	m.chunks, m.refs, m.size = nil, nil, 0
	return s.table(m.ks, file, level, origins), nil
}
