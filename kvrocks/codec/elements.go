package codec

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"

	"kvferry/record"
)

// CheckStreamRow says what is wrong with a row of a stream.
func CheckStreamRow(sub, value []byte) (keyErr, valueErr error) {
	if IsEntry(sub) {
		return nil, CheckPairs(value)
	}
	k, err := DecodeGroupKey(sub)
	if err != nil {
		return err, nil
	}
	_, err = GroupElement(&k, value)
	return nil, err
}

// GroupOrder appends what rows of consumer groups are sorted by: group, kind, and consumer or id.
//
//	+-----------+-------+-----------+----------------+
//	| glen (8B) | group | kind (1B) | consumer or id |
//	+-----------+-------+-----------+----------------+
func GroupOrder(dst []byte, k *GroupKey) []byte {
	dst = append(AppendSized(dst, k.Group), byte(k.Kind))
	if k.Kind == KindPending {
		return append(dst, k.ID[:]...)
	}
	return append(dst, k.Consumer...)
}

// SplitGroupOrder splits what GroupOrder made.
func SplitGroupOrder(b []byte) (group []byte, rest []byte) {
	n := binary.BigEndian.Uint64(b)
	return b[8 : 8+n], b[8+n:]
}

// CompareGroups compares what GroupOrder makes.
func CompareGroups(a, b []byte) int {
	ga, ra := SplitGroupOrder(a)
	gb, rb := SplitGroupOrder(b)
	if c := bytes.Compare(ga, gb); c != 0 {
		return c
	}
	return bytes.Compare(ra, rb)
}

// GroupElement makes the value of an element of a row's value, after the two counts of the row.
func GroupElement(k *GroupKey, value []byte) ([]byte, error) {
	counts := func(a, b uint64) []byte {
		return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, a), b)
	}
	switch k.Kind {
	case KindGroup:
		g, err := DecodeGroup(value)
		return record.AppendGroup(counts(g.Consumers, g.Pending), &record.GroupState{Last: g.LastDelivered[:], Read: g.EntriesRead}), err
	case KindConsumer:
		c, err := DecodeConsumer(value)
		return record.AppendConsumer(counts(c.Pending, 0), &record.ConsumerState{Name: k.Consumer,
			SeenMS: int64(c.LastAttempt), ActiveMS: int64(c.LastSuccess)}), err
	}
	p, err := DecodePending(value)
	return record.AppendPending(counts(0, 0), &record.PendingEntry{ID: k.ID[:], Consumer: p.Consumer,
		DeliveredMS: int64(p.Delivered), Count: int64(p.Count)}), err
}

// GroupCounts is how many bytes of counts GroupElement puts before the value.
const GroupCounts = 16

// Values that only Kvrocks understands are records of type other. The name of the type is that which the command TYPE
// answers, after modulePrefix. A JSON document is its own value; of other types each row is an element, a part:
//
//	the metadata row    00 size(8) extras
//	a row below it      01 slen(uvarint) sub value
//
// size is big endian, sub what follows the version in the row's key.
const (
	modulePrefix = "kvrocks:"
	cborSuffix   = "+cbor"
	partMeta     = 0
	partRow      = 1
)

// AppendModule appends the name of a type. cbor says how a JSON document is packed.
func AppendModule(dst []byte, kind Kind, cbor bool) []byte {
	dst = append(append(dst, modulePrefix...), kind.String()...)
	if cbor {
		dst = append(dst, cborSuffix...)
	}
	return dst
}

// ModuleKind is the kind of a type's name, 0 for types of other servers.
func ModuleKind(native string) (kind Kind, cbor bool) {
	name, ok := strings.CutPrefix(native, modulePrefix)
	if !ok {
		return 0, false
	}
	name, cbor = strings.CutSuffix(name, cborSuffix)
	for k := Kind(1); k < NumKinds; k++ {
		if KindNames[k] == name {
			return k, cbor
		}
	}
	return 0, false
}

// Part is a row of a value that only Kvrocks understands.
type Part struct {
	Meta       bool   // it is the metadata row
	Size       uint64 // of the metadata row; Value are its extras
	Sub, Value []byte
}

// AppendPart appends a part.
func AppendPart(dst []byte, p Part) []byte {
	if p.Meta {
		return append(binary.BigEndian.AppendUint64(append(dst, partMeta), p.Size), p.Value...)
	}
	dst = append(binary.AppendUvarint(append(dst, partRow), uint64(len(p.Sub))), p.Sub...)
	return append(dst, p.Value...)
}

var errPart = errors.New("a part of it cannot be decoded")

// DecodePart decodes a part into views.
func DecodePart(b []byte) (p Part, err error) {
	switch {
	case len(b) > 8 && b[0] == partMeta:
		return Part{Meta: true, Size: binary.BigEndian.Uint64(b[1:]), Value: b[9:]}, nil
	case len(b) > 1 && b[0] == partRow:
		n, width := binary.Uvarint(b[1:])
		rest := b[1+max(0, width):]
		if width > 0 && n <= uint64(len(rest)) {
			return Part{Sub: rest[:n], Value: rest[n:]}, nil
		}
	}
	return Part{}, errPart
}
