package columns

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"time"

	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"

	"kvferry/internal/text/jsonl"
	"kvferry/record"
)

// as is how a value becomes bytes.
type as uint8

const (
	asNothing as = iota
	asBytes
	asBool
	asInt
	asUint32
	asUint64
	asHalf
	asFloat
	asDouble
	asDecimal
	asUUID
	asInterval
	asClock
	asDate
	asStamp
	asLocal // a time stamp without a zone
	asInt96
)

const (
	halfBytes     = 2
	uuidBytes     = 16
	intervalBytes = 12
	maxScale      = 76 // of the largest decimals that engines have
	maxDecimal    = 64 // its bytes
)

// Type is the type of a column's values.
type Type struct {
	as    as
	kind  format.Type
	unit  time.Duration // of a time
	scale int           // digits behind the point of a decimal
}

// plain is how values without an annotation become bytes.
var plain = map[format.Type]as{format.Boolean: asBool, format.Int32: asInt, format.Int64: asInt, format.Int96: asInt96,
	format.Float: asFloat, format.Double: asDouble, format.ByteArray: asBytes, format.FixedLenByteArray: asBytes}

// scalarOf returns the type of a column. Values whose annotation does not fit them, or is not known, have no text.
func scalarOf(e *format.SchemaElement) Type {
	s := Type{as: plain[e.Type.V], kind: e.Type.V, unit: time.Nanosecond}
	if e.LogicalType.Value != nil {
		s.logical(&e.LogicalType)
	} else if e.ConvertedType.Valid {
		s.converted(e)
	}
	integer := s.kind == format.Int32 || s.kind == format.Int64
	binary := s.kind == format.ByteArray || s.kind == format.FixedLenByteArray
	fixed := func(size int32) bool { return s.kind == format.FixedLenByteArray && e.TypeLength.V == size }
	fits := true
	switch s.as {
	case asBytes:
		fits = binary
	case asInt, asClock, asStamp, asLocal:
		fits = integer
	case asUint32, asDate:
		fits = s.kind == format.Int32
	case asUint64:
		fits = s.kind == format.Int64
	case asDecimal:
		fits = (integer || binary) && s.scale >= 0 && s.scale <= maxScale
	case asUUID:
		fits = fixed(uuidBytes)
	case asHalf:
		fits = fixed(halfBytes)
	case asInterval:
		fits = fixed(intervalBytes)
	}
	if !fits {
		s.as = asNothing
	}
	return s
}

// unsigned returns how unsigned integers become bytes.
func (s *Type) unsigned() as {
	if s.kind == format.Int64 {
		return asUint64
	}
	return asUint32
}

// logical follows an annotation.
func (s *Type) logical(l *format.LogicalType) {
	switch l := l.Value.(type) {
	case *format.DecimalType:
		s.as, s.scale = asDecimal, int(l.Scale)
	case *format.UUIDType:
		s.as = asUUID
	case *format.DateType:
		s.as = asDate
	case *format.TimeType:
		s.as, s.unit = asClock, unitOf(&l.Unit)
	case *format.TimestampType:
		s.unit = unitOf(&l.Unit)
		s.as = asLocal
		if l.IsAdjustedToUTC {
			s.as = asStamp
		}
	case *format.IntType:
		s.as = asInt
		if !l.IsSigned {
			s.as = s.unsigned()
		}
	case *format.Float16Type:
		s.as = asHalf
	case *format.StringType, *format.EnumType, *format.JsonType, *format.BsonType:
		s.as = asBytes
	case *format.NullType:
	default:
		s.as = asNothing
	}
}

