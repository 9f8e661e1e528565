package codec

import (
	"encoding/binary"
	"fmt"
	"math"

	"kvferry/internal/shared/dataset"
	"kvferry/record"
)

// Kind is the engine's type of a key, in the low 4 bits of a metadata row's flags.
type Kind uint8

// The kinds, with the server version that introduced them.
const (
	KindString Kind = 1 + iota
	KindHash
	KindList
	KindSet
	KindZSet
	KindBitmap
	KindSortedInt
	KindStream
	KindBloom       // 2.6
	KindJSON        // 2.7
	KindHyperLogLog // 2.10
	KindTDigest     // 2025
	KindTimeSeries  // 2025
	KindCuckoo      // 2.17

	NumKinds
)

// maxKinds is the number of kinds that flags can represent.
const maxKinds = kindMask + 1

// KindNames lists the replies of the command TYPE.
var KindNames = [NumKinds]string{"none", "string", "hash", "list", "set", "zset", "bitmap", "sortedint", "stream",
	"MBbloom--", "ReJSON-RL", "hyperloglog", "TDIS-TYPE", "timeseries", "MBbloomCF"}

// String returns the name in the form of the command TYPE.
func (k Kind) String() string {
	if k > 0 && k < NumKinds {
		return KindNames[k]
	}
	return fmt.Sprintf("type %d", uint8(k))
}

// KindOf reads the kind from the flags of a metadata row, its first byte.
func KindOf(flags byte) Kind { return Kind(flags & kindMask) }

// IsWide reports whether the flags of a metadata row are of the new form.
func IsWide(flags byte) bool { return flags&flagWide != 0 }

// Known reports whether this build knows the kind. The rows of an unknown kind are carried unchanged.
func (k Kind) Known() bool { return k > 0 && k < NumKinds }

// Single reports whether a key has no rows but its metadata row.
func (k Kind) Single() bool { return k == KindString || k == KindJSON }

// hasSize reports whether version and size are in the metadata row.
func (k Kind) hasSize() bool { return k.Known() && !k.Single() }

// CountsRows reports whether size is the number of rows below the metadata row, or of entries for streams.
func (k Kind) CountsRows() bool {
	return k >= KindHash && k <= KindZSet || k == KindSortedInt || k == KindStream
}

// mayBeEmpty reports whether a key of size 0 exists.
func (k Kind) mayBeEmpty() bool { return k <= KindString || k >= KindStream }

// Type returns the record type of a kind. Only the server understands record.Other, which includes unknown kinds.
func (k Kind) Type() record.Type {
	switch k {
	case KindString, KindBitmap, KindHyperLogLog:
		return record.String
	case KindHash:
		return record.Hash
	case KindList:
		return record.List
	case KindSet, KindSortedInt:
		return record.Set
	case KindZSet:
		return record.ZSet
	case KindStream:
		return record.Stream
	}
	return record.Other
}

// Flags of a metadata row.
const (
	flagWide = 0x80 // expiry in milliseconds and size have 8 bytes, else expiry in seconds and size have 4
	reserved = 0x70 // no server sets them
	kindMask = 0x0f
)

// UnixMillis is a moment in milliseconds since 1970; 0 means never.
type UnixMillis int64

// Meta is the value of a metadata row.
//
//	+------------+--------------------+----------------+---------------+--------+
//	| flags (1B) | expiry (4B or 8B)  | [version (8B)] | [size (4/8B)] | extras |
//	+------------+--------------------+----------------+---------------+--------+
//
// All big endian. If bit 7 of flags is set, expiry is in milliseconds and it and size have 8 bytes; otherwise expiry is
// in seconds and both have 4. The low 4 bits of flags are the kind; the others are 0. expiry 0 is never. Strings and
// JSON have neither version nor size: their extras are the value, or the format(1) and the document. For an unknown
// kind only the expiry is decoded; the rest is extras.
type Meta struct {
	Wide    bool // new form
	Kind    Kind
	Expiry  UnixMillis
	Version Version
	Size    uint64
	Extras  []byte
}

