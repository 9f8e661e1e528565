package codec

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"kvferry/internal/testkit/formattest"
	"kvferry/record"
)

// golden is the bytes of a row's key or value. Bytes are in hex, text is between quotes.
type golden struct {
	name  string
	bytes string
	want  any
}

// fieldRow is the value of a field with an expiry.
type fieldRow struct {
	expiry UnixMillis
	value  string
}

// slotted is a key with a slot.
type slotted struct{ any }

// id makes an id of an entry.
func id(ms, seq byte) (s StreamID) {
	s[7], s[15] = ms, seq
	return s
}

var ns = []byte(DefaultNamespace)

const nsText = "0b '__namespace' "

var goldenRows = []golden{
	// metadata key: ns key
	{"key", nsText + "'ttl:ms'", MetaKey{ns, NoSlot, []byte("ttl:ms")}},
	{"empty key", nsText, MetaKey{ns, NoSlot, []byte{}}},
	{"binary key of another namespace", "02 6eff 00ff", MetaKey{[]byte("n\xff"), NoSlot, []byte{0, 0xff}}},
	{"key with a slot", nsText + "0ce6 'b'", slotted{MetaKey{ns, 3302, []byte("b")}}},

	// sub-key: ns klen key version sub
	{"element of a list", nsText + "00000005 'old:l' 3306971e3b072959 7fffffffffffffff",
		SubKey{ns, NoSlot, []byte("old:l"), 0x3306971e3b072959, raw2("7fffffffffffffff")}},
	{"member of a zset", nsText + "00000005 'old:z' 3306971e3b39e15d 'n1'", SubKey{ns, NoSlot, []byte("old:z"), 0x3306971e3b39e15d, []byte("n1")}},
	{"member by score", nsText + "00000005 'old:z' 3306971e3b39e15d c014000000000000 'n1'",
		SubKey{ns, NoSlot, []byte("old:z"), 0x3306971e3b39e15d, raw2("c0140000000000006e31")}},
	{"segment of a bitmap", nsText + "00000005 'old:b' 3306971e3b40c961 '0'", SubKey{ns, NoSlot, []byte("old:b"), 0x3306971e3b40c961, []byte("0")}},
	{"entry", nsText + "00000005 'old:x' 3306971e3b3da15f 0000000000000003 0000000000000001",
		SubKey{ns, NoSlot, []byte("old:x"), 0x3306971e3b3da15f, raw2("00000000000000030000000000000001")}},
	{"empty field of the empty key", "00 00000000 0000000000000000", SubKey{[]byte{}, NoSlot, []byte{}, 0, []byte{}}},
	{"field with a slot", nsText + "0ce6 00000001 'b' 0000000000000007 'f'", slotted{SubKey{ns, 3302, []byte("b"), 7, []byte("f")}}},

	// metadata: flags expiry version size extras
	{"string, new form", "81 000001dd9661ec7b 'v'", Meta{Wide: true, Kind: KindString, Expiry: 2051222400123, Extras: []byte("v")}},
	{"empty string, old form", "01 00000000", Meta{Kind: KindString, Extras: []byte{}}},
	{"string, old form, expires", "01 6553f100 'v'", Meta{Kind: KindString, Expiry: 1700000000000, Extras: []byte("v")}},
	{"set of 2, old form", "04 00000000 330695a01223dded 00000002", Meta{Kind: KindSet, Version: 0x330695a01223dded, Size: 2, Extras: []byte{}}},
	{"list", "83 0000000000000000 3306971e3b072959 0000000000000002 7fffffffffffffff 8000000000000001",
		Meta{Wide: true, Kind: KindList, Version: 0x3306971e3b072959, Size: 2, Extras: raw2("7fffffffffffffff8000000000000001")}},
	{"emptied zset", "85 0000000000000000 3306971e3b072959 0000000000000000", Meta{Wide: true, Kind: KindZSet, Version: 0x3306971e3b072959, Extras: []byte{}}},
	{"bitmap", "86 0000000000000000 33069731d576a184 0000000020000000", Meta{Wide: true, Kind: KindBitmap, Version: 0x33069731d576a184, Size: 1 << 29, Extras: []byte{}}},
	{"HyperLogLog", "8b 0000000000000000 33069731d586518f 0000000000000000 00", Meta{Wide: true, Kind: KindHyperLogLog, Version: 0x33069731d586518f, Extras: []byte{0}}},
	{"JSON", "8a 000001dd9661ec7b 00 '[]'", Meta{Wide: true, Kind: KindJSON, Expiry: 2051222400123, Extras: []byte("\x00[]")}},
	{"latest expiry", "82 7fffffffffffffff 0000000000000001 ffffffffffffffff",
		Meta{Wide: true, Kind: KindHash, Expiry: math.MaxInt64, Version: 1, Size: math.MaxUint64, Extras: []byte{}}},

	{"hash whose fields expire", "82 0000000000000000 0000000000000007 0000000000000003 01 0000000000000001 000000e3c7a73400 000003bb2cc3d800",
		Meta{Wide: true, Kind: KindHash, Version: 7, Size: 3, Extras: raw2("010000000000000001000000e3c7a73400000003bb2cc3d800")}},

	// mode persist lower upper
	{"fields that expire", "01 0000000000000001 000000e3c7a73400 000003bb2cc3d800", HashState{1, 978307200000, 4102444800000}},
	{"fields that do not expire", "01 0000000000000002 0000000000000000 0000000000000000", HashState{Persist: 2}},
	{"field that expires", "000003bb2cc3d800 'vb'", fieldRow{4102444800000, "vb"}},
	{"field that does not", "0000000000000000", fieldRow{}},

	// head tail
	{"list of one", "7fffffffffffffff 8000000000000000", ListEnds{FirstIndex, FirstIndex + 1}},

	// last generated, recorded first, max deleted, first, last, added, groups
	{"stream", "0000000000000015 000000000000000a 0000000000000005 0000000000000004 0000000000000005 0000000000000002 " +
		"0000000000000005 0000000000000004 0000000000000015 000000000000000a 000000000000000a 0000000000000002",
		StreamState{LastGenerated: id(21, 10), RecordedFirst: id(5, 4), MaxDeleted: id(5, 2), First: id(5, 4), Last: id(21, 10), Added: 10, Groups: 2}},
	{"stream before 2.6", strings.Repeat("0000000000000001 0000000000000002 ", 5) + "0000000000000003",
		StreamState{LastGenerated: id(1, 2), RecordedFirst: id(1, 2), MaxDeleted: id(1, 2), First: id(1, 2), Last: id(1, 2), Added: 3, Old: true}},

	// groups
	{"group", "ffffffffffffffff 01 0000000000000001 'g'", GroupKey{Kind: KindGroup, Group: []byte("g")}},
	{"consumer", "ffffffffffffffff 02 0000000000000001 'g' 0000000000000002 'c1'", GroupKey{Kind: KindConsumer, Group: []byte("g"), Consumer: []byte("c1")}},
	{"pending", "ffffffffffffffff 03 0000000000000000 0000000000000003 0000000000000001", GroupKey{Kind: KindPending, Group: []byte{}, ID: id(3, 1)}},
	{"group before 2.10", "0000000000000001 'g' 'METADATA'", GroupKey{Old: true, Kind: KindGroup, Group: []byte("g")}},
	{"consumer before 2.10", "0000000000000001 'g' 0000000000000002 'c1' 'METADATA'",
		GroupKey{Old: true, Kind: KindConsumer, Group: []byte("g"), Consumer: []byte("c1")}},
	{"pending before 2.10", "0000000000000001 'g' 0000000000000003 0000000000000001", GroupKey{Old: true, Kind: KindPending, Group: []byte("g"), ID: id(3, 1)}},
	{"value of a group", "0000000000000001 0000000000000002 0000000000000003 0000000000000001 ffffffffffffffff 0000000000000004",
		Group{Consumers: 1, Pending: 2, LastDelivered: id(3, 1), EntriesRead: -1, Lag: 4}},
	{"value of a consumer", "0000000000000002 0000018bcfe56800 0000000000000000", Consumer{2, 1700000000000, 0}},
	{"value of a pending entry", "0000018bcfe56800 0000000000000003 0000000000000002 'c1'", Pending{1700000000000, 3, []byte("c1")}},

	// double
	{"score 5", "c014000000000000", 5.0},
	{"score 0", "8000000000000000", 0.0},
	{"score -0.0", "7fffffffffffffff", math.Copysign(0, -1)},
	{"score -inf", "000fffffffffffff", math.Inf(-1)},
	{"score inf", "fff0000000000000", math.Inf(1)},
}

