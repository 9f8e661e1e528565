package codec

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"math/rand"
	"strings"
	"testing"

	"kvferry/record"
	"kvferry/store"
)

// unhex decodes hex with blanks.
func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func text(s string) Data { return TextData([]byte(s)) }

// goldenRows are rows that the real server wrote.
var goldenRows = []struct {
	name  string
	named bool // with the namespace in the key
	key   string
	k     Key
	val   string
	v     Value
	data  []Data
}{
	{name: "integer string", key: "0d 7374723a696e743a3132333435 01 00", k: Key{User: []byte("str:int:12345"), Kind: KindMeta},
		val: "02 00 00 01 01f2c001", v: Value{Kind: KindString, Size: -1}, data: []Data{IntData(12345)}},
	{name: "string with expiry", key: "06 74746c3a6d73 01 00", k: Key{User: []byte("ttl:ms"), Kind: KindMeta},
		val: "02 00 90b78fe6b277 01 010a", v: Value{Kind: KindString, Size: -1, ExpireMS: 2051222400456}, data: []Data{IntData(5)}},
	{name: "float string", key: "01 66 01 00", k: Key{User: []byte("f"), Kind: KindMeta},
		val: "02 00 00 01 02 9ab3e6cc99b3e68a8001", v: Value{Kind: KindString, Size: -1}, data: []Data{FloatData(3.25 + 0.1)}},
	{name: "empty string", key: "00 01 00", k: Key{User: []byte{}, Kind: KindMeta},
		val: "02 00 00 01 04 00", v: Value{Kind: KindString, Size: -1}, data: []Data{TextData([]byte{})}},
	{name: "hash", key: "05 683a74776f 01 00", k: Key{User: []byte("h:two"), Kind: KindMeta},
		val: "03 00 00 01 00", v: Value{Kind: KindHash, Size: -1}},
	{name: "hash field", key: "05 683a74776f 04 01 0401 61", k: Key{User: []byte("h:two"), Kind: KindField, Elems: [3]Data{TextData([]byte("a"))}},
		val: "04 01 0102", v: Value{Kind: KindField, Size: -1}, data: []Data{IntData(1)}},
	{name: "sequential list", key: "05 6c3a647374 01 00", k: Key{User: []byte("l:dst"), Kind: KindMeta},
		val: "05 00 00 04 01 02 0101 0100", v: Value{Kind: KindList, Size: 2, Sequential: true}, data: []Data{IntData(-1), IntData(0)}},
	{name: "list element", key: "05 6c3a647374 06 01 0101", k: Key{User: []byte("l:dst"), Kind: KindElement, Elems: [3]Data{IntData(-1)}},
		val: "06 01 0403 74776f", v: Value{Kind: KindElement, Size: -1}, data: []Data{TextData([]byte("two"))}},
	{name: "list with gaps", key: "06 6c3a696e7332 01 00", k: Key{User: []byte("l:ins2"), Kind: KindMeta},
		val: "05 00 00 18 00 02 0280808080808080b07e 0280808080808080e07f", v: Value{Kind: KindList, Size: 12},
		data: []Data{FloatData(1.0 / 4096), FloatData(0.5)}},
	{name: "element at a float", key: "06 6c3a696e7332 06 01 0280808080808080e07f",
		k:   Key{User: []byte("l:ins2"), Kind: KindElement, Elems: [3]Data{FloatData(0.5)}},
		val: "06 01 0402 6930", v: Value{Kind: KindElement, Size: -1}, data: []Data{TextData([]byte("i0"))}},
	{name: "set", key: "05 733a696e74 01 00", k: Key{User: []byte("s:int"), Kind: KindMeta},
		val: "07 00 00 12 02 01c701 01a8e8c8e99707", v: Value{Kind: KindSet, Size: 9}, data: []Data{IntData(-100), IntData(123456789012)}},
	{name: "set member", key: "05 733a696e74 08 01 01c701", k: Key{User: []byte("s:int"), Kind: KindMember, Elems: [3]Data{IntData(-100)}},
		val: "08 00", v: Value{Kind: KindMember, Size: -1}},
	{name: "zset", key: "05 7a3a757064 01 00", k: Key{User: []byte("z:upd"), Kind: KindMeta},
		val: "09 00 00 06 02 040177 04017a", v: Value{Kind: KindZSet, Size: 3}, data: []Data{TextData([]byte("w")), TextData([]byte("z"))}},
	{name: "sort row", key: "05 7a3a757064 0a 02 02ffffffffffffffff7f 040177",
		k:   Key{User: []byte("z:upd"), Kind: KindSort, Elems: [3]Data{FloatData(-2), TextData([]byte("w"))}},
		val: "0a 00", v: Value{Kind: KindSort, Size: -1}},
	{name: "score row", key: "05 7a3a757064 0b 01 040177", k: Key{User: []byte("z:upd"), Kind: KindScore, Elems: [3]Data{TextData([]byte("w"))}},
		val: "0b 01 02ffffffffffffffff7f", v: Value{Kind: KindScore, Size: -1}, data: []Data{FloatData(-2)}},
	{name: "stream", key: "07 73743a73616d65 01 00", k: Key{User: []byte("st:same"), Kind: KindMeta},
		val:  "0c 00 00 12 0410 0000000000000bb8 0000000000000000 02 0404 74656d70 0403 68756d",
		v:    Value{Kind: KindStream, Size: 9, Last: TextData([]byte("\x00\x00\x00\x00\x00\x00\x0b\xb8\x00\x00\x00\x00\x00\x00\x00\x00"))},
		data: []Data{TextData([]byte("temp")), TextData([]byte("hum"))}},
	{name: "stream entry", key: "07 73743a73616d65 0d 01 0410 00000000000003e8 0000000000000000",
		k: Key{User: []byte("st:same"), Kind: KindEntry,
			Elems: [3]Data{TextData([]byte("\x00\x00\x00\x00\x00\x00\x03\xe8\x00\x00\x00\x00\x00\x00\x00\x00"))}},
		val: "0d 03 0104 0128 0402 6830", v: Value{Kind: KindEntry, Size: -1},
		data: []Data{IntData(2), IntData(20), TextData([]byte("h0"))}},
	{name: "TTL row", named: true, key: "040a 5f5f54544c5f44425f5f 00 1d 03 01b4ec9985bf68 0401 30 0405 6578703a6c",
		k: Key{Namespace: TextData([]byte(TTLNamespace)), User: []byte{}, Kind: KindTTL,
			Elems: [3]Data{IntData(1795167566618), TextData([]byte("0")), TextData([]byte("exp:l"))}},
		val: "1d 00", v: Value{Kind: KindTTL, Size: -1}},
	{name: "LevelDB string", named: true, key: "0401 30 0d 7374723a696e743a3132333435 01 00",
		k: Key{Namespace: TextData([]byte("0")), User: []byte("str:int:12345"), Kind: KindMeta}, val: "02 00 00 01 01f2c001",
		v: Value{Kind: KindString, Size: -1}, data: []Data{IntData(12345)}},
	{name: "INCRBY2 operand", key: "01 61 01 00", k: Key{User: []byte("a"), Kind: KindMeta},
		val: "1e ea03 01 0114", v: Value{Kind: KindOperand, Size: -1, Op: 1002}, data: []Data{IntData(10)}},
	{name: "PEXPIREAT operand", key: "01 61 01 00", k: Key{User: []byte("a"), Kind: KindMeta},
		val: "1e 3700 01 018ab08fe6b277", v: Value{Kind: KindOperand, Size: -1, Op: 55}, data: []Data{IntData(2051222400005)}},
}

