package extsort

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"

	"kvferry/internal/sys/disk"
	"kvferry/record"
)

const (
	frameHeader = 8
	minFrame    = 256
	maxFrame    = 64 << 10
	pointFrame  = 4 << 10  // with Options.Points
	pointSpan   = 64 << 10 // bytes of such frames that are written or merged at once
	maxFan      = 64       // runs merged at once
	rowHeader   = 16
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// spool is a temporary file with runs, one after the other.
type spool struct {
	f    *disk.File
	size int64
	lag  int    // bytes that late may have
	late []byte // the end, which is not yet written
}

// write appends small parts to those not yet written.
func (p *spool) write(b []byte) (err error) {
	p.size += int64(len(b))
	if len(p.late)+len(b) > p.lag {
		return p.flush(b)
	}
	p.late = append(p.late, b...)
	return nil
}

// flush writes what is not yet written, and b.
func (p *spool) flush(b []byte) error {
	at := p.size - int64(len(b)+len(p.late))
	for _, part := range [][]byte{p.late, b} {
		if len(part) == 0 {
			continue
		}
		if _, err := p.f.WriteAt(part, at); err != nil {
			return fmt.Errorf("sorting beyond memory: %w", err)
		}
		at += int64(len(part))
	}
	p.late = p.late[:0]
	return nil
}

// run is a sorted part of a spool, or a loaded file.
type run struct {
	off, end int64
	items    int
	frame    int    // bytes of the largest frame
	file     string // "": the spool
	index    []mark // empty for a loaded file
	step     int64  // minimum distance of marks in bytes
	most     int    // marks
}

func (s *Sorter) newSpool() (*spool, error) {
	f, err := disk.Temp(s.tempDir, "sort")
	if err != nil {
		return nil, fmt.Errorf("sorting beyond memory: %w", err)
	}
	p := &spool{f: f}
	if s.points {
		p.lag = pointSpan
	}
	return p, nil
}

// frameSize is the size at which a frame ends. A larger row gets its own frame.
func (s *Sorter) frameSize() int {
	n := min(max(minFrame, s.memory/64), maxFrame)
	if s.points {
		n = min(n, pointFrame)
	}
	return n
}

// fan returns how many of the first runs to merge at once: their frames may take half of the memory.
func (s *Sorter) fan(runs []run) int {
	n, frames := 0, 0
	for n < len(runs) && n < maxFan {
		frames += max(runs[n].frame, s.frameSize())
		if n >= 2 && frames > s.memory/2 {
			break
		}
		n++
	}
	return n
}

// spill writes the rows in memory as a run.
func (s *Sorter) spill() error {
	if s.spilled == nil {
		p, err := s.newSpool()
		if err != nil {
			return err
		}
		s.spilled = p
	}
	s.sortItems()
	w := runWriter{s: s, to: s.spilled}
	w.begin()
	for _, it := range s.items {
		if err := w.add(it.prefix, s.key(it), s.value(it)); err != nil {
			return err
		}
	}
	r, err := w.end()
	if err != nil {
		return err
	}
	s.runs = append(s.runs, r)
	s.drop()
	return nil
}

// runWriter writes a run as frames:
//
//	+-------------+----------------+------+------+---+
//	| length (4B) | checksum (4B)  | row  | row  | … |
//	+-------------+----------------+------+------+---+
//
// and rows as
//
//	+-------------+-----------+-----------+-----+-------+
//	| prefix (8B) | klen (4B) | vlen (4B) | key | value |
//	+-------------+-----------+-----------+-----+-------+
//
// All numbers are little endian. length is the size of the rows, checksum their CRC32c. No row spans frames.
type runWriter struct {
	s  *Sorter
	to *spool
	r  run
}

func (w *runWriter) begin() {
	w.r = run{off: w.to.size, step: minStep, most: maxMarks}
	if w.s.points {
		w.r.step, w.r.most = 0, max(maxMarks, w.s.memory/4/markSize)
	}
	w.s.frame = append(w.s.frame[:0], make([]byte, frameHeader)...)
}

func (w *runWriter) add(prefix uint64, key, value []byte) error {
	need := rowHeader + len(key) + len(value)
	if n := len(w.s.frame); n > frameHeader && n+need > w.s.frameSize() {
		if err := w.flush(nil); err != nil {
			return err
		}
	}
	if len(w.s.frame) == frameHeader {
		w.r.mark(w.to.size, key)
	}
	b := binary.LittleEndian.AppendUint64(w.s.frame, prefix)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(key)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(value)))
	w.s.frame = append(b, key...)
	w.r.items++
	if need > w.s.frameSize() {
		return w.flush(value) // the value is written without copying
	}
	w.s.frame = append(w.s.frame, value...)
	return nil
}