// raw2 decodes hex.
func raw2(s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return b
}

// raw converts the notation of goldens to bytes.
func raw(t testing.TB, s string) []byte {
	t.Helper()
	out := []byte{}
	for _, part := range strings.Fields(s) {
		if text, ok := strings.CutPrefix(part, "'"); ok {
			out = append(out, strings.TrimSuffix(text, "'")...)
			continue
		}
		out = append(out, raw2(part)...)
	}
	return out
}

// appendAny appends the encoding of v.
func appendAny(dst []byte, v any) []byte {
	switch v := v.(type) {
	case slotted:
		return appendAny(dst, v.any)
	case MetaKey:
		return AppendMetaKey(dst, v)
	case SubKey:
		return AppendSubKey(dst, v)
	case Meta:
		return AppendMeta(dst, v)
	case HashState:
		return AppendHashState(dst, v)
	case fieldRow:
		return AppendField(dst, v.expiry, []byte(v.value))
	case ListEnds:
		return AppendListEnds(dst, v)
	case StreamState:
		return AppendStreamState(dst, v)
	case GroupKey:
		return AppendGroupKey(dst, v)
	case Group:
		return AppendGroup(dst, v)
	case Consumer:
		return AppendConsumer(dst, v)
	case Pending:
		return AppendPending(dst, v)
	}
	return AppendDouble(dst, v.(float64))
}

