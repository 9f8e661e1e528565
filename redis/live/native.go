package live

import (
	"bytes"
	"fmt"
	"strconv"
	"time"

	"kvferry/internal/sys/bufpool"
	"kvferry/internal/text/resp"
	"kvferry/record"
	"kvferry/redis/live/server"
)

// sender sends the commands of one writer.
type sender struct {
	*destination
	pipes   *server.PipeSet
	ask     *asker // nil: existing keys are overwritten
	data    []byte // the current piece
	skip    bool   // the current record exists and stays
	written int64
}

// send queues a piece on a pipe, at the rate of the target.
func (s *sender) send(to *server.Pipe, data []byte, x server.Piece) error {
	if err := s.limit.Wait(s.pipes.Ctx, len(data)); err != nil {
		return err
	}
	return s.explainError(to.Add(data, x))
}

func (s *sender) explainError(err error) error { return server.Explain(s.server.Shown, err) }

// native writes a large record as commands to a temporary name, then renames it.
type native struct {
	*sender
	header  *record.Header
	to      *server.Pipe
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
	case n.header.Type == record.String:
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

// sizeOf holds the commands that return the number of elements of a type.
var sizeOf = [record.NumTypes]string{record.String: "STRLEN", record.Hash: "HLEN", record.List: "LLEN", record.Set: "SCARD",
	record.ZSet: "ZCARD", record.Stream: "XLEN"}

// ending returns the element bounds for the end of the record.
func (n *native) ending() *server.PieceEnding {
	h := n.header
	e := &server.PieceEnding{Name: n.name, Key: bytes.Clone(h.Key), Size: sizeOf[h.Type], Least: n.sent - n.soon, Most: n.sent,
		Lapses: n.expiresSoon(h.ExpireMS)}
	if time.Since(n.started) > soon/2 { // more elements may have expired
		e.Least, e.Lapses = min(n.lasting, n.sent), h.ExpireMS != 0
	}
	e.Lapses = e.Lapses || h.Type == record.Hash && e.Least == 0
	return e
}

// newNative starts a record, unless its key exists.
func newNative(s *sender, h *record.Header) (*native, error) {
	n := &native{sender: s, header: h, started: time.Now()}
	if s.ask.keys() && h.Keyless == record.Keyed {
		there, err := s.ask.there([][]byte{h.Key})
		if err == nil && there[0] {
			s.skip, err = true, s.existing(fmt.Sprintf("key %s in database %s", record.Quote(h.Key), s.pipes.DB))
		}
		if err != nil || s.skip {
			return n, err
		}
	}
	n.to = s.pipes.Of(h.Key)
	n.name = server.NameBeside(h.Key, s.unique())
	as := *h
	as.Key = n.name
	n.encoder.Before7 = !s.server.Version.EntriesRead()
	n.encoder.AppendHead(nil)
	var err error
	s.data, err = n.encoder.AppendBegin(s.data[:0], &as)
	return n, err
}

func (n *native) write(elems []record.Element) (err error) {
	if n.skip {
		return nil
	}
	for i := range elems {
		n.count(&elems[i])
		if len(elems[i].Value) > bufpool.Large { // wait for room before a large command is built
			if err := n.explainError(n.to.Flush()); err != nil {
				return err
			}
		}
		before := n.before()
		if n.data, err = n.encoder.AppendElement(n.data, &elems[i]); err != nil {
			return err
		}
		if len(n.data) == before {
			continue
		}
		if n.header.Keyless == record.Library {
			err = n.library(elems[i].Value)
		} else {
			err = n.part()
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
	n.data = n.data[:0]
	switch {
	case n.header.Keyless == record.Library:
	case !n.begun:
		n.data = resp.AppendCommand(n.data, []byte("DEL"), n.name)
	case n.header.Type == record.List:
		n.data = resp.AppendCommand(n.data, []byte("LTRIM"), n.name, []byte("0"), strconv.AppendInt(nil, n.have-1, 10))
	}
	return len(n.data)
}

// library sends a function library to each master.
func (n *native) library(code []byte) error {
	if n.ask != nil {
		name := record.Library.Name(n.header.Key)
		there, err := n.ask.library(string(name), code)
		if err != nil {
			return err
		}
		if there {
			n.data, n.skip = n.data[:0], true
			return n.existing("function library " + record.Quote(name))
		}
	}
	for _, host := range n.server.Hosts() {
		if err := n.send(n.pipes.At(host), n.data, server.Piece{Commands: 1}); err != nil {
			return err
		}
	}
	n.data = bufpool.Reset(n.data)
	return nil
}

// part sends the commands in n.data as a piece.
func (n *native) part() error {
	n.begun = true
	n.have, n.held = n.have+n.held, 0
	err := n.send(n.to, n.data, server.Piece{Commands: server.CountCommands(n.data), Name: n.name})
	n.data = bufpool.Reset(n.data) // the pipe owns a large one
	return err
}

// end finishes the record.
func (n *native) end() (err error) {
	if n.skip {
		return nil
	}
	before := n.before()
	if n.data, err = n.encoder.AppendEnd(n.data); err != nil {
		return err
	}
	if n.encoder.Orphans > 0 {
		return fmt.Errorf("stream %s: it is too large for one RESTORE, and no command makes its %s pending entries whose messages were deleted",
			record.Quote(n.header.Key), record.Number(n.encoder.Orphans))
	}
	if n.header.Keyless == record.Library {
		return nil
	}
	if !n.begun && len(n.data) == before {
		return nil // the record is empty
	}
	if len(n.data) > before {
		if err := n.part(); err != nil {
			return err
		}
	}
	n.written++
	n.ended = true
	return n.explainError(n.to.Conclude(n.ending()))
}
