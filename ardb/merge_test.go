package ardb

import (
	"bytes"
	"math"
	"math/big"
	"math/rand"
	"strconv"
	"testing"

	"kvferry/ardb/codec"
)

var (
	metaKey  = codec.AppendKey(nil, nil, []byte("k"), codec.KindMeta)
	fieldKey = codec.AppendKey(nil, nil, []byte("k"), codec.KindField, codec.TextData([]byte("f")))
)

func hash(size int64) []byte {
	return codec.AppendValue(nil, &codec.Value{Kind: codec.KindHash, Size: size})
}

func fieldValue(d codec.Data) []byte {
	return codec.AppendValue(nil, &codec.Value{Kind: codec.KindField}, d)
}

// TestMergeTable tries every command, alias by alias, on values it applies to and on others.
func TestMergeTable(t *testing.T) {
	set := codec.AppendValue(nil, &codec.Value{Kind: codec.KindSet, Size: 1, ExpireMS: 5}, codec.IntData(1), codec.IntData(1))
	hll, _, _ := pfAdd(nil, [][]byte{[]byte("a"), []byte("b")})
	hll3, _, _ := pfAdd(hll, [][]byte{[]byte("c")})
	none := []byte(nil)
	ops := func(codes ...uint16) []uint16 { return codes }
	tests := []struct {
		name  string
		codes []uint16
		key   []byte
		args  []codec.Data
		base  []byte
		want  []byte // nil: absent
	}{
		{"set new", ops(102, 1008), metaKey, []codec.Data{text("v")}, none, str(text("v"))},
		{"set over string keeps the expiry", ops(102, 1008), metaKey, []codec.Data{codec.IntData(3)}, strTTL(text("v"), 77), strTTL(codec.IntData(3), 77)},
		{"set over set", ops(102, 1008), metaKey, []codec.Data{text("v")}, set, set},
		{"setnx new", ops(120, 1007), metaKey, []codec.Data{text("v")}, none, str(text("v"))},
		{"setnx there", ops(120, 1007), metaKey, []codec.Data{text("v")}, str(codec.IntData(1)), str(codec.IntData(1))},
		{"setxx new", ops(126), metaKey, []codec.Data{text("v")}, none, none},
		{"setxx there", ops(126), metaKey, []codec.Data{text("v")}, str(codec.IntData(1)), str(text("v"))},
		{"setxx over set", ops(126), metaKey, []codec.Data{text("v")}, set, set},
		{"psetex drops its expiry", ops(117), metaKey, []codec.Data{text("v"), codec.IntData(99)}, strTTL(text("x"), 7), strTTL(text("v"), 7)},
		{"append new", ops(100, 1001), metaKey, []codec.Data{text("12")}, none, str(text("12"))},
		{"append to integer", ops(100, 1001), metaKey, []codec.Data{text("5")}, str(codec.IntData(10)), str(text("105"))},
		{"append to float", ops(100, 1001), metaKey, []codec.Data{text("!")}, str(codec.FloatData(0.5)), str(text("0.5!"))},
		{"append to set", ops(100, 1001), metaKey, []codec.Data{text("5")}, set, set},
		{"incr new", ops(111, 112, 1002, 1004), metaKey, []codec.Data{codec.IntData(4)}, none, str(codec.IntData(4))},
		{"incr", ops(111, 112, 1002, 1004), metaKey, []codec.Data{codec.IntData(4)}, strTTL(codec.IntData(-1), 9), strTTL(codec.IntData(3), 9)},
		{"incr wraps", ops(112), metaKey, []codec.Data{codec.IntData(1)}, str(codec.IntData(math.MaxInt64)), str(codec.IntData(math.MinInt64))},
		{"incr text", ops(111, 112, 1002, 1004), metaKey, []codec.Data{codec.IntData(4)}, str(text("5")), str(text("5"))},
		{"incr float", ops(112), metaKey, []codec.Data{codec.IntData(4)}, str(codec.FloatData(5)), str(codec.FloatData(5))},
		{"incr set", ops(112), metaKey, []codec.Data{codec.IntData(4)}, set, set},
		{"decr", ops(106, 1005), metaKey, []codec.Data{codec.IntData(9)}, str(codec.IntData(5)), str(codec.IntData(4))},
		{"decr new", ops(106, 1005), metaKey, []codec.Data{codec.IntData(1)}, none, str(codec.IntData(-1))},
		{"decrby", ops(107, 1006), metaKey, []codec.Data{codec.IntData(9)}, str(codec.IntData(5)), str(codec.IntData(-4))},
		{"incrbyfloat new", ops(113, 1003), metaKey, []codec.Data{codec.FloatData(0.5)}, none, str(codec.FloatData(0.5))},
		{"incrbyfloat integer", ops(113, 1003), metaKey, []codec.Data{codec.FloatData(0.5)}, str(codec.IntData(2)), str(codec.FloatData(2.5))},
		{"incrbyfloat float", ops(113, 1003), metaKey, []codec.Data{codec.FloatData(0.1)}, str(codec.FloatData(3.25)), str(codec.FloatData(3.25 + 0.1))},
		{"incrbyfloat text", ops(113, 1003), metaKey, []codec.Data{codec.FloatData(0.1)}, str(text("1")), str(text("1"))},
		{"setrange new", ops(121, 1009), metaKey, []codec.Data{codec.IntData(2), text("x")}, none, str(text("\x00\x00x"))},
		{"setrange", ops(121, 1009), metaKey, []codec.Data{codec.IntData(1), text("yy")}, str(text("abcd")), str(text("ayyd"))},
		{"setrange of integer", ops(121, 1009), metaKey, []codec.Data{codec.IntData(1), text("9")}, str(codec.IntData(123)), str(text("193"))},
		{"setrange before", ops(121), metaKey, []codec.Data{codec.IntData(-1), text("9")}, str(text("a")), str(text("a"))},
		{"setrange beyond", ops(121), metaKey, []codec.Data{codec.IntData(maxString), text("9")}, none, none},
		{"setbit new", ops(118, 1028), metaKey, []codec.Data{codec.IntData(9), codec.IntData(1)}, none, str(text("\x00\x40"))},
		{"setbit", ops(118, 1028), metaKey, []codec.Data{codec.IntData(1), codec.IntData(0)}, str(text("\xff")), str(text("\xbf"))},
		{"setbit of set", ops(118), metaKey, []codec.Data{codec.IntData(1), codec.IntData(0)}, set, set},
		{"setbit beyond", ops(118), metaKey, []codec.Data{codec.IntData(math.MaxInt64), codec.IntData(0)}, none, none},
		{"pfadd new", ops(123, 1029), metaKey, []codec.Data{text("a"), text("b")}, none, str(codec.TextData(hll))},
		{"pfadd", ops(123, 1029), metaKey, []codec.Data{text("c")}, str(codec.TextData(hll)), str(codec.TextData(hll3))},
		{"pfadd again", ops(123), metaKey, []codec.Data{text("a")}, str(codec.TextData(hll)), str(codec.TextData(hll))},
		{"pfadd to text", ops(123), metaKey, []codec.Data{text("a")}, str(text("x")), str(text("x"))},
		{"pfadd to set", ops(123), metaKey, []codec.Data{text("a")}, set, set},
		{"pfadd of a number", ops(123), metaKey, []codec.Data{codec.IntData(1)}, none, none},
		{"pexpireat", ops(55), metaKey, []codec.Data{codec.IntData(123)}, str(text("x")), strTTL(text("x"), 123)},
		{"pexpireat of set", ops(55), metaKey, []codec.Data{codec.IntData(0)}, set, codec.AppendValue(nil, &codec.Value{Kind: codec.KindSet, Size: 1}, codec.IntData(1), codec.IntData(1))},
		{"pexpireat of nothing", ops(55), metaKey, []codec.Data{codec.IntData(123)}, none, none},
		{"hset new meta", ops(160, 1010, 161, 1011), metaKey, []codec.Data{codec.IntData(2)}, none, hash(2)},
		{"hset new meta of unknown size", ops(160, 161), metaKey, []codec.Data{text("x")}, none, hash(-1)},
		{"hset meta", ops(160, 1010, 161, 1011), metaKey, []codec.Data{codec.IntData(1)}, hash(4), hash(-1)},
		{"hset meta of unknown size", ops(160), metaKey, []codec.Data{codec.IntData(1)}, hash(-1), hash(-1)},
		{"hset meta of string", ops(160), metaKey, []codec.Data{codec.IntData(1)}, str(text("x")), str(text("x"))},
		{"hset new field", ops(160, 1010, 161, 1011), fieldKey, []codec.Data{codec.IntData(1)}, none, fieldValue(codec.IntData(1))},
		{"hset field", ops(160, 1010), fieldKey, []codec.Data{text("v")}, fieldValue(codec.IntData(1)), fieldValue(text("v"))},
		{"hsetnx field", ops(161, 1011), fieldKey, []codec.Data{text("v")}, fieldValue(codec.IntData(1)), fieldValue(codec.IntData(1))},
		{"hincr new", ops(154, 1013), fieldKey, []codec.Data{codec.IntData(5)}, none, fieldValue(codec.IntData(5))},
		{"hincr", ops(154, 1013), fieldKey, []codec.Data{codec.IntData(5)}, fieldValue(codec.IntData(-6)), fieldValue(codec.IntData(-1))},
		{"hincr text", ops(154), fieldKey, []codec.Data{codec.IntData(5)}, fieldValue(text("a")), fieldValue(text("a"))},
		{"hincr by float", ops(154), fieldKey, []codec.Data{codec.FloatData(5)}, fieldValue(codec.IntData(1)), fieldValue(codec.IntData(1))},
		{"hincrbyfloat new", ops(155, 1014), fieldKey, []codec.Data{codec.FloatData(0.5)}, none, fieldValue(codec.FloatData(0.5))},
		{"hincrbyfloat", ops(155, 1014), fieldKey, []codec.Data{codec.FloatData(0.5)}, fieldValue(codec.IntData(1)), fieldValue(codec.FloatData(1.5))},
		{"hincrbyfloat text", ops(155), fieldKey, []codec.Data{codec.FloatData(0.5)}, fieldValue(text("a")), fieldValue(text("a"))},
		{"hincr on a meta row", ops(154), metaKey, []codec.Data{codec.IntData(1)}, hash(1), hash(1)},
		{"unknown command", ops(999), metaKey, []codec.Data{text("v")}, str(text("x")), operand(999, text("v"))},
		{"too many arguments", ops(111), metaKey, []codec.Data{codec.IntData(1), text("v")}, nil, operand(111, codec.IntData(1), text("v"))},
		{"missing argument", ops(102, 112, 121, 118, 55, 160, 154), metaKey, nil, str(codec.IntData(7)), str(codec.IntData(7))},
	}
	for _, tt := range tests {
		for _, code := range tt.codes {
			got, keep, err := Merger().Fold([]byte("x"), tt.key, tt.base, [][]byte{operand(code, tt.args...)})
			if err != nil || got[0] != 'x' || !bytes.Equal(got[1:], tt.want) || keep != (tt.want != nil) {
				t.Errorf("%s (%d): %x, %v, %v; want %x", tt.name, code, got, keep, err, tt.want)
			}
		}
	}
}

