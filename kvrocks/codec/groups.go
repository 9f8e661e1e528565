package codec

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"kvferry/record"
)

// GroupKind is the kind of a row of a consumer group. The numbers are used in keys since 2.10.
type GroupKind byte

// The kinds of rows of consumer groups.
const (
	KindGroup GroupKind = 1 + iota
	KindConsumer
	KindPending
)

// groupsMark is the ms of a stream's rows that are not entries, since 2.10.
var groupsMark = bytes.Repeat([]byte{0xff}, 8)

// oldMark ends the keys of groups and consumers before 2.10.
var oldMark = []byte("METADATA")

// GroupKey is the part after the version in the key of a consumer group's row.
//
//	          since 2.10                                    2.6 to 2.9
//	group     ff×8 01 glen(8) group                         glen(8) group METADATA
//	consumer  ff×8 02 glen(8) group nlen(8) name            glen(8) group nlen(8) name METADATA
//	pending   ff×8 03 glen(8) group ms(8) seq(8)            glen(8) group ms(8) seq(8)
//
// Numbers are big endian. The old rows are mixed with the entries; they differ in length, which is never 16. Servers
// since 2.10 treat them as entries and do not see the groups.
type GroupKey struct {
	Old      bool
	Kind     GroupKind
	Group    []byte
	Consumer []byte   // of KindConsumer
	ID       StreamID // of KindPending
}

// AppendGroupKey appends the part after the version in the key of a consumer group's row.
func AppendGroupKey(dst []byte, k GroupKey) []byte {
	if !k.Old {
		dst = append(append(dst, groupsMark...), byte(k.Kind))
	}
	dst = AppendSized(dst, k.Group)
	switch k.Kind {
	case KindConsumer:
		dst = AppendSized(dst, k.Consumer)
	case KindPending:
		return append(dst, k.ID[:]...)
	}
	if k.Old {
		dst = append(dst, oldMark...)
	}
	return dst
}

// IsEntry reports whether sub, the part after the version in the key of a stream's row, is the id of an entry.
func IsEntry(sub []byte) bool {
	return len(sub) == idLen && !IsReserved(sub)
}

// IsReserved reports whether an id has the ms of consumer groups' rows.
func IsReserved(id []byte) bool { return bytes.HasPrefix(id, groupsMark) }

// DecodeGroupKey decodes the part after the version in the key of a consumer group's row into views.
func DecodeGroupKey(b []byte) (GroupKey, error) {
	rest, ok := bytes.CutPrefix(b, groupsMark)
	if !ok {
		return decodeOldGroupKey(b)
	}
	if len(rest) == 0 {
		return GroupKey{}, record.Short(len(b), "kind", 1, 0)
	}
	k := GroupKey{Kind: GroupKind(rest[0])}
	if k.Kind < KindGroup || k.Kind > KindPending {
		return k, newer(len(groupsMark), "kind", "unknown kind %d", rest[0])
	}
	group, rest, err := cutSized(rest[1:], "group", len(b))
	if err != nil {
		return k, err
	}
	k.Group = group
	return k, k.decodeRest(rest, len(b))
}

// decodeRest decodes the rest of the key, after the group.
func (k *GroupKey) decodeRest(rest []byte, end int) (err error) {
	switch k.Kind {
	case KindConsumer:
		if k.Consumer, rest, err = cutSized(rest, "consumer", end); err != nil {
			return err
		}
	case KindPending:
		if err := Exact(rest, end-len(rest), "id", idLen); err != nil {
			return err
		}
		copy(k.ID[:], rest)
		return nil
	}
	return Exact(rest, end-len(rest), "group row", 0)
}

// decodeOldGroupKey decodes the key of a row before 2.10. A pending entry differs from a consumer in the possible rest
// of the key.
func decodeOldGroupKey(b []byte) (GroupKey, error) {
	k := GroupKey{Old: true, Kind: KindGroup}
	group, rest, err := cutSized(b, "group", len(b))
	if err != nil {
		return k, err
	}
	k.Group = group
	if bytes.Equal(rest, oldMark) {
		return k, nil
	}
	if body, ok := bytes.CutSuffix(rest, oldMark); ok {
		if name, more, err := cutSized(body, "consumer", len(b)); err == nil && len(more) == 0 {
			k.Kind, k.Consumer = KindConsumer, name
			return k, nil
		}
	}
	k.Kind = KindPending
	return k, k.decodeRest(rest, len(b))
}

// AppendSized appends b after its length in 8 bytes.
func AppendSized(dst, b []byte) []byte {
	return append(binary.BigEndian.AppendUint64(dst, uint64(len(b))), b...)
}