func sameData(a, b Data) bool {
	return a.Tag == b.Tag && a.Int == b.Int && math.Float64bits(a.F) == math.Float64bits(b.F) && bytes.Equal(a.Text, b.Text)
}

func TestGoldenRows(t *testing.T) {
	for _, r := range goldenRows {
		key, val := unhex(t, r.key), unhex(t, r.val)
		k, err := DecodeKey(key, r.named)
		if err != nil {
			t.Errorf("%s: key: %v", r.name, err)
			continue
		}
		if !bytes.Equal(k.User, r.k.User) || k.Kind != r.k.Kind || !sameData(k.Namespace, r.k.Namespace) {
			t.Errorf("%s: key %+v", r.name, k)
		}
		for i := range k.Elems {
			if !sameData(k.Elems[i], r.k.Elems[i]) {
				t.Errorf("%s: element %d is %+v, want %+v", r.name, i, k.Elems[i], r.k.Elems[i])
			}
		}
		var ns []byte
		if r.named {
			ns = AppendData(nil, r.k.Namespace)
		}
		got := AppendKey([]byte("x"), ns, r.k.User, r.k.Kind, r.k.Elems[:arity(r.k.Kind)]...)
		if !bytes.Equal(got[1:], key) || got[0] != 'x' {
			t.Errorf("%s: key encodes to %x, want %x", r.name, got[1:], key)
		}
		checkValue(t, r.name, val, &r.v, r.data)
	}
}

