package patch

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"kvferry/internal/sys/bufpool"
	"kvferry/record"
)

// Reader reads a patch. Only the last line shows whether the patch is complete.
type Reader struct {
	Head Head

	in     lines
	number int64 // of the last line read
	line   line
	ahead  bool // line was read ahead
	header record.Header
	put    bool // the last operation was Put, so elements may follow
	counts Counts
	done   bool
}

// NewReader reads the first line of a patch.
func NewReader(in io.Reader) (*Reader, error) {
	r := &Reader{in: lines{in: bufio.NewReaderSize(in, 64<<10), sum: sha256.New()}}
	b, err := r.in.in.ReadSlice('\n') // the first line of a patch always fits the buffer
	if err == nil {
		err = json.Unmarshal(b, &r.Head)
	}
	switch {
	case err != nil || r.Head.Version == 0:
		return nil, errors.New("not a patch: its first line has no kvferry_patch; kvferry diff --format patch writes one when B is a server")
	case r.Head.Version != Version:
		return nil, fmt.Errorf("a patch of version %d: this program knows %d", r.Head.Version, Version)
	}
	r.in.sum.Write(b)
	r.number = 1
	return r, nil
}

// Line returns the number of the last line read.
func (r *Reader) Line() int64 { return r.number }

// Sum returns the SHA-256 of the patch. It is valid once the patch was read to its end.
func (r *Reader) Sum() string { return hex.EncodeToString(r.in.sum.Sum(nil)) }

// Counts returns the number of operations read so far.
func (r *Reader) Counts() Counts { return r.counts }

func (r *Reader) wrong(text string, args ...any) error {
	return fmt.Errorf("line %d: "+text, append([]any{r.number}, args...)...)
}

// next reads a line. It checks the last line against the checksum and counts of the lines before.
func (r *Reader) next() error {
	if r.ahead {
		r.ahead = false
		return nil
	}
	b, summed, err := r.in.next()
	r.number++
	if err == io.EOF {
		return r.wrong("the file ends before its last line: it was cut off, or is being written")
	}
	if err == nil {
		r.line = line{lines: &r.in}
		err = json.Unmarshal(b, &r.line)
	}
	if err != nil {
		return r.wrong("%w", err)
	}
	if r.line.Op != end {
		if !summed {
			r.in.sum.Write(b)
		}
		return nil
	}
	r.done = true
	switch {
	case r.line.SHA256 != r.Sum():
		return r.wrong("wrong checksum: the file was changed or is damaged")
	case r.line.Counts == nil || *r.line.Counts != r.counts:
		return r.wrong("the number of operations differs from the count at the end of the file")
	}
	if _, err := r.in.in.ReadByte(); err == nil {
		return r.wrong("something follows the end")
	} else if err != io.EOF {
		return err
	}
	return nil
}

// Next returns the next operation and its key. It returns io.EOF after the last operation of a complete patch. The
// header is valid until the next call.
func (r *Reader) Next() (Op, *record.Header, error) {
	for {
		if r.done {
			return "", nil, io.EOF
		}
		if err := r.next(); err != nil {
			return "", nil, err
		}
		switch r.line.Op {
		case end:
			return "", nil, io.EOF
		case set: // the caller did not read this element
			if !r.put {
				return "", nil, r.wrong("an element without a record")
			}
			continue
		}
		h, err := r.about()
		return r.line.Op, h, err
	}
}

// about decodes the header of an operation.
func (r *Reader) about() (*record.Header, error) {
	l := &r.line
	if l.DB == nil || l.Key == nil {
		return nil, r.wrong("want op, db, type and key")
	}
	t, err := record.ParseType(l.Type)
	if err != nil {
		return nil, r.wrong("%v", err)
	}
	bare, err := record.ParseKeyless(l.Bare)
	if err != nil {
		return nil, r.wrong("keyless: %v", err)
	}
	if bare != record.Keyed && t != record.Other {
		return nil, r.wrong("a %s has a key", t)
	}
	r.header = record.Header{DB: string(l.bytesOf(l.DB)), Type: t, Key: bytes.Clone(l.bytesOf(l.Key)), Keyless: bare}
	h := &r.header
	r.put = l.Op == Put
	switch l.Op {
	case Put:
		r.counts.Puts++
		if l.Expire == nil || l.Len == nil {
			return nil, r.wrong("want expire_at_ms and len")
		}
		h.ExpireMS, h.Len, h.Added = *l.Expire, *l.Len, l.Added
		if t == record.Stream {
			h.Last, err = parseID(l.Last)
		}
		if l.MaxDeleted != "" && err == nil {
			h.MaxDeleted, err = parseID(l.MaxDeleted)
		}
	case Expire:
		r.counts.Expires++
		if l.Expire == nil {
			return nil, r.wrong("want expire_at_ms")
		}
		h.ExpireMS = *l.Expire
	case Delete:
		r.counts.Deletes++
	default:
		return nil, r.wrong("op %q is not known", l.Op)
	}
	if err != nil {
		return nil, r.wrong("%v", err)
	}
	return h, nil
}

