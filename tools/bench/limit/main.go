// Limit is a lower bound for the time of a conversion. It performs on the data blocks of all tables below a directory
// only the work that every program rewriting the same rows must do. It does not decode rows.
//
//	limit DIR FILE    read, verify, decompress, copy, compress and checksum all data blocks, and write them to a new FILE
package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/s2"

	"kvferry/store"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/blocks"
	"kvferry/store/rocks/files"
	"kvferry/store/rocks/sst"
)

const (
	windowSize = 256 << 10 // bytes read at once
	writeSize  = 128 << 10 // minimum bytes written at once; writes start at multiples of it

	codecNone   = 0
	codecSnappy = 1
)

func main() {
	err := errors.New("usage: limit DIR FILE")
	if len(os.Args) == 3 {
		err = run(os.Args[1], os.Args[2])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "limit:", err)
		os.Exit(1)
	}
}

func run(root, path string) error {
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	defer out.Close()
	p := &pass{out: out}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".sst" {
			return err
		}
		if err := p.table(filepath.Split(path)); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return nil
	})
	if err == nil && p.blocks == 0 {
		err = fmt.Errorf("%s: no tables", root)
	}
	if err == nil {
		err = p.flush(1)
	}
	fmt.Printf("{\"blocks\":%d,\"bytes\":%d}\n", p.blocks, p.bytes)
	return errors.Join(err, out.Close())
}

// pass holds the buffers of the current block.
type pass struct {
	out           io.Writer
	window        []byte
	at            int64 // offset of window in the file
	plain, copied []byte
	packed        []byte // not yet written
	written       int
	blocks, bytes int64 // read; bytes counts decompressed blocks
}

// table processes all data blocks of a table.
func (p *pass) table(dir, name string) error {
	var set files.Set
	defer set.Close()
	f, err := set.Open(dir, name, true)
	if err != nil {
		return err
	}
	file, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	defer file.Close()
	r := sst.NewReader(f, &sst.Options{Comparer: &store.Bytewise, Unlisted: true, Cache: new(sst.Cache),
		Windows: new(files.Windows), Unpackers: new(sst.Unpackers)})
	if _, err := r.Open(); err != nil {
		return err
	}
	w, err := r.Walk(nil, nil)
	if err != nil {
		return err
	}
	defer w.Close()
	p.window = p.window[:0]
	for {
		ok, err := w.Next()
		if !ok {
			return err
		}
		if err := p.block(file, w.Handle()); err != nil {
			return err
		}
	}
}

// block processes one data block.
func (p *pass) block(file io.ReaderAt, h blocks.Handle) error {
	stored, err := p.read(file, int64(h.Off), int(h.Size)+blocks.TrailerLen)
	if err != nil {
		return err
	}
	n := len(stored) - 4
	if base.MaskCRC(crc32.Checksum(stored[:n], base.Castagnoli)) != binary.LittleEndian.Uint32(stored[n:]) {
		return fmt.Errorf("block at %d: wrong checksum", h.Off)
	}
	plain := stored[:n-1]
	switch codec := stored[n-1]; codec {
	case codecNone:
	case codecSnappy:
		if p.plain, err = s2.Decode(p.plain[:cap(p.plain)], plain); err != nil {
			return fmt.Errorf("block at %d: %w", h.Off, err)
		}
		plain = p.plain
	default:
		return fmt.Errorf("block at %d: codec %d; only snappy is measured", h.Off, codec)
	}
	p.blocks++
	p.bytes += int64(len(plain))
	p.copied = append(p.copied[:0], plain...)
	p.pack(p.copied)
	return p.flush(writeSize)
}

// read returns n bytes of the file at off, as a view.
func (p *pass) read(file io.ReaderAt, off int64, n int) ([]byte, error) {
	if off < p.at || off+int64(n) > p.at+int64(len(p.window)) {
		size := max(n, windowSize)
		if cap(p.window) < size {
			p.window = make([]byte, size)
		}
		got, err := file.ReadAt(p.window[:size], off)
		p.window, p.at = p.window[:got], off
		if got < n {
			return nil, err
		}
	}
	i := int(off - p.at)
	return p.window[i : i+n], nil
}

// pack appends a block in the form of a table.
func (p *pass) pack(plain []byte) {
	at := len(p.packed)
	if need := at + s2.MaxEncodedLen(len(plain)) + blocks.TrailerLen; cap(p.packed) < need {
		p.packed = append(make([]byte, 0, 2*need), p.packed...)
	}
	codec := byte(codecSnappy)
	out := s2.EncodeSnappy(p.packed[at:cap(p.packed)], plain)
	if len(out) >= len(plain)-len(plain)/8 {
		codec, out = codecNone, append(p.packed[at:at], plain...)
	}
	p.packed = append(p.packed[:at+len(out)], codec)
	p.packed = binary.LittleEndian.AppendUint32(p.packed, base.MaskCRC(crc32.Checksum(p.packed[at:], base.Castagnoli)))
}

// flush writes packed blocks up to a multiple of unit bytes in the file, like a table writer.
func (p *pass) flush(unit int) error {
	n := len(p.packed) - (p.written+len(p.packed))%unit
	if n <= 0 {
		return nil
	}
	_, err := p.out.Write(p.packed[:n])
	p.written += n
	p.packed = append(p.packed[:0], p.packed[n:]...)
	return err
}
