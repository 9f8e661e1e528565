package live

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"kvferry/internal/sys/bufpool"
	"kvferry/internal/text/resp"
	"kvferry/record"
	"kvferry/redis/live/server"
	"kvferry/redis/rdb"
	"kvferry/redis/rdb/encode"
)

// writer writes records to one database.
type writer struct {
	sender
	closed func(written int64)

	feed    record.Feeder
	header  record.Header
	key     []byte
	last    []byte
	deleted []byte
	encoder encode.Encoder
	bytes   int
	native  *native // nil: the record goes as one RESTORE or SET
	set     bool    // the record goes as SET
	wait    bool    // ask has buffered the record
	count   int64   // elements of the record

	decisions
}

// newWriter returns a writer to a database with connections of its own.
func (d *destination) newWriter(db string, memory int64, closed func(written int64)) *writer {
	w := &writer{sender: sender{destination: d, pipes: server.NewPipeSet(d.ctx, d.server, db)}, closed: closed,
		encoder: encode.Encoder{Version: d.server.Version, Memory: memory / 2, TempDir: d.tempDir}}
	w.ask = d.newAsker(w.pipes.Ctx, db, w.deliverUnlessKnown)
	return w
}

// OnDecided registers f to learn which records are skipped, if existing keys are skipped.
func (w *writer) OnDecided(f func(n int64, skipped bool)) bool { return w.tell(w.server.Existing, f) }

// Write writes records.
func (w *writer) Write(b *record.Batch) error { return w.feed.Feed(b, w, nil) }

// Begin starts a record.
func (w *writer) Begin(h *record.Header) error {
	w.key = append(w.key[:0], h.Key...)
	w.last, w.deleted = append(w.last[:0], h.Last...), append(w.deleted[:0], h.MaxDeleted...)
	w.header = *h
	w.header.Key = w.key
	if h.Last != nil {
		w.header.Last = w.last
	}
	if h.MaxDeleted != nil {
		w.header.MaxDeleted = w.deleted
	}
	w.native, w.skip, w.wait, w.bytes, w.count = nil, false, false, 0, 0
	w.number++
	if err := w.pipes.Relocate(); err != nil {
		return err
	}
	s := w.server
	w.set = s.Restore && h.Type == record.String && (h.ExpireMS == 0 || s.Since(6, 2)) // PXAT
	switch {
	case !s.Restore || h.Keyless != record.Keyed ||
		!w.oneValue() && h.Type != record.Stream && (h.Len < 0 || h.Len > maxRestored):
		return w.goNative()
	case !w.set:
		w.encoder.Begin(&w.header)
	}
	return nil
}

// oneValue reports whether the record is a single value, whatever its size.
func (w *writer) oneValue() bool {
	return w.header.Type == record.String || w.header.Type == record.Other
}

// Elements adds elements.
func (w *writer) Elements(elems []record.Element) error {
	begun := w.count > 0
	w.count += int64(len(elems))
	if w.native != nil {
		return w.native.write(elems)
	}
	if w.set {
		return w.appendSet(elems[0].Value)
	}
	for i := range elems {
		w.bytes += len(elems[i].Name) + len(elems[i].Value)
	}
	if w.bytes <= maxPayload || w.oneValue() {
		return w.encoder.Elements(elems)
	}
	grow := w.goNative
	if begun {
		grow = w.outgrow
	}
	if err := grow(); err != nil {
		return err
	}
	return w.native.write(elems)
}

// appendSet builds the SET command of a string.
func (w *writer) appendSet(value []byte) error {
	if len(value) > bufpool.Large { // wait for room before a large command is built
		if err := w.explainError(w.pipes.Of(w.key).Flush()); err != nil {
			return err
		}
	}
	w.data = bufpool.Room(w.data, len(w.key)+len(value)+2*bufpool.Beside)
	if w.header.ExpireMS == 0 {
		w.data = resp.AppendCommand(w.data, []byte("SET"), w.key, value)
	} else {
		w.data = resp.AppendCommand(w.data, []byte("SET"), w.key, value, []byte("PXAT"),
			strconv.AppendInt(nil, w.header.ExpireMS, 10))
	}
	return nil
}

