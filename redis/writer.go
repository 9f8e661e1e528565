package redis

import (
	"errors"
	"fmt"
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

// writer writes a section.
type writer struct {
	t      *target
	f      *disk.File
	feed   record.Feeder
	part   part
	enc    encode.Encoder
	key    []byte
	expire int64 // of the record
	typ    record.Type
	bare   record.Keyless
	whole  bool // the record is complete in buf
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

func newWriter(t *target, n int, db string, memory int64) (*writer, error) {
	f, err := disk.Create(t.section(n))
	if err != nil {
		return nil, err
	}
	if t.o.Build.Sync {
		f.Stream()
	}
	w := &writer{t: t, f: f, part: part{N: n, DB: db, Version: t.format.version.String()}}
	w.enc = encode.Encoder{Version: t.format.version, Spill: w.spill, Memory: memory / 2, TempDir: t.o.TempDir}
	w.parts = []sum{{}}
	return w, nil
}

// Write writes records.
func (w *writer) Write(b *record.Batch) error { return w.feed.Feed(b, w, nil) }

// Begin starts a record.
func (w *writer) Begin(h *record.Header) error {
	w.key, w.expire, w.typ, w.bare, w.whole = append(w.key[:0], h.Key...), h.ExpireMS, h.Type, h.Keyless, false
	w.count = 0
	w.enc.Begin(h)
	return nil
}

// Elements adds elements. A record that is a single RDB string bypasses the encoder.
func (w *writer) Elements(elems []record.Element) error {
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

// spill writes a part of a large value. The first part leaves room for the count, which is not known yet.
func (w *writer) spill(t rdb.Type, part []byte) error {
	if w.count == 0 {
		w.begin(t)
		if err := errors.Join(w.put(part), w.flush()); err != nil {
			return err
		}
		w.count = w.off
		w.buf = rdb.AppendWideLen(w.buf, 0)
		w.off += int64(len(w.buf))
		_, err := w.f.Write(w.buf)
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
	if w.whole {
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

// flushFull writes buf up to a multiple of writeBuffer in the file: the kernel is faster with aligned writes.
func (w *writer) flushFull() error {
	n := len(w.buf) - int((w.off+int64(len(w.buf)))%writeBuffer)
	if n <= 0 {
		return nil
	}
	err := w.write(w.buf[:n])
	w.buf = append(bufpool.Reset(w.buf), w.buf[n:]...)
	return err
}

// setCount fills in the count of a large value.
func (w *writer) setCount(n uint64) error {
	if n > math.MaxUint32 {
		return fmt.Errorf("key %s: %d elements; an RDB file holds at most %d", record.Quote(w.key), n, uint32(math.MaxUint32))
	}
	b := rdb.AppendWideLen(nil, n)
	w.parts[len(w.parts)-2] = sum{crc64.Update(0, b), int64(len(b))}
	_, err := w.f.WriteAt(b, w.count)
	return errors.Join(err, w.flush())
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
	_, err := w.f.Write(b)
	return err
}

// Close finishes the section.
func (w *writer) Close() error {
	err := errors.Join(w.flush(), w.enc.Close())
	if err == nil && w.t.o.Build.Sync {
		w.part.durable = w.t.syncs.Start(w.f)
	} else if err = errors.Join(err, w.f.Close()); err != nil {
		return errors.Join(err, disk.Remove(w.f.Name()))
	}
	for _, p := range w.parts {
		w.part.Sum = crc64.Combine(w.part.Sum, p.crc, p.n)
		w.part.Bytes += p.n
	}
	done := w.part // a copy: a pointer into the writer would keep the writer in memory
	w.t.done(&done)
	return nil
}

// Abort drops the section.
func (w *writer) Abort() {
	w.enc.Close()
	w.f.Close()
	disk.Remove(w.f.Name())
}
