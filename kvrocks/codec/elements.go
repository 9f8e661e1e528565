package codec

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"kvferry/record"
)

// CheckStreamRow returns the errors in the key and value of a row of a stream.
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

// GroupOrder appends the sort key of a row of a consumer group: group, kind, and consumer or id.
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

// SplitGroupOrder splits a sort key of GroupOrder.
func SplitGroupOrder(b []byte) (group []byte, rest []byte) {
	n := binary.BigEndian.Uint64(b)
	return b[8 : 8+n], b[8+n:]
}

// CompareGroups compares sort keys of GroupOrder.
func CompareGroups(a, b []byte) int {
	ga, ra := SplitGroupOrder(a)
	gb, rb := SplitGroupOrder(b)
	if c := bytes.Compare(ga, gb); c != 0 {
		return c
	}
	return bytes.Compare(ra, rb)
}

// GroupElement converts a row's value to the two counts of the row, followed by the value of an element.
func GroupElement(k *GroupKey, value []byte) ([]byte, error) {
	counts := func(a, b uint64) []byte {
		return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, a), b)
	}
	switch k.Kind {
	case KindGroup:
		g, err := DecodeGroup(value)
		return record.AppendGroup(counts(g.Consumers, g.Pending),
			&record.GroupState{Last: g.LastDelivered[:], Read: g.EntriesRead}), err
	case KindConsumer:
		c, err := DecodeConsumer(value)
		return record.AppendConsumer(counts(c.Pending, 0), &record.ConsumerState{Name: k.Consumer,
			SeenMS: int64(c.LastAttempt), ActiveMS: int64(c.LastSuccess)}), err
	}
	p, err := DecodePending(value)
	return record.AppendPending(counts(0, 0), &record.PendingEntry{ID: k.ID[:], Consumer: p.Consumer,
		DeliveredMS: int64(p.Delivered), Count: int64(p.Count)}), err
}

// GroupCounts is the length of the counts that GroupElement puts before the value.
const GroupCounts = 16

// Values that only Kvrocks understands are records of type other. The type's name is modulePrefix and the reply of the
// command TYPE. A JSON document is its own value; of other types each row is an element, a part:
//
//	the metadata row    00 size(8) extras
//	a row below it      01 slen(uvarint) sub value
//
// size is big endian; sub is the part after the version in the row's key.
const (
	modulePrefix = "kvrocks:"
	cborSuffix   = "+cbor"
	jsonCBOR     = 1 // the format of a JSON document, 0 for text
	partMeta     = 0
	partRow      = 1
)

// AppendModule appends the name of a type. cbor is true for a JSON document packed as CBOR.
func AppendModule(dst []byte, kind Kind, cbor bool) []byte {
	dst = append(append(dst, modulePrefix...), kind.String()...)
	if cbor {
		dst = append(dst, cborSuffix...)
	}
	return dst
}

// Modules names the kinds that only the server understands and for which is is true, including bitmaps (if too long).
func Modules(is func(Kind) bool) (out []string) {
	for kind := Kind(1); kind < NumKinds; kind++ {
		if (kind == KindBitmap || kind.Type() == record.Other) && is(kind) {
			out = append(out, string(AppendModule(nil, kind, false)))
		}
	}
	return out
}

// ModuleKind returns the kind of a type's name, 0 for types of other servers.
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

// CheckModuleRow checks a row below the metadata row of a value that only Kvrocks understands. Pages of cuckoo filters,
// and rows of unknown kinds, pass unchecked.
func CheckModuleRow(kind Kind, sub, value []byte) error {
	switch kind {
	case KindBitmap:
		_, err := DecodeSegment(sub)
		return err
	case KindBloom:
		return Exact(sub, 0, "filter", bloomNumber)
	case KindTDigest:
		return checkDigestRow(sub, value)
	case KindTimeSeries:
		return checkSeriesRow(sub, value)
	}
	return nil
}

