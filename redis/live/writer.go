package live

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"kvferry/internal/sys/bufpool"
	"kvferry/record"
	"kvferry/redis/rdb"
	"kvferry/redis/rdb/encode"
)

const (
	// maxRestored and maxPayload limit the elements and bytes of a record sent as one RESTORE.
	maxRestored = 20000
	maxPayload  = 16 << 20
	// maxAsked limits the records buffered until the server reports which keys exist.
	maxAsked      = 512
	maxAskedBytes = 1 << 20
)

// writer writes records to one database.
type writer struct {
	t      *target
	n      int // shard number
	db     string
	ctx    context.Context
	cancel context.CancelCauseFunc
	ask    *asker // nil: existing keys are overwritten

	mu    sync.Mutex
	pipes map[string]*pipe // by address
	moved bool             // the slot map is stale

	feed    record.Feeder
	header  record.Header
	key     []byte
	last    []byte
	deleted []byte
	encoder encode.Encoder
	bytes   int
	data    []byte  // the current piece
	native  *native // nil: the record goes as one RESTORE
	skip    bool
	wait    bool  // the record is buffered in held
	count   int64 // elements of the record
	written int64

	held      []heldRecord
	heldBytes int

	decisions
}

// heldRecord is a record buffered until the server reports whether its key exists.
type heldRecord struct {
	key    []byte
	data   []byte
	number int64
}

// OnDecided registers f to learn which records are skipped, if existing keys are skipped.
func (w *writer) OnDecided(f func(n int64, skipped bool)) bool { return w.tell(w.t.Existing, f) }

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
	if err := w.relocate(); err != nil {
		return err
	}
	if !w.t.server.restore || h.Keyless != record.Keyed || !w.oneValue() && h.Type != record.Stream && (h.Len < 0 || h.Len > maxRestored) {
		return w.goNative()
	}
	if h.Type != record.String || !w.plainSet() {
		w.encoder.Begin(&w.header)
	}
	return nil
}

// oneValue reports whether the record is a single value, whatever its size.
func (w *writer) oneValue() bool {
	return w.header.Type == record.String || w.header.Type == record.Other
}

// plainSet reports whether SET can write the string with its expiry.
func (w *writer) plainSet() bool {
	s := w.t.server
	return w.header.ExpireMS == 0 || s.valkey || s.major > 6 || s.major == 6 && s.minor >= 2
}

// relocate refreshes the slot map after a MOVED reply.
func (w *writer) relocate() error {
	w.mu.Lock()
	moved := w.moved
	w.moved = false
	w.mu.Unlock()
	if !moved {
		return nil
	}
	return w.t.relocate(w.ctx)
}