// converted follows an annotation of older programs.
func (s *Type) converted(e *format.SchemaElement) {
	switch e.ConvertedType.V {
	case deprecated.Decimal:
		s.as, s.scale = asDecimal, int(e.Scale.V)
	case deprecated.Date:
		s.as = asDate
	case deprecated.TimeMillis:
		s.as, s.unit = asClock, time.Millisecond
	case deprecated.TimeMicros:
		s.as, s.unit = asClock, time.Microsecond
	case deprecated.TimestampMillis:
		s.as, s.unit = asStamp, time.Millisecond
	case deprecated.TimestampMicros:
		s.as, s.unit = asStamp, time.Microsecond
	case deprecated.Uint8, deprecated.Uint16, deprecated.Uint32, deprecated.Uint64:
		s.as = s.unsigned()
	case deprecated.Int8, deprecated.Int16, deprecated.Int32, deprecated.Int64:
		s.as = asInt
	case deprecated.Interval:
		s.as = asInterval
	case deprecated.UTF8, deprecated.Enum, deprecated.Json, deprecated.Bson:
		s.as = asBytes
	case deprecated.List, deprecated.Map, deprecated.MapKeyValue: // of groups
		s.as = asNothing
	}
}

func unitOf(u *format.TimeUnit) time.Duration {
	switch u.Value.(type) {
	case *format.MilliSeconds:
		return time.Millisecond
	case *format.MicroSeconds:
		return time.Microsecond
	}
	return time.Nanosecond
}

// HasText reports whether values can be text.
func (s *Type) HasText() bool { return s.as != asNothing }

// IsTime reports whether values are points in time, IsNumber whether they are numbers, IsInteger whether they are signed
// integers.
func (s *Type) IsTime() bool    { return s.as >= asDate }
func (s *Type) IsNumber() bool  { return s.as >= asInt && s.as <= asDecimal }
func (s *Type) IsInteger() bool { return s.as == asInt }

// Check returns an error for a value that is too long to be a number.
func (s *Type) Check(b []byte) error {
	if s.as == asDecimal && len(b) > maxDecimal {
		return fmt.Errorf("a decimal of %s bytes", record.Number(len(b)))
	}
	return nil
}

// Append appends a value as text: byte strings as they are, numbers in decimal, times in RFC 3339.
func (s *Type) Append(dst, b []byte) []byte {
	switch s.as {
	case asBool:
		return strconv.AppendBool(dst, b[0] != 0)
	case asInt:
		return strconv.AppendInt(dst, s.Int(b), 10)
	case asUint32:
		return strconv.AppendUint(dst, uint64(binary.LittleEndian.Uint32(b)), 10)
	case asUint64:
		return strconv.AppendUint(dst, binary.LittleEndian.Uint64(b), 10)
	case asHalf, asFloat:
		return strconv.AppendFloat(dst, s.float(b), 'g', -1, 32)
	case asDouble:
		return strconv.AppendFloat(dst, s.float(b), 'g', -1, 64)
	case asDecimal:
		return append(dst, s.decimal(b)...)
	case asUUID:
		return appendUUID(dst, b)
	case asInterval:
		return appendInterval(dst, b)
	case asDate:
		return s.Time(b).AppendFormat(dst, time.DateOnly)
	case asClock:
		return s.Time(b).AppendFormat(dst, "15:04:05.999999999")
	case asLocal:
		return s.Time(b).AppendFormat(dst, "2006-01-02T15:04:05.999999999")
	case asStamp, asInt96:
		return s.Time(b).AppendFormat(dst, time.RFC3339Nano)
	}
	return append(dst, b...)
}

// appendUUID appends a UUID in its usual form.
func appendUUID(dst, b []byte) []byte {
	for i, part := range [][]byte{b[:4], b[4:6], b[6:8], b[8:10], b[10:]} {
		if i > 0 {
			dst = append(dst, '-')
		}
		dst = hex.AppendEncode(dst, part)
	}
	return dst
}

// appendInterval appends a duration of ISO 8601, such as P1M2DT3.5S: months, days and milliseconds, which are unsigned.
func appendInterval(dst, b []byte) []byte {
	months, days, ms := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint32(b[8:])
	dst = append(dst, 'P')
	if months > 0 {
		dst = append(strconv.AppendUint(dst, uint64(months), 10), 'M')
	}
	if days > 0 {
		dst = append(strconv.AppendUint(dst, uint64(days), 10), 'D')
	}
	if ms > 0 || months == 0 && days == 0 {
		dst = append(strconv.AppendFloat(append(dst, 'T'), float64(ms)/1000, 'f', -1, 64), 'S')
	}
	return dst
}