// TestMergeOddities tries empty and damaged operands and values; failing operands change no state.
func TestMergeOddities(t *testing.T) {
	incr := operand(1002, codec.IntData(1))
	for _, tt := range []struct {
		name string
		base []byte
		ops  [][]byte
		want []byte
	}{
		{"empty operand", str(codec.IntData(1)), [][]byte{{}, incr}, str(codec.IntData(2))},
		{"only an empty operand", nil, [][]byte{{}}, nil},
		{"empty value", []byte{}, [][]byte{incr}, str(codec.IntData(1))},
		{"empty value and operand", []byte{}, [][]byte{{}}, nil},
		{"damaged operand", str(codec.IntData(1)), [][]byte{incr, incr[:4], incr}, incr[:4]},
		{"longer operand", str(codec.IntData(1)), [][]byte{append(bytes.Clone(incr), 0)}, append(bytes.Clone(incr), 0)},
		{"a value for an operand", str(codec.IntData(1)), [][]byte{str(codec.IntData(9))}, append([]byte{0x1e}, str(codec.IntData(9))...)},
		{"damaged value stays", []byte{2, 0, 0}, [][]byte{incr}, []byte{2, 0, 0}},
		{"failure leaves no trace", nil, [][]byte{operand(121, codec.IntData(maxString), text("x")), operand(120, text("v"))}, str(text("v"))},
		{"in order", nil, [][]byte{incr, operand(100, text("0")), incr, operand(126, codec.IntData(5)), incr}, str(codec.IntData(6))},
		{"nothing changes", []byte{2, 0, 0, 1, 3, 1, 'a'}, [][]byte{operand(120, text("b"))}, []byte{2, 0, 0, 1, 3, 1, 'a'}},
	} {
		got, keep, err := fold(nil, metaKey, tt.base, tt.ops)
		if err != nil || !bytes.Equal(got, tt.want) || keep != (len(tt.want) > 0) {
			t.Errorf("%s: %x, %v, %v; want %x", tt.name, got, keep, err, tt.want)
		}
	}
}