func checkValue(t *testing.T, name string, val []byte, want *Value, wantData []Data) {
	t.Helper()
	v, data, err := DecodeValue(val)
	if err != nil || len(data) != len(wantData) {
		t.Errorf("%s: value: %d data, %v", name, len(data), err)
		return
	}
	for i := range data {
		if !sameData(data[i], wantData[i]) {
			t.Errorf("%s: datum %d is %+v, want %+v", name, i, data[i], wantData[i])
		}
	}
	if v.Kind != want.Kind || v.ExpireMS != want.ExpireMS || v.Size != want.Size || v.Sequential != want.Sequential ||
		v.Op != want.Op || !sameData(v.Last, want.Last) {
		t.Errorf("%s: value %+v, want %+v", name, v, want)
	}
	if got := AppendValue(nil, want, wantData...); !bytes.Equal(got, val) {
		t.Errorf("%s: value encodes to %x, want %x", name, got, val)
	}
}

// TestSweep decodes every strict prefix and every flipped byte of the golden rows.
func TestSweep(t *testing.T) {
	for _, r := range goldenRows {
		key, val := unhex(t, r.key), unhex(t, r.val)
		for n := range key {
			if _, err := DecodeKey(key[:n], r.named); err == nil {
				t.Errorf("%s: key cut to %d bytes: no error", r.name, n)
			} else if !isCorrupt(err) {
				t.Errorf("%s: key cut to %d bytes: %T", r.name, n, err)
			}
		}
		for n := 1; n < len(val); n++ {
			if _, _, err := DecodeValue(val[:n]); !isCorrupt(err) {
				t.Errorf("%s: value cut to %d bytes: %v", r.name, n, err)
			}
		}
		for _, b := range [][]byte{key, val} {
			for i := range b {
				for _, x := range []byte{1, 2, 4, 8, 16, 32, 64, 128, 255} {
					flipped := bytes.Clone(b)
					flipped[i] ^= x
					DecodeKey(flipped, r.named)
					DecodeValue(flipped)
					compareKeys(b, flipped)
					CompareNamespaced(flipped, b)
				}
			}
		}
	}
}

func isCorrupt(err error) bool {
	var c *record.CorruptError
	return errors.As(err, &c)
}

