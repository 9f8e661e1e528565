package blackwidow

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"kvferry/internal/shared/dataset"
	"kvferry/internal/testkit/formattest"
	"kvferry/record"
)

// golden is a row's key or value: bytes in hex, text between quotes.
type golden struct {
	name  string
	bytes string
	want  any
}

var goldenRows = []golden{
	// string: bytes, expiry(4)
	{"string", "'hello' 00000000", StringValue{[]byte("hello"), 0}},
	{"string with an expiry", "'v' 00f15365", StringValue{[]byte("v"), 1700000000}},
	{"empty string", "00000000", StringValue{[]byte{}, 0}},
	{"binary string", "00ff00 ffffff7f", StringValue{[]byte{0, 0xff, 0}, math.MaxInt32}},
	{"string with an expiry before 1970", "'v' ffffffff", StringValue{[]byte("v"), -1}},

	// meta: count(4) version(4) expiry(4)
	{"meta", "03000000 01000000 00000000", Meta{3, 1, 0}},
	{"meta with an expiry", "01000000 2a000000 00f15365", Meta{1, 42, 1700000000}},
	{"deleted meta", "00000000 00f15365 00000000", Meta{0, 1700000000, 0}},
	{"largest meta", "ffffff7f ffffff7f ffffff7f", Meta{math.MaxInt32, math.MaxInt32, math.MaxInt32}},
	{"negative meta", "ffffffff 000000ff 00000080", Meta{-1, -16777216, math.MinInt32}},

	// list meta: count(8) version(4) expiry(4) left(8) right(8)
	{"list meta", "02000000 00000000 01000000 00000000 ffffffff ffffff7f 02000000 00000080",
		ListMeta{2, 1, 0, math.MaxInt64, math.MaxInt64 + 3}},
	{"list pushed to the left", "01000000 00000000 05000000 00f15365 feffffff ffffff7f 00000000 00000080",
		ListMeta{1, 5, 1700000000, math.MaxInt64 - 1, math.MaxInt64 + 1}},
	{"deleted list", "00000000 00000000 02000000 00000000 ffffffff ffffff7f 00000000 00000080",
		ListMeta{0, 2, 0, math.MaxInt64, math.MaxInt64 + 1}},

	// data key: klen(4) key version(4) name
	{"field", "03000000 'key' 01000000 'field'", DataKey{[]byte("key"), 1, []byte("field")}},
	{"empty field of the empty key", "00000000 01000000", DataKey{[]byte{}, 1, []byte{}}},
	{"binary member", "02000000 00ff 00f15365 ff00", DataKey{[]byte{0, 0xff}, 1700000000, []byte{0xff, 0}}},
	{"key that looks like a version", "04000000 01000000 02000000 'm'", DataKey{[]byte{1, 0, 0, 0}, 2, []byte("m")}},
	{"version with the low byte 0xff", "01000000 'k' ff000000 'm'", DataKey{[]byte("k"), 255, []byte("m")}},

	// list key: klen(4) key version(4) index(8)
	{"first element pushed to the right", "01000000 'l' 01000000 00000000 00000080", ListKey{[]byte("l"), 1, 1 << 63}},
	{"first element pushed to the left", "01000000 'l' 01000000 ffffffff ffffff7f", ListKey{[]byte("l"), 1, 1<<63 - 1}},
	{"element of the empty key", "00000000 00000000 00000000 00000000", ListKey{[]byte{}, 0, 0}},
	{"last index", "00000000 ffffffff ffffffff ffffffff", ListKey{[]byte{}, -1, math.MaxUint64}},

	// stream key: klen(4) key version(4) id(16)
	{"entry of a stream", "01000000 's' 01000000 0102030405060708 0000000000000009",
		StreamKey{[]byte("s"), 1, [idLen]byte{1, 2, 3, 4, 5, 6, 7, 8, 15: 9}}},

	// score key: klen(4) key version(4) score(8) member
	{"member by score", "01000000 'z' 01000000 00000000 0000f03f 'm'", ScoreKey{[]byte("z"), 1, 1, []byte("m")}},
	{"empty member at -inf", "00000000 01000000 00000000 0000f0ff", ScoreKey{[]byte{}, 1, math.Inf(-1), []byte{}}},
	{"member at -0.0", "01000000 'z' 01000000 00000000 00000080 ff", ScoreKey{[]byte("z"), 1, math.Copysign(0, -1), []byte{0xff}}},
	{"member beyond 2^53", "01000000 'z' 01000000 01000000 00004043 'm'", ScoreKey{[]byte("z"), 1, 1<<53 + 2, []byte("m")}},

	// score(8)
	{"score", "00000000 0000f03f", 1.0},
	{"score inf", "00000000 0000f07f", math.Inf(1)},
	{"score -0.0", "00000000 00000080", math.Copysign(0, -1)},
	{"smallest score", "01000000 00000000", 5e-324},
}

