package nemo

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"kvferry/internal/testkit/formattest"
	"kvferry/record"
)

// codec is one kind of key or value, so that all kinds share their tests.
type codec struct {
	decode func(b []byte) (any, error)
	append func(dst []byte, x any) []byte
}

// of makes a codec from an append and a decode function.
func of[T any](decode func([]byte) (T, error), appendTo func([]byte, T) []byte) codec {
	return codec{
		decode: func(b []byte) (any, error) { return decode(b) },
		append: func(dst []byte, x any) []byte { return appendTo(dst, x.(T)) },
	}
}

var codecs = map[string]codec{
	"meta key": of(func(b []byte) ([]byte, error) { return DecodeMetaKey(kindSetMeta, b) },
		func(dst []byte, k []byte) []byte { return AppendMetaKey(dst, kindSetMeta, k) }),
	"hash key":  of(DecodeHashKey, AppendHashKey),
	"list key":  of(DecodeListKey, AppendListKey),
	"set key":   of(DecodeSetKey, AppendSetKey),
	"score key": of(DecodeScoreKey, AppendScoreKey),
	"index key": of(DecodeIndexKey, AppendIndexKey),
	"plain":     of(DecodePlain, AppendPlain),
	"empty":     of(DecodeEmpty, AppendSuffix),
	"meta":      of(DecodeMeta, AppendMeta),
	"list meta": of(DecodeListMeta, AppendListMeta),
	"node":      of(DecodeNode, AppendNode),
	"score":     of(DecodeScore, AppendScore),
}

// long is a user key of maximum length.
var long = strings.Repeat("k", MaxKey)

// goldens are on-disk bytes in hex, annotated. The bytes of s0 and s1 were taken from databases that the
// engine wrote.
var goldens = []struct {
	name  string
	codec string
	bytes string // hex, spaces between fields
	want  any
}{
	{"ordinary", "meta key", "53 6b6579", []byte("key")},
	{"one byte that is a kind", "meta key", "53 53", []byte("S")},
	{"binary", "meta key", "53 00ff3d", []byte("\x00\xff=")},
	{"longest", "meta key", "53" + hex.EncodeToString([]byte(long)), []byte(long)},

	{"ordinary", "hash key", "68 03 6b6579 3d 6669656c64", HashKey{[]byte("key"), []byte("field")}},
	{"empty field", "hash key", "68 01 00 3d", HashKey{[]byte{0}, []byte{}}},
	{"equals signs everywhere", "hash key", "68 03 613d62 3d 3d633d", HashKey{[]byte("a=b"), []byte("=c=")}},
	{"binary", "hash key", "68 02 00ff 3d ff00", HashKey{[]byte("\x00\xff"), []byte("\xff\x00")}},
	{"longest key", "hash key", "68 fe" + hex.EncodeToString([]byte(long)) + "3d 66", HashKey{[]byte(long), []byte("f")}},

	{"ordinary", "list key", "6c 01 00 0100000000000000", ListKey{[]byte{0}, 1}},
	{"byte order is not numeric", "list key", "6c 01 6b 0001000000000000", ListKey{[]byte("k"), 256}},
	{"largest seq", "list key", "6c 01 6b ffffffffffffff7f", ListKey{[]byte("k"), math.MaxInt64}},

	{"ordinary", "set key", "73 01 00 2d31", SetKey{[]byte{0}, []byte("-1")}},
	{"empty member", "set key", "73 01 00", SetKey{[]byte{0}, []byte{}}},
	{"binary", "set key", "73 02 ff00 00ff", SetKey{[]byte("\xff\x00"), []byte("\x00\xff")}},

	{"ordinary", "score key", "7a 01 00 2d31", ScoreKey{[]byte{0}, []byte("-1")}},
	{"empty member", "score key", "7a 01 00", ScoreKey{[]byte{0}, []byte{}}},

	{"ordinary", "index key", "79 01 6b 0de0b6b3a765e240 6d", IndexKey{[]byte("k"), RoundScore(1.23456), []byte("m")}},
	{"score 0, empty member", "index key", "79 01 6b 0de0b6b3a7640000", IndexKey{[]byte("k"), RoundScore(0), []byte{}}},
	{"smallest score", "index key", "79 01 6b 0000000000000000 ff", IndexKey{[]byte("k"), RoundScore(-1e13), []byte{0xff}}},
	{"largest score", "index key", "79 01 6b 1bc16d674ec80000 6d", IndexKey{[]byte("k"), RoundScore(1e13), []byte("m")}},

	{"ordinary", "plain", "7400 00f15365 00000000", Plain{[]byte("t\x00"), Suffix{0x6553f100, 0}}},
	{"empty", "plain", "00f15365 00000000", Plain{[]byte{}, Suffix{0x6553f100, 0}}},
	{"with expiry", "plain", "76 00000000 7fa33a74", Plain{[]byte("v"), Suffix{0, 0x743aa37f}}},
	{"negative expiry, largest version", "plain", "ffffffff ffffffff", Plain{[]byte{}, Suffix{math.MaxUint32, -1}}},
	{"a suffix as the value", "plain", "00f1536500000000 00f15365 00000000", Plain{[]byte("\x00\xf1Se\x00\x00\x00\x00"), Suffix{0x6553f100, 0}}},

	{"separator", "empty", "00000000 00000000", Suffix{}},
	{"member", "empty", "00f15365 802b437a", Suffix{0x6553f100, 0x7a432b80}},

	{"ordinary", "meta", "1200000000000000 00f15365 00000000", Meta{18, Suffix{0x6553f100, 0}}},
	{"deleted", "meta", "0000000000000000 01f15365 00000000", Meta{0, Suffix{0x6553f101, 0}}},
	{"count below 0", "meta", "ffffffffffffffff 01f15365 00000000", Meta{-1, Suffix{0x6553f101, 0}}},

	{"ordinary", "list meta", "0400000000000000 0400000000000000 0300000000000000 0500000000000000 00f15365 802b437a",
		ListMeta{4, 4, 3, 5, Suffix{0x6553f100, 0x7a432b80}}},
	{"empty", "list meta", "0000000000000000 0000000000000000 0000000000000000 0100000000000000 00f15365 00000000",
		ListMeta{0, 0, 0, 1, Suffix{0x6553f100, 0}}},

	{"empty element", "node", "0200000000000000 0300000000000000 00f15365 00000000", Node{2, 3, []byte{}, Suffix{0x6553f100, 0}}},
	{"binary element", "node", "0300000000000000 0000000000000000 ff00 00f15365 00000000", Node{3, 0, []byte("\xff\x00"), Suffix{0x6553f100, 0}}},

	{"ordinary", "score", "0000000000785940 00f15365 00000000", Score{101.875, Suffix{0x6553f100, 0}}},
	{"negative zero", "score", "0000000000000080 00f15365 00000000", Score{math.Copysign(0, -1), Suffix{0x6553f100, 0}}},
	{"infinite", "score", "000000000000f07f 00f15365 00000000", Score{math.Inf(1), Suffix{0x6553f100, 0}}},
}