func TestErrors(t *testing.T) {
	for _, tt := range []struct{ key, want string }{
		{"02 61", "offset 1: key: need 2 bytes, have 1"},
		{"01 61", "offset 2: type and count: need 2 bytes, have 0"},
		{"01 61 63 00", "offset 2: type: type 99: written by no known server"},
		{"01 61 04 02 0102 0102", "offset 3: count: have 2, a hash field row has 1"},
		{"01 61 04 01 05", "offset 4: field: tag 5: written"},
		{"01 61 04 01 04 05 61", "offset 6: field: need 5 bytes, have 1"},
		{"01 61 04 01 01 ffffffffffffffffffff01", "offset 5: field: number of more than 64 bits"},
		{"01 61 01 00 00", "offset 4: key: 1 bytes after the last element"},
	} {
		if _, err := DecodeKey(unhex(t, tt.key), false); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.key, err, tt.want)
		}
	}
	for _, tt := range []struct{ val, want string }{
		{"02 01 00 01 0102", "offset 1: format: format 1: written"},
		{"02 00 ff", "offset 2: expiry: need 2 bytes"},
		{"03 00 00 02", "offset 4: count: need 1 bytes"},
		{"05 00 00 02", "offset 4: sequential"},
		{"0c 00 00 02 07", "offset 4: last id: tag 7: written"},
		{"04 02 0102", "offset 1: count: 2 data, but a hash field has at most 1: bytes left over"},
		{"05 00 00 04 00 02 0102", "offset 8: data: need 1 bytes"},
		{"04 01 0102 00", "offset 4: value: 1 bytes after the last datum"},
		{"1e 01", "offset 1: command: need 2 bytes"},
	} {
		if _, _, err := DecodeValue(unhex(t, tt.val)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.val, err, tt.want)
		}
	}
}

// TestAppendNumber: a string in the server's float format becomes a float, and the server replies with the
// same string.
func TestAppendNumber(t *testing.T) {
	for s, want := range map[string]Data{
		"1e+20": FloatData(1e20), "-1.5": FloatData(-1.5), "3.3500000000000001": FloatData(3.25 + 0.1), "0.10000000000000001": FloatData(0.1),
		"-2.2250738585072014e-308": FloatData(-0x1p-1022), "1.0000000000000001e-05": FloatData(1e-5), "12": IntData(12), "100000000000000000": IntData(1e17),
		"0.1": text("0.1"), "1e20": text("1e20"), "1.0": text("1.0"), "1E+20": text("1E+20"), "1e+400": text("1e+400"), "-0.0": text("-0.0"),
		"0x1p-2": text("0x1p-2"), "1_0.5": text("1_0.5"), "inf": text("inf"), "nan": text("nan"), "1.5 ": text("1.5 "), ".5": text(".5"), "": text(""),
	} {
		d, n := SplitData(AppendNumber(nil, []byte(s)))
		if n == 0 || d.Tag != want.Tag || d.Int != want.Int || d.F != want.F {
			t.Errorf("%q is written as %+v, want %+v", s, d, want)
		}
		if got := AppendServed(nil, d); string(got) != s {
			t.Errorf("%q is answered as %q", s, got)
		}
	}
}

func TestCanonicalInt(t *testing.T) {
	for s, want := range map[string]int64{"0": 0, "7": 7, "-1": -1, "10": 10, "9223372036854775807": math.MaxInt64,
		"-9223372036854775808": math.MinInt64, "-10": -10} {
		if v, ok := CanonicalInt([]byte(s)); !ok || v != want {
			t.Errorf("%q: %d, %v", s, v, ok)
		}
		if got := AppendServed(nil, IntData(want)); string(got) != s {
			t.Errorf("%d is served as %q", want, got)
		}
	}
	for _, s := range []string{"", "-", "+1", "01", "-0", "00", " 1", "1 ", "1.0", "1e3", "9223372036854775808", "-9223372036854775809",
		"18446744073709551616", "99999999999999999999", "123456789012345678901", "a", "1a", "--1", "\x00"} {
		if v, ok := CanonicalInt([]byte(s)); ok {
			t.Errorf("%q: %d", s, v)
		}
		d := CanonData([]byte(s))
		if got := AppendServed(nil, d); d.Tag != TagText || string(got) != s {
			t.Errorf("%q becomes %+v", s, d)
		}
	}
}