// AppendMeta appends the value of a metadata row. In the old form the expiry is rounded to seconds, like in the engine.
func AppendMeta(dst []byte, m Meta) []byte {
	if m.Wide {
		dst = binary.BigEndian.AppendUint64(append(dst, flagWide|byte(m.Kind)), uint64(m.Expiry))
	} else {
		dst = binary.BigEndian.AppendUint32(append(dst, byte(m.Kind)), secondsOf(m.Expiry))
	}
	if m.Kind.hasSize() {
		dst = binary.BigEndian.AppendUint64(dst, uint64(m.Version))
		if m.Wide {
			dst = binary.BigEndian.AppendUint64(dst, m.Size)
		} else {
			dst = binary.BigEndian.AppendUint32(dst, uint32(m.Size))
		}
	}
	return append(dst, m.Extras...)
}

// secondsOf rounds like the engine: to the nearest second, but never to 0.
func secondsOf(e UnixMillis) uint32 {
	if e > 0 && e < 1000 {
		return 1
	}
	return uint32((e + 499) / 1000)
}

// DecodeMeta decodes the value of a metadata row; Extras is a view. Every byte is accounted for: a flag, length or mode
// that no known server writes is an error of kind record.FindNewer.
func DecodeMeta(b []byte) (Meta, error) {
	if len(b) == 0 {
		return Meta{}, record.Short(0, "flags", 1, 0)
	}
	m := Meta{Wide: b[0]&flagWide != 0, Kind: KindOf(b[0])}
	if b[0]&reserved != 0 {
		return m, newer(0, "flags", "%#02x has bits that are not known", b[0])
	}
	width := m.width()
	if len(b) < 1+width {
		return m, record.Short(1, "expiry", width, len(b)-1)
	}
	if m.Wide {
		m.Expiry = millis(b[1:])
	} else {
		m.Expiry = UnixMillis(binary.BigEndian.Uint32(b[1:])) * 1000
	}
	at := 1 + width
	if !m.Kind.hasSize() {
		m.Extras = b[at:]
		return m, m.checkExtras(at)
	}
	if len(b) < at+VersionLen+width {
		return m, record.Short(at, "version, size", VersionLen+width, len(b)-at)
	}
	m.Version = Version(binary.BigEndian.Uint64(b[at:]))
	at += VersionLen
	if m.Wide {
		m.Size = binary.BigEndian.Uint64(b[at:])
	} else {
		m.Size = uint64(binary.BigEndian.Uint32(b[at:]))
	}
	m.Extras = b[at+width:]
	return m, m.checkExtras(at + width)
}

// width returns the width of expiry and size.
func (m *Meta) width() int {
	if m.Wide {
		return 8
	}
	return 4
}

// newer returns an error for a form that a later server may have written.
func newer(off int, field, format string, args ...any) error {
	return &dataset.KindError{Kind: record.FindNewer,
		Err: &record.CorruptError{Off: int64(off), Field: field, Err: fmt.Errorf(format, args...)}}
}

// Lengths of extras, or minimum lengths if they vary.
const (
	ListExtras      = 16
	OldStreamExtras = 88 // before 2.6
	StreamExtras    = 96
	bloomExtras     = 20
	hllExtras       = 1
	digestExtras    = 72
	JSONExtras      = 1
	seriesExtras    = 30 // and the source key
	seriesSource    = 18 // offset of the source key's length
)

var leastExtras = [maxKinds]int{KindList: ListExtras, KindStream: OldStreamExtras, KindBloom: bloomExtras, KindJSON: JSONExtras,
	KindHyperLogLog: hllExtras, KindTDigest: digestExtras, KindTimeSeries: seriesExtras}

