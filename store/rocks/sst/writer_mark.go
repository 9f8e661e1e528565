package sst

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/s2"

	"kvferry/internal/sys/disk"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/blocks"
)

// SetLastSequence changes the sequence number of the last row of a Writer's table in place. The index still leads to
// it: an index key with a smaller number sorts after it.
func SetLastSequence(path string, seq uint64) (err error) {
	f, err := disk.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	m := marker{f: f}
	h, err := m.lastBlock()
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return m.mark(h, seq)
}

// marker changes the last row of a table.
type marker struct {
	f      *disk.File
	size   int64
	format Format
}

// lastBlock finds the last block through footer and index.
func (m *marker) lastBlock() (h blocks.Handle, err error) {
	if m.size, err = m.f.Seek(0, io.SeekEnd); err != nil {
		return h, err
	}
	footer := make([]byte, footerLen)
	if _, err := m.f.ReadAt(footer, m.size-int64(len(footer))); err != nil {
		return h, err
	}
	if footer[0] == checksumXXH3 {
		m.format = RocksDB5
	}
	fields := &base.Fields{Buf: footer[1:]}
	blocks.ReadHandle(fields, "metaindex")
	index, err := m.read(blocks.ReadHandle(fields, "index"))
	if err != nil {
		return h, err
	}
	bl, err := blocks.Parse(index)
	if err != nil {
		return h, err
	}
	entry := &base.Fields{Buf: bl.Entries[max(0, bl.Restart(bl.NumRestarts()-1)):]} // every entry is a restart
	entry.Uvarint("shared")
	key := entry.Uvarint32("key length")
	if !m.format.deltaIndex() {
		entry.Uvarint("value length")
	}
	entry.Bytes("key", int(key))
	return blocks.ReadHandle(entry, "block"), entry.Err
}

// mark changes the last row of a block and the block's checksum. The new one must not cover damage, so the old one must
// be right. A process that died here may have left either number with either checksum.
func (m *marker) mark(h blocks.Handle, seq uint64) error {
	b, err := m.load(h)
	if err != nil {
		return err
	}
	at, err := lastTrailer(b[:h.Size], b[h.Size])
	if err == nil && (at < 0 || at+base.TrailerLen > int(h.Size)) {
		err = blocks.ErrEntry
	}
	if err != nil {
		return fmt.Errorf("%s: the last block was not written by a Writer: %w", m.f.Name(), err)
	}
	stored, whole, sum := binary.LittleEndian.Uint32(b[h.Size+1:]), false, uint32(0)
	for _, n := range []uint64{0, seq} {
		binary.LittleEndian.PutUint64(b[at:], base.Trailer(n, base.KindPut))
		sum = m.format.checksum(b[:h.Size+1])
		whole = whole || sum == stored
	}
	if !whole {
		return fmt.Errorf("%s: the last block: %w", m.f.Name(), base.ErrChecksum)
	}
	binary.LittleEndian.PutUint32(b[h.Size+1:], sum)
	_, err = m.f.WriteAt(b, int64(h.Off))
	return err
}

// lastTrailer finds the trailer of the last row's key in the last block of a table.
func lastTrailer(b []byte, codec byte) (int, error) {
	switch codec {
	case codecNone:
		return lastOfBlock(b)
	case codecSnappy:
		return largeTrailer(b)
	}
	return 0, base.Unsupported("codec %s", CodecName(codec))
}

func lastOfBlock(b []byte) (int, error) {
	bl, err := blocks.Parse(b)
	if err != nil {
		return 0, err
	}
	e := blocks.Entries{Data: bl.Entries, Pos: max(0, bl.Restart(bl.NumRestarts()-1))}
	for ok := true; ok && err == nil; {
		ok, err = e.Next()
	}
	if err == nil && len(e.Key) < base.TrailerLen {
		err = blocks.ErrEntry
	}
	return e.Pos - len(e.Val) - base.TrailerLen, err
}

// read returns a block without its trailer.
func (m *marker) read(h blocks.Handle) ([]byte, error) {
	b, err := m.load(h)
	if err == nil {
		err = checkBlock(m.format.checksumType(), b[:h.Size+1], binary.LittleEndian.Uint32(b[h.Size+1:]))
	}
	if err != nil {
		return nil, err
	}
	b, codec := b[:h.Size], b[h.Size]
	if codec == codecSnappy {
		return s2.Decode(nil, b)
	}
	return b, nil
}

// load returns a block with its trailer.
func (m *marker) load(h blocks.Handle) ([]byte, error) {
	if err := h.Check(m.size); err != nil {
		return nil, err
	}
	b := make([]byte, h.Size+blocks.TrailerLen)
	_, err := m.f.ReadAt(b, int64(h.Off))
	return b, err
}
