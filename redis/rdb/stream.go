package rdb

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"kvferry/internal/sys/bufpool"
	"kvferry/record"
	"kvferry/redis/rdb/pack"
)

const (
	// IDLen is the length of a raw id: ms BE64, seq BE64.
	IDLen = 16
	// pendingSize is the minimum size of a pending entry: id, time, delivery count.
	pendingSize = IDLen + 8 + 1
)

// streamDecoder decodes
//
//	len nodes, each: string of an id, string listpack
//	len entries, len last ms, len last seq
//	19 on: len first ms, len first seq, len max deleted ms, len max deleted seq, len entries added
//	len groups, each: string name, len last ms, len last seq; 19 on: len entries read (2^64-1: unknown)
//	    len pending, each: id, ms delivered, len deliveries
//	    len consumers, each: string name, ms seen; 21 on: ms active (-1 never); len pending, each: id
//	    27: len nacked, each: id
//	26 on: len duration, len max entries, len producers, …
type streamDecoder struct {
	typ    Type
	phase  phase
	master [IDLen]byte // id of the node
	named  bool        // master is set
	prev   [IDLen]byte // id of the last entry, if entriesSeen is not 0
	fields [][]byte    // names of the master entry, views of the node
	first  []byte      // first id; nil before TypeStream2
	last   []byte
	del    []byte
	groups int64 // offset of the groups

	living, deleted      int64 // entries left in the node, by its counts
	entriesSeen, entries uint64
	nodesLeft            uint64
	groupsLeft           uint64

	name      []byte
	consumers []record.ConsumerState
	pending   []pendingEntry
	at        int // next consumer or pending entry
	packed    []byte
	lost      string // describes data that records cannot hold
}

// phase is the position in a stream.
type phase uint8

const (
	inNodes phase = iota
	inEntries
	inGroups
	inConsumers
	inPending
	inProducers
	streamDone
)

type pendingEntry struct {
	id        [IDLen]byte
	ms, count int64
	consumer  int // -1: no consumer
}

var (
	errStreamID    = errors.New("not an id of 16 bytes")
	errStreamEntry = errors.New("malformed stream entry")
	errNodeOrder   = errors.New("a node is not after the previous node")
	errStreamOrder = errors.New("an entry is not after the previous entry")
	errStreamTwin  = errors.New("occurs more than once")
)

// beginStream reads the metadata after the nodes, then seeks back to them.
func (d *Decoder) beginStream(t Type, h *record.Header) {
	s, in := &d.stream, &d.in
	*s = streamDecoder{typ: t, fields: s.fields[:0], consumers: s.consumers[:0], pending: s.pending[:0],
		packed: bufpool.Reset(s.packed), first: s.first[:0], last: s.last[:0], del: s.del[:0]}
	s.nodesLeft = in.count("nodes", 2)
	nodes := in.offset()
	in.skipStrings(2 * s.nodesLeft)
	s.entries = in.len("entries")
	s.last = in.appendID(s.last, "last id")
	h.Len, h.Last, h.ByName = int64(min(s.entries, math.MaxInt64)), s.last, true
	if t >= TypeStream2 {
		s.first = in.appendID(s.first, "first id")
		if s.del = in.appendID(s.del, "max deleted id"); !isZero(s.del) {
			h.MaxDeleted = s.del
		}
		h.Added = in.len("entries added")
	}
	s.groups = in.offset()
	in.seek(nodes)
}

func isZero(id []byte) bool { return bytes.Count(id, []byte{0}) == len(id) }

// appendID reads an id of two lengths.
func (in *input) appendID(dst []byte, field string) []byte {
	ms := in.len(field)
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(dst, ms), in.len(field))
}

// readStream reads elements of a stream.
func (d *Decoder) readStream(dst []record.Element) (n int) {
	s := &d.stream
	s.packed = s.packed[:0]
	for n < len(dst) && d.in.err == nil && s.phase != streamDone {
		switch s.phase {
		case inNodes:
			if n > 0 {
				return n // views of the last node
			}
			d.nextNode()
		case inEntries:
			n += d.streamEntries(dst[n:])
			if len(s.packed)+len(d.text) >= maxText {
				return n
			}
		case inGroups:
			if n > 0 {
				return n // the names of the last group
			}
			if d.nextGroup() {
				dst[n] = d.groupElement()
				n++
			}
		case inConsumers, inPending:
			n += d.groupElements(dst[n:])
		case inProducers:
			d.endStream()
		}
	}
	return n
}