// model is a minimal model of a string key: text, and whether it counts as a number.
type model struct {
	there bool
	kind  byte // 's', 'i', 'f'
	text  string
	i     int64
	f     float64
	ttl   int64
}

func (m *model) show() string {
	switch m.kind {
	case 'i':
		return strconv.FormatInt(m.i, 10)
	case 'f':
		return string(codec.AppendServed(nil, codec.FloatData(m.f)))
	}
	return m.text
}

// step makes a random operand and applies it to the model.
func (m *model) step(rng *rand.Rand) []byte {
	word := []string{"", "x", "12", "-5", "long text of some words", "\x00\xff"}[rng.Intn(6)]
	n := int64(rng.Intn(2000) - 1000)
	pick := func(codes ...uint16) uint16 { return codes[rng.Intn(len(codes))] }
	setTo := func(s string) {
		m.there = true
		if v, ok := new(big.Int).SetString(s, 10); ok && v.IsInt64() && v.String() == s {
			m.kind, m.i = 'i', v.Int64()
			return
		}
		m.kind, m.text = 's', s
	}
	raw := func(s string) { m.there, m.kind, m.text = true, 's', s }
	switch rng.Intn(10) {
	case 0:
		setTo(word)
		return operand(pick(102, 1008, 117), codec.CanonData([]byte(word)))
	case 1:
		if !m.there {
			setTo(word)
		}
		return operand(pick(120, 1007), codec.CanonData([]byte(word)))
	case 2:
		if m.there {
			setTo(word)
		}
		return operand(126, codec.CanonData([]byte(word)))
	case 3:
		raw(m.show() + word)
		return operand(pick(100, 1001), text(word))
	case 4:
		if !m.there || m.kind == 'i' {
			m.i, m.kind, m.there = m.base()+n, 'i', true
		}
		return operand(pick(111, 112, 1002, 1004), codec.IntData(n))
	case 5:
		if !m.there || m.kind == 'i' {
			m.i, m.kind, m.there = m.base()-n, 'i', true
		}
		return operand(pick(107, 1006), codec.IntData(n))
	case 6:
		f := float64(n) / 8
		switch {
		case !m.there:
			m.f, m.kind, m.there = f, 'f', true
		case m.kind == 'i':
			m.f, m.kind = float64(m.i)+f, 'f'
		case m.kind == 'f':
			m.f += f
		}
		return operand(pick(113, 1003), codec.FloatData(f))
	case 7:
		off := rng.Intn(12)
		s := []byte(m.show())
		for len(s) < off+len(word) {
			s = append(s, 0)
		}
		raw(string(append(s[:off:off], append([]byte(word), s[off+len(word):]...)...)))
		return operand(pick(121, 1009), codec.IntData(int64(off)), text(word))
	case 8:
		bit, on := rng.Intn(90), rng.Intn(2)
		s := []byte(m.show())
		for len(s) <= bit/8 {
			s = append(s, 0)
		}
		for i := range 8 {
			if i == bit%8 {
				s[bit/8] = s[bit/8]&^(1<<(7-i)) | byte(on)<<(7-i)
			}
		}
		raw(string(s))
		return operand(pick(118, 1028), codec.IntData(int64(bit)), codec.IntData(int64(on)))
	}
	if m.there {
		m.ttl = n + 5000
	}
	return operand(55, codec.IntData(n+5000))
}