// TestServedFloats expects the output of printf("%.17g"), and of "%d" for integral numbers below 2^52.
func TestServedFloats(t *testing.T) {
	for want, f := range map[string]float64{
		"3.3500000000000001": 3.25 + 0.1, "0": 0, "-5": -5, "0.10000000000000001": 0.1, "1.0000000000000001e-05": 1e-5,
		"0.0001": 0.0001, "1.0000000000000001e+300": 1e300, "4503599627370495": 1<<52 - 1, "4503599627370496": 1 << 52,
		"9.2233720368547758e+18": 1 << 63, "1e+17": 1e17, "10000000000000000": 1e16, "inf": math.Inf(1), "-inf": math.Inf(-1),
		"nan": math.NaN(), "-1.5": -1.5, "4.9406564584124654e-324": 5e-324, "1.7976931348623157e+308": math.MaxFloat64,
		"123456.78901234567": 123456.78901234567,
	} {
		if got := AppendServed([]byte("x"), FloatData(f)); string(got) != "x"+want {
			t.Errorf("%v is served as %q, want %q", f, got[1:], want)
		}
	}
	if got := AppendServed(nil, Data{}); len(got) != 0 {
		t.Errorf("nil is served as %q", got)
	}
}

// someData are elements in the comparator's order, where it has one.
func someData() []Data {
	return []Data{{}, FloatData(math.Inf(-1)), IntData(-5), FloatData(-1.5), IntData(0), FloatData(0.25), IntData(1),
		IntData(1 << 40),
		FloatData(math.Inf(1)), TextData(nil), TextData([]byte("\x00")), TextData([]byte("-1")), TextData([]byte("a")),
		TextData([]byte("a\x00")), TextData([]byte("ab")), TextData([]byte("b"))}
}

func TestDataOrder(t *testing.T) {
	all := someData()
	for i := range all {
		for j := range all {
			if c := all[i].Compare(&all[j]); signOf(int64(c)) != signOf(int64(i-j)) {
				t.Errorf("%+v and %+v: %d", all[i], all[j], c)
			}
		}
	}
	hi, lo, one, nan := IntData(math.MaxInt64), IntData(math.MinInt64+1), FloatData(1), FloatData(math.NaN())
	if hi.Compare(&lo) >= 0 || lo.Compare(&hi) <= 0 {
		t.Error("the difference does not wrap")
	}
	i1, c1 := IntData(1), Data{Tag: TagCStr, Text: []byte("a")}
	ta := TextData([]byte("a"))
	if i1.Compare(&one) != 0 || c1.Compare(&ta) != 0 || nan.Compare(&one) != 0 {
		t.Error("equal elements differ")
	}
}

// orderedKeys are row keys in ascending order, malformed ones at the end.
func orderedKeys(ns []byte) [][]byte {
	var out [][]byte
	for _, user := range []string{"", "\x00", "a", "a\x00", "aa", "b", strings.Repeat("c", 200)} {
		u := []byte(user)
		out = append(out, Bound(ns, u), AppendKey(nil, ns, u, KindMeta))
		for _, d := range someData() {
			out = append(out, AppendKey(nil, ns, u, KindField, d))
		}
		out = append(out,
			AppendKey(nil, ns, u, KindSort, FloatData(-1), TextData([]byte("z"))),
			AppendKey(nil, ns, u, KindSort, FloatData(1), TextData([]byte("a"))),
			AppendKey(nil, ns, u, KindSort, FloatData(1), TextData([]byte("b"))),
			AppendKey(nil, ns, u, KindScore, TextData([]byte("a"))),
			append(AppendPrefix(nil, ns, u), byte(KindScore), 1, 4, 9, 'x'), // an element cut short
			append(AppendPrefix(nil, ns, u), byte(KindScore), 1, 5),
			append(AppendPrefix(nil, ns, u), byte(KindScore), 2),
			append(AppendPrefix(nil, ns, u), byte(KindScore)),
			append(AppendPrefix(nil, ns, u), byte(KindScore), 0x80, 1),
			append(AppendPrefix(nil, ns, u), 0xFF, 0))
	}
	return out
}