// nextNode opens the next node, or moves on to the groups.
func (d *Decoder) nextNode() {
	s, in := &d.stream, &d.in
	if s.nodesLeft == 0 {
		if s.entriesSeen > 0 && bytes.Compare(s.prev[:], s.last) > 0 {
			d.oddly("last id", "an entry is after it")
		}
		in.seek(s.groups)
		s.groupsLeft = in.count("groups", 5)
		s.phase = inGroups
		return
	}
	s.nodesLeft--
	d.packed, s.packed = pack.Reader{}, bufpool.Reset(s.packed) // free the last node, which may be large
	clear(s.fields)
	off := in.offset()
	id, text := in.str("node", d.text[:0])
	d.text = text
	if in.err == nil && len(id) != IDLen {
		in.fail(off, "node", errStreamID)
	}
	if in.err != nil {
		return
	}
	if s.named && bytes.Compare(id, s.master[:]) <= 0 {
		in.fail(off, "node", errNodeOrder)
		return
	}
	copy(s.master[:], id)
	s.named = true
	d.text = d.text[:0]
	d.openPacked(pack.Listpack, "node")
	s.phase = inEntries
	if n := d.packed.Size(); n > bufpool.Large {
		s.packed = make([]byte, 0, n)
	}
	if err := d.masterEntry(); err != nil {
		in.fail(off, "node", err)
	}
}

// masterEntry reads the head of a node: count | deleted | n | n × field | 0.
func (d *Decoder) masterEntry() error {
	if d.in.err != nil {
		return nil
	}
	s := &d.stream
	var e pack.Item
	var err error
	if s.living, err = integer(&d.packed); err != nil {
		return err
	}
	if s.deleted, err = integer(&d.packed); err != nil {
		return err
	}
	n, err := integer(&d.packed)
	if err != nil || n < 0 || n > int64(d.packed.Size()) {
		return errStreamEntry
	}
	if s.living+s.deleted <= 0 { // servers keep nodes of deleted entries, but not empty ones
		d.oddly("node", "it has no entries")
	}
	s.fields = s.fields[:0]
	for range n {
		if err := d.packed.Must(&e); err != nil {
			return err
		}
		name, text := e.AppendTo(nil) // names that are integers are rare
		_ = text
		s.fields = append(s.fields, name)
	}
	end, err := integer(&d.packed)
	if err == nil && end != 0 {
		d.oddly("node", "its fields end in %d", end)
	}
	return err
}

// integer reads an integer of a node, which may be encoded as text.
func integer(p *pack.Reader) (int64, error) {
	var e pack.Item
	if err := p.Must(&e); err != nil {
		return 0, err
	}
	if !e.IsInt {
		return 0, errStreamEntry
	}
	return e.N, nil
}

// Flags of an entry.
const (
	entryDeleted    = 1
	EntrySameFields = 2
)

// streamEntries reads entries of the node and skips deleted ones.
func (d *Decoder) streamEntries(dst []record.Element) (n int) {
	s := &d.stream
	for n < len(dst) && len(s.packed) < maxText {
		if done, err := d.packed.Done(); done {
			if err != nil {
				d.in.fail(d.in.offset(), "node", err)
			}
			if s.living != 0 || s.deleted != 0 {
				d.oddly("node", "it has %s entries more than its header counts, and %s deleted ones", record.Number(-s.living),
					record.Number(-s.deleted))
			}
			s.phase = inNodes
			return n
		}
		deleted, err := d.streamEntry(&dst[n])
		if err != nil {
			d.in.fail(d.in.offset(), "node", err)
			return n
		}
		if deleted {
			s.deleted--
		} else {
			s.living--
			s.entriesSeen++
			n++
		}
	}
	return n
}

// streamEntry reads
//
//	flags | ms - node's | seq - node's | values, or n and n pairs | number of items before
func (d *Decoder) streamEntry(e *record.Element) (deleted bool, err error) {
	s, p := &d.stream, &d.packed
	flags, err := integer(p)
	if err != nil {
		return false, err
	}
	ms, err := integer(p)
	if err != nil {
		return false, err
	}
	seq, err := integer(p)
	if err != nil {
		return false, err
	}
	start := len(s.packed)
	s.packed = binary.BigEndian.AppendUint64(s.packed, binary.BigEndian.Uint64(s.master[:])+uint64(ms))
	s.packed = binary.BigEndian.AppendUint64(s.packed, binary.BigEndian.Uint64(s.master[8:])+uint64(seq))
	if flags&^(entryDeleted|EntrySameFields) != 0 {
		return false, fmt.Errorf("flags %#x: %w", flags, ErrNewer)
	}
	before := p.Seen() - 3
	if err := d.pairs(flags&EntrySameFields != 0); err != nil {
		return false, err
	}
	items := int64(p.Seen() - before)
	if said, err := integer(p); err != nil {
		return false, err
	} else if said != items {
		d.oddly("entry", "it counts %s items, but has %s", record.Number(said), record.Number(items))
	}
	if flags&entryDeleted != 0 {
		s.packed = s.packed[:start]
		return true, nil
	}
	whole := s.packed[start:len(s.packed):len(s.packed)]
	if bytes.Compare(whole[:IDLen], s.master[:]) < 0 {
		d.oddly("entry", "its id is before that of its node")
	}
	if id := whole[:IDLen]; s.entriesSeen > 0 && bytes.Compare(id, s.prev[:]) <= 0 {
		return false, errStreamOrder
	}
	if s.entriesSeen == 0 && len(s.first) > 0 && !bytes.Equal(whole[:IDLen], s.first) {
		d.oddly("first id", "it is not that of the first entry")
	}
	copy(s.prev[:], whole)
	*e = record.Element{Name: whole[:IDLen:IDLen], Value: whole[IDLen:]}
	return false, nil
}