func (m *model) base() int64 {
	if m.there {
		return m.i
	}
	return 0
}

// TestMergeModel applies random sequences, split at random into folds.
func TestMergeModel(t *testing.T) {
	seed := rand.Int63()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewSource(seed))
	for range 3000 {
		var m model
		var value []byte
		for range rng.Intn(4) {
			var ops [][]byte
			for range rng.Intn(8) {
				ops = append(ops, m.step(rng))
				if rng.Intn(5) == 0 {
					ops = append(ops, nil)
				}
			}
			v, keep, err := fold(nil, metaKey, value, ops)
			if err != nil || keep != m.there {
				t.Fatalf("%x on %x: %x, %v, %v", ops, value, v, keep, err)
			}
			value = v
		}
		if !m.there {
			continue
		}
		v, data, err := codec.DecodeValue(value)
		if err != nil || v.Kind != codec.KindString || v.ExpireMS != m.ttl || len(data) != 1 {
			t.Fatalf("%x: %+v, %v; want expiry %d", value, v, err, m.ttl)
		}
		tag := map[byte]codec.Tag{'s': codec.TagText, 'i': codec.TagInt, 'f': codec.TagFloat}[m.kind]
		if got := string(codec.AppendServed(nil, data[0])); got != m.show() || data[0].Tag != tag {
			t.Fatalf("%q (tag %d), want %q (%c)", got, data[0].Tag, m.show(), m.kind)
		}
	}
}

