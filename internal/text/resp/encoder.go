// Package resp encodes records as commands of Redis.
package resp

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strconv"

	"kvferry/internal/sys/bufpool"
	"kvferry/internal/text/jsonl"
	"kvferry/record"
)

// MaxElements is the maximum number of elements per command. A command also ends at MaxBytes.
const (
	MaxElements = 512
	MaxBytes    = 64 << 10
)

// ErrSameName means that a key exists under several types, but Redis holds only one.
var ErrSameName = errors.New("the name exists under several types, and Redis can hold only one of them")

// Encoder encodes records as Redis commands for redis-cli --pipe: SET, HSET, RPUSH, SADD, ZADD and XADD in batches,
// and PEXPIREAT.
type Encoder struct {
	// DBs are the databases of the dump. A single database may have any name; several need numbers, for SELECT.
	DBs []string
	// FirstType keeps the first type of a key that exists under several, in the order of the dump. Otherwise such a
	// key is an error.
	FirstType bool
	// Before7 omits the arguments that servers before Redis 7.0 reject: the number of entries ever added to a stream,
	// the largest deleted id, and the number of entries read by a group.
	Before7 bool
	// Skipped counts records left out because of FirstType. Opaque counts records that no command can create. Orphans
	// counts pending entries whose messages were deleted: no command creates them since Redis 7.0.
	Skipped, Opaque, Orphans int64

	spill   bufpool.Spill
	db      string
	head    record.Header
	key     []byte
	prev    []byte // key of the previous record
	hasPrev bool
	skip    bool

	args  []byte // encoded arguments of the current command
	n     int    // number of them
	elems int    // elements in the current command
	after []byte // commands to send after the current one
	total int64
	last  []byte // id of the last stream entry
	ended bool   // groups of the stream have begun
	ids   record.IDSet
}

// SpillTo makes the encoder write out large values in pieces.
func (e *Encoder) SpillTo(s bufpool.Spill) { e.spill = s }

// AppendHead resets the encoder.
func (e *Encoder) AppendHead(dst []byte) []byte {
	e.db, e.hasPrev, e.Skipped, e.Opaque, e.Orphans = "", false, 0, 0, 0
	return dst
}

// AppendBegin starts a record.
func (e *Encoder) AppendBegin(dst []byte, h *record.Header) ([]byte, error) {
	var err error
	if dst, err = e.selectDB(dst, h.DB); err != nil {
		return dst, err
	}
	e.skip = h.Keyless == record.Keyed && e.hasPrev && bytes.Equal(e.prev, h.Key)
	if e.skip && !e.FirstType {
		return dst, fmt.Errorf("key %s in database %s: %w", record.Quote(h.Key), h.DB, ErrSameName)
	}
	if e.skip {
		e.Skipped++
		return dst, nil
	}
	if h.Keyless == record.Keyed {
		e.prev, e.hasPrev = append(e.prev[:0], h.Key...), true
	}
	e.key = append(e.key[:0], h.Key...)
	e.head = *h
	e.head.Key = e.key
	e.head.Last, e.head.MaxDeleted = bytes.Clone(h.Last), bytes.Clone(h.MaxDeleted)
	e.total, e.last, e.ended, e.after = 0, e.last[:0], false, e.after[:0]
	e.ids.Reset()
	e.clear()
	return dst, nil
}

// selectDB appends SELECT if the database changes.
func (e *Encoder) selectDB(dst []byte, db string) ([]byte, error) {
	if db == e.db {
		return dst, nil
	}
	e.db, e.hasPrev = db, false
	if len(e.DBs) <= 1 {
		return dst, nil
	}
	if err := numbered(db); err != nil {
		return dst, err
	}
	return AppendCommand(dst, "SELECT", db), nil
}

// Check returns an error if several databases are dumped and one is not a number. Call it before writing: otherwise
// Redis would have loaded the databases before the first one with a name.
func (e *Encoder) Check() error {
	if len(e.DBs) <= 1 {
		return nil
	}
	for _, db := range e.DBs {
		if err := numbered(db); err != nil {
			return err
		}
	}
	return nil
}

