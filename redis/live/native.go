package live

import (
	"bytes"
	"fmt"
	"strconv"
	"time"

	"kvferry/internal/sys/bufpool"
	"kvferry/internal/text/resp"
	"kvferry/record"
)

// native writes a large record as commands to a temporary name, then renames it.
type native struct {
	w       *writer
	pipe    *pipe
	name    []byte
	encoder resp.Encoder
	begun   bool
	ended   bool
	have    int64 // list elements sent
	held    int64 // list elements encoded but not yet sent

	started time.Time
	sent    int64 // entries (no stream groups); for a string, bytes
	soon    int64 // elements that expire within soon
	lasting int64 // elements without an expiry
}

// soon is the margin for expiries that may pass before RENAME: clocks differ, and large records take time.
const soon = 24 * time.Hour

// expiresSoon reports whether a timestamp is within soon of the start of the record.
func (n *native) expiresSoon(ms int64) bool { return ms != 0 && ms < n.started.Add(soon).UnixMilli() }

// count counts an element.
func (n *native) count(e *record.Element) {
	n.held++
	switch {
	case n.w.header.Type == record.String:
		n.sent += int64(len(e.Value))
	case e.Kind == record.Entry:
		n.sent++
	}
	if e.ExpireMS == 0 {
		n.lasting++
	} else if n.expiresSoon(e.ExpireMS) {
		n.soon++
	}
}

// ending returns the element bounds for the end of the record.
func (n *native) ending() *ending {
	h := &n.w.header
	e := &ending{name: n.name, key: bytes.Clone(h.Key), size: sizeOf[h.Type], least: n.sent - n.soon, most: n.sent, lapses: n.expiresSoon(h.ExpireMS)}
	if time.Since(n.started) > soon/2 { // more elements may have expired
		e.least, e.lapses = min(n.lasting, n.sent), h.ExpireMS != 0
	}
	e.lapses = e.lapses || h.Type == record.Hash && e.least == 0
	return e
}

// goNative switches the record to commands.
func (w *writer) goNative() error {
	if w.ask.keys() && w.header.Keyless == record.Keyed {
		there, err := w.ask.there(w.ctx, [][]byte{w.key})
		if err == nil && there[0] {
			w.skip, err = true, w.taken(fmt.Sprintf("key %s in database %s", record.Quote(w.key), w.db))
		}
		if err != nil {
			return err
		}
	}
	n := &native{w: w, started: time.Now()}
	w.native = n
	if w.skip {
		return nil
	}
	var err error
	if n.pipe, err = w.pipe(w.key); err != nil {
		return err
	}
	n.name = besides(w.key, w.t.unique())
	h := w.header
	h.Key = n.name
	n.encoder.Before7 = !w.t.server.version.EntriesRead()
	n.encoder.AppendHead(nil)
	w.data, err = n.encoder.AppendBegin(w.data[:0], &h)
	return err
}

func (n *native) write(elems []record.Element) (err error) {
	w := n.w
	if w.skip {
		return nil
	}
	for i := range elems {
		n.count(&elems[i])
		if err := w.clear(len(elems[i].Value)); err != nil {
			return err
		}
		before := n.before()
		if w.data, err = n.encoder.AppendElement(w.data, &elems[i]); err != nil {
			return err
		}
		if len(w.data) == before {
			continue
		}
		if w.header.Keyless == record.Library {
			err = n.library(elems[i].Value)
		} else {
			err = n.send()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// before starts a piece so that it can be resent: the first deletes the temporary name; a piece of a list trims the
// list to the elements sent before. It returns the length of this prefix.
func (n *native) before() int {
	w := n.w
	w.data = w.data[:0]
	switch {
	case w.header.Keyless == record.Library:
	case !n.begun:
		w.data = appendCommand(w.data, []byte("DEL"), n.name)
	case w.header.Type == record.List:
		w.data = appendCommand(w.data, []byte("LTRIM"), n.name, []byte("0"), strconv.AppendInt(nil, n.have-1, 10))
	}
	return len(w.data)
}

// library sends a function library to each master.
func (n *native) library(code []byte) error {
	w := n.w
	if w.ask != nil {
		name := record.Library.Name(w.key)
		there, err := w.ask.library(w.ctx, string(name), code)
		if err != nil {
			return err
		}
		if there {
			w.data, w.skip = w.data[:0], true
			return w.taken("function library " + record.Quote(name))
		}
	}
	for _, host := range w.t.hosts() {
		w.mu.Lock()
		p := w.pipeTo(host)
		w.mu.Unlock()
		if err := w.t.limit.Wait(w.ctx, len(w.data)); err != nil {
			return err
		}
		if err := p.add(w.data, piece{commands: 1}); err != nil {
			return w.told(err)
		}
	}
	w.data = bufpool.Reset(w.data)
	return nil
}

// send passes the commands in w.data to the pipe.
func (n *native) send() error {
	w := n.w
	n.begun = true
	n.have, n.held = n.have+n.held, 0
	if err := w.t.limit.Wait(w.ctx, len(w.data)); err != nil {
		return err
	}
	err := n.pipe.add(w.data, piece{commands: countCommands(w.data), name: n.name})
	w.data = bufpool.Reset(w.data) // the pipe owns a large one
	return w.told(err)
}

// end finishes the record.
func (n *native) end() (err error) {
	w := n.w
	if w.skip {
		return nil
	}
	before := n.before()
	if w.data, err = n.encoder.AppendEnd(w.data); err != nil {
		return err
	}
	if n.encoder.Orphans > 0 {
		return fmt.Errorf("stream %s: it is too large for one RESTORE, and no command makes its %s pending entries whose messages were deleted",
			record.Quote(w.key), record.Number(n.encoder.Orphans))
	}
	if w.header.Keyless == record.Library {
		return nil
	}
	if !n.begun && len(w.data) == before {
		return nil // the record is empty
	}
	if len(w.data) > before {
		if err := n.send(); err != nil {
			return err
		}
	}
	w.written++
	n.ended = true
	return w.told(n.pipe.conclude(n.ending()))
}

// countCommands counts commands that were encoded here.
func countCommands(data []byte) (n int) {
	for ; len(data) > 0; n++ {
		data = data[commandLen(data):]
	}
	return n
}

// commandLen returns the length of the first command.
func commandLen(data []byte) int {
	args, rest := lineNumber(data)
	for range args {
		var size int
		size, rest = lineNumber(rest)
		rest = rest[size+2:]
	}
	return len(data) - len(rest)
}

// lineNumber parses a line such as *3 or $5.
func lineNumber(data []byte) (int, []byte) {
	n, i := 0, 1
	for ; data[i] != '\r'; i++ {
		n = 10*n + int(data[i]-'0')
	}
	return n, data[i+2:]
}