// pairs appends the fields and values of an entry in the form of records.
func (d *Decoder) pairs(same bool) error {
	s, p := &d.stream, &d.packed
	n := int64(len(s.fields))
	if !same {
		var err error
		if n, err = integer(p); err != nil {
			return err
		}
		if n < 0 || n > int64(p.Size()) {
			return errStreamEntry
		}
	}
	var field, value pack.Item
	for i := range n {
		if same {
			field = pack.Item{Text: s.fields[i]}
		} else if err := p.Must(&field); err != nil {
			return err
		}
		if err := p.Must(&value); err != nil {
			return err
		}
		var f, v []byte
		f, d.text = field.AppendTo(d.text[:0])
		v, d.text = value.AppendTo(d.text)
		s.packed = record.AppendPair(s.packed, f, v)
	}
	d.text = d.text[:0]
	return nil
}

// nextGroup reads a whole group, because pending entries come before the names of their consumers.
func (d *Decoder) nextGroup() bool {
	s, in := &d.stream, &d.in
	if s.groupsLeft == 0 {
		s.phase = inProducers
		return false
	}
	s.groupsLeft--
	s.consumers, s.pending, s.at, s.packed = s.consumers[:0], s.pending[:0], 0, s.packed[:0]
	at := in.offset()
	name, text := in.str("group", nil)
	_ = text
	s.name = bytes.Clone(name)
	twin, err := d.groups.IsTwin(s.name, d.Memory, d.TempDir)
	if err != nil {
		in.err = err
	}
	if twin {
		in.fail(at, "group", errStreamTwin)
	}
	s.packed = in.appendID(s.packed, "last id")
	read := int64(-1)
	if s.typ >= TypeStream2 {
		read = int64(in.len("entries read"))
	}
	d.readPending()
	if err := d.names.Reset(); err != nil && in.err == nil { // of the last group's consumers
		in.err = err
	}
	for n := in.count("consumers", 10); n > 0 && in.err == nil; n-- {
		d.readConsumer()
	}
	if s.typ >= TypeStream5 {
		d.readNacked()
	}
	s.packed = record.AppendGroup(s.packed[IDLen:], &record.GroupState{Last: s.packed[:IDLen], Read: read})
	s.phase = inConsumers
	return in.err == nil
}

// readPending reads the pending entries of a group and sorts them by id.
func (d *Decoder) readPending() {
	s, in := &d.stream, &d.in
	for n := in.count("pending", pendingSize); n > 0 && in.err == nil; n-- {
		p := pendingEntry{consumer: -1}
		copy(p.id[:], in.takeBytes(IDLen, "pending entry"))
		p.ms = int64(in.uint64("delivered"))
		p.count = int64(in.len("deliveries"))
		s.pending = append(s.pending, p)
	}
	compare := func(a, b pendingEntry) int { return bytes.Compare(a.id[:], b.id[:]) }
	if !slices.IsSortedFunc(s.pending, compare) {
		slices.SortFunc(s.pending, compare)
	}
	for i := 1; i < len(s.pending); i++ {
		if s.pending[i].id == s.pending[i-1].id {
			in.fail(in.offset(), "pending", errStreamTwin)
		}
	}
}

// readConsumer reads a consumer and assigns its pending entries.
func (d *Decoder) readConsumer() {
	s, in := &d.stream, &d.in
	start := in.offset()
	name, _ := in.str("consumer", nil)
	if d.isTwin(name) {
		in.fail(start, "consumer", errStreamTwin)
	}
	c := record.ConsumerState{Name: bytes.Clone(name), SeenMS: int64(in.uint64("seen")), ActiveMS: -1}
	if s.typ >= TypeStream3 {
		c.ActiveMS = int64(in.uint64("active"))
	}
	at := len(s.consumers)
	s.consumers = append(s.consumers, c)
	for n := in.count("ids", IDLen); n > 0 && in.err == nil; n-- {
		if p := d.pendingID("consumer"); p != nil {
			p.consumer = at
		}
	}
}