// cutSized splits a length-prefixed part off b, whose end is at offset end in its key or value.
func cutSized(b []byte, field string, end int) (v, rest []byte, err error) {
	off := end - len(b)
	if len(b) < 8 {
		return nil, nil, record.Short(off, field+" length", 8, len(b))
	}
	n := binary.BigEndian.Uint64(b)
	if rest = b[8:]; n > uint64(len(rest)) {
		return nil, nil, &record.CorruptError{Off: int64(off), Field: field,
			Err: fmt.Errorf("need %s bytes, have %s: %w", record.Number(n), record.Number(len(rest)), record.ErrShort)}
	}
	return rest[:n:n], rest[n:], nil
}

// Group is the value of a consumer group's row.
//
//	+----------------+--------------+---------------------+-------------------+----------+
//	| consumers (8B) | pending (8B) | last delivered (16B) | entries read (8B) | lag (8B) |
//	+----------------+--------------+---------------------+-------------------+----------+
//
// Numbers are big endian. entries read is signed, -1 for unknown.
type Group struct {
	Consumers, Pending uint64
	LastDelivered      StreamID
	EntriesRead        int64
	Lag                uint64
}

const (
	groupLen    = 48
	consumerLen = 24
)

// AppendGroup appends the value of a consumer group's row.
func AppendGroup(dst []byte, g Group) []byte {
	dst = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(dst, g.Consumers), g.Pending)
	dst = append(dst, g.LastDelivered[:]...)
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(dst, uint64(g.EntriesRead)), g.Lag)
}

// DecodeGroup decodes the value of a consumer group's row.
func DecodeGroup(b []byte) (g Group, err error) {
	if err := Exact(b, 0, "group", groupLen); err != nil {
		return Group{}, err
	}
	g.Consumers, g.Pending = binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])
	copy(g.LastDelivered[:], b[16:])
	g.EntriesRead, g.Lag = int64(binary.BigEndian.Uint64(b[32:])), binary.BigEndian.Uint64(b[40:])
	return g, nil
}

// Consumer is the value of a consumer's row.
//
//	+--------------+-------------------+-------------------+
//	| pending (8B) | last attempt (8B) | last success (8B) |
//	+--------------+-------------------+-------------------+
//
// Big endian; the moments are in Unix milliseconds.
type Consumer struct {
	Pending                  uint64
	LastAttempt, LastSuccess UnixMillis
}

// AppendConsumer appends the value of a consumer's row.
func AppendConsumer(dst []byte, c Consumer) []byte {
	dst = binary.BigEndian.AppendUint64(dst, c.Pending)
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(dst, uint64(c.LastAttempt)), uint64(c.LastSuccess))
}

// DecodeConsumer decodes the value of a consumer's row.
func DecodeConsumer(b []byte) (Consumer, error) {
	if err := Exact(b, 0, "consumer", consumerLen); err != nil {
		return Consumer{}, err
	}
	return Consumer{binary.BigEndian.Uint64(b), UnixMillis(binary.BigEndian.Uint64(b[8:])),
		UnixMillis(binary.BigEndian.Uint64(b[16:]))}, nil
}

// Pending is the value of a pending entry's row.
//
//	+----------------+------------+-----------+----------+
//	| delivered (8B) | count (8B) | nlen (8B) | consumer |
//	+----------------+------------+-----------+----------+
//
// Numbers are big endian; delivered is the last delivery in Unix milliseconds, count the number of deliveries.
type Pending struct {
	Delivered UnixMillis
	Count     uint64
	Consumer  []byte
}

// AppendPending appends the value of a pending entry's row.
func AppendPending(dst []byte, p Pending) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(p.Delivered))
	return AppendSized(binary.BigEndian.AppendUint64(dst, p.Count), p.Consumer)
}

// DecodePending decodes the value of a pending entry's row; Consumer is a view.
func DecodePending(b []byte) (p Pending, err error) {
	if len(b) < 16 {
		return Pending{}, record.Short(0, "delivered, count", 16, len(b))
	}
	p.Delivered, p.Count = UnixMillis(binary.BigEndian.Uint64(b)), binary.BigEndian.Uint64(b[8:])
	name, rest, err := cutSized(b[16:], "consumer", len(b))
	if err != nil {
		return Pending{}, err
	}
	p.Consumer = name
	return p, Exact(rest, len(b)-len(rest), "consumer", 0)
}

// CheckPairs checks that the value of an entry is pairs of a field and a value, each after its length as a varint, in
// the form of record.AppendPair.
func CheckPairs(b []byte) error {
	for rest := b; len(rest) > 0; {
		_, _, next, err := record.DecodePair(rest)
		if err != nil {
			return &record.CorruptError{Off: int64(len(b) - len(rest)), Field: "entry", Err: err}
		}
		rest = next
	}
	return nil
}