// goNative switches the record to commands.
func (w *writer) goNative() (err error) {
	w.native, err = newNative(&w.sender, &w.header)
	return err
}

// outgrow switches a partly encoded record to commands: it decodes the encoded elements again.
func (w *writer) outgrow() error {
	v, _, err := w.encoder.End()
	if err != nil {
		return err
	}
	value := v.Append(nil)
	if err := w.goNative(); err != nil {
		return err
	}
	d := rdb.Decoder{TempDir: w.tempDir}
	defer d.Close()
	var h record.Header
	if err := d.Begin(v.Type, rdb.Header{Valkey: w.server.Version.Valkey}, value, 0, &h); err != nil {
		return err
	}
	var batch [record.BatchLen]record.Element
	for {
		n, err := d.Read(batch[:])
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = w.native.write(batch[:n])
		}
		if err != nil {
			return err
		}
	}
}

// End finishes a record.
func (w *writer) End() error {
	err := w.end()
	if err == nil && !w.wait {
		w.decide(w.number, w.skip)
	}
	return err
}

func (w *writer) end() error {
	switch {
	case w.native != nil:
		return w.native.end()
	case w.set && w.count == 0:
		return nil
	case !w.set:
		v, ok, err := w.encoder.End()
		if err != nil || !ok || w.count == 0 && w.header.Type != record.Stream {
			return err
		}
		w.restore(&v)
	}
	r := whole{w.key, w.data, w.number}
	var err error
	if w.wait = w.ask.keys(); w.wait {
		err = w.ask.hold(r)
	} else {
		err = w.deliver(r)
	}
	w.data = bufpool.Reset(w.data) // the pipe owns a large one
	return err
}

// restore builds the RESTORE command of a payload.
func (w *writer) restore(v *encode.Value) {
	body := v.Body
	v.Body = nil
	head := v.Append(nil)
	n := 1 + len(head) + len(body) + 10
	args := int64(5)
	if w.header.ExpireMS != 0 {
		args = 6
	}
	d := append(strconv.AppendInt(append(bufpool.Room(w.data, len(w.key)+n+3*bufpool.Beside), '*'), args, 10),
		"\r\n$7\r\nRESTORE\r\n"...)
	d = resp.AppendBulk(d, w.key)
	d = resp.AppendBulk(d, strconv.AppendInt(nil, max(w.header.ExpireMS, 0), 10))
	d = append(strconv.AppendInt(append(d, '$'), int64(n), 10), "\r\n"...)
	d = append(rdb.AppendDump(d, v.Type, w.server.Version, head, body), "\r\n$7\r\nREPLACE\r\n"...)
	if args == 6 {
		d = append(d, "$6\r\nABSTTL\r\n"...)
	}
	w.data = d
}

// deliver sends a whole record.
func (w *writer) deliver(r whole) error {
	w.written++
	return w.send(w.pipes.Of(r.key), r.data, server.Piece{Commands: 1})
}

// deliverUnlessKnown delivers a record that ask has buffered, unless its key exists.
func (w *writer) deliverUnlessKnown(r whole, exists bool) (err error) {
	if exists {
		err = w.existing(fmt.Sprintf("key %s in database %s", record.Quote(r.key), w.pipes.DB))
	} else {
		err = w.deliver(r)
	}
	if err == nil {
		w.decide(r.number, exists)
	}
	return err
}

// Close waits until all records are acknowledged.
func (w *writer) Close() error {
	err := w.pipes.Close(w.ask.release())
	if err != nil {
		w.tidy()
	}
	w.closed(w.written)
	return errors.Join(err, w.ask.close())
}

// Abort stops sending; written records stay.
func (w *writer) Abort() {
	w.pipes.Abort()
	w.tidy()
	_ = w.ask.close() // the error of the run matters more
	w.closed(w.written)
}

// tidy deletes the temporary names of unfinished records, as far as the server allows.
func (w *writer) tidy() {
	names := w.pipes.Temporary()
	if n := w.native; n != nil && n.begun && !n.ended {
		names = append(names, string(n.name))
	}
	w.drop(w.pipes.DB, names)
}
