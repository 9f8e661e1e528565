// Package codec has the layouts of Kvrocks' rows: keys, metadata, consumer groups, bitmap segments. It opens no store.
package codec

import (
	"encoding/binary"
	"fmt"
	"math"

	"kvferry/internal/shared/keyslot"
	"kvferry/record"
)

// Names of column families.
const (
	FamilyDefault   = "default"
	FamilyMetadata  = "metadata"
	FamilyScore     = "zset_score"
	FamilyPubSub    = "pubsub"
	FamilyPropagate = "propagate"
	FamilyStream    = "stream"
	FamilySearch    = "search"
	FamilyIndex     = "index"
)

// Families lists all families of a server, in the order in which it creates them.
var Families = [...]string{FamilyDefault, FamilyMetadata, FamilyScore, FamilyPubSub, FamilyPropagate, FamilyStream, FamilySearch,
	FamilyIndex}

// RecordFamilies lists the families that hold records, metadata first.
var RecordFamilies = [...]string{FamilyMetadata, FamilyDefault, FamilyScore, FamilyStream}

// DefaultNamespace is the namespace of keys if none was chosen.
const DefaultNamespace = "__namespace"

// Widths of the parts of keys, in bytes.
const (
	NslenLen   = 1
	SlotLen    = 2
	KlenLen    = 4
	VersionLen = 8
	IndexLen   = 8
	DoubleLen  = 8
	idLen      = 16 // of a stream's entry
)

// MaxNamespace is the length of the longest namespace.
const MaxNamespace = math.MaxUint8

// KeyFieldLen names the field that holds the user key's length in errors.
const KeyFieldLen = "klen"

// Version distinguishes the lives of a key. The engine makes it from the clock, in microseconds shifted by
// VersionCounter bits, and a counter. RENAME and COPY keep it, and lists made by LMOVE before 2.11 have version 0, so
// it can only be compared for equality.
type Version uint64

// VersionCounter is the number of bits of a version's counter.
const VersionCounter = 11

// AppendNamespace appends the prefix of all keys of a namespace.
//
//	+------------+-----------+
//	| nslen (1B) | namespace |
//	+------------+-----------+
func AppendNamespace(dst []byte, ns string) []byte {
	return append(append(dst, byte(len(ns))), ns...)
}

// SplitNamespace splits the namespace off a key; both are views.
func SplitNamespace(b []byte) (ns, rest []byte, err error) {
	if len(b) < NslenLen {
		return nil, nil, record.Short(0, "nslen", NslenLen, len(b))
	}
	n := int(b[0])
	if rest = b[NslenLen:]; n > len(rest) {
		return nil, nil, record.Short(NslenLen, "namespace", n, len(rest))
	}
	return rest[:n:n], rest[n:], nil
}

// NoSlot means that keys have no slot: the server is not in a cluster.
const NoSlot = -1

// MetaKey is the key of a metadata row.
//
//	+------------+-----------+-------------+----------+
//	| nslen (1B) | namespace | [slot (2B)] | user key |
//	+------------+-----------+-------------+----------+
//
// slot, big endian, exists in cluster mode only; the row does not record this.
type MetaKey struct {
	Namespace []byte
	Slot      int // or NoSlot
	Key       []byte
}

// AppendMetaKey appends the key of a metadata row.
func AppendMetaKey(dst []byte, k MetaKey) []byte {
	return append(AppendHome(dst, k.Namespace, k.Slot), k.Key...)
}

// AppendHome appends the namespace and the slot, if any.
func AppendHome(dst, ns []byte, slot int) []byte {
	dst = append(append(dst, byte(len(ns))), ns...)
	if slot != NoSlot {
		dst = binary.BigEndian.AppendUint16(dst, uint16(slot))
	}
	return dst
}

// DecodeMetaKey decodes the key of a metadata row into views. slotted is true if the server was in a cluster.
func DecodeMetaKey(b []byte, slotted bool) (MetaKey, error) {
	ns, slot, rest, err := splitHome(b, slotted)
	return MetaKey{ns, slot, rest}, err
}

// splitHome splits the namespace and the slot off a key.
func splitHome(b []byte, slotted bool) (ns []byte, slot int, rest []byte, err error) {
	ns, rest, err = SplitNamespace(b)
	if err != nil || !slotted {
		return ns, NoSlot, rest, err
	}
	if len(rest) < SlotLen {
		return nil, NoSlot, nil, record.Short(len(b)-len(rest), "slot", SlotLen, len(rest))
	}
	return ns, int(binary.BigEndian.Uint16(rest)), rest[SlotLen:], nil
}

