package ssdb_test

import (
	"bytes"
	"encoding/hex"
	"math"
	"strings"
	"testing"

	"kvferry/internal/testkit/formattest"
	"kvferry/ssdb"
)

// row is a row written by the server, as hex, with its decoded form.
type row struct {
	kind     byte
	key      string
	value    string
	name     string
	rest     string
	num      int64
	appended func() []byte // the key
}

// rows lists rows of ssdb-basic, and rows with confusable names.
var rows = []row{
	{'h', "68 06 683a7072653d 3d 61", "32", "h:pre=", "a", 0, func() []byte { return ssdb.AppendFieldKey(nil, []byte("h:pre="), []byte("a")) }},
	{'h', "68 01 3d 3d", "", "=", "", 0, func() []byte { return ssdb.AppendFieldKey(nil, []byte("="), nil) }},
	{'s', "73 06 7a3a65646765 03 653032", "2d31", "z:edge", "e02", 0, func() []byte { return ssdb.AppendScoreKey(nil, []byte("z:edge"), []byte("e02")) }},
	{'z', "7a 06 7a3a65646765 2d ffffffffffffffff 3d 653032", "", "z:edge", "e02", -1, func() []byte { return ssdb.AppendRankKey(nil, []byte("z:edge"), -1, []byte("e02")) }},
	{'z', "7a 06 7a3a65646765 2d 8000000000000000 3d 653233", "", "z:edge", "e23", math.MinInt64,
		func() []byte { return ssdb.AppendRankKey(nil, []byte("z:edge"), math.MinInt64, []byte("e23")) }},
	{'z', "7a 06 7a3a65646765 3d 0000000000000000 3d 653030", "", "z:edge", "e00", 0, func() []byte { return ssdb.AppendRankKey(nil, []byte("z:edge"), 0, []byte("e00")) }},
	{'q', "71 06 713a7472696d 0000000000000002", "1300000000000040", "q:trim", "", 2, func() []byte { return ssdb.AppendItemKey(nil, []byte("q:trim"), 2) }},
	{'q', "71 06 713a7472696d 4000000000000013", "3230", "q:trim", "", 0x4000000000000013, func() []byte { return ssdb.AppendItemKey(nil, []byte("q:trim"), 0x4000000000000013) }},
	{'q', "71 00 3ffffffffffffffe", "6530", "", "", ssdb.FirstItem - 1, func() []byte { return ssdb.AppendItemKey(nil, nil, ssdb.FirstItem-1) }},
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestKeys decodes keys that the server wrote and encodes them again.
func TestKeys(t *testing.T) {
	for _, c := range rows {
		raw := unhex(t, c.key)
		k, err := ssdb.DecodeKey(c.kind, raw)
		if err != nil || string(k.Name) != c.name || string(k.Rest) != c.rest || k.Num != c.num {
			t.Errorf("%s: %q %q %d, %v", c.key, k.Name, k.Rest, k.Num, err)
		}
		if got := c.appended(); !bytes.Equal(got, raw) {
			t.Errorf("%s: appended %x", c.key, got)
		}
	}
}

// TestBadKeys: errors of keys that no server makes have the fault and its offset.
func TestBadKeys(t *testing.T) {
	for _, c := range []struct {
		kind      byte
		key, want string
	}{
		{'h', "68", "offset 1: name length: need 1 bytes, have 0: too short"},
		{'h', "68 05 61", "offset 1: name length: need 5 bytes, have 1: too short"},
		{'h', "68 00 3d 61", "offset 1: name length: no bytes; the server refuses empty names"},
		{'h', "68 01 61", "offset 3: separator: want '='"},
		{'h', "68 01 61 2d 61", "offset 3: separator: want '='"},
		{'s', "73 01 61", "offset 3: member length: need 1 bytes, have 0: too short"},
		{'s', "73 01 61 02 61", "offset 4: member: need 2 bytes, have 1: too short"},
		{'s', "73 01 61 01 61 62", "offset 5: member: 1 bytes beyond the 1: bytes left over"},
		{'z', "7a 01 61 3d 00", "offset 3: score: need 10 bytes, have 2: too short"},
		{'z', "7a 01 61 2d 0000000000000000 3d 61", "offset 3: sign: does not match the sign of the score"},
		{'z', "7a 01 61 3d ffffffffffffffff 3d 61", "offset 3: sign: does not match the sign of the score"},
		{'z', "7a 01 61 2e 0000000000000000 3d 61", "offset 3: sign: does not match the sign of the score"},
		{'z', "7a 01 61 3d 0000000000000000 2d 61", "offset 12: separator: want '='"},
		{'q', "71 01 61 00000000000002", "offset 3: seq: need 8 bytes, have 7: too short"},
		{'q', "71 01 61 0000000000000002 00", "offset 11: seq: 1 bytes beyond the 8: bytes left over"},
		{'q', "71 01 61 0000000000000004", "offset 3: seq: 4: written by no known server"},
		{'q', "71 01 61 7fffffffffffffff", "offset 3: seq: 9223372036854775807: written by no known server"},
		{'z', "73 01 61 01 61", "kind: want 'z'"},
	} {
		if _, err := ssdb.DecodeKey(c.kind, unhex(t, c.key)); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", c.key, err, c.want)
		}
	}
}