// decodeLike decodes b to a value of the type of v.
func decodeLike(v any, b []byte) (any, error) {
	switch v := v.(type) {
	case slotted:
		if _, ok := v.any.(MetaKey); ok {
			k, err := DecodeMetaKey(b, true)
			return slotted{k}, err
		}
		k, err := DecodeSubKey(b, true)
		return slotted{k}, err
	case MetaKey:
		return DecodeMetaKey(b, false)
	case SubKey:
		return DecodeSubKey(b, false)
	case Meta:
		return DecodeMeta(b)
	case HashState:
		return DecodeHashState(b)
	case fieldRow:
		expiry, value, err := DecodeField(b)
		return fieldRow{expiry, string(value)}, err
	case ListEnds:
		return DecodeListEnds(b)
	case StreamState:
		return DecodeStreamState(b)
	case GroupKey:
		return DecodeGroupKey(b)
	case Group:
		return DecodeGroup(b)
	case Consumer:
		return DecodeConsumer(b)
	case Pending:
		return DecodePending(b)
	}
	return DecodeDouble(b)
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
	return reflect.DeepEqual(a, b)
}

// checkDecoded fails unless b decodes to a value that encodes to b, or gives an error with an offset. Expiries of
// metadata beyond int64 are not kept.
func checkDecoded(t testing.TB, like any, b []byte) {
	t.Helper()
	got, err := decodeLike(like, b)
	if err == nil {
		again := appendAny(nil, got)
		b = bytes.Clone(b)
		for _, at := range moments(like, b) {
			if b[at]&0x80 != 0 {
				copy(b[at:at+8], raw2("7fffffffffffffff"))
			}
		}
		if !bytes.Equal(again, b) {
			t.Fatalf("%x decodes to %+v, which is encoded as %x", b, got, again)
		}
		return
	}
	var c *record.CorruptError
	if !errors.As(err, &c) || c.Off < 0 || c.Off > int64(len(b)) || c.Field == "" {
		t.Fatalf("%x: error without a place: %v", b, err)
	}
}