// SubKey is the key of a row below a metadata row, in any of the column families default, zset_score and stream.
//
//	+------------+-----------+-------------+-----------+----------+--------------+-----+
//	| nslen (1B) | namespace | [slot (2B)] | klen (4B) | user key | version (8B) | sub |
//	+------------+-----------+-------------+-----------+----------+--------------+-----+
//
// slot, klen and version are big endian; slot exists in cluster mode only.
type SubKey struct {
	Namespace []byte
	Slot      int // or NoSlot
	Key       []byte
	Version   Version
	Sub       []byte
}

// AppendSubKey appends the key of a row below a metadata row.
func AppendSubKey(dst []byte, k SubKey) []byte {
	dst = binary.BigEndian.AppendUint32(AppendHome(dst, k.Namespace, k.Slot), uint32(len(k.Key)))
	dst = binary.BigEndian.AppendUint64(append(dst, k.Key...), uint64(k.Version))
	return append(dst, k.Sub...)
}

// DecodeSubKey decodes the key of a row below a metadata row into views.
func DecodeSubKey(b []byte, slotted bool) (SubKey, error) {
	ns, slot, rest, err := splitHome(b, slotted)
	if err != nil {
		return SubKey{}, err
	}
	k := SubKey{Namespace: ns, Slot: slot}
	off := len(b) - len(rest)
	if len(rest) < KlenLen {
		return SubKey{}, record.Short(off, KeyFieldLen, KlenLen, len(rest))
	}
	klen := binary.BigEndian.Uint32(rest)
	if rest = rest[KlenLen:]; int64(klen) > int64(len(rest)) {
		return SubKey{}, &record.CorruptError{Off: int64(off), Field: KeyFieldLen,
			Err: fmt.Errorf("%s bytes of key, have %s: %w", record.Number(klen), record.Number(len(rest)), record.ErrShort)}
	}
	k.Key, rest = rest[:klen:klen], rest[klen:]
	if len(rest) < VersionLen {
		return SubKey{}, record.Short(len(b)-len(rest), "version", VersionLen, len(rest))
	}
	k.Version, k.Sub = Version(binary.BigEndian.Uint64(rest)), rest[VersionLen:]
	return k, nil
}

// signBit is the sign bit of a float64.
const signBit = 1 << 63

// AppendDouble appends a float64 so that its bytes ascend like the number: big endian, with the sign bit inverted, or
// all bits inverted if it is set. -0.0 comes before 0.0.
func AppendDouble(dst []byte, f float64) []byte {
	b := math.Float64bits(f)
	if b&signBit != 0 {
		b = ^b
	} else {
		b |= signBit
	}
	return binary.BigEndian.AppendUint64(dst, b)
}

// DecodeDouble decodes a float64 of AppendDouble, which must be all of b.
func DecodeDouble(b []byte) (float64, error) {
	if err := Exact(b, 0, "score", DoubleLen); err != nil {
		return 0, err
	}
	return DoubleOf(binary.BigEndian.Uint64(b)), nil
}

func DoubleOf(b uint64) float64 {
	if b&signBit != 0 {
		return math.Float64frombits(b &^ signBit)
	}
	return math.Float64frombits(^b)
}

// Exact checks that b, at offset off in its key or value, has n bytes.
func Exact(b []byte, off int, field string, n int) error {
	if len(b) < n {
		return record.Short(off, field, n, len(b))
	}
	if len(b) > n {
		return newer(off+n, field, "%s bytes after it: %w", record.Number(len(b)-n), record.ErrTrailing)
	}
	return nil
}

// Slot returns the slot of a user key, as Redis computes it.
func Slot(key []byte) int { return keyslot.Of(key) }

// IDText formats the id of an entry as ms-seq, or in hex if it has a wrong length.
func IDText(id []byte) string {
	if len(id) != idLen {
		return fmt.Sprintf("%x", id)
	}
	return fmt.Sprintf("%d-%d", binary.BigEndian.Uint64(id), binary.BigEndian.Uint64(id[8:]))
}

// SlotError returns an error for a slot in a key that is not the user key's slot.
func SlotError(slot int, key []byte) error {
	return fmt.Errorf("slot is %d, but the key belongs to slot %d", slot, Slot(key))
}
