package redis

import (
	"errors"
	"fmt"
	"io"
	"math"

	"kvferry/internal/sys/bufpool"
	"kvferry/internal/sys/disk"
	"kvferry/record"
	"kvferry/redis/rdb"
	"kvferry/redis/rdb/crc64"
	"kvferry/redis/rdb/encode"
)

// writeBuffer is the size of a write.
const writeBuffer = 256 << 10

// output takes the bytes of a section.
type output interface {
	io.Writer
	// Begun returns the count of the large value that begins, or 0 if it is known only at its end.
	Begun() (uint64, error)
	// Counted receives the count of a large value at its end, with the offset of its encoding in the section.
	Counted(n uint64, off int64, encoded []byte) error
	// Waits returns how many of n buffered bytes wait for more; off is their offset in the section. With n = 0 the
	// bytes so far are whole items.
	Waits(n int, off int64) int
	Close(*part) error
	Abort()
}

// writer writes a section.
type writer struct {
	out    output
	feed   record.Feeder
	part   part
	enc    encode.Encoder
	key    []byte
	expire int64 // of the record
	typ    record.Type
	bare   record.Keyless
	whole  bool // the record is complete in buf
	keep   func(*record.Header) bool
	skip   bool // keep does not keep the record
	buf    []byte
	off    int64 // offset of buf in the section
	count  int64 // offset of the count of a spilled value; 0: not spilled
	parts  []sum // checksums of the written ranges; counts filled in later are ranges of their own
}

// sum is the checksum of n bytes.
type sum struct {
	crc uint64
	n   int64
}

func (t *target) writer(out output, n int, db string, memory int64) *writer {
	w := &writer{out: out, part: part{N: n, DB: db, Version: t.format.version.String()}}
	w.enc = encode.Encoder{Version: t.format.version, Spill: w.spill, Memory: memory / 2, TempDir: t.o.TempDir}
	w.parts = []sum{{}}
	return w
}

// Write writes records.
func (w *writer) Write(b *record.Batch) error { return w.feed.Feed(b, w, nil) }

// Begin starts a record.
func (w *writer) Begin(h *record.Header) error {
	if w.skip = w.keep != nil && !w.keep(h); w.skip {
		return nil
	}
	w.key, w.expire, w.typ, w.bare, w.whole = append(w.key[:0], h.Key...), h.ExpireMS, h.Type, h.Keyless, false
	w.count = 0
	w.enc.Begin(h)
	return nil
}

// Elements adds elements. A record that is a single RDB string bypasses the encoder.
func (w *writer) Elements(elems []record.Element) error {
	if w.skip {
		return nil
	}
	if len(elems) != 1 {
		return w.enc.Elements(elems)
	}
	e := &elems[0]
	switch {
	case w.typ == record.String && len(e.Value) < writeBuffer:
		w.begin(rdb.TypeString)
		w.buf = rdb.AppendString(w.buf, e.Value)
		w.whole = true
		return nil
	case w.bare != record.Keyed:
		w.item(e)
		w.whole = true
		return nil
	}
	return w.enc.Elements(elems)
}

// item writes a function library or module data, which have no key.
func (w *writer) item(e *record.Element) {
	if w.bare == record.Library {
		w.buf = rdb.AppendFunction(w.buf, e.Value)
	} else {
		w.buf = rdb.AppendModuleAux(w.buf, e.Value)
	}
}

// begin writes the expiry, type and key before a value.
func (w *writer) begin(t rdb.Type) {
	w.buf = rdb.AppendKey(w.buf, t, w.key, w.expire)
	w.part.Keys++
	if w.expire != 0 {
		w.part.Expires++
	}
}

// spill writes a part of a large value. The count after the first part has a fixed size, as it may not be known yet.
func (w *writer) spill(t rdb.Type, part []byte) error {
	if w.count == 0 {
		w.begin(t)
		if err := errors.Join(w.put(part), w.flush()); err != nil {
			return err
		}
		n, err := w.out.Begun()
		if err != nil {
			return err
		}
		w.count = w.off
		w.buf = rdb.AppendWideLen(w.buf, n)
		w.off += int64(len(w.buf))
		_, err = w.out.Write(w.buf)
		w.buf = w.buf[:0]
		w.parts = append(w.parts, sum{}, sum{}) // one for the count, one for the bytes after it
		return err
	}
	if err := w.put(part); err != nil {
		return err
	}
	return w.flush()
}

