package record

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
)

// idLen is the length of a stream id: ms BE64, seq BE64.
const idLen = 16

// GroupState is the position of a consumer group in a stream.
type GroupState struct {
	Last []byte // id of the last delivered entry
	Read int64  // number of entries delivered; -1: unknown
}

// ConsumerState is a consumer of a group.
type ConsumerState struct {
	Name     []byte
	SeenMS   int64 // last attempt to read
	ActiveMS int64 // last successful read; -1: never or unknown
}

// PendingEntry is an entry that was delivered but not acknowledged. It may no longer exist in the stream.
type PendingEntry struct {
	ID          []byte
	Consumer    []byte // nil: the entry belongs to no consumer
	DeliveredMS int64
	Count       int64 // number of deliveries
}

// AppendGroup packs the value of an element of kind Group:
//
//	+----------+-----------+---------------------+
//	| ms (BE64)| seq (BE64)| entries read (LE64) |
//	+----------+-----------+---------------------+
func AppendGroup(dst []byte, g *GroupState) []byte {
	return binary.LittleEndian.AppendUint64(append(dst, g.Last...), uint64(g.Read))
}

// DecodeGroup decodes the output of AppendGroup; the id is a view.
func DecodeGroup(b []byte) (GroupState, error) {
	if len(b) != idLen+8 {
		return GroupState{}, Short(0, "group", idLen+8, len(b))
	}
	return GroupState{Last: b[:idLen], Read: int64(binary.LittleEndian.Uint64(b[idLen:]))}, nil
}

// consumerTimes is the offset of the name in the value of a consumer. The bytes before it are not hashed.
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

// DecodeConsumer decodes the output of AppendConsumer; the name is a view.
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
// s(consumer) is missing if the entry belongs to no consumer.
func AppendPending(dst []byte, p *PendingEntry) []byte {
	dst = append(dst, p.ID...)
	if p.Consumer != nil {
		dst = appendSized(dst, p.Consumer)
	}
	dst = binary.LittleEndian.AppendUint64(dst, uint64(p.DeliveredMS))
	return binary.LittleEndian.AppendUint64(dst, uint64(p.Count))
}

// DecodePending decodes the output of AppendPending; id and consumer are views.
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
	p.Consumer = name
	if len(name) == 0 {
		p.Consumer = []byte{}
	}
	return p, err
}

// CompareElements orders elements of hashes, sets, zsets and streams by name. In a stream, elements of groups follow
// the entries, group by group, in the order of Kind.
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

// EqualElements reports whether two elements with the same name have the same fingerprint.
func EqualElements(a, b *Element) bool {
	return a.ExpireMS == b.ExpireMS && math.Float64bits(a.Score) == math.Float64bits(b.Score) &&
		(a.Kind == Consumer || bytes.Equal(a.Value, b.Value))
}

// memberOf returns the part of an element that identifies it within its kind and group.
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