// checkExtras checks that the extras, at offset off in the value, have a valid length and known modes.
func (m *Meta) checkExtras(off int) error {
	n, have := leastExtras[m.Kind], len(m.Extras)
	if have < n {
		return record.Short(off, m.Kind.String(), n, have)
	}
	switch m.Kind {
	case KindString:
		return nil
	case KindHash:
		return checkHash(m.Extras, off)
	case KindJSON:
		return checkAtMost(m.Extras, off, 0, "format", jsonCBOR)
	case KindStream:
		if have > n {
			n = StreamExtras
		}
	case KindTimeSeries:
		n = seriesExtras + int(binary.BigEndian.Uint32(m.Extras[seriesSource:]))
	}
	if m.Kind == KindCuckoo || !m.Kind.Known() {
		return nil
	}
	if err := Exact(m.Extras, off, m.Kind.String(), n); err != nil || m.Kind != KindHyperLogLog {
		return err
	}
	return checkAtMost(m.Extras, off, 0, "encoding", HLLDense)
}

// checkAtMost checks that the byte b[at] is at most most; b is at offset off in the value.
func checkAtMost(b []byte, off, at int, field string, most byte) error {
	if b[at] > most {
		return newer(off+at, field, "%d is not known", b[at])
	}
	return nil
}

// Alive reports whether the key exists until it expires.
func (m *Meta) Alive() bool { return m.Size != 0 || m.Kind.mayBeEmpty() }

// ListEnds is the extras of a list.
//
//	+-----------+-----------+
//	| head (8B) | tail (8B) |
//	+-----------+-----------+
//
// Big endian. Elements have the indexes from head to tail-1, so tail-head is the size. A new list has both at
// FirstIndex.
type ListEnds struct{ Head, Tail uint64 }

// FirstIndex is the index of the first element pushed to the right.
const FirstIndex = math.MaxUint64 / 2

// AppendListEnds appends the extras of a list.
func AppendListEnds(dst []byte, e ListEnds) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(dst, e.Head), e.Tail)
}

// DecodeListEnds decodes the extras of a list.
func DecodeListEnds(b []byte) (ListEnds, error) {
	if err := Exact(b, 0, "head, tail", ListExtras); err != nil {
		return ListEnds{}, err
	}
	return ListEnds{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])}, nil
}

// StreamID is the id of an entry.
//
//	+---------+----------+
//	| ms (8B) | seq (8B) |
//	+---------+----------+
//
// Big endian, so ids ascend bytewise.
type StreamID [idLen]byte

// StreamState is the extras of a stream.
//
//	+----------------------+----------------------+-------------------+-------------+------------+--------------------+---------------+
//	| last generated (16B) | recorded first (16B) | max deleted (16B) | first (16B) | last (16B) | entries added (8B) | [groups (8B)] |
//	+----------------------+----------------------+-------------------+-------------+------------+--------------------+---------------+
//
// Numbers are big endian. groups, the number of consumer groups, exists since 2.6.
type StreamState struct {
	LastGenerated, RecordedFirst, MaxDeleted, First, Last StreamID

	Added  uint64
	Old    bool // without Groups
	Groups uint64
}

func (s *StreamState) ids() [5]*StreamID {
	return [...]*StreamID{&s.LastGenerated, &s.RecordedFirst, &s.MaxDeleted, &s.First, &s.Last}
}

// AppendStreamState appends the extras of a stream.
func AppendStreamState(dst []byte, s StreamState) []byte {
	for _, id := range s.ids() {
		dst = append(dst, id[:]...)
	}
	dst = binary.BigEndian.AppendUint64(dst, s.Added)
	if s.Old {
		return dst
	}
	return binary.BigEndian.AppendUint64(dst, s.Groups)
}

// DecodeStreamState decodes the extras of a stream.
func DecodeStreamState(b []byte) (s StreamState, err error) {
	want := StreamExtras
	if s.Old = len(b) == OldStreamExtras; s.Old {
		want = OldStreamExtras
	}
	if err := Exact(b, 0, "stream", want); err != nil {
		return StreamState{}, err
	}
	for i, id := range s.ids() {
		copy(id[:], b[i*idLen:])
	}
	s.Added = binary.BigEndian.Uint64(b[5*idLen:])
	if !s.Old {
		s.Groups = binary.BigEndian.Uint64(b[OldStreamExtras:])
	}
	return s, nil
}
