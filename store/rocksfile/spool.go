package rocksfile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math/bits"
	"os"

	"kvferry/record"
)

// A spool is a sorted run that we made: the rows of the logs, or of a table whose order was wrong.
// It is read by the same cursors as tables: blocks with restarts and checksums, uncompressed, and an
// index block that stays in memory. Its values end in
//
//	+--------------------+-----------------+
//	| index of file (4B) | offset (8B)     |
//	+--------------------+-----------------+
//
// little endian, the place an entry came from.
const originLen = 12

const (
	spoolBlock    = 16 << 10
	spoolRestarts = 16 // entries from restart to restart
)

// origin is where an entry of a spool came from.
type origin struct {
	file uint32
	off  uint64
}

// append appends the origin to a value.
func (o origin) append(v []byte) []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint32(v, o.file), o.off)
}

// spoolWriter writes a spool to w.
type spoolWriter struct {
	w        io.Writer
	off      uint64
	block    []byte
	restarts []byte
	count    int // entries since the last restart
	last     []byte
	first    []byte // first key of the spool
	entries  int64
	index    []byte
	indexAt  []byte // restarts of index
}

// add appends an entry, whose value ends in its origin; internal keys must ascend.
func (s *spoolWriter) add(key, value []byte) error {
	if s.entries == 0 {
		s.first = bytes.Clone(key)
	}
	shared := 0
	if s.count >= spoolRestarts || len(s.block) == 0 {
		s.restarts = binary.LittleEndian.AppendUint32(s.restarts, uint32(len(s.block)))
		s.count = 0
	} else {
		shared = commonPrefix(s.last, key, 0)
	}
	s.block = binary.AppendUvarint(s.block, uint64(shared))
	s.block = binary.AppendUvarint(s.block, uint64(len(key)-shared))
	s.block = binary.AppendUvarint(s.block, uint64(len(value)))
	s.block = append(append(s.block, key[shared:]...), value...)
	s.last = append(s.last[:0], key...)
	s.count++
	s.entries++
	if len(s.block) >= spoolBlock {
		return s.flush()
	}
	return nil
}

// flush writes the block under construction.
func (s *spoolWriter) flush() error {
	if len(s.block) == 0 {
		return nil
	}
	b := append(s.block, s.restarts...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(s.restarts)/4))
	size := uint64(len(b))
	b = append(b, codecNone)
	b = binary.LittleEndian.AppendUint32(b, maskCRC(crc32.Checksum(b, crcTable)))
	if _, err := s.w.Write(b); err != nil {
		return err
	}
	s.indexAt = binary.LittleEndian.AppendUint32(s.indexAt, uint32(len(s.index)))
	handle := binary.AppendUvarint(binary.AppendUvarint(nil, s.off), size)
	s.index = append(s.index, 0)
	s.index = binary.AppendUvarint(s.index, uint64(len(s.last)))
	s.index = binary.AppendUvarint(s.index, uint64(len(handle)))
	s.index = append(append(s.index, s.last...), handle...)
	s.off += uint64(len(b))
	s.block, s.restarts, s.count = b[:0], s.restarts[:0], 0
	return nil
}

// table finishes the spool and makes it readable. level is -1 for logs.
func (s *spoolWriter) table(ks *keyspace, file *dataFile, level int, origins []string) *table {
	n := uint32(len(s.indexAt) / 4)
	index := binary.LittleEndian.AppendUint32(append(s.index, s.indexAt...), n)
	file.size = int64(s.off)
	meta := tableMeta{levelFile: levelFile{level: level}, size: int64(s.off), smallest: s.first, largest: bytes.Clone(s.last)}
	t := newTable(file, meta, ks)
	t.origins = origins
	t.info.checksum = checksumCRC32C
	t.info.properties = properties{entries: s.entries, deletes: -1, merges: -1, rangeDeletes: -1}
	t.once.Do(func() {})
	t.index, t.users = index, 1 // for as long as the store is open
	return t
}

// spoolFile makes a file for a spool that nobody else sees, gone when it is closed.
func (st *database) spoolFile() (*dataFile, error) {
	f, err := os.CreateTemp(st.opts.TempDir, "kvferry-spool-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return nil, err
	}
	st.spoolMu.Lock()
	defer st.spoolMu.Unlock()
	if st.closed {
		f.Close()
		return nil, os.ErrClosed
	}
	st.spools = append(st.spools, f)
	return &dataFile{path: f.Name(), name: f.Name(), pinned: f}, nil
}

// originPlace says where the entry of a spool came from; v is its value with the origin.
func (t *table) originPlace(v []byte) record.Place {
	o := v[len(v)-originLen:]
	i := binary.LittleEndian.Uint32(o)
	p := record.Place{Off: int64(binary.LittleEndian.Uint64(o[4:])), Level: t.meta.level}
	if int(i) < len(t.origins) {
		p.File = t.origins[i]
	} else {
		p.File = fmt.Sprintf("file %d", i)
	}
	return p
}

// commonPrefix returns how many bytes a and b share, knowing that they share n.
func commonPrefix(a, b []byte, n int) int {
	m := min(len(a), len(b))
	for n+8 <= m {
		x := binary.LittleEndian.Uint64(a[n:]) ^ binary.LittleEndian.Uint64(b[n:])
		if x != 0 {
			return n + bits.TrailingZeros64(x)/8
		}
		n += 8
	}
	for n < m && a[n] == b[n] {
		n++
	}
	return n
}
