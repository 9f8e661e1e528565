package lsm

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"

	"kvferry/record"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/blocks"
	"kvferry/store/rocks/files"
)

// A spool is a sorted run of our own: the rows of the logs, or of a table in disorder. Cursors read it like a table:
// blocks with restarts and checksums, uncompressed (codec 0), and an index block that stays in memory. Its values end
// in the place from which the entry came, little endian:
//
//	+--------------------+-----------------+
//	| index of file (4B) | offset (8B)     |
//	+--------------------+-----------------+
const originLen = 12

const (
	spoolBlock    = 16 << 10
	spoolRestarts = 16 // entries between restarts
)

// Origin is the place from which a spool entry came.
type Origin struct {
	File uint32
	Off  uint64
}

// append appends the origin to a value.
func (o Origin) append(v []byte) []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint32(v, o.File), o.Off)
}

// decodeOrigin decodes the origin at the end of a value.
func decodeOrigin(v []byte) Origin {
	b := v[len(v)-originLen:]
	return Origin{binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint64(b[4:])}
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
		shared = base.CommonPrefix(s.last, key, 0)
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

// flush writes the current block.
func (s *spoolWriter) flush() error {
	if len(s.block) == 0 {
		return nil
	}
	b := append(s.block, s.restarts...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(s.restarts)/4))
	size := uint64(len(b))
	b = append(b, 0)
	b = binary.LittleEndian.AppendUint32(b, base.MaskCRC(crc32.Checksum(b, base.Castagnoli)))
	if _, err := s.w.Write(b); err != nil {
		return err
	}
	s.indexBlock(size)
	s.block, s.restarts, s.count = b[:0], s.restarts[:0], 0
	return nil
}

// addLarge appends an entry whose value, n bytes without its origin, is copied from src. It gets its own block and is
// never in memory as a whole.
func (s *spoolWriter) addLarge(key []byte, n int64, src io.Reader, o Origin) error {
	if err := s.flush(); err != nil {
		return err
	}
	if s.entries == 0 {
		s.first = bytes.Clone(key)
	}
	s.last = append(s.last[:0], key...)
	s.entries++
	head := binary.AppendUvarint([]byte{0}, uint64(len(key)))
	head = append(binary.AppendUvarint(head, uint64(n+originLen)), key...)
	tail := o.append(nil)
	tail = binary.LittleEndian.AppendUint32(tail, 0) // the only restart
	tail = binary.LittleEndian.AppendUint32(tail, 1)
	tail = append(tail, 0)
	sum := crc32.New(base.Castagnoli)
	from := io.MultiReader(bytes.NewReader(head), io.LimitReader(src, n), bytes.NewReader(tail))
	written, err := io.Copy(io.MultiWriter(s.w, sum), from)
	if err != nil {
		return err
	}
	if want := int64(len(head)+len(tail)) + n; written != want {
		return fmt.Errorf("%s bytes of a value of %s: %w", record.Number(written-want+n), record.Number(n), io.ErrUnexpectedEOF)
	}
	if _, err := s.w.Write(binary.LittleEndian.AppendUint32(nil, base.MaskCRC(sum.Sum32()))); err != nil {
		return err
	}
	s.indexBlock(uint64(written) - 1)
	return nil
}

// indexBlock adds the block just written to the index; size excludes the trailer.
func (s *spoolWriter) indexBlock(size uint64) {
	s.indexAt = binary.LittleEndian.AppendUint32(s.indexAt, uint32(len(s.index)))
	handle := binary.AppendUvarint(binary.AppendUvarint(nil, s.off), size)
	s.index = append(s.index, 0)
	s.index = binary.AppendUvarint(s.index, uint64(len(s.last)))
	s.index = binary.AppendUvarint(s.index, uint64(len(handle)))
	s.index = append(append(s.index, s.last...), handle...)
	s.off += size + blocks.TrailerLen
}

// table finishes the spool and returns it as a table. level is -1 for logs.
func (s *spoolWriter) table(ks *Keyspace, file *files.File, level int, origins []string) (*Table, error) {
	n := uint32(len(s.indexAt) / 4)
	index := binary.LittleEndian.AppendUint32(append(s.index, s.indexAt...), n)
	file.Size = int64(s.off)
	bl, err := blocks.Parse(index)
	if err != nil {
		return nil, err
	}
	meta := Meta{Name: file.Name, Path: file.Path, Level: level, Size: file.Size, Smallest: s.first, Largest: bytes.Clone(s.last)}
	t := NewTable(ks, meta, &spool{file: file, windows: &ks.Env.Windows, cmp: ks.cmp, index: bl})
	t.origins = origins
	return t, nil
}

// originPlace returns the place from which a spool entry came; v is its value with the origin.
func (t *Table) originPlace(v []byte) record.Place {
	o := decodeOrigin(v)
	p := record.Place{Off: int64(o.Off), Level: t.Level}
	if int(o.File) < len(t.Levels) {
		p.Level = t.Levels[o.File]
	}
	if int(o.File) < len(t.origins) {
		p.File = t.origins[o.File]
	} else {
		p.File = fmt.Sprintf("file %d", o.File)
	}
	return p
}
