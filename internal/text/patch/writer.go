package patch

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"hash"
	"io"

	"kvferry/internal/sys/bufpool"
	"kvferry/internal/text/escape"
	"kvferry/internal/text/jsonl"
	"kvferry/record"
)

// Writer writes a patch.
type Writer struct {
	out    *bufio.Writer
	lines  *json.Encoder
	both   io.Writer // out and sum
	sum    hash.Hash
	typ    record.Type
	counts Counts
}

// NewWriter returns a Writer and writes the first line.
func NewWriter(out io.Writer, head Head) (*Writer, error) {
	w := &Writer{out: bufio.NewWriterSize(out, 64<<10), sum: sha256.New()}
	w.both = io.MultiWriter(w.out, w.sum)
	w.lines = newLines(w.both)
	head.Version = Version
	return w, newLines(escape.JSONWriter(w.both)).Encode(&head)
}

func newLines(w io.Writer) *json.Encoder {
	lines := json.NewEncoder(w)
	lines.SetEscapeHTML(false)
	return lines
}

func about(op Op, h *record.Header) *line {
	return &line{Op: op, DB: text([]byte(h.DB)), Type: h.Type.String(), Key: text(h.Key), Bare: h.Keyless.String()}
}

// Put writes an operation that replaces a key. n is the number of elements, which follow.
func (w *Writer) Put(h *record.Header, n int64) (err error) {
	w.counts.Puts++
	w.typ = h.Type
	l := about(Put, h)
	l.Expire, l.Len = &h.ExpireMS, &n
	if h.Last != nil {
		l.Last, err = id(h.Last)
		l.Added = h.Added
	}
	if h.MaxDeleted != nil && err == nil {
		l.MaxDeleted, err = id(h.MaxDeleted)
	}
	if err != nil {
		return err
	}
	return w.lines.Encode(l)
}

// Elements writes elements of the last Put.
func (w *Writer) Elements(elems []record.Element) error {
	for i := range elems {
		if e := &elems[i]; len(e.Value) > bufpool.Piece && e.Kind == record.Entry {
			if err := w.long(e); err != nil {
				return err
			}
			continue
		}
		l := line{Op: set}
		if err := l.encodeElement(w.typ, &elems[i]); err != nil {
			return err
		}
		if err := w.lines.Encode(&l); err != nil {
			return err
		}
	}
	return nil
}

// Expire writes an operation that changes the expiry of a key.
func (w *Writer) Expire(h *record.Header) error {
	w.counts.Expires++
	l := about(Expire, h)
	l.Expire = &h.ExpireMS
	return w.lines.Encode(l)
}

// Delete writes an operation that deletes a key.
func (w *Writer) Delete(h *record.Header) error {
	w.counts.Deletes++
	return w.lines.Encode(about(Delete, h))
}

// Close writes the last line.
func (w *Writer) Close() (Counts, error) {
	l := line{Op: end, Counts: &w.counts, SHA256: hex.EncodeToString(w.sum.Sum(nil))}
	if err := w.lines.Encode(&l); err != nil {
		return w.counts, err
	}
	return w.counts, w.out.Flush()
}

func id(b []byte) (string, error) {
	s, err := jsonl.AppendID(nil, b)
	return string(s), err
}

// encodeElement encodes an element.
func (l *line) encodeElement(t record.Type, e *record.Element) (err error) {
	if t == record.Stream {
		return l.takeEntry(e)
	}
	switch t {
	case record.Hash:
		l.Field = text(e.Name)
		if e.ExpireMS != 0 {
			l.Expire = &e.ExpireMS
		}
	case record.Set:
		l.Member = text(e.Name)
		return nil
	case record.ZSet:
		score := string(jsonl.AppendScore(nil, e.Score))
		l.Member, l.Score = text(e.Name), &score
		return nil
	case record.Other:
		l.Native = text(e.Name)
	}
	l.Value = text(e.Value)
	return nil
}

// takeEntry encodes a stream entry, or an element of a consumer group.
func (l *line) takeEntry(e *record.Element) (err error) {
	switch e.Kind {
	case record.Entry:
		l.ID, err = id(e.Name)
		l.Entry = [][2]field{}
		for rest := e.Value; len(rest) > 0 && err == nil; {
			var name, value []byte
			name, value, rest, err = record.DecodePair(rest)
			l.Entry = append(l.Entry, [2]field{*text(name), *text(value)})
		}
		return err
	case record.Group:
		g, err := record.DecodeGroup(e.Value)
		if err == nil {
			l.Last, err = id(g.Last)
		}
		l.Group, l.Read = text(e.Name), &g.Read
		return err
	case record.Consumer:
		c, err := record.DecodeConsumer(e.Value)
		l.Group, l.Consumer, l.Seen, l.Active = text(e.Name), text(c.Name), &c.SeenMS, &c.ActiveMS
		return err
	}
	p, err := record.DecodePending(e.Value)
	if err == nil {
		l.Pending, err = id(p.ID)
	}
	l.Group, l.Delivered, l.Count = text(e.Name), &p.DeliveredMS, &p.Count
	if p.Consumer != nil {
		l.Consumer = text(p.Consumer)
	}
	return err
}
