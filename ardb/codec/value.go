package codec

import (
	"encoding/binary"
	"fmt"
	"math"

	"kvferry/record"
)

// SizeUnknown is the size in a META row without a known size.
const SizeUnknown = -1

// Value is the decoded head of a row value: the part before its data. Byte fields are views.
type Value struct {
	Kind Kind // 0: an empty value, which counts as missing
	// Of META rows.
	Format     byte // always 0
	ExpireMS   int64
	Size       int64 // sizeUnknown for strings
	Sequential bool  // lists: the indexes are integers without gaps
	Last       Data  // streams: the last id
	// Op is the command of a merge operand.
	Op uint16
	// Count is the number of data that follow.
	Count int
	data  []byte
	off   int // of data in the value
	left  int // of Count
}

// IsMeta reports whether values of a kind carry meta.
func (k Kind) IsMeta() bool {
	switch k {
	case KindString, KindHash, KindList, KindSet, KindZSet, KindStream:
		return true
	}
	return false
}

// isWritten reports whether a server writes values of a kind.
func (k Kind) isWritten() bool {
	return k >= KindMeta && k <= KindPending || k == KindTTL || k == KindOperand
}

// SplitValue decodes the head of a value.
func SplitValue(b []byte) (v Value, err error) {
	err = v.Split(b)
	return v, err
}

// Split makes v the decoded head of a value.
func (v *Value) Split(b []byte) (err error) {
	*v = Value{Size: SizeUnknown}
	if len(b) == 0 {
		return nil
	}
	v.Kind = Kind(b[0])
	off := 1
	switch {
	case !v.Kind.isWritten():
		return record.Unknown(0, "type", fmt.Sprintf("type %d", b[0]))
	case v.Kind.IsMeta():
		if off, err = v.meta(b); err != nil {
			return err
		}
	case v.Kind == KindOperand:
		if len(b) < 3 {
			return record.Short(1, "command", 2, len(b)-1)
		}
		v.Op, off = binary.LittleEndian.Uint16(b[1:]), 3
	}
	if off >= len(b) {
		return record.Short(off, "count", 1, 0)
	}
	if v.Count = int(b[off]); v.Count > v.Kind.mostData() {
		return &record.CorruptError{Off: int64(off), Field: "count",
			Err: fmt.Errorf("%d data, but a %s has at most %s: %w", v.Count, v.Kind, record.Number(v.Kind.mostData()),
				record.ErrTrailing)}
	}
	v.left, v.off, v.data = v.Count, off+1, b[off+1:]
	return nil
}

// mostData is the maximum number of data in a value of a kind.
func (k Kind) mostData() int {
	switch k {
	case KindHash, KindMember, KindSort, KindTTL:
		return 0
	case KindString, KindField, KindElement, KindScore:
		return 1
	case KindList, KindSet, KindZSet: // the bounds
		return 2
	case KindPending:
		return 3
	}
	return math.MaxUint8
}

// SplitString makes v the head of a string's value and returns its datum. It returns false for other values,
// and for strings of an unusual form, which only Split decodes.
func (v *Value) SplitString(b []byte) (d Data, ok bool) {
	if len(b) < 4 || b[0] != byte(KindString) || b[1] != 0 {
		return d, false
	}
	expiry, w := uvarint(b[2:])
	at := 2 + w
	if w <= 0 || at >= len(b) || b[at] != 1 {
		return d, false
	}
	d, n := SplitData(b[at+1:])
	v.Kind, v.ExpireMS, v.Size, v.Count = KindString, unzigzag(expiry), SizeUnknown, 1
	return d, n > 0 && at+1+n == len(b)
}

// DecodeOnly decodes the only datum of a value that has no meta and must be of kind k.
func DecodeOnly(k Kind, b []byte) (Data, error) {
	if len(b) > 2 && Kind(b[0]) == k && b[1] == 1 {
		if d, n := SplitData(b[2:]); n == len(b)-2 {
			return d, nil
		}
	}
	v, _, err := DecodeValue(b)
	switch {
	case err != nil:
		return Data{}, err
	case v.Kind != k:
		return Data{}, fmt.Errorf("a %s row with a value of kind %s", k, v.Kind)
	}
	return Data{}, fmt.Errorf("a %s row without a value", k)
}

// IsNone reports whether b is the value of a row of kind k whose data is all in its key.
func IsNone(k Kind, b []byte) bool { return len(b) == 2 && Kind(b[0]) == k && b[1] == 0 }

// DecodeNone returns an error unless b is the value of a row of kind k whose data is all in its key.
func DecodeNone(k Kind, b []byte) error {
	if IsNone(k, b) {
		return nil
	}
	v, _, err := DecodeValue(b)
	switch {
	case err != nil:
		return err
	case v.Kind == 0:
		return fmt.Errorf("a %s row without a value", k)
	}
	return fmt.Errorf("a %s row with a value of kind %s", k, v.Kind)
}

// CheckPending validates a row of a consumer group: its last id, or a pending entry.
func CheckPending(key, value []byte, ns bool) error {
	if _, err := DecodeKey(key, ns); err != nil {
		return err
	}
	v, data, err := DecodeValue(value)
	switch n := len(data); {
	case err != nil:
		return err
	case v.Kind != KindPending:
		return fmt.Errorf("a %s row with a value of kind %s", KindPending, v.Kind)
	case n != 1 && n != 3:
		return fmt.Errorf("a %s row with %s", KindPending, record.Count(int64(n), "value"))
	}
	return nil
}