// flush writes the frame, followed by value if the last row's value is not in it.
func (w *runWriter) flush(value []byte) error {
	b, n := w.s.frame, len(w.s.frame)+len(value)
	if uint64(n-frameHeader) > 1<<32-1 {
		return fmt.Errorf("extsort: row of %d bytes: the limit is 4 GiB", n)
	}
	binary.LittleEndian.PutUint32(b, uint32(n-frameHeader))
	binary.LittleEndian.PutUint32(b[4:], crc32.Update(crc32.Checksum(b[frameHeader:], castagnoli), castagnoli, value))
	if err := errors.Join(w.to.write(b), w.to.write(value)); err != nil {
		return err
	}
	w.r.frame = max(w.r.frame, n)
	if cap(b) > maxFrame*2 {
		b = make([]byte, 0, w.s.frameSize())
	}
	w.s.frame = b[:frameHeader]
	return nil
}

func (w *runWriter) end() (run, error) {
	if len(w.s.frame) > frameHeader {
		if err := w.flush(nil); err != nil {
			return run{}, err
		}
	}
	w.r.end = w.to.size
	return w.r, w.to.flush(nil)
}

// cursor reads a run. prefix, head, key and value are the current row; key and value are views of its frame.
type cursor struct {
	s       *Sorter
	from    *spool
	off     int64
	end     int64
	frame   []byte // of the rows read together
	rest    []byte // unread part of the frame
	rank    int    // position of the run, which orders equal rows
	span    int    // bytes to read at once; 0: a frame
	ahead   []byte // what was read at once, from aheadAt on
	aheadAt int64

	prefix, head uint64
	key, value   []byte
}

// next moves to the next row. It returns io.EOF after the last.
func (c *cursor) next() error {
	if len(c.rest) == 0 {
		if err := c.load(); err != nil {
			return err
		}
	}
	b := c.rest
	if len(b) < rowHeader {
		return c.corrupt("row", record.ErrShort)
	}
	klen, vlen := uint64(binary.LittleEndian.Uint32(b[8:])), uint64(binary.LittleEndian.Uint32(b[12:]))
	if klen+vlen > uint64(len(b)-rowHeader) {
		return c.corrupt("row", record.ErrShort)
	}
	c.prefix = binary.LittleEndian.Uint64(b)
	kend := rowHeader + int(klen)
	vend := kend + int(vlen)
	c.key, c.value, c.rest = b[rowHeader:kend:kend], b[kend:vend:vend], b[vend:]
	c.head = c.s.headOf(c.key)
	return nil
}

// load reads the next frame.
func (c *cursor) load() error {
	if c.off == c.end {
		return io.EOF
	}
	var h [frameHeader]byte
	if c.end-c.off < frameHeader {
		return c.corrupt("frame", record.ErrShort)
	}
	if err := c.read(h[:], c.off); err != nil {
		return err
	}
	n := int64(binary.LittleEndian.Uint32(h[:]))
	if n > c.end-c.off-frameHeader {
		return c.corrupt("frame", record.ErrShort)
	}
	if int64(cap(c.frame)) < n || cap(c.frame) > 2*maxFrame && n <= maxFrame {
		c.key, c.value, c.rest, c.frame = nil, nil, nil, nil // free a large frame before allocating the next
		c.frame = make([]byte, max(int(n), min(c.s.frameSize(), int(c.end-c.off))))
	}
	c.frame = c.frame[:n]
	if err := c.read(c.frame, c.off+frameHeader); err != nil {
		return err
	}
	if crc32.Checksum(c.frame, castagnoli) != binary.LittleEndian.Uint32(h[4:]) {
		return c.corrupt("frame", errChecksum)
	}
	c.off += frameHeader + n
	c.rest = c.frame
	return nil
}

var errChecksum = errors.New("wrong checksum: the temporary file was changed or the disk is failing")

// read reads bytes of the run, with those that follow if the run is read in spans.
func (c *cursor) read(b []byte, off int64) error {
	if n := min(int64(c.span), c.end-off); int64(len(b)) <= n {
		if at := off - c.aheadAt; at < 0 || at+int64(len(b)) > int64(len(c.ahead)) {
			c.ahead, c.aheadAt = slices.Grow(c.ahead[:0], int(n))[:n], off
			if err := c.readFile(c.ahead, off); err != nil {
				return err
			}
		}
		copy(b, c.ahead[off-c.aheadAt:])
		return nil
	}
	return c.readFile(b, off)
}

func (c *cursor) readFile(b []byte, off int64) error {
	if _, err := c.from.f.ReadAt(b, off); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return fmt.Errorf("sorting beyond memory: %s: %w", c.from.f.Name(), err)
	}
	return nil
}

func (c *cursor) corrupt(field string, err error) error {
	return &record.CorruptError{File: c.from.f.Name(), Off: c.off, Field: field, Err: err}
}