// put buffers bytes; long ones are written directly.
func (w *writer) put(b []byte) error {
	if len(b) < writeBuffer {
		w.buf = append(w.buf, b...)
		return nil
	}
	if err := w.flush(); err != nil {
		return err
	}
	return w.write(b)
}

// End finishes a record.
func (w *writer) End() error {
	if w.whole || w.skip {
		return w.flushFull()
	}
	v, ok, err := w.enc.End()
	if err != nil || !ok {
		return err
	}
	if v.Spilt {
		if err := w.put(v.Body); err != nil {
			return err
		}
		return w.setCount(v.Count)
	}
	w.begin(v.Type)
	body := v.Body
	v.Body = nil
	w.buf = v.Append(w.buf)
	if err := w.put(body); err != nil {
		return err
	}
	return w.flushFull()
}

// flushFull writes the part of buf, of whole items, that need not wait for more.
func (w *writer) flushFull() error {
	n := len(w.buf) - w.out.Waits(len(w.buf), w.off)
	if n <= 0 {
		return nil
	}
	err := w.write(w.buf[:n])
	w.buf = append(bufpool.Reset(w.buf), w.buf[n:]...)
	return err
}

// setCount passes on the count of a large value.
func (w *writer) setCount(n uint64) error {
	if n > math.MaxUint32 {
		return fmt.Errorf("key %s: %s elements; an RDB file holds at most %s", record.Quote(w.key), record.Number(n),
			record.Number(uint32(math.MaxUint32)))
	}
	b := rdb.AppendWideLen(nil, n)
	w.parts[len(w.parts)-2] = sum{crc64.Update(0, b), int64(len(b))}
	if err := errors.Join(w.out.Counted(n, w.count, b), w.flush()); err != nil {
		return err
	}
	return w.flushFull()
}

// flush writes the buffer.
func (w *writer) flush() error {
	err := w.write(w.buf)
	w.buf = bufpool.Reset(w.buf)
	return err
}

func (w *writer) write(b []byte) error {
	last := &w.parts[len(w.parts)-1]
	last.crc, last.n = crc64.Update(last.crc, b), last.n+int64(len(b))
	w.off += int64(len(b))
	_, err := w.out.Write(b)
	return err
}

// Close finishes the section.
func (w *writer) Close() error {
	if err := errors.Join(w.flush(), w.enc.Close()); err != nil {
		w.out.Abort()
		return err
	}
	for _, p := range w.parts {
		w.part.Sum = crc64.Combine(w.part.Sum, p.crc, p.n)
		w.part.Bytes += p.n
	}
	done := w.part // a copy: a pointer into the writer would keep the writer in memory
	return w.out.Close(&done)
}

// Abort drops the section.
func (w *writer) Abort() {
	w.enc.Close()
	w.out.Abort()
}

// sectionFile is a section of its own file.
type sectionFile struct {
	*disk.File
	t *target
}

// newFile creates the file of section n.
func (t *target) newFile(n int) (*sectionFile, error) {
	f, err := disk.Create(t.section(n))
	if err != nil {
		return nil, err
	}
	if t.o.Build.Sync {
		f.Stream()
	}
	return &sectionFile{f, t}, nil
}

// Begun returns 0.
func (*sectionFile) Begun() (uint64, error) { return 0, nil }

// Counted fills in the count.
func (f *sectionFile) Counted(_ uint64, off int64, encoded []byte) error {
	_, err := f.WriteAt(encoded, off)
	return err
}

// Waits makes writes end at multiples of writeBuffer: the kernel is faster with aligned writes.
func (*sectionFile) Waits(n int, off int64) int { return int((off + int64(n)) % writeBuffer) }

// Close syncs and closes the file.
func (f *sectionFile) Close(p *part) error {
	if f.t.o.Build.Sync {
		p.durable = f.t.syncs.Start(f.File)
	} else if err := f.File.Close(); err != nil {
		return errors.Join(err, disk.Remove(f.Name()))
	}
	f.t.done(p)
	return nil
}

// Abort removes the file.
func (f *sectionFile) Abort() {
	f.File.Close()
	disk.Remove(f.Name())
}