// moments returns the offsets of 8-byte times.
func moments(like any, b []byte) []int {
	switch like.(type) {
	case Meta:
		if b[0]&flagWide != 0 {
			return []int{1}
		}
	case HashState:
		return []int{9, 17}
	case fieldRow:
		return []int{0}
	}
	return nil
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

// TestOutcomes: damaged rows decode to the values and errors in testdata/outcomes.txt.
func TestOutcomes(t *testing.T) {
	var got strings.Builder
	for _, g := range goldenRows {
		fmt.Fprintf(&got, "%s: %s\n\n", g.name, formattest.Damaged(raw(t, g.bytes), func(b []byte) string {
			v, err := decodeLike(g.want, b)
			return fmt.Sprintf("%+v %v", v, err)
		}))
	}
	for i, c := range described {
		key, value := raw(t, c.key), raw(t, c.value)
		lookup := func([]byte) []byte {
			if c.meta == "" {
				return nil
			}
			return raw(t, c.meta)
		}
		for _, slotted := range []bool{false, true} {
			say := func(key, value []byte) string {
				row := Describe(c.family, key, value, slotted, lookup)
				return told(&row)
			}
			fmt.Fprintf(&got, "row %d, slots %t: key %s, value %s\n\n", i, slotted,
				formattest.Damaged(key, func(b []byte) string { return say(b, value) }),
				formattest.Damaged(value, func(b []byte) string { return say(key, b) }))
		}
	}
	formattest.CheckOutcomes(t, "testdata/outcomes.txt", got.String())
}

func TestDecodeErrors(t *testing.T) {
	for _, c := range []struct {
		like  any
		bytes string
		want  string
	}{
		{MetaKey{}, "", "offset 0: nslen: need 1 bytes, have 0: too short"},
		{MetaKey{}, "05 'abc'", "offset 1: namespace: need 5 bytes, have 3: too short"},
		{slotted{MetaKey{}}, "01 'n' 00", "offset 2: slot: need 2 bytes, have 1: too short"},
		{SubKey{}, "01 'n' 0000", "offset 2: klen: need 4 bytes, have 2: too short"},
		{SubKey{}, "01 'n' 00000009 'k'", "offset 2: klen: 9 bytes of key, have 1: too short"},
		{SubKey{}, "01 'n' 00000001 'k' 00", "offset 7: version: need 8 bytes, have 1: too short"},
		{Meta{}, "", "offset 0: flags: need 1 bytes, have 0: too short"},
		{Meta{}, "01 00", "offset 1: expiry: need 4 bytes, have 1: too short"},
		{Meta{}, "92 0000000000000000 0000000000000001 0000000000000001", "offset 0: flags: 0x92 has bits that are not known"},
		{Meta{}, "82 0000000000000000 0000000000000001 0000000000000001 00", "offset 25: mode: 0 is not known"},
		{Meta{}, "82 0000000000000000 0000000000000001 0000000000000001 02", "offset 25: mode: 2 is not known"},
		{Meta{}, "82 0000000000000000 0000000000000001 0000000000000001 01", "offset 25: hash: need 25 bytes, have 1: too short"},
		{Meta{}, "02 00000000 0000000000000001 00000001 01" + strings.Repeat("00", 25), "offset 42: hash: 1 bytes after it: bytes left over"},
		{Meta{}, "84 0000000000000000 0000000000000001 0000000000000001 00", "offset 25: set: 1 bytes after it: bytes left over"},
		{HashState{}, "", "offset 0: hash: need 25 bytes, have 0: too short"},
		{fieldRow{}, "00", "offset 0: expiry: need 8 bytes, have 1: too short"},
		{Meta{}, "8a 0000000000000000 02", "offset 9: format: 2 is not known"},
		{Meta{}, "8b 0000000000000000 0000000000000001 0000000000000001 01", "offset 25: encoding: 1 is not known"},
		{Meta{}, "8b 0000000000000000 0000000000000001 0000000000000001 00ff", "offset 26: hyperloglog: 1 bytes after it: bytes left over"},
		{Meta{}, "82 0000000000000000 00", "offset 9: version, size: need 16 bytes, have 1: too short"},
		{Meta{}, "83 0000000000000000 0000000000000001 0000000000000001 00", "offset 25: list: need 16 bytes, have 1: too short"},
		{Meta{}, "0a 00000000", "offset 5: ReJSON-RL: need 1 bytes, have 0: too short"},
		{StreamState{}, "00", "offset 0: stream: need 96 bytes, have 1: too short"},
		{GroupKey{}, "ffffffffffffffff", "offset 8: kind: need 1 bytes, have 0: too short"},
		{GroupKey{}, "ffffffffffffffff 04", "offset 8: kind: unknown kind 4"},
		{GroupKey{}, "ffffffffffffffff 01 0000000000000002 'g'", "offset 9: group: need 2 bytes, have 1: too short"},
		{GroupKey{}, "ffffffffffffffff 01 0000000000000001 'g' 00", "offset 18: group row: 1 bytes after it: bytes left over"},
		{Pending{}, "00", "offset 0: delivered, count: need 16 bytes, have 1: too short"},
		{0.0, "00", "offset 0: score: need 8 bytes, have 1: too short"},
		{ListEnds{}, strings.Repeat("00", 17), "offset 16: head, tail: 1 bytes after it: bytes left over"},
	} {
		if _, err := decodeLike(c.like, raw(t, c.bytes)); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", c.bytes, err, c.want)
		}
	}
}