// Rows of t-digests and time series have a kind as the first byte of sub.
//
//	t-digest      00                          buffer: unmerged doubles
//	              01 mean(8) seq(4)           centroid: weight(8)
//	time series   00 chunk(8)                 flags(4) count(4), samples of ts(8) value(8)
//	              01 label                    its value
//	              02 downstream key           aggregator(1) bucket(8) alignment(8) latest(8) nu(1) nf(1), nu+nf numbers of 8
//
// The server may leave more samples than count in a chunk, and does not read them.
const (
	bloomNumber   = 2
	centroidLen   = 1 + DoubleLen + 4
	chunkLen      = 1 + 8
	chunkHead     = 8
	sampleLen     = 16
	downHead      = 27
	partBuffer    = 0
	partCentroid  = 1
	seriesChunk   = 0
	seriesLabel   = 1
	seriesDownKey = 2
)

// ModuleSums sums up the rows of a value that only Kvrocks understands, for comparison with its metadata.
type ModuleSums struct{ rows, bytes, centroids, buffered uint64 }

// Add counts a row.
func (s *ModuleSums) Add(sub, value []byte) {
	s.rows++
	s.bytes += uint64(len(value))
	switch {
	case len(sub) > 0 && sub[0] == partCentroid:
		s.centroids++
	case len(sub) == 1:
		s.buffered += uint64(len(value) / DoubleLen)
	}
}

// Wrong describes how they differ from the extras of the metadata row, or returns "".
func (s *ModuleSums) Wrong(kind Kind, extras []byte) string {
	switch kind {
	case KindBloom:
		filters, size := uint64(binary.BigEndian.Uint16(extras)), uint64(binary.BigEndian.Uint32(extras[16:]))
		if filters != s.rows || size != s.bytes {
			return fmt.Sprintf("metadata counts %s filters of %s bytes, found %s of %s", record.Number(filters),
				record.Number(size), record.Number(s.rows), record.Number(s.bytes))
		}
	case KindTDigest:
		unmerged, merged := binary.BigEndian.Uint64(extras[8:]), binary.BigEndian.Uint64(extras[16:])
		if merged != s.centroids || unmerged != s.buffered {
			return fmt.Sprintf("metadata counts %s merged and %s unmerged nodes, found %s and %s", record.Number(merged),
				record.Number(unmerged), record.Number(s.centroids), record.Number(s.buffered))
		}
	}
	return ""
}

func checkDigestRow(sub, value []byte) error {
	kind, err := kindByte(sub, partCentroid)
	if err != nil {
		return err
	}
	if kind == partCentroid {
		if err := Exact(sub, 0, "centroid", centroidLen); err != nil {
			return err
		}
		return Exact(value, 0, "weight", DoubleLen)
	}
	if err := Exact(sub, 0, "buffer", 1); err != nil {
		return err
	}
	return Exact(value, 0, "buffer", len(value)/DoubleLen*DoubleLen)
}

func checkSeriesRow(sub, value []byte) error {
	kind, err := kindByte(sub, seriesDownKey)
	if err != nil || kind == seriesLabel {
		return err
	}
	if kind == seriesDownKey {
		if len(value) < downHead {
			return record.Short(0, "downstream", downHead, len(value))
		}
		return Exact(value, 0, "downstream", downHead+8*(int(value[downHead-2])+int(value[downHead-1])))
	}
	if err := Exact(sub, 0, "chunk", chunkLen); err != nil {
		return err
	}
	if len(value) < chunkHead {
		return record.Short(0, "chunk", chunkHead, len(value))
	}
	if flags := binary.BigEndian.Uint32(value); flags != 0 {
		return newer(0, "flags", "%#x is not known", flags)
	}
	n := max(int64(binary.BigEndian.Uint32(value[4:])), int64(len(value)-chunkHead)/sampleLen)
	return Exact(value, 0, "samples", chunkHead+int(n)*sampleLen)
}

// kindByte returns the first byte of sub, which must not exceed most.
func kindByte(sub []byte, most byte) (byte, error) {
	if len(sub) == 0 {
		return 0, record.Short(0, "kind", 1, 0)
	}
	return sub[0], checkAtMost(sub, 0, 0, "kind", most)
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
