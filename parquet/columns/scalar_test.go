package columns

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// element returns a column of a type, with an annotation or one of older programs.
func element(kind format.Type, size int32, logical format.LogicalTypeValue, converted int) *format.SchemaElement {
	e := &format.SchemaElement{Type: thrift.New(kind), TypeLength: thrift.New(size),
		LogicalType: format.LogicalType{Value: logical}, Scale: thrift.New(int32(1))}
	if converted >= 0 {
		e.ConvertedType = thrift.New(deprecated.ConvertedType(converted))
	}
	return e
}

// TestText makes values text and JSON; types without a text are "-".
func TestText(t *testing.T) {
	t.Parallel()
	const none = -1
	fixed := format.FixedLenByteArray
	for _, c := range []struct {
		e              *format.SchemaElement
		in, text, json string
	}{
		{element(fixed, 2, &format.Float16Type{}, none), "003c", "1", "1"}, {element(fixed, 2, &format.Float16Type{}, none), "00c0", "-2", "-2"},
		{element(fixed, 2, &format.Float16Type{}, none), "007c", "+Inf", `"+Inf"`}, {element(fixed, 2, &format.Float16Type{}, none), "017e", "NaN", `"NaN"`},
		{element(fixed, 2, &format.Float16Type{}, none), "0080", "-0", "-0"}, {element(fixed, 2, &format.Float16Type{}, none), "0100", "5.9604645e-08", "5.9604645e-08"},
		{element(fixed, 2, &format.Float16Type{}, none), "ff7b", "65504", "65504"}, {element(fixed, 2, &format.Float16Type{}, none), "00fc", "-Inf", `"-Inf"`},
		{element(fixed, 4, &format.Float16Type{}, none), "", "-", ""},
		{element(fixed, 12, nil, 21), "0e000000" + "03000000" + "dc050000", "P14M3DT1.5S", `"P14M3DT1.5S"`},
		{element(fixed, 12, nil, 21), strings.Repeat("00", 12), "PT0S", `"PT0S"`}, {element(fixed, 12, nil, 21), strings.Repeat("ff", 12), "P4294967295M4294967295DT4294967.295S", `"P4294967295M4294967295DT4294967.295S"`},
		{element(fixed, 11, nil, 21), "", "-", ""},
		{element(format.Int96, 0, nil, none), "0000000000000000" + "8c3d2500", "1970-01-01T00:00:00Z", `"1970-01-01T00:00:00Z"`},
		{element(format.Int96, 0, nil, none), "0000000000000000" + "ffffffff", "-4713-11-23T00:00:00Z", `"-4713-11-23T00:00:00Z"`},
		{element(format.Int32, 0, nil, 6), "ffffffff", "1969-12-31", `"1969-12-31"`}, {element(format.Int32, 0, nil, 7), "01000000", "00:00:00.001", `"00:00:00.001"`},
		{element(format.Int64, 0, nil, 8), "0100000000000000", "00:00:00.000001", `"00:00:00.000001"`},
		{element(format.Int64, 0, nil, 9), "0100000000000000", "1970-01-01T00:00:00.001Z", `"1970-01-01T00:00:00.001Z"`},
		{element(format.Int64, 0, nil, 10), "ffffffffffffffff", "1969-12-31T23:59:59.999999Z", `"1969-12-31T23:59:59.999999Z"`},
		{element(format.Int32, 0, nil, 11), "ff000000", "255", "255"}, {element(format.Int32, 0, nil, 15), "80ffffff", "-128", "-128"},
		{element(format.Int64, 0, nil, 14), "ffffffffffffffff", "18446744073709551615", "18446744073709551615"},
		{element(format.Int32, 0, nil, 5), "feffffff", "-0.2", "-0.2"}, {element(format.ByteArray, 0, nil, 5), "ff38", "-20.0", "-20.0"}, {element(format.ByteArray, 0, nil, 5), "", "0.0", "0.0"},
		{element(format.ByteArray, 0, nil, 0), "61220a", "a\"\n", `"a\"\n"`}, {element(format.ByteArray, 0, nil, none), "ff", "\xff", `{"base64":"/w=="}`},
		{element(format.Boolean, 0, nil, none), "01", "true", "true"}, {element(format.Int32, 0, nil, 24), "07000000", "7", "7"},
		{element(format.ByteArray, 0, nil, 2), "", "-", ""}, {element(format.ByteArray, 0, nil, 3), "", "-", ""}, {element(format.Int32, 0, nil, 0), "", "-", ""},
		{element(format.Int64, 0, &format.DateType{}, none), "", "-", ""}, {element(format.Double, 0, &format.DecimalType{}, none), "", "-", ""},
		{element(fixed, 15, &format.UUIDType{}, none), "", "-", ""}, {element(format.ByteArray, 0, &format.GeometryType{}, none), "", "-", ""},
		{element(format.Int32, 0, &format.NullType{}, none), "01000000", "1", "1"}, {element(format.Float, 0, &format.TimestampType{}, none), "", "-", ""},
	} {
		typ := scalarOf(c.e)
		if !typ.HasText() {
			if c.text != "-" {
				t.Errorf("%v has no text, want %s", c.e, c.text)
			}
			continue
		}
		b, err := hex.DecodeString(c.in)
		if err != nil {
			t.Fatal(err)
		}
		if text, json := string(typ.Append(nil, b)), string(typ.AppendJSON([]byte("x"), b)[1:]); text != c.text ||
			json != c.json || typ.Check(b) != nil {
			t.Errorf("%s of %v: %q and %s, want %q and %s", c.in, c.e.Type.V, text, json, c.text, c.json)
		}
	}
	decimal := scalarOf(element(format.ByteArray, 0, nil, 5))
	if decimal.Check(make([]byte, 65)) == nil {
		t.Error("a decimal of 65 bytes")
	}
}

// TestNumber: a number is exact if a float64 has its digits.
func TestNumber(t *testing.T) {
	t.Parallel()
	decimal, integer := scalarOf(element(format.Int64, 0, nil, 5)), scalarOf(element(format.Int64, 0, nil, -1))
	unsigned := scalarOf(element(format.Int64, 0, nil, 14))
	for _, c := range []struct {
		typ   Type
		in    string
		want  float64
		exact bool
	}{
		{integer, "0000000000002000", 1 << 53, true}, {integer, "0100000000002000", 1 << 53, false}, {integer, "ffffffffffffffff", -1, true},
		{integer, "ffffffffffffff7f", 1 << 63, false}, {integer, "0000000000000080", -1 << 63, true}, {unsigned, "ffffffffffffffff", 1 << 64, false},
		{decimal, "0100000000000000", 0.1, true}, {decimal, "ffffffffffffffff", -0.1, true}, {decimal, "0100000000002000", 900719925474099.3, false},
		{decimal, "ffffffffffffff7f", 922337203685477580.7, false},
	} {
		b, err := hex.DecodeString(c.in)
		if err != nil {
			t.Fatal(err)
		}
		if got, exact, err := c.typ.Number(b); err != nil || got != c.want || exact != c.exact {
			t.Errorf("%s: %v, %v, want %v, %v: %v", c.in, got, exact, c.want, c.exact, err)
		}
	}
}