// Read reads elements of the last Put. It returns io.EOF after the last one. It returns early after a large element.
// Elements are valid until the next call.
func (r *Reader) Read(dst []record.Element) (n int, err error) {
	for n < len(dst) {
		if err := r.next(); err != nil {
			return n, err
		}
		if r.line.Op != set {
			r.ahead = true
			if n == 0 {
				return 0, io.EOF
			}
			return n, nil
		}
		if dst[n], err = r.line.give(r.header.Type); err != nil {
			return n, r.wrong("%v", err)
		}
		n++
		if len(r.in.ends) > 0 {
			break
		}
	}
	return n, nil
}

var errElement = errors.New("the element is not one of its type")

// give decodes an element.
func (l *line) give(t record.Type) (e record.Element, err error) {
	switch t {
	case record.Stream:
		return l.giveEntry()
	case record.Hash:
		if l.Field == nil || l.Value == nil {
			return e, errElement
		}
		e = record.Element{Name: l.bytesOf(l.Field), Value: l.bytesOf(l.Value)}
		if l.Expire != nil {
			e.ExpireMS = *l.Expire
		}
		return e, nil
	case record.Set:
		if l.Member == nil {
			return e, errElement
		}
		return record.Element{Name: l.bytesOf(l.Member)}, nil
	case record.ZSet:
		if l.Member == nil || l.Score == nil {
			return e, errElement
		}
		score, err := strconv.ParseFloat(*l.Score, 64)
		return record.Element{Name: l.bytesOf(l.Member), Score: score}, err
	}
	if l.Value == nil || t == record.Other && l.Native == nil {
		return e, errElement
	}
	return record.Element{Name: l.bytesOf(l.Native), Value: l.bytesOf(l.Value)}, nil
}

// giveEntry decodes a stream entry, or an element of a consumer group.
func (l *line) giveEntry() (e record.Element, err error) {
	if l.Group == nil {
		e.Name, err = parseID(l.ID)
		if len(l.lines.bytes) > 0 {
			e.Value = bufpool.Grow(nil, len(l.lines.bytes)+bufpool.Piece)
		}
		for i := range l.Entry {
			e.Value = record.AppendPair(e.Value, l.bytesOf(&l.Entry[i][0]), l.bytesOf(&l.Entry[i][1]))
		}
		return e, err
	}
	e.Name = l.bytesOf(l.Group)
	switch {
	case l.Pending != "":
		if l.Delivered == nil || l.Count == nil {
			return e, errElement
		}
		p := record.PendingEntry{Consumer: l.bytesOf(l.Consumer), DeliveredMS: *l.Delivered, Count: *l.Count}
		p.ID, err = parseID(l.Pending)
		e.Kind, e.Value = record.Pending, record.AppendPending(nil, &p)
	case l.Consumer != nil:
		if l.Seen == nil || l.Active == nil {
			return e, errElement
		}
		e.Kind = record.Consumer
		e.Value = record.AppendConsumer(
			nil, &record.ConsumerState{Name: l.bytesOf(l.Consumer), SeenMS: *l.Seen, ActiveMS: *l.Active})
	default:
		if l.Read == nil {
			return e, errElement
		}
		g := record.GroupState{Read: *l.Read}
		g.Last, err = parseID(l.Last)
		if err == nil {
			e.Kind, e.Value = record.Group, record.AppendGroup(nil, &g)
		}
	}
	return e, err
}

// parseID parses the id of a stream entry, such as 5-1.
func parseID(s string) ([]byte, error) {
	ms, seq, ok := strings.Cut(s, "-")
	a, err := strconv.ParseUint(ms, 10, 64)
	b, err2 := strconv.ParseUint(seq, 10, 64)
	if !ok || err != nil || err2 != nil {
		return nil, fmt.Errorf("%q is no id of a stream", s)
	}
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, a), b), nil
}