func TestKeyOrder(t *testing.T) {
	keys := append(orderedKeys(nil), []byte{}, []byte{0}, []byte{1}, []byte{9, 'x'})
	checkOrder(t, Comparer(), keys)
	var named [][]byte
	for _, ns := range []Data{{}, IntData(1), IntData(2), TextData(nil), TextData([]byte("0")), TextData([]byte("1")),
		TextData([]byte("10")), TextData(bytes.Repeat([]byte("n"), 200))} {
		named = append(named, orderedKeys(AppendData(nil, ns))...)
	}
	named = append(named, []byte{}, []byte{0}, []byte{4, 1}, []byte{4, 1, '0'}, []byte{4, 1, '0', 3}, []byte{9})
	checkOrder(t, LevelDBComparer(), named)
	upper, ok := AfterNamespace(TextData([]byte("1")))
	if !ok || CompareNamespaced(upper, AppendKey(nil, AppendText(nil, []byte("1")), []byte("\xff"), KindEnd)) <= 0 ||
		CompareNamespaced(upper, Bound(AppendText(nil, []byte("10")), nil)) >= 0 {
		t.Error("the end of a namespace")
	}
}

func checkOrder(t *testing.T, order store.Comparer, keys [][]byte) {
	t.Helper()
	for i := range keys {
		for j := range keys {
			if c := order.Compare(keys[i], keys[j]); signOf(int64(c)) != signOf(int64(i-j)) {
				t.Fatalf("%x and %x: %d, want the sign of %d", keys[i], keys[j], c, i-j)
			}
			if i-j < 30 && j-i < 30 { // the others share little
				checkFrom(t, &order, keys[i], keys[j])
			}
		}
	}
}

// checkFrom compares keys with a known number of equal first bytes, from 0 to their common prefix.
func checkFrom(t *testing.T, order *store.Comparer, a, b []byte) {
	t.Helper()
	want := order.Compare(a, b)
	for n := 0; n <= len(a) && n <= len(b) && bytes.Equal(a[:n], b[:n]); n++ {
		if c := order.CompareFrom(a, b, n); signOf(int64(c)) != signOf(int64(want)) {
			t.Fatalf("%x and %x: %d, with %d shared bytes known %d", a, b, want, n, c)
		}
	}
}

// TestOrderIsTotal compares random bytes and damaged keys: the order is antisymmetric and transitive.
func TestOrderIsTotal(t *testing.T) {
	seed := rand.Int63()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewSource(seed))
	base := orderedKeys(nil)
	random := func() []byte {
		k := bytes.Clone(base[rng.Intn(len(base))])
		for range rng.Intn(3) {
			if len(k) > 0 {
				k[rng.Intn(len(k))] ^= byte(1 << rng.Intn(8))
			}
		}
		return k[:len(k)-rng.Intn(1+len(k)/4)]
	}
	for _, order := range []store.Comparer{Comparer(), LevelDBComparer()} {
		compare := order.Compare
		for n := range 200000 {
			a, b, c := random(), random(), random()
			if n%16 == 0 {
				checkFrom(t, &order, a, b)
			}
			ab, bc, ac := compare(a, b), compare(b, c), compare(a, c)
			if signOf(int64(ab)) != -signOf(int64(compare(b, a))) || compare(a, a) != 0 {
				t.Fatalf("%x and %x", a, b)
			}
			if ab < 0 && bc < 0 && ac >= 0 && !wraps(a, b, c) {
				t.Fatalf("%x < %x < %x, but not the first and the last", a, b, c)
			}
		}
	}
}

// wraps reports whether a key may contain integers or NaN, which have no total order.
func wraps(keys ...[]byte) bool {
	for _, k := range keys {
		for _, named := range []bool{false, true} {
			if _, end, ok := SplitUser(k, named); ok {
				b := k[end+1:]
				for len(b) > 0 {
					d, n := SplitData(b[1:])
					if n == 0 {
						break
					}
					if d.Tag == TagInt && (d.Int > 1<<61 || d.Int < -1<<61) || d.Tag == TagFloat && math.IsNaN(d.F) {
						return true
					}
					b = b[n:]
				}
			}
			if d, n := SplitData(k); n > 0 && (d.Tag == TagInt && (d.Int > 1<<61 || d.Int < -1<<61) ||
				d.Tag == TagFloat && math.IsNaN(d.F)) {
				return true
			}
		}
	}
	return false
}