// Int returns an integer of 4 or 8 bytes.
func (s *Type) Int(b []byte) int64 {
	if s.kind == format.Int32 {
		return int64(int32(binary.LittleEndian.Uint32(b)))
	}
	return int64(binary.LittleEndian.Uint64(b))
}

// float returns a floating-point number of 2, 4 or 8 bytes.
func (s *Type) float(b []byte) float64 {
	switch s.as {
	case asHalf:
		return half(binary.LittleEndian.Uint16(b))
	case asFloat:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(b))
}

// half returns a number of 16 bits: a sign, 5 bits of exponent and 10 of mantissa.
func half(bits uint16) float64 {
	exponent, mantissa := int(bits>>10&31), float64(bits&1023)
	var f float64
	switch {
	case exponent == 31 && mantissa != 0:
		return math.NaN()
	case exponent == 31:
		f = math.Inf(1)
	case exponent == 0:
		f = math.Ldexp(mantissa, -24)
	default:
		f = math.Ldexp(mantissa+1024, exponent-25)
	}
	if bits>>15 == 1 {
		return math.Copysign(f, -1)
	}
	return f
}

// Time returns a point in time.
func (s *Type) Time(b []byte) time.Time {
	const julian1970, day = 2440588, 24 * 60 * 60
	switch s.as {
	case asDate:
		return time.Unix(s.Int(b)*day, 0).UTC()
	case asInt96: // nanoseconds of the day, and a Julian day
		ns, julian := int64(binary.LittleEndian.Uint64(b)), int32(binary.LittleEndian.Uint32(b[8:]))
		return time.Unix((int64(julian)-julian1970)*day, ns).UTC()
	}
	ticks := int64(time.Second / s.unit)
	n := s.Int(b)
	return time.Unix(n/ticks, n%ticks*int64(s.unit)).UTC()
}

// Number returns a number as the nearest float64, and whether it has the same digits.
func (s *Type) Number(b []byte) (f float64, exact bool, err error) {
	if s.as == asDouble {
		return s.float(b), true, nil
	}
	text := string(s.Append(nil, b))
	f, err = strconv.ParseFloat(text, 64)
	return f, s.as == asHalf || s.as == asFloat || strconv.FormatFloat(f, 'f', s.scale, 64) == text, err
}

// decimal returns the digits of a decimal.
func (s *Type) decimal(b []byte) string {
	var n big.Int
	if s.kind == format.Int32 || s.kind == format.Int64 {
		n.SetInt64(s.Int(b))
	} else {
		n.SetBytes(b)
		if len(b) > 0 && b[0]&0x80 != 0 {
			n.Sub(&n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
		}
	}
	digits := fmt.Sprintf("%0*s", s.scale+1, new(big.Int).Abs(&n).String())
	sign := ""
	if n.Sign() < 0 {
		sign = "-"
	}
	whole, rest := digits[:len(digits)-s.scale], digits[len(digits)-s.scale:]
	if rest != "" {
		rest = "." + rest
	}
	return sign + whole + rest
}

// AppendJSON appends a value as JSON: numbers and booleans as such, unless JSON has no such number, and text.
func (s *Type) AppendJSON(dst, b []byte) []byte {
	at := len(dst)
	switch s.as {
	case asBool, asInt, asUint32, asUint64, asDecimal:
		return s.Append(dst, b)
	case asFloat, asDouble, asHalf:
		if f := s.float(b); !math.IsNaN(f) && !math.IsInf(f, 0) {
			return s.Append(dst, b)
		}
	}
	text := bytes.Clone(s.Append(dst, b)[at:])
	return appendText(dst, text)
}

// appendText appends text as a JSON string, or bytes that are not UTF-8 as {"base64":"…"}.
func appendText(dst, b []byte) []byte { return new(jsonl.Encoder).AppendText(dst, b) }