func TestSizes(t *testing.T) {
	raw := unhex(t, "48 683a7072653d")
	if name, err := ssdb.DecodeSizeKey('H', raw); err != nil || string(name) != "h:pre=" ||
		!bytes.Equal(ssdb.AppendSizeKey(nil, 'H', name), raw) {
		t.Errorf("%q, %v", name, err)
	}
	for _, c := range []struct {
		kind byte
		key  string
		ok   bool
	}{{'H', "48", false}, {'Z', "5a", false}, {'Q', "51", true}, {'k', "6b", true}, {'H', "5a 61", false}, {'H', "", false}} {
		if _, err := ssdb.DecodeSizeKey(c.kind, unhex(t, c.key)); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.key, err)
		}
	}
	for value, want := range map[string]int64{"1c00000000000000": 28, "feffffffffffff3f": ssdb.FirstItem - 1,
		"ffffffffffffffff": -1} {
		n, err := ssdb.DecodeSize(unhex(t, value))
		if err != nil || n != want || !bytes.Equal(ssdb.AppendSize(nil, n), unhex(t, value)) {
			t.Errorf("%s: %d, %v", value, n, err)
		}
	}
	for value, want := range map[string]string{"01000000": "offset 0: size: need 8 bytes, have 4: too short",
		"010000000000000000": "offset 8: size: 1 bytes beyond the 8: bytes left over"} {
		if _, err := ssdb.DecodeSize(unhex(t, value)); err == nil || err.Error() != want {
			t.Errorf("%s: %v", value, err)
		}
	}
}