// TestOrder: doubles ascend as numbers do.
func TestOrder(t *testing.T) {
	var last []byte
	for _, f := range []float64{math.Inf(-1), -math.MaxFloat64, -2, -1.5, -5e-324, math.Copysign(0, -1), 0, 5e-324, 1, 1.5,
		math.MaxFloat64, math.Inf(1)} {
		b := AppendDouble(nil, f)
		if bytes.Compare(last, b) >= 0 {
			t.Errorf("%v comes as %x after %x", f, b, last)
		}
		last = b
	}
}

// TestOldExpiry: the engine rounds to the nearest second, but never to 0.
func TestOldExpiry(t *testing.T) {
	for ms, want := range map[UnixMillis]uint32{0: 0, 1: 1, 499: 1, 999: 1, 1000: 1, 1500: 1, 1501: 2, 1999: 2, 2000: 2} {
		if got := secondsOf(ms); got != want {
			t.Errorf("%d ms are %d s, want %d", ms, got, want)
		}
	}
}

func TestSlot(t *testing.T) {
	for key, want := range map[string]int{"": 0, "123456789": 0x31c3, "foo": 12182, "{foo}": 12182, "a{foo}b{bar}": 12182,
		"foo{}bar": Slot([]byte("foo{}bar")), "{}foo": 9500, "foo{{bar}}zap": Slot([]byte("{bar")), "{foo": 13308} {
		if got := Slot([]byte(key)); got != want {
			t.Errorf("slot of %q is %d, want %d", key, got, want)
		}
	}
}