// numbered returns an error unless Redis can have a database of that name.
func numbered(db string) error {
	if n, err := strconv.ParseUint(db, 10, 31); err != nil || strconv.FormatUint(n, 10) != db {
		return fmt.Errorf("database %q: Redis databases are numbers; select numbered ones, or a single database, with --db", db)
	}
	return nil
}

// AppendCommand appends a command.
func AppendCommand[T string | []byte](dst []byte, args ...T) []byte {
	dst = append(strconv.AppendInt(append(dst, '*'), int64(len(args)), 10), "\r\n"...)
	for _, a := range args {
		dst = AppendBulk(dst, a)
	}
	return dst
}

// AppendBulk appends a string.
func AppendBulk[T string | []byte](dst []byte, b T) []byte {
	dst = append(strconv.AppendInt(append(dst, '$'), int64(len(b)), 10), "\r\n"...)
	return append(append(dst, b...), "\r\n"...)
}

// bulkLen is an upper bound of the bytes that AppendBulk appends.
func bulkLen(b []byte) int { return len(b) + len("$\r\n\r\n") + bits.Len(uint(len(b)))/3 + 1 }

func (e *Encoder) clear() { e.args, e.n, e.elems = bufpool.Reset(e.args), 0, 0 }

func (e *Encoder) arg(b []byte) {
	e.args = AppendBulk(e.args, b)
	e.n++
}

// send appends the current command.
func (e *Encoder) send(dst []byte) []byte {
	if e.n == 0 {
		return dst
	}
	dst = e.appendArgs(dst, 0)
	dst = append(dst, e.after...)
	e.after = e.after[:0]
	return dst
}

// appendArgs appends the start of the current command. The caller appends more arguments.
func (e *Encoder) appendArgs(dst []byte, more int) []byte {
	dst = append(strconv.AppendInt(append(dst, '*'), int64(e.n+more), 10), "\r\n"...)
	dst = append(dst, e.args...)
	e.clear()
	return dst
}

// sendLong appends the current command with a long last argument, which is not buffered in args.
func (e *Encoder) sendLong(dst, last []byte) []byte {
	dst = e.room(dst, len(e.args)+len(last)+len(e.after))
	dst = append(e.appendLong(e.appendArgs(dst, 1), last), e.after...)
	e.after = e.after[:0]
	return dst
}

// room grows dst by n bytes and some for the framing, unless long values are spilled.
func (e *Encoder) room(dst []byte, n int) []byte {
	if e.spill != nil {
		return dst
	}
	return bufpool.Grow(dst, n+bufpool.Beside)
}

// appendLong appends a long argument, in pieces.
func (e *Encoder) appendLong(dst, b []byte) []byte {
	dst = append(strconv.AppendInt(append(dst, '$'), int64(len(b)), 10), "\r\n"...)
	return append(e.spill.Append(dst, b), "\r\n"...)
}

var commandOf = [record.NumTypes]string{record.String: "SET", record.Hash: "HSET", record.List: "RPUSH",
	record.Set: "SADD", record.ZSet: "ZADD", record.Stream: "XADD"}

// AppendElement adds an element to the current command, and appends the command when it is full.
func (e *Encoder) AppendElement(dst []byte, el *record.Element) ([]byte, error) {
	switch {
	case e.skip:
		return dst, nil
	case e.head.Type == record.Other:
		return e.opaque(dst, el), nil
	case el.Kind != record.Entry:
		return e.group(dst, el)
	}
	if e.n == 0 {
		e.arg([]byte(commandOf[e.head.Type]))
		e.arg(e.key)
	}
	e.total++
	last := el.Value // last argument of the element
	switch e.head.Type {
	case record.String:
		last = el.Value
	case record.Hash:
		e.arg(el.Name)
		if el.ExpireMS != 0 {
			e.after = AppendCommand(e.after, "HPEXPIREAT", string(e.key), strconv.FormatInt(el.ExpireMS, 10), "FIELDS", "1",
				string(el.Name))
		}
	case record.Set:
		last = el.Name
	case record.ZSet:
		if math.IsNaN(el.Score) {
			return dst, fmt.Errorf("zset %s: the score of %s is not a number, which Redis refuses", record.Quote(e.key),
				record.Quote(el.Name))
		}
		var score [32]byte
		e.arg(jsonl.AppendScore(score[:0], el.Score))
		last = el.Name
	case record.Stream:
		return e.entry(dst, el)
	}
	if len(last) >= MaxBytes {
		return e.sendLong(dst, last), nil
	}
	e.arg(last)
	if e.elems++; e.elems >= MaxElements || len(e.args) >= MaxBytes || e.head.Type == record.String {
		dst = e.send(dst)
	}
	return dst, nil
}

