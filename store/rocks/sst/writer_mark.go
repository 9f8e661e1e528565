package sst

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"kvferry/internal/sys/disk"
	"kvferry/store"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/blocks"
	"kvferry/store/rocks/files"
)

// SetLastSequence changes the sequence number of the last row of a Writer's table in place. The index still leads to
// it: an index key with a smaller number sorts after it.
func SetLastSequence(path string, seq uint64) (err error) {
	f, err := disk.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	file := files.Temporary(f, path, 0)
	if file.Size, err = f.Seek(0, io.SeekEnd); err != nil {
		return err
	}
	r := NewReader(file, &Options{Unlisted: true, Comparer: &store.Bytewise, Cache: new(Cache), Unpackers: new(Unpackers)})
	var x tableIndex
	defer x.close()
	if err := x.open(r); err != nil {
		return err
	}
	if err := x.last(); err != nil {
		return err
	}
	return r.mark(f, x.handle(), seq)
}

// mark changes the last row of a block and the block's checksum. The new one must not cover damage, so the old one must
// be right. A process that died here may have left either number with either checksum.
func (r *Reader) mark(f io.WriterAt, h blocks.Handle, seq uint64) error {
	b, err := r.stored(h, "block")
	if err != nil {
		return err
	}
	at, err := lastTrailer(b[:h.Size], b[h.Size])
	if err == nil && (at < 0 || at+base.TrailerLen > int(h.Size)) {
		err = blocks.ErrEntry
	}
	if err != nil {
		return fmt.Errorf("%s: the last block was not written by a Writer: %w", r.file.Path, err)
	}
	stored, whole, sum := binary.LittleEndian.Uint32(b[h.Size+1:]), false, uint32(0)
	for _, n := range []uint64{0, seq} {
		binary.LittleEndian.PutUint64(b[at:], base.Trailer(n, base.KindPut))
		sum = checksum(r.info.Checksum, b[:h.Size+1])
		whole = whole || sum == stored
	}
	if !whole {
		return fmt.Errorf("%s: the last block: %w", r.file.Path, base.ErrChecksum)
	}
	binary.LittleEndian.PutUint32(b[h.Size+1:], sum)
	_, err = f.WriteAt(b, int64(h.Off))
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