func TestScores(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "-1": -1, "9223372036854775807": math.MaxInt64,
		"-9223372036854775808": math.MinInt64, "007": 7, "-0": 0} {
		n, err := ssdb.DecodeScore([]byte(text))
		if err != nil || n != want {
			t.Errorf("%s: %d, %v", text, n, err)
		}
	}
	for text, want := range map[string]string{"": "offset 0: score: need 1 bytes, have 0: too short", "-": "offset 1: score: need 1 bytes, have 0: too short",
		"1.5": "offset 1: score: not a decimal integer", "+1": "offset 0: score: not a decimal integer", "-x": "offset 1: score: not a decimal integer",
		"9223372036854775808": "offset 0: score: value out of range", "-9223372036854775809": "offset 0: score: value out of range",
		"99999999999999999999": "offset 0: score: value out of range"} {
		if _, err := ssdb.DecodeScore([]byte(text)); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestLogs(t *testing.T) {
	key, value := unhex(t, "01 0000000000000001"), unhex(t, "0100000000000000 01 01 6b 6b763a757365723a363534323237")
	l, err := ssdb.DecodeLog(key, value)
	if err != nil || l.Seq != 1 || l.Type != 1 || l.Cmd != 1 || string(l.Key) != "kkv:user:654227" ||
		!bytes.Equal(ssdb.AppendLog(nil, &l), value) {
		t.Errorf("%+v, %v", l, err)
	}
	for _, c := range []struct{ key, value, want string }{
		{"01 00000000000001", "0100000000000000 01 01", "offset 1: seq: need 8 bytes, have 7: too short"},
		{"01 0000000000000001 00", "0100000000000000 01 01", "offset 9: seq: 1 bytes beyond the 8: bytes left over"},
		{"01 0000000000000001", "0100000000000000 01", "offset 0: binlog: need 10 bytes, have 9: too short"},
		{"01 0000000000000001", "0200000000000000 01 01", "offset 0: seq: is not that of the key"},
		{"01 0000000000000001", "0100000000000000 05 01", "offset 8: type: 5: written by no known server"},
		{"01 0000000000000001", "0100000000000000 01 0f", "offset 9: cmd: 15: written by no known server"},
		{"01 0000000000000001", "0100000000000000 01 09", "offset 9: cmd: 9: written by no known server"},
		{"02", "", "kind: want 0x1"},
	} {
		if _, err := ssdb.DecodeLog(unhex(t, c.key), unhex(t, c.value)); err == nil || err.Error() != c.want {
			t.Errorf("%s -> %s: %v, want %s", c.key, c.value, err, c.want)
		}
	}
}

// TestDecodersSurvive: no prefix or flipped byte of a row makes a decoder panic, and decoded keys encode to the same.
func TestDecodersSurvive(t *testing.T) {
	for _, c := range rows {
		formattest.EachDamage(unhex(t, c.key), func(b []byte) { again(t, c.kind, b) })
		formattest.EachDamage(unhex(t, c.value), func(b []byte) {
			_, _ = ssdb.DecodeSize(b)
			_, _ = ssdb.DecodeScore(b)
			_, _ = ssdb.DecodeLog(unhex(t, "01 0000000000000001"), b)
		})
	}
}

// again decodes a key and encodes it again.
func again(t *testing.T, kind byte, b []byte) {
	k, err := ssdb.DecodeKey(kind, b)
	if err != nil {
		return
	}
	var made []byte
	switch kind {
	case 'h':
		made = ssdb.AppendFieldKey(nil, k.Name, k.Rest)
	case 's':
		made = ssdb.AppendScoreKey(nil, k.Name, k.Rest)
	case 'z':
		made = ssdb.AppendRankKey(nil, k.Name, k.Num, k.Rest)
	case 'q':
		made = ssdb.AppendItemKey(nil, k.Name, uint64(k.Num))
	}
	if !bytes.Equal(made, b) {
		t.Errorf("%x becomes %x", b, made)
	}
}

func FuzzDecodeKey(f *testing.F) {
	for _, c := range rows {
		f.Add(c.kind, unhex(f, c.key))
	}
	f.Fuzz(func(t *testing.T, kind byte, b []byte) {
		if strings.IndexByte("hszq", kind) >= 0 {
			again(t, kind, b)
		}
	})
}

func FuzzDecodeScore(f *testing.F) {
	f.Add([]byte("-1"))
	f.Fuzz(func(t *testing.T, b []byte) {
		n, err := ssdb.DecodeScore(b)
		if m, again := ssdb.DecodeScore(ssdb.AppendScore(nil, n)); err == nil && (again != nil || m != n) {
			t.Errorf("%q: %d, then %d, %v", b, n, m, again)
		}
	})
}

func FuzzDecodeLog(f *testing.F) {
	f.Add(unhex(f, "01 0000000000000001"), unhex(f, "0100000000000000 01 01 6b"))
	f.Fuzz(func(t *testing.T, key, value []byte) {
		if l, err := ssdb.DecodeLog(key, value); err == nil && !bytes.Equal(ssdb.AppendLog(nil, &l), value) {
			t.Errorf("%x becomes %+v", value, l)
		}
	})
}

func FuzzDecodeSize(f *testing.F) {
	f.Add([]byte("H1"), unhex(f, "1c00000000000000"))
	f.Fuzz(func(t *testing.T, key, value []byte) {
		if n, err := ssdb.DecodeSize(value); err == nil && !bytes.Equal(ssdb.AppendSize(nil, n), value) {
			t.Errorf("%x becomes %d", value, n)
		}
		if name, err := ssdb.DecodeSizeKey('H', key); err == nil && !bytes.Equal(ssdb.AppendSizeKey(nil, 'H', name), key) {
			t.Errorf("%x becomes %q", key, name)
		}
	})
}