// entry encodes a stream entry as a command.
func (e *Encoder) entry(dst []byte, el *record.Element) ([]byte, error) {
	id, err := jsonl.AppendID(nil, el.Name)
	if err != nil {
		return dst, err
	}
	e.last = append(e.last[:0], el.Name...)
	e.ids.Add(el.Name)
	e.arg(id)
	if len(el.Value) > bufpool.Piece {
		return e.longEntry(dst, el.Value)
	}
	for packed := el.Value; len(packed) > 0; {
		field, value, rest, err := record.DecodePair(packed)
		if err != nil {
			return dst, err
		}
		e.arg(field)
		e.arg(value)
		packed = rest
	}
	return e.send(dst), nil
}

// longEntry appends the command of a stream entry with long pairs. It decodes all pairs once before it writes, so
// that an error leaves no partial command.
func (e *Encoder) longEntry(dst, packed []byte) ([]byte, error) {
	n, size := 0, len(e.args)
	for rest := packed; len(rest) > 0; n++ {
		var field, value []byte
		var err error
		if field, value, rest, err = record.DecodePair(rest); err != nil {
			return dst, err
		}
		size += bulkLen(field) + bulkLen(value)
	}
	for dst = e.appendArgs(e.room(dst, size), 2*n); len(packed) > 0; {
		field, value, rest, _ := record.DecodePair(packed)
		dst = e.appendLong(e.appendLong(dst, field), value)
		packed = rest
	}
	return dst, nil
}

// AppendEnd appends the last command of a record, and its expiry.
func (e *Encoder) AppendEnd(dst []byte) ([]byte, error) {
	if e.skip {
		return dst, nil
	}
	dst = e.send(dst)
	if e.head.Type == record.Stream && !e.ended {
		dst = e.streamEnd(dst)
	}
	if e.head.ExpireMS != 0 {
		dst = AppendCommand(dst, "PEXPIREAT", string(e.key), strconv.FormatInt(e.head.ExpireMS, 10))
	}
	return dst, nil
}

// streamEnd sets the attributes of a stream that its entries do not determine: its last id and counters. It creates a
// stream without entries by adding an entry and deleting it.
func (e *Encoder) streamEnd(dst []byte) []byte {
	key, last, counts := string(e.key), e.head.Last, e.counts()
	if last == nil {
		last = e.last
	}
	text, err := jsonl.AppendID(nil, last)
	id := string(text)
	switch {
	case e.total == 0 && (err != nil || id == "0-0"):
		return emptyStream(dst, key)
	case e.total == 0:
		dst, e.last = AppendCommand(AppendCommand(dst, "XADD", key, id, "", ""), "XDEL", key, id), last
	}
	if bytes.Equal(last, e.last) && len(counts) == 0 {
		return dst
	}
	return AppendCommand(dst, append([]string{"XSETID", key, id}, counts...)...)
}

// counts returns the arguments of XSETID for counters that differ from those of the entries alone.
func (e *Encoder) counts() (args []string) {
	if e.Before7 {
		return nil
	}
	if e.head.Added > uint64(e.total) {
		args = append(args, "ENTRIESADDED", strconv.FormatUint(e.head.Added, 10))
	}
	if deleted, err := jsonl.AppendID(nil, e.head.MaxDeleted); err == nil && bytes.Compare(e.head.MaxDeleted, e.head.Last) <= 0 {
		args = append(args, "MAXDELETEDID", string(deleted))
	}
	return args
}

// emptyStream creates a stream that never had an entry.
func emptyStream(dst []byte, key string) []byte {
	const group = "kvferry"
	return AppendCommand(AppendCommand(dst, "XGROUP", "CREATE", key, group, "$", "MKSTREAM"), "XGROUP", "DESTROY", key, group)
}

// AppendTail appends nothing.
func (e *Encoder) AppendTail(dst []byte) []byte { return dst }