func TestNoAllocations(t *testing.T) {
	a := AppendKey(nil, nil, []byte("some key"), KindField, TextData([]byte("field one")))
	b := AppendKey(nil, nil, []byte("some key"), KindField, TextData([]byte("field two")))
	buf := make([]byte, 0, 256)
	if n := testing.AllocsPerRun(100, func() {
		compareKeys(a, b)
		CompareNamespaced(a, b)
		DecodeKey(a, false)
		buf = AppendCanon(AppendKey(buf[:0], nil, a, KindMeta), b)
		buf = AppendServed(buf[:0], FloatData(0.1))
	}); n > 1 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzDecodeKey(f *testing.F) {
	for _, r := range goldenRows {
		f.Add(unhex(f, r.key), r.named)
	}
	f.Fuzz(func(t *testing.T, b []byte, named bool) {
		k, err := DecodeKey(b, named)
		if err != nil {
			return
		}
		var ns []byte
		if named {
			ns = AppendData(nil, k.Namespace)
		}
		again := AppendKey(nil, ns, k.User, k.Kind, k.Elems[:arity(k.Kind)]...)
		back, err := DecodeKey(again, named)
		if err != nil || !bytes.Equal(back.User, k.User) {
			t.Fatalf("%x becomes %x: %v", b, again, err)
		}
		compare := compareKeys
		if named {
			compare = CompareNamespaced
		}
		if c := compare(b, again); c != 0 {
			t.Fatalf("%x and %x, the same key: %d", b, again, c)
		}
	})
}

func FuzzDecodeValue(f *testing.F) {
	for _, r := range goldenRows {
		f.Add(unhex(f, r.val))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		checkPlain(t, b)
		v, data, err := DecodeValue(b)
		if err != nil || v.Kind == 0 {
			return
		}
		again := AppendValue(nil, &v, data...)
		w, more, err := DecodeValue(again)
		if err != nil || len(more) != len(data) || w.ExpireMS != v.ExpireMS || w.Size != v.Size {
			t.Fatalf("%x becomes %x: %v", b, again, err)
		}
	})
}

// checkPlain compares the decoders of ordinary rows with the general decoder.
func checkPlain(t *testing.T, b []byte) {
	t.Helper()
	v, data, err := DecodeValue(b)
	one := err == nil && v.Count == 1
	var plain Value
	d, ok := plain.SplitString(b)
	if want := one && v.Kind == KindString; ok != want ||
		ok && (!sameData(d, data[0]) || plain.Kind != v.Kind || plain.ExpireMS != v.ExpireMS ||
			plain.Size != v.Size || plain.Count != 1) {
		t.Fatalf("%x is a string: %v %+v %+v, want %v", b, ok, plain, d, want)
	}
	text, ok := PlainText(KindField, b)
	if want := one && v.Kind == KindField && data[0].Tag == TagText; ok != want || ok && !bytes.Equal(text, data[0].Text) {
		t.Fatalf("%x has a text: %v %q, want %v", b, ok, text, want)
	}
	score, ok := PlainScore(b)
	if want := one && v.Kind == KindScore && data[0].IsNumber() && !math.IsNaN(data[0].Number()); ok != want ||
		ok && score != data[0].Number() {
		t.Fatalf("%x has a score: %v %v, want %v", b, ok, score, want)
	}
}