// raw decodes the notation of goldens.
func raw(t testing.TB, s string) []byte {
	t.Helper()
	out := []byte{}
	for _, part := range strings.Fields(s) {
		if text, ok := strings.CutPrefix(part, "'"); ok {
			out = append(out, strings.TrimSuffix(text, "'")...)
			continue
		}
		b, err := hex.DecodeString(part)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, b...)
	}
	return out
}

// appendAny appends the encoding of v.
func appendAny(dst []byte, v any) []byte {
	switch v := v.(type) {
	case StringValue:
		return AppendStringValue(dst, v)
	case Meta:
		return AppendMeta(dst, v)
	case ListMeta:
		return AppendListMeta(dst, v)
	case DataKey:
		return AppendDataKey(dst, v)
	case ListKey:
		return AppendListKey(dst, v)
	case ScoreKey:
		return AppendScoreKey(dst, v)
	case StreamKey:
		return AppendDataKey(dst, DataKey{v.Key, v.Version, v.ID[:]})
	}
	return AppendScore(dst, v.(float64))
}

// decodeLike decodes b to a value of the type of v.
func decodeLike(v any, b []byte) (any, error) {
	switch v.(type) {
	case StringValue:
		return DecodeStringValue(b)
	case Meta:
		return DecodeMeta(b)
	case ListMeta:
		return DecodeListMeta(b)
	case DataKey:
		return DecodeDataKey(b)
	case ListKey:
		return DecodeListKey(b)
	case ScoreKey:
		return DecodeScoreKey(b)
	case StreamKey:
		return DecodeStreamKey(b)
	}
	return DecodeScore(b)
}

func TestGoldenRows(t *testing.T) {
	for _, g := range goldenRows {
		t.Run(g.name, func(t *testing.T) {
			b := raw(t, g.bytes)
			if got := appendAny(nil, g.want); !bytes.Equal(got, b) {
				t.Errorf("appended %x, want %x", got, b)
			}
			if got := appendAny([]byte("before"), g.want); !bytes.Equal(got, append([]byte("before"), b...)) {
				t.Errorf("appended to something: %x", got)
			}
			got, err := decodeLike(g.want, b)
			if err != nil || !same(got, g.want) {
				t.Errorf("decoded %+v, %v, want %+v", got, err, g.want)
			}
		})
	}
}

// same compares decoded values, floats by their bits.
func same(a, b any) bool {
	if x, ok := a.(float64); ok {
		return math.Float64bits(x) == math.Float64bits(b.(float64))
	}
	if x, ok := a.(ScoreKey); ok {
		y := b.(ScoreKey)
		return bytes.Equal(appendAny(nil, x), appendAny(nil, y))
	}
	return reflect.DeepEqual(a, b)
}

// checkDecoded fails unless b decodes to a value that encodes to b, or gives an error with an offset.
func checkDecoded(t testing.TB, like any, b []byte) {
	t.Helper()
	got, err := decodeLike(like, b)
	if err == nil {
		if again := appendAny(nil, got); !bytes.Equal(again, b) {
			t.Fatalf("%x decodes to %+v, which is encoded as %x", b, got, again)
		}
		return
	}
	var c *record.CorruptError
	if !errors.As(err, &c) || c.Off < 0 || c.Off > int64(len(b)) || c.Field == "" {
		t.Fatalf("%x: error without a place: %v", b, err)
	}
}