func TestSegments(t *testing.T) {
	for text, want := range map[string]uint64{"0": 0, "1024": 1024, "10240": 10240, "536869888": 536869888} {
		if off, err := DecodeSegment([]byte(text)); off != want || err != nil {
			t.Errorf("%s: %d, %v", text, off, err)
		}
		if got := AppendSegment(nil, want); string(got) != text {
			t.Errorf("%d is written %s", want, got)
		}
	}
	for _, text := range []string{"", "1", "01024", "+1024", "-1024", "536870912", "1024x", "99999999999999999999999"} {
		if off, err := DecodeSegment([]byte(text)); err == nil {
			t.Errorf("%q is offset %d", text, off)
		}
	}
	if want := "HYLL" + strings.Repeat("\x00", 11) + "\x80"; string(HLLHeader) != want {
		t.Errorf("a HyperLogLog begins with %q, want %q", HLLHeader, want)
	}
	for _, text := range []string{"16", "", "00", "x"} {
		if n, err := DecodeHLLSegment([]byte(text)); err == nil {
			t.Errorf("%q is segment %d", text, n)
		}
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

func FuzzDecodeMetaKey(f *testing.F)        { fuzzDecoder(f, MetaKey{}) }
func FuzzDecodeSubKey(f *testing.F)         { fuzzDecoder(f, SubKey{}) }
func FuzzDecodeSlottedMetaKey(f *testing.F) { fuzzDecoder(f, slotted{MetaKey{}}) }
func FuzzDecodeSlottedSubKey(f *testing.F)  { fuzzDecoder(f, slotted{SubKey{}}) }
func FuzzDecodeMeta(f *testing.F)           { fuzzDecoder(f, Meta{}) }
func FuzzDecodeHashState(f *testing.F)      { fuzzDecoder(f, HashState{}) }
func FuzzDecodeField(f *testing.F)          { fuzzDecoder(f, fieldRow{}) }
func FuzzDecodeListEnds(f *testing.F)       { fuzzDecoder(f, ListEnds{}) }
func FuzzDecodeStreamState(f *testing.F)    { fuzzDecoder(f, StreamState{}) }
func FuzzDecodeGroupKey(f *testing.F)       { fuzzDecoder(f, GroupKey{}) }
func FuzzDecodeGroup(f *testing.F)          { fuzzDecoder(f, Group{}) }
func FuzzDecodeConsumer(f *testing.F)       { fuzzDecoder(f, Consumer{}) }
func FuzzDecodePending(f *testing.F)        { fuzzDecoder(f, Pending{}) }
func FuzzDecodeDouble(f *testing.F)         { fuzzDecoder(f, 0.0) }

// FuzzDecodeSegment: a decoded number encodes to the same bytes.
func FuzzDecodeSegment(f *testing.F) {
	f.Add([]byte("1024"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if off, err := DecodeSegment(b); err == nil && !bytes.Equal(AppendSegment(nil, off), b) {
			t.Fatalf("%q is %d", b, off)
		}
	})
}

func TestCodecAllocs(t *testing.T) {
	key := AppendSubKey(nil, SubKey{ns, NoSlot, []byte("key"), 1, []byte("member")})
	value := AppendMeta(nil, Meta{Wide: true, Kind: KindHash, Version: 1, Size: 2})
	dst := make([]byte, 0, 256)
	if n := testing.AllocsPerRun(100, func() {
		k, err := DecodeSubKey(key, false)
		if err != nil {
			t.Fatal(err)
		}
		m, err := DecodeMeta(value)
		if err != nil {
			t.Fatal(err)
		}
		dst = AppendMeta(AppendSubKey(dst[:0], k), m)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestKinds: the kind in a metadata row determines a key's type, whether it has rows, counts them, and exists without
// any.
func TestKinds(t *testing.T) {
	for k, want := range []string{
		"type 0 other rows empty", "string string single empty", "hash hash rows counts", "list list rows counts", "set set rows counts", "zset zset rows counts",
		"bitmap string rows", "sortedint set rows counts", "stream stream rows counts empty", "MBbloom-- other rows empty", "ReJSON-RL other single empty",
		"hyperloglog string rows empty", "TDIS-TYPE other rows empty", "timeseries other rows empty",
		"MBbloomCF other rows empty", "type 15 other rows empty",
	} {
		kind := Kind(k)
		typ, rows, counts, empty := kind.Type().String(), " rows", "", ""
		if kind.Single() {
			rows = " single"
		}
		if kind.CountsRows() {
			counts = " counts"
		}
		if kind.mayBeEmpty() {
			empty = " empty"
		}
		if got := kind.String() + " " + typ + rows + counts + empty; got != want || kind.Known() != (k > 0 && k < 15) {
			t.Errorf("kind %d: %s, known %t, want %s", k, got, kind.Known(), want)
		}
		for size := range uint64(3) {
			if m := (Meta{Kind: kind, Size: size}); m.Alive() != (size > 0 || strings.HasSuffix(want, " empty")) {
				t.Errorf("kind %d of size %d is alive: %v", k, size, m.Alive())
			}
		}
	}
}