// TestPlain tries values of all kinds, whole, truncated and with an extra byte.
func TestPlain(t *testing.T) {
	for _, k := range []Kind{KindString, KindField, KindMember, KindScore, KindHash, KindOperand} {
		for _, d := range append(someData(), text(strings.Repeat("x", 127)), text(strings.Repeat("x", 300)),
			FloatData(math.NaN()), Data{Tag: TagCStr, Text: []byte("c")}) {
			for _, v := range []Value{{Kind: k}, {Kind: k, ExpireMS: 1700000000000}, {Kind: k, ExpireMS: -1, Size: 1}} {
				b := AppendValue(nil, &v, d)
				checkPlain(t, append(b[:len(b):len(b)], 0))
				for n := range b {
					checkPlain(t, b[:n])
					flip := bytes.Clone(b)
					flip[n] ^= 1
					checkPlain(t, flip)
				}
				checkPlain(t, b)
				checkPlain(t, AppendValue(nil, &v, d, d))
			}
		}
	}
}

// TestTwins: rows of the same members and scores agree in any order; a missing row or another score does not.
func TestTwins(t *testing.T) {
	var w Twins
	w.Sort([]byte("a"), 1)
	w.Sort([]byte("b"), math.Copysign(0, -1))
	w.Score([]byte("b"), 0)
	if w.Agree() {
		t.Error("a row without a twin")
	}
	w.Score([]byte("a"), 1)
	if !w.Agree() {
		t.Error("twins do not agree")
	}
	w.Sort([]byte("a"), 2)
	w.Score([]byte("a"), 3)
	if w.Agree() || w.Sorts != 3 || w.Scores != 3 {
		t.Errorf("other scores agree: %+v", w)
	}
}

func FuzzCompare(f *testing.F) {
	for i := range goldenRows {
		f.Add(unhex(f, goldenRows[i].key), unhex(f, goldenRows[len(goldenRows)-1-i].key))
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		for _, order := range []store.Comparer{Comparer(), LevelDBComparer()} {
			if signOf(int64(order.Compare(a, b))) != -signOf(int64(order.Compare(b, a))) {
				t.Fatalf("%x and %x", a, b)
			}
			checkFrom(t, &order, a, b)
		}
	})
}

// BenchmarkCompare measures the order next to a bytewise one, on neighbours as in a table.
func BenchmarkCompare(b *testing.B) {
	user, ns := []byte("some user key of a hash"), AppendText(nil, []byte("0"))
	text := func(s string) Data { return TextData([]byte(s)) }
	for _, bm := range []struct {
		name    string
		compare func(a, b []byte) int
		x, y    []byte
	}{
		{"fields", compareKeys, AppendKey(nil, nil, user, KindField, text("field-000123")), AppendKey(nil, nil, user, KindField, text("field-000124"))},
		{"integers", compareKeys, AppendKey(nil, nil, user, KindElement, IntData(1234)), AppendKey(nil, nil, user, KindElement, IntData(1235))},
		{"scores", compareKeys, AppendKey(nil, nil, user, KindSort, FloatData(1.5), text("m")), AppendKey(nil, nil, user, KindSort, FloatData(2.5), text("m"))},
		{"same score", compareKeys, AppendKey(nil, nil, user, KindSort, FloatData(1.5), text("m1")), AppendKey(nil, nil, user, KindSort, FloatData(1.5), text("m2"))},
		{"keys", compareKeys, AppendKey(nil, nil, []byte("user:000123"), KindMeta), AppendKey(nil, nil, []byte("user:000124"), KindMeta)},
		{"leveldb fields", CompareNamespaced, AppendKey(nil, ns, user, KindField, text("field-000123")), AppendKey(nil, ns, user, KindField, text("field-000124"))},
		{"fields, user key known", func(a, b []byte) int { return compareKeysFrom(a, b, 1+len(user)+12) },
			AppendKey(nil, nil, user, KindField, text("field-000123")), AppendKey(nil, nil, user, KindField, text("field-000124"))},
		{"bytes", bytes.Compare, AppendKey(nil, nil, user, KindField, text("field-000123")), AppendKey(nil, nil, user, KindField, text("field-000124"))},
	} {
		b.Run(bm.name, func(b *testing.B) {
			for range b.N {
				if bm.compare(bm.x, bm.y) >= 0 {
					b.Fatal("not ascending")
				}
			}
		})
	}
}