func unhex(t testing.TB, s string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestGoldenBytes(t *testing.T) {
	for _, g := range goldens {
		c := codecs[g.codec]
		b := unhex(t, g.bytes)
		got, err := c.decode(b)
		if err != nil {
			t.Errorf("%s, %s: %v", g.codec, g.name, err)
			continue
		}
		if a, w := fmt.Sprintf("%#v", got), fmt.Sprintf("%#v", g.want); a != w {
			t.Errorf("%s, %s: decoded %s, want %s", g.codec, g.name, a, w)
		}
		if out := c.append([]byte("before"), g.want); string(out) != "before"+string(b) {
			t.Errorf("%s, %s: encoded %x, want %x", g.codec, g.name, out[6:], b)
		}
	}
}

// checkDecode checks a property of any bytes: a decoder either returns a typed error with an offset, or a
// value that encodes to the same bytes.
func checkDecode(t *testing.T, name string, b []byte) {
	t.Helper()
	c := codecs[name]
	x, err := c.decode(b)
	if err != nil {
		var ce *record.CorruptError
		if !errors.As(err, &ce) || ce.Off < 0 || ce.Off > int64(len(b)) || ce.Field == "" {
			t.Errorf("%s of %x: error %#v", name, b, err)
		}
		return
	}
	if out := c.append(nil, x); !bytes.Equal(out, b) {
		t.Errorf("%s of %x: %#v, which is encoded as %x", name, b, x, out)
	}
}

// TestSweep decodes every strict prefix and every flipped bit of every golden, with every decoder.
func TestSweep(t *testing.T) {
	for _, g := range goldens {
		b := unhex(t, g.bytes)
		for name := range codecs {
			for n := range b {
				checkDecode(t, name, b[:n])
			}
			for i := range 8 * len(b) {
				flipped := bytes.Clone(b)
				flipped[i/8] ^= 1 << (i % 8)
				checkDecode(t, name, flipped)
			}
		}
	}
}

// TestCodecOutcomes compares decoded values and errors of damaged rows with testdata/codec.txt.
func TestCodecOutcomes(t *testing.T) {
	var got strings.Builder
	for _, g := range goldens {
		fmt.Fprintf(&got, "%s, %s: %s\n\n", g.codec, g.name, formattest.Damaged(unhex(t, g.bytes), func(b []byte) string {
			v, err := codecs[g.codec].decode(b)
			return fmt.Sprintf("%+v %v", v, err)
		}))
	}
	formattest.CheckOutcomes(t, "testdata/codec.txt", got.String())
}

func TestDecodeErrors(t *testing.T) {
	for _, c := range []struct{ codec, bytes, want string }{
		{"meta key", "", "offset 0: kind: need 1 bytes, have 0: too short"},
		{"meta key", "53", "offset 1: klen: 0 bytes: the engine accepts keys of 1 to 254 bytes"},
		{"meta key", "73 6b", "offset 0: kind: 's' is of another kind of row"},
		{"hash key", "68", "offset 0: klen: need 2 bytes, have 1: too short"},
		{"hash key", "68 00 3d", "offset 1: klen: 0 bytes: the engine accepts keys of 1 to 254 bytes"},
		{"hash key", "68 05 6b65 3d", "offset 2: klen: need 5 bytes, have 3: too short"},
		{"hash key", "68 01 6b", "offset 3: '=': need 1 bytes, have 0: too short"},
		{"hash key", "68 01 6b 2b", "offset 3: '=': no '=' after the user key"},
		{"set key", "68 01 6b", "offset 0: kind: 'h' is of another kind of row"},
		{"list key", "6c 01 6b 01000000000000", "offset 3: seq: need 8 bytes, have 7: too short"},
		{"list key", "6c 01 6b 010000000000000000", "offset 11: seq: 1 bytes beyond the 8: bytes left over"},
		{"list key", "6c 01 6b 0000000000000000", "offset 3: seq: 0: sequence numbers start at 1"},
		{"list key", "6c 01 6b ffffffffffffffff", "offset 3: seq: -1: sequence numbers start at 1"},
		{"index key", "79 01 6b 00", "offset 3: score: need 8 bytes, have 1: too short"},
		{"plain", "00000000000000", "offset 0: suffix: need 8 bytes, have 7: too short"},
		{"empty", "00 0000000000000000", "offset 0: value: 1 bytes beyond the 0: bytes left over"},
		{"meta", "00 0000000000000000", "offset 0: count: need 8 bytes, have 1: too short"},
		{"list meta", "0000000000000000 0000000000000000", "offset 0: count, left, right, next_seq: need 32 bytes, have 8: too short"},
		{"node", "00 0000000000000000", "offset 0: prev, next: need 16 bytes, have 1: too short"},
		{"score", "00 0000000000000000 0000000000000000", "offset 8: score: 1 bytes beyond the 8: bytes left over"},
	} {
		_, err := codecs[c.codec].decode(unhex(t, c.bytes))
		if err == nil || err.Error() != c.want {
			t.Errorf("%s of %s: error %v, want %s", c.codec, c.bytes, err, c.want)
		}
	}
}

func TestRoundScore(t *testing.T) {
	for _, c := range []struct {
		score float64
		want  uint64
	}{
		{0, 1e18}, {math.Copysign(0, -1), 1e18}, {1, 1e18 + 1e5}, {-1, 1e18 - 1e5}, {3.14159265358979, 1e18 + 314159},
		{0.000005, 1e18 + 1}, {-0.000005, 1e18 - 1}, {0.000004, 1e18}, {-0.000004, 1e18},
		{1e13, 2e18}, {-1e13, 0}, {1e13 + 1, 2e18}, {-1e300, 0}, {math.Inf(1), 2e18}, {math.Inf(-1), 0}, {math.NaN(), 1e18},
	} {
		if got := RoundScore(c.score); got != c.want {
			t.Errorf("score %v: %d, want %d", c.score, got, c.want)
		}
	}
	if got := shown(RoundScore(-12.5)); got != "-12.5" {
		t.Errorf("-12.5 is shown as %s", got)
	}
}

func fuzz(f *testing.F, name string) {
	for _, g := range goldens {
		if g.codec == name {
			b, _ := hex.DecodeString(strings.ReplaceAll(g.bytes, " ", ""))
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) { checkDecode(t, name, b) })
}

func FuzzDecodeMetaKey(f *testing.F)  { fuzz(f, "meta key") }
func FuzzDecodeHashKey(f *testing.F)  { fuzz(f, "hash key") }
func FuzzDecodeListKey(f *testing.F)  { fuzz(f, "list key") }
func FuzzDecodeSetKey(f *testing.F)   { fuzz(f, "set key") }
func FuzzDecodeScoreKey(f *testing.F) { fuzz(f, "score key") }
func FuzzDecodeIndexKey(f *testing.F) { fuzz(f, "index key") }
func FuzzDecodePlain(f *testing.F)    { fuzz(f, "plain") }
func FuzzDecodeEmpty(f *testing.F)    { fuzz(f, "empty") }
func FuzzDecodeMeta(f *testing.F)     { fuzz(f, "meta") }
func FuzzDecodeListMeta(f *testing.F) { fuzz(f, "list meta") }
func FuzzDecodeNode(f *testing.F)     { fuzz(f, "node") }
func FuzzDecodeScore(f *testing.F)    { fuzz(f, "score") }