// PlainText decodes the value of a row that consists of one string; false for other values.
func PlainText(k Kind, b []byte) ([]byte, bool) {
	if len(b) < 2 || b[0] != byte(k) || b[1] != 1 {
		return nil, false
	}
	return WholeText(b[2:])
}

// PlainScore decodes the value of a score row; false for other values, or if the score is not a number.
func PlainScore(b []byte) (float64, bool) {
	if len(b) < 3 || b[0] != byte(KindScore) || b[1] != 1 {
		return 0, false
	}
	d, n := SplitData(b[2:])
	f := d.Number()
	return f, n == len(b)-2 && d.IsNumber() && f == f
}

// meta decodes the meta of a META row's value and returns the offset of its data count.
func (v *Value) meta(b []byte) (off int, err error) {
	if len(b) < 2 {
		return 0, record.Short(1, "format", 1, 0)
	}
	if v.Format = b[1]; v.Format != 0 {
		return 0, record.Unknown(1, "format", fmt.Sprintf("format %d", v.Format))
	}
	off = 2
	if v.ExpireMS, off, err = varint64(b, off, "expiry"); err != nil || v.Kind == KindString {
		return off, err
	}
	if v.Size, off, err = varint64(b, off, "size"); err != nil {
		return 0, err
	}
	switch v.Kind {
	case KindList:
		if off >= len(b) {
			return 0, record.Short(off, "sequential", 1, 0)
		}
		if b[off] > 1 {
			return 0, record.Unknown(off, "sequential", fmt.Sprint(b[off]))
		}
		v.Sequential = b[off] != 0
		off++
	case KindStream:
		var n int
		if v.Last, n, err = decodeData(b[off:], off, "last id"); err != nil {
			return 0, err
		}
		off += n
	}
	return off, nil
}

func varint64(b []byte, off int, field string) (int64, int, error) {
	u, w := uvarint(b[off:])
	switch {
	case w == 0:
		return 0, 0, record.Short(off, field, len(b)-off+1, len(b)-off)
	case w < 0:
		return 0, 0, &record.CorruptError{Off: int64(off), Field: field, Err: fmt.Errorf("number of more than 64 bits")}
	}
	return unzigzag(u), off + w, nil
}

// Next decodes the next of the value's data.
func (v *Value) Next(field string) (Data, error) {
	if v.left == 0 {
		return Data{}, &record.CorruptError{Off: int64(v.off), Field: field,
			Err: fmt.Errorf("not among the %d data: %w", v.Count, record.ErrShort)}
	}
	d, n := SplitData(v.data)
	if n == 0 {
		_, _, err := decodeData(v.data, v.off, field)
		return d, err
	}
	v.data, v.off, v.left = v.data[n:], v.off+n, v.left-1
	return d, nil
}

// End returns an error if data remain.
func (v *Value) End() error {
	if v.left > 0 {
		return &record.CorruptError{Off: int64(v.off), Field: "count",
			Err: fmt.Errorf("%d of %d data left over: %w", v.left, v.Count, record.ErrTrailing)}
	}
	if len(v.data) > 0 {
		return &record.CorruptError{Off: int64(v.off), Field: "value",
			Err: fmt.Errorf("%s bytes after the last datum: %w", record.Number(len(v.data)), record.ErrTrailing)}
	}
	return nil
}

// DecodeValue decodes a whole value and its data.
func DecodeValue(b []byte) (v Value, data []Data, err error) {
	if v, err = SplitValue(b); err != nil || v.Kind == 0 {
		return v, nil, err
	}
	rest := v
	for range v.Count {
		d, err := rest.Next("data")
		if err != nil {
			return v, data, err
		}
		data = append(data, d)
	}
	return v, data, rest.End()
}

// AppendValue appends a value: head and data.
func AppendValue(dst []byte, v *Value, data ...Data) []byte {
	dst = AppendHead(dst, v, len(data))
	for _, d := range data {
		dst = AppendData(dst, d)
	}
	return dst
}

// AppendString appends the value of the META row of a string.
func AppendString(dst, text []byte, expireMS int64) []byte {
	v := Value{Kind: KindString, ExpireMS: expireMS}
	return AppendNumber(AppendHead(dst, &v, 1), text)
}

// AppendHead appends the part before the data, and the number of data.
func AppendHead(dst []byte, v *Value, count int) []byte {
	dst = append(dst, byte(v.Kind))
	switch {
	case v.Kind == KindOperand:
		dst = binary.LittleEndian.AppendUint16(dst, v.Op)
	case v.Kind.IsMeta():
		dst = binary.AppendUvarint(append(dst, v.Format), zigzag(v.ExpireMS))
		if v.Kind != KindString {
			dst = binary.AppendUvarint(dst, zigzag(v.Size))
		}
		switch v.Kind {
		case KindList:
			dst = append(dst, byteOf(v.Sequential))
		case KindStream:
			dst = AppendData(dst, v.Last)
		}
	}
	return append(dst, byte(count))
}

func byteOf(b bool) byte {
	if b {
		return 1
	}
	return 0
}
