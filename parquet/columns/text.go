package columns

import (
	"encoding/hex"
	"fmt"
	"math/big"
	"strconv"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
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
	asFloat
	asDouble
	asDecimal
	asUUID
	asDate
	asClock
	asStamp
	asLocal // a time stamp without a zone
	asInt96
)

const (
	uuidBytes = 16
	maxScale  = 76 // of the largest decimals that engines have
)

// Leaf is a column of any program's file, with one value or null in each row.
type Leaf struct {
	Name  string
	index int
	node  *parquet.Column
	as    as
	unit  time.Duration // of a time
	scale int           // digits behind the point of a decimal
}

// asOf returns how values of a type become bytes.
func asOf(t parquet.Type) (to as, unit time.Duration, scale int) {
	if l := t.LogicalType(); l != nil {
		switch l := l.Value.(type) {
		case *format.DecimalType:
			if l.Scale < 0 || l.Scale > maxScale {
				return asNothing, 0, 0
			}
			return asDecimal, 0, int(l.Scale)
		case *format.UUIDType:
			if t.Length() != uuidBytes {
				return asNothing, 0, 0
			}
			return asUUID, 0, 0
		case *format.DateType:
			return asDate, 0, 0
		case *format.TimeType:
			return asClock, unitOf(&l.Unit), 0
		case *format.TimestampType:
			if l.IsAdjustedToUTC {
				return asStamp, unitOf(&l.Unit), 0
			}
			return asLocal, unitOf(&l.Unit), 0
		case *format.IntType:
			if !l.IsSigned {
				return map[parquet.Kind]as{parquet.Int32: asUint32, parquet.Int64: asUint64}[t.Kind()], 0, 0
			}
		case *format.StringType, *format.EnumType, *format.JsonType, *format.BsonType:
		default:
			return asNothing, 0, 0
		}
	}
	return map[parquet.Kind]as{parquet.Boolean: asBool, parquet.Int32: asInt, parquet.Int64: asInt, parquet.Int96: asInt96, parquet.Float: asFloat,
		parquet.Double: asDouble, parquet.ByteArray: asBytes, parquet.FixedLenByteArray: asBytes}[t.Kind()], 0, 0
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

// IsTime reports whether values are points in time.
func (l *Leaf) IsTime() bool { return l.as >= asDate && l.as != asClock }

// IsNumber reports whether values are numbers, IsInteger whether they are signed integers.
func (l *Leaf) IsNumber() bool  { return l.as >= asInt && l.as <= asDecimal }
func (l *Leaf) IsInteger() bool { return l.as == asInt }

// Append appends the value as bytes: byte strings as they are, numbers in decimal, times in RFC 3339.
func (c *Cells) Append(dst []byte) []byte {
	v := &c.have[0]
	switch c.as {
	case asBool:
		return strconv.AppendBool(dst, v.Boolean())
	case asInt:
		return strconv.AppendInt(dst, c.Int(), 10)
	case asUint32:
		return strconv.AppendUint(dst, uint64(v.Uint32()), 10)
	case asUint64:
		return strconv.AppendUint(dst, v.Uint64(), 10)
	case asFloat:
		return strconv.AppendFloat(dst, float64(v.Float()), 'g', -1, 32)
	case asDouble:
		return strconv.AppendFloat(dst, v.Double(), 'g', -1, 64)
	case asDecimal:
		return append(dst, c.decimal()...)
	case asUUID:
		return appendUUID(dst, v.ByteArray())
	case asDate:
		return c.Time().AppendFormat(dst, time.DateOnly)
	case asClock:
		return c.Time().AppendFormat(dst, "15:04:05.999999999")
	case asLocal:
		return c.Time().AppendFormat(dst, "2006-01-02T15:04:05.999999999")
	case asStamp, asInt96:
		return c.Time().AppendFormat(dst, time.RFC3339Nano)
	}
	return append(dst, v.ByteArray()...)
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

// Int returns an integer.
func (c *Cells) Int() int64 {
	if c.have[0].Kind() == parquet.Int32 {
		return int64(c.have[0].Int32())
	}
	return c.have[0].Int64()
}

// Number returns a number as the nearest float64.
func (c *Cells) Number() (float64, error) {
	if c.as == asDouble {
		return c.have[0].Double(), nil
	}
	return strconv.ParseFloat(string(c.Append(nil)), 64)
}

// Time returns a point in time.
func (c *Cells) Time() time.Time {
	const julian1970, day = 2440588, 24 * 60 * 60
	switch c.as {
	case asDate:
		return time.Unix(c.Int()*day, 0).UTC()
	case asInt96: // nanoseconds of the day, and a Julian day
		v := c.have[0].Int96()
		return time.Unix((int64(v[2])-julian1970)*day, int64(uint64(v[1])<<32|uint64(v[0]))).UTC()
	}
	ticks := int64(time.Second / c.unit)
	n := c.Int()
	return time.Unix(n/ticks, n%ticks*int64(c.unit)).UTC()
}

// decimal returns the digits of a decimal.
func (c *Cells) decimal() string {
	var n big.Int
	switch v := &c.have[0]; v.Kind() {
	case parquet.Int32, parquet.Int64:
		n.SetInt64(c.Int())
	default:
		b := v.ByteArray()
		if n.SetBytes(b); len(b) > 0 && b[0]&0x80 != 0 {
			n.Sub(&n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
		}
	}
	digits := fmt.Sprintf("%0*s", c.scale+1, new(big.Int).Abs(&n).String())
	sign := ""
	if n.Sign() < 0 {
		sign = "-"
	}
	whole, rest := digits[:len(digits)-c.scale], digits[len(digits)-c.scale:]
	if rest != "" {
		rest = "." + rest
	}
	return sign + whole + rest
}