// Elements adds elements.
func (w *writer) Elements(elems []record.Element) error {
	begun := w.count > 0
	w.count += int64(len(elems))
	if w.native != nil {
		return w.native.write(elems)
	}
	if w.header.Type == record.String && w.plainSet() {
		return w.set(elems[0].Value)
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

// set builds the SET command of a string.
func (w *writer) set(value []byte) error {
	if err := w.clear(len(value)); err != nil {
		return err
	}
	w.data = bufpool.Room(w.data, len(w.key)+len(value)+2*bufpool.Beside)
	if w.header.ExpireMS == 0 {
		w.data = appendCommand(w.data, []byte("SET"), w.key, value)
	} else {
		w.data = appendCommand(w.data, []byte("SET"), w.key, value, []byte("PXAT"), strconv.AppendInt(nil, w.header.ExpireMS, 10))
	}
	return nil
}

// clear flushes the pipe, which waits for room, before a large command is built.
func (w *writer) clear(n int) error {
	if n <= bufpool.Large {
		return nil
	}
	p, err := w.pipe(w.key)
	if err != nil {
		return err
	}
	return w.told(p.flush())
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
	d := rdb.Decoder{TempDir: w.t.options.TempDir}
	defer d.Close()
	var h record.Header
	if err := d.Begin(v.Type, rdb.Header{Valkey: w.t.server.version.Valkey}, value, 0, &h); err != nil {
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
	if w.native != nil {
		return w.native.end()
	}
	if w.count == 0 && w.header.Type != record.Stream {
		if w.header.Type != record.String || !w.plainSet() {
			_, _, err := w.encoder.End() // resets the encoder
			return err
		}
		return nil
	}
	if w.header.Type != record.String || !w.plainSet() {
		v, ok, err := w.encoder.End()
		if err != nil || !ok {
			return err
		}
		w.restore(&v)
	}
	err := w.deliver(heldRecord{w.key, w.data, w.number})
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
	d := append(strconv.AppendInt(append(bufpool.Room(w.data, len(w.key)+n+3*bufpool.Beside), '*'), args, 10), "\r\n$7\r\nRESTORE\r\n"...)
	d = appendBulk(d, w.key)
	d = appendBulk(d, strconv.AppendInt(nil, max(w.header.ExpireMS, 0), 10))
	d = append(strconv.AppendInt(append(d, '$'), int64(n), 10), "\r\n"...)
	d = append(rdb.AppendDump(d, v.Type, w.t.server.version, head, body), "\r\n$7\r\nREPLACE\r\n"...)
	if args == 6 {
		d = append(d, "$6\r\nABSTTL\r\n"...)
	}
	w.data = d
}

// deliver sends a whole record, or buffers it until its key is known to be absent.
func (w *writer) deliver(r heldRecord) error {
	if !w.ask.keys() {
		return w.send(r)
	}
	w.wait = true
	r.key, r.data = bytes.Clone(r.key), bytes.Clone(r.data)
	w.held = append(w.held, r)
	if w.heldBytes += len(r.data); len(w.held) < maxAsked && w.heldBytes < maxAskedBytes {
		return nil
	}
	return w.release()
}

func (w *writer) send(r heldRecord) error {
	p, err := w.pipe(r.key)
	if err != nil {
		return err
	}
	w.written++
	if err := w.t.limit.Wait(w.ctx, len(r.data)); err != nil {
		return err
	}
	return w.told(p.add(r.data, piece{commands: 1}))
}

func (w *writer) told(err error) error { return told(w.t.server.shown, err) }

// release asks which buffered records have existing keys, and sends the others.
func (w *writer) release() error {
	if len(w.held) == 0 {
		return nil
	}
	keys := make([][]byte, len(w.held))
	for i := range w.held {
		keys[i] = w.held[i].key
	}
	there, err := w.ask.there(w.ctx, keys)
	if err != nil {
		return err
	}
	for i, r := range w.held {
		if there[i] {
			err = w.taken(fmt.Sprintf("key %s in database %s", record.Quote(r.key), w.db))
		} else {
			err = w.send(r)
		}
		if err != nil {
			return err
		}
		w.decide(r.number, there[i])
	}
	w.held, w.heldBytes = w.held[:0], 0
	return nil
}

// taken returns an error for an existing key, unless existing keys are skipped.
func (w *writer) taken(name string) error {
	if w.t.Existing == skipExisting {
		return nil
	}
	return fmt.Errorf("%s: %s exists already; %s", w.t.server.shown, name, existingHint)
}

// pipe returns the pipe to the server of a key.
func (w *writer) pipe(key []byte) (*pipe, error) {
	host := w.t.owner(key)
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pipeTo(host), nil
}

// pipeTo returns the pipe to an address; w.mu is held.
func (w *writer) pipeTo(host string) *pipe {
	p := w.pipes[host]
	if p == nil {
		p = newPipe(w.ctx, w.t.server.dialer(host, w.db))
		if w.t.server.cluster {
			p.elsewhere, p.reroute = w.elsewhereFrom(host), w.reroute
			p.replaced = func(ctx context.Context) bool { return w.t.replaced(ctx, host) }
		}
		w.pipes[host] = p
	}
	return p
}

// elsewhereFrom returns a function that follows redirections by a node: MOVED slot host:port, ASK slot host:port.
func (w *writer) elsewhereFrom(node string) func(data []byte, x piece, answer string) error {
	return func(data []byte, x piece, answer string) error {
		words := strings.Fields(answer)
		if len(words) < 3 {
			return errAnswer
		}
		if words[0] == "ASK" {
			data, x.commands = withAsking(data)
		}
		w.mu.Lock()
		p := w.pipeTo(addressFrom(node, words[2]))
		w.moved = w.moved || words[0] == "MOVED"
		w.mu.Unlock()
		p.pass(data, x)
		return nil
	}
}

// Close waits until all records are acknowledged.
func (w *writer) Close() error {
	err := w.release()
	for again := true; again && err == nil; {
		again = false
		for _, p := range w.all() {
			if err == nil {
				err = w.told(p.drained())
			}
		}
		for _, p := range w.all() { // a redirected piece may have gone to a pipe drained before
			again = again || p.busy()
		}
	}
	if err != nil {
		w.cancel(err)
	}
	for _, p := range w.all() {
		if e := p.close(); err == nil {
			err = w.told(e)
		}
	}
	w.cancel(nil)
	if err != nil {
		w.tidy()
	}
	w.t.closed(w)
	return errors.Join(err, w.ask.close())
}

func (w *writer) all() []*pipe {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []*pipe
	for _, p := range w.pipes {
		out = append(out, p)
	}
	return out
}

// Abort stops sending; written records stay.
func (w *writer) Abort() {
	w.cancel(errors.New("stopped"))
	for _, p := range w.all() {
		<-p.done
	}
	w.tidy()
	_ = w.ask.close() // the error of the run matters more
	w.t.closed(w)
}

// tidy deletes the temporary names of unfinished records, as far as the server allows.
func (w *writer) tidy() {
	var names []string
	for _, p := range w.all() {
		names = append(names, p.temporary()...)
	}
	if n := w.native; n != nil && n.begun && !n.ended {
		names = append(names, string(n.name))
	}
	w.t.drop(w.db, names)
}