func FuzzMerge(f *testing.F) {
	f.Add(str(codec.IntData(1)), operand(1002, codec.IntData(1)), operand(123, text("a")))
	f.Add(hash(1), operand(160, codec.IntData(1)), operand(55, codec.IntData(9)))
	f.Fuzz(func(t *testing.T, base, a, b []byte) {
		for _, key := range [][]byte{metaKey, fieldKey} {
			if len(a) > 100 || len(b) > 100 {
				t.Skip()
			}
			once, keep, err := fold(nil, key, base, [][]byte{a, b})
			if err != nil || keep != (len(once) > 0) {
				t.Fatalf("%x, %v, %v", once, keep, err)
			}
			if again, _, _ := fold(nil, key, base, [][]byte{a, b}); !bytes.Equal(once, again) {
				t.Fatalf("%x and %x", once, again)
			}
		}
	})
}

func TestHLLDialects(t *testing.T) {
	s, _, _ := pfAdd(nil, [][]byte{[]byte("a")})
	if RedisStale(s) || RedisStale([]byte("HYLL")) || RedisStale(nil) {
		t.Error("Ardb's own is taken for Redis's")
	}
	redis := bytes.Clone(s)
	redis[8], redis[15] = 0, 0x80
	if !RedisStale(redis) || !bytes.Equal(FromRedis(redis), s) || redis[15] != 0x80 {
		t.Errorf("%x", FromRedis(redis))
	}
}