func TestDamagedRows(t *testing.T) {
	for _, g := range goldenRows {
		b := raw(t, g.bytes)
		for n := range b {
			checkDecoded(t, g.want, b[:n])
			for bit := range 8 {
				flipped := bytes.Clone(b)
				flipped[n] ^= 1 << bit
				checkDecoded(t, g.want, flipped)
			}
		}
		checkDecoded(t, g.want, append(bytes.Clone(b), 0))
	}
}

// TestCodecOutcomes compares decoded values and errors of damaged rows with testdata/codec.txt.
func TestCodecOutcomes(t *testing.T) {
	var got strings.Builder
	for _, g := range goldenRows {
		fmt.Fprintf(&got, "%s: %s\n\n", g.name, formattest.Damaged(raw(t, g.bytes), func(b []byte) string {
			v, err := decodeLike(g.want, b)
			return fmt.Sprintf("%+v %v", v, err)
		}))
	}
	formattest.CheckOutcomes(t, "testdata/codec.txt", got.String())
}

func TestDecodeErrors(t *testing.T) {
	for _, c := range []struct {
		like  any
		bytes string
		want  string
	}{
		{StringValue{}, "000000", "offset 0: expiry: need 4 bytes, have 3: too short"},
		{Meta{}, "03000000 01000000 0000", "offset 0: count, version, expiry: need 12 bytes, have 10: too short"},
		{Meta{}, "03000000 01000000 00000000 00", "offset 12: count, version, expiry: 1 bytes beyond the 12: bytes left over"},
		{ListMeta{}, "03000000", "offset 0: count, version, expiry, left, right: need 32 bytes, have 4: too short"},
		{DataKey{}, "0300", "offset 0: klen: need 4 bytes, have 2: too short"},
		{DataKey{}, "05000000 'key'", "offset 4: klen: need 5 bytes, have 3: too short"},
		{DataKey{}, "ffffffff 'key'", "offset 0: klen: -1 is negative"},
		{DataKey{}, "03000000 'key' 01", "offset 7: version: need 4 bytes, have 1: too short"},
		{ListKey{}, "01000000 'k' 01000000 00", "offset 9: index: need 8 bytes, have 1: too short"},
		{ListKey{}, "01000000 'k' 01000000 00000000 00000000 00", "offset 17: index: 1 bytes beyond the 8: bytes left over"},
		{ScoreKey{}, "01000000 'k' 01000000 00", "offset 9: score: need 8 bytes, have 1: too short"},
		{0.0, "00", "offset 0: score: need 8 bytes, have 1: too short"},
	} {
		if _, err := decodeLike(c.like, raw(t, c.bytes)); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", c.bytes, err, c.want)
		}
	}
	if err := DecodeEmpty([]byte("x")); !errors.Is(err, record.ErrTrailing) || dataset.ValueKind(err) != record.FindNewer {
		t.Errorf("DecodeEmpty of a byte: %v", err)
	}
}

func fuzzDecoder(f *testing.F, like any) {
	for _, g := range goldenRows {
		if reflect.TypeOf(g.want) == reflect.TypeOf(like) {
			f.Add(raw(f, g.bytes))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) { checkDecoded(t, like, b) })
}

func FuzzDecodeStringValue(f *testing.F) { fuzzDecoder(f, StringValue{}) }
func FuzzDecodeMeta(f *testing.F)        { fuzzDecoder(f, Meta{}) }
func FuzzDecodeListMeta(f *testing.F)    { fuzzDecoder(f, ListMeta{}) }
func FuzzDecodeDataKey(f *testing.F)     { fuzzDecoder(f, DataKey{}) }
func FuzzDecodeListKey(f *testing.F)     { fuzzDecoder(f, ListKey{}) }
func FuzzDecodeScoreKey(f *testing.F)    { fuzzDecoder(f, ScoreKey{}) }
func FuzzDecodeScore(f *testing.F)       { fuzzDecoder(f, 0.0) }

func TestCodecAllocs(t *testing.T) {
	var dst []byte
	for _, g := range goldenRows {
		dst = append(dst, raw(t, g.bytes)...)
	}
	key := AppendScoreKey(nil, ScoreKey{[]byte("key"), 1, 2, []byte("member")})
	if n := testing.AllocsPerRun(100, func() {
		k, err := DecodeScoreKey(key)
		if err != nil {
			t.Fatal(err)
		}
		dst = AppendScoreKey(dst[:0], k)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