// readNacked reads the ids of pending entries without a consumer.
func (d *Decoder) readNacked() {
	for n := d.in.count("ids", IDLen); n > 0 && d.in.err == nil; n-- {
		d.pendingID("nacked entry")
	}
}

var errNotPending = errors.New("is not pending in its group")

// pendingID reads the id of a pending entry that has no consumer yet.
func (d *Decoder) pendingID(field string) *pendingEntry {
	in, s := &d.in, &d.stream
	off := in.offset()
	id := in.takeBytes(IDLen, field)
	i, ok := slices.BinarySearchFunc(s.pending, id, func(p pendingEntry, id []byte) int { return bytes.Compare(p.id[:], id) })
	switch {
	case in.err != nil:
	case !ok:
		in.fail(off, field, errNotPending)
	case s.pending[i].consumer >= 0:
		in.fail(off, field, errStreamTwin)
	default:
		return &s.pending[i]
	}
	return nil
}

// groupElement returns the element of the current group.
func (d *Decoder) groupElement() record.Element {
	s := &d.stream
	return record.Element{Kind: record.Group, Name: s.name, Value: s.packed[:len(s.packed):len(s.packed)]}
}

// groupElements returns consumers and pending entries of the group.
func (d *Decoder) groupElements(dst []record.Element) (n int) {
	s := &d.stream
	for ; n < len(dst); n++ {
		if s.phase == inConsumers && s.at == len(s.consumers) {
			s.phase, s.at = inPending, 0
		}
		if s.phase == inPending && s.at == len(s.pending) {
			s.phase = inGroups
			return n
		}
		start := len(s.packed)
		dst[n] = record.Element{Kind: record.Consumer, Name: s.name}
		if s.phase == inConsumers {
			s.packed = record.AppendConsumer(s.packed, &s.consumers[s.at])
		} else {
			p := &s.pending[s.at]
			entry := record.PendingEntry{ID: p.id[:], DeliveredMS: p.ms, Count: p.count}
			if p.consumer >= 0 {
				entry.Consumer = s.consumers[p.consumer].Name
			}
			dst[n].Kind = record.Pending
			s.packed = record.AppendPending(s.packed, &entry)
		}
		dst[n].Value = s.packed[start:len(s.packed):len(s.packed)]
		s.at++
	}
	return n
}

// Limits of the configuration of idempotent producers, in seconds and messages.
const maxProducersFor, maxProducerIDs = 24 * 60 * 60, 10000

// endStream skips the data after the groups.
func (d *Decoder) endStream() {
	if d.stream.typ >= TypeStream4 {
		at := d.in.offset()
		seconds, most := d.in.len("stream"), d.in.len("stream")
		if seconds-1 >= maxProducersFor || most-1 >= maxProducerIDs {
			d.oddly("producers", "their messages are known for %d s, and %d of each", seconds, most)
		}
		d.in.seek(at)
		d.stream.lost = d.in.skipProducers()
	}
	d.stream.phase = streamDone
}

// Unkept describes the data of the last stream that records cannot hold, or "".
func (d *Decoder) Unkept() string {
	if d.form != formStream {
		return ""
	}
	return d.stream.lost
}

// StreamLength returns the stored and the actual number of entries of the last value; ok is false if it was not a
// stream.
func (d *Decoder) StreamLength() (says, has uint64, ok bool) {
	return d.stream.entries, d.stream.entriesSeen, d.form == formStream
}

// skipProducers skips the state of idempotent producers, and describes the part that a record cannot hold, or "".
func (in *input) skipProducers() (lost string) {
	if seconds, most := in.len("duration"), in.len("messages"); seconds != usual || most != usual {
		lost = fmt.Sprintf("the stream remembers %s messages of each idempotent producer for %s seconds", record.Number(most),
			record.Number(seconds))
	}
	producers := in.count("producers", 2)
	if producers > 0 {
		lost = fmt.Sprintf("the stream remembers messages of %s", record.Count(int64(producers), "idempotent producer"))
	}
	for ; producers > 0 && in.err == nil; producers-- {
		in.skipString("producer")
		for m := in.count("messages", 3); m > 0 && in.err == nil; m-- {
			in.skipString("message")
			in.skipLens(2)
		}
	}
	in.skipLens(2)
	return lost
}

// usual is the default of both limits of idempotent producers: seconds, and messages per producer.
const usual = 100
