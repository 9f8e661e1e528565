package record

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
)

// idLen is the length of a stream id: ms BE64, seq BE64.
const idLen = 16

// GroupState is what a consumer group has read of a stream.
type GroupState struct {
	Last []byte // id of the last entry that was delivered
	Read int64  // entries delivered so far; -1 unknown
}

// ConsumerState is a consumer of a group.
type ConsumerState struct {
	Name     []byte
	SeenMS   int64 // when it last tried to read
	ActiveMS int64 // when it last read something; -1 never or unknown
}

// PendingEntry is an entry that was delivered and not acknowledged. It may have been deleted from the stream.
type PendingEntry struct {
	ID          []byte
	Consumer    []byte // that it belongs to; nil: none
	DeliveredMS int64
	Count       int64 // of deliveries
}

// AppendGroup packs the value of an element of kind Group:
//
//	+----------+-----------+---------------------+
//	| ms (BE64)| seq (BE64)| entries read (LE64) |
//	+----------+-----------+---------------------+
func AppendGroup(dst []byte, g *GroupState) []byte {
	return binary.LittleEndian.AppendUint64(append(dst, g.Last...), uint64(g.Read))
}

// DecodeGroup decodes what AppendGroup wrote; the id is a view.
func DecodeGroup(b []byte) (GroupState, error) {
	if len(b) != idLen+8 {
		return GroupState{}, Short(0, "group", idLen+8, len(b))
	}
	return GroupState{Last: b[:idLen], Read: int64(binary.LittleEndian.Uint64(b[idLen:]))}, nil
}

// consumerTimes is where the name of a consumer is in its value: what is before it is not hashed.
const consumerTimes = 16

// AppendConsumer packs the value of an element of kind Consumer:
//
//	+-------------+---------------+---------+
//	| seen (LE64) | active (LE64) | s(name) |
//	+-------------+---------------+---------+
func AppendConsumer(dst []byte, c *ConsumerState) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, uint64(c.SeenMS))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(c.ActiveMS))
	return appendSized(dst, c.Name)
}

// DecodeConsumer decodes what AppendConsumer wrote; the name is a view.
func DecodeConsumer(b []byte) (ConsumerState, error) {
	if len(b) < consumerTimes {
		return ConsumerState{}, Short(0, "consumer", consumerTimes, len(b))
	}
	name, rest, err := decodeSized(b[consumerTimes:], "consumer")
	if err == nil && len(rest) > 0 {
		err = &CorruptError{Off: int64(len(b) - len(rest)), Field: "consumer", Err: ErrTrailing}
	}
	return ConsumerState{Name: name, SeenMS: int64(binary.LittleEndian.Uint64(b)),
		ActiveMS: int64(binary.LittleEndian.Uint64(b[8:]))}, err
}

// AppendPending packs the value of an element of kind Pending:
//
//	+-----------+------------+-------------+------------------+-------------------+
//	| ms (BE64) | seq (BE64) | s(consumer) | delivered (LE64) | deliveries (LE64) |
//	+-----------+------------+-------------+------------------+-------------------+
//
// s(consumer) is not there when the entry belongs to none.
func AppendPending(dst []byte, p *PendingEntry) []byte {
	dst = append(dst, p.ID...)
	if p.Consumer != nil {
		dst = appendSized(dst, p.Consumer)
	}
	dst = binary.LittleEndian.AppendUint64(dst, uint64(p.DeliveredMS))
	return binary.LittleEndian.AppendUint64(dst, uint64(p.Count))
}

// DecodePending decodes what AppendPending wrote; id and consumer are views.
func DecodePending(b []byte) (PendingEntry, error) {
	const tail = 16
	if len(b) < idLen+tail {
		return PendingEntry{}, Short(0, "pending entry", idLen+tail, len(b))
	}
	times := b[len(b)-tail:]
	p := PendingEntry{ID: b[:idLen], DeliveredMS: int64(binary.LittleEndian.Uint64(times)),
		Count: int64(binary.LittleEndian.Uint64(times[8:]))}
	middle := b[idLen : len(b)-tail]
	if len(middle) == 0 {
		return p, nil
	}
	name, rest, err := decodeSized(middle, "consumer")
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("pending entry: %w", ErrTrailing)
	}
	if p.Consumer = name; len(name) == 0 {
		p.Consumer = []byte{}
	}
	return p, err
}

// CompareElements orders elements of hashes, sets, zsets and streams: by name, and those of groups behind the entries,
// group by group as they come.
func CompareElements(a, b *Element) int {
	if a.Kind == Entry || b.Kind == Entry {
		if a.Kind != b.Kind {
			return int(a.Kind) - int(b.Kind)
		}
		return bytes.Compare(a.Name, b.Name)
	}
	if c := bytes.Compare(a.Name, b.Name); c != 0 {
		return c
	}
	if a.Kind != b.Kind {
		return int(a.Kind) - int(b.Kind)
	}
	return bytes.Compare(memberOf(a), memberOf(b))
}

// EqualElements reports whether two elements that CompareElements finds equal are, as far as fingerprints tell.
func EqualElements(a, b *Element) bool {
	return a.ExpireMS == b.ExpireMS && math.Float64bits(a.Score) == math.Float64bits(b.Score) &&
		(a.Kind == Consumer || bytes.Equal(a.Value, b.Value))
}

// memberOf is what tells elements of one kind and group apart.
func memberOf(e *Element) []byte {
	switch e.Kind {
	case Consumer:
		c, _ := DecodeConsumer(e.Value)
		return c.Name
	case Pending:
		return e.Value[:min(idLen, len(e.Value))]
	}
	return nil
}
