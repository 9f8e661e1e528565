package jsonl

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"testing"

	"kvferry/record"
)

func line(t *testing.T, e Encoder, h record.Header, elems ...record.Element) string {
	t.Helper()
	b := e.AppendBegin(nil, &h)
	for i := range elems {
		var err error
		if b, err = e.AppendElement(b, &elems[i]); err != nil {
			t.Fatal(err)
		}
	}
	b = e.AppendEnd(b)
	if !json.Valid(b) {
		t.Errorf("not JSON: %s", b)
	}
	return string(b)
}

func elem(name, value string) record.Element {
	return record.Element{Name: []byte(name), Value: []byte(value)}
}

func id(ms, seq uint64) string {
	return string(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, ms), seq))
}

func TestLines(t *testing.T) {
	key := []byte("k")
	pairs := record.AppendPair(record.AppendPair(nil, []byte("a"), []byte("1")), []byte("b"), nil)
	for _, c := range []struct {
		e     Encoder
		h     record.Header
		elems []record.Element
		want  string
	}{
		{Encoder{}, record.Header{DB: "0", Type: record.String, Key: key}, []record.Element{elem("", "v\"\\\n\x01é")},
			`{"db":"0","type":"string","key":"k","expire_at_ms":0,"value":"v\"\\\n\u0001é"}`},
		{Encoder{}, record.Header{DB: "1", Type: record.Hash, Key: []byte{0xFF}, ExpireMS: 1700000000123},
			[]record.Element{elem("f", "v"), elem("", "\xfe")},
			`{"db":"1","type":"hash","key":{"base64":"/w=="},"expire_at_ms":1700000000123,"value":[["f","v"],["",{"base64":"/g=="}]]}`},
		{Encoder{}, record.Header{DB: "0", Type: record.List, Key: key}, []record.Element{elem("", "x"), elem("", "x")},
			`{"db":"0","type":"list","key":"k","expire_at_ms":0,"value":["x","x"]}`},
		{Encoder{}, record.Header{DB: "0", Type: record.Set, Key: nil}, []record.Element{elem("m", "")},
			`{"db":"0","type":"set","key":"","expire_at_ms":0,"value":["m"]}`},
		{Encoder{}, record.Header{DB: "a\"b", Type: record.ZSet, Key: key},
			[]record.Element{{Name: []byte("alice"), Score: 1.5}, {Name: []byte("bob"), Score: math.Inf(-1)}},
			`{"db":"a\"b","type":"zset","key":"k","expire_at_ms":0,"value":[["alice","1.5"],["bob","-inf"]]}`},
		{Encoder{}, record.Header{DB: "0", Type: record.Stream, Key: key},
			[]record.Element{{Name: []byte(id(5000, 1)), Value: pairs}, {Name: []byte(id(math.MaxUint64, 0))}},
			`{"db":"0","type":"stream","key":"k","expire_at_ms":0,"value":[["5000-1",[["a","1"],["b",""]]],["18446744073709551615-0",[]]]}`},
		{Encoder{Base64: true}, record.Header{DB: "0", Type: record.Hash, Key: key}, []record.Element{elem("f", "")},
			`{"db":"0","type":"hash","key":"aw==","expire_at_ms":0,"value":[["Zg==",""]]}`},
		{Encoder{Objects: true}, record.Header{DB: "0", Type: record.Hash, Key: key, ExpireMS: 1800000000123},
			[]record.Element{elem("f", "v"), elem("\xfe", "\xff"), {Name: []byte("base64:x"), ExpireMS: 1800000000000}},
			`{"db":"0","type":"hash","key":"k","expire_at":"2027-01-15T08:00:00.123Z","value":{"f":"v","base64:/g==":{"base64":"/w=="},` +
				`"base64:YmFzZTY0Ong=":{"value":"","expire_at":"2027-01-15T08:00:00.000Z"}}}`},
		{Encoder{Objects: true}, record.Header{DB: "0", Type: record.ZSet, Key: key},
			[]record.Element{{Name: []byte("a"), Score: 1.5}, {Name: []byte("b"), Score: math.Inf(-1)}, {Name: []byte("c"), Score: 1e300}},
			`{"db":"0","type":"zset","key":"k","expire_at":null,"value":{"a":1.5,"b":"-inf","c":1e+300}}`},
		{Encoder{Objects: true}, record.Header{DB: "0", Type: record.Set, Key: key, ExpireMS: 253402300800000}, []record.Element{elem("m", "")},
			`{"db":"0","type":"set","key":"k","expire_at":"10000-01-01T00:00:00.000Z","value":["m"]}`},
		{Encoder{Objects: true, Base64: true}, record.Header{DB: "0", Type: record.Hash, Key: key}, []record.Element{elem("f", "")},
			`{"db":"0","type":"hash","key":"aw==","expire_at":null,"value":{"Zg==":""}}`},
		{Encoder{Objects: true, KeysOnly: true}, record.Header{DB: "0", Type: record.Hash, Key: key}, nil,
			`{"db":"0","type":"hash","key":"k","expire_at":null}`},
		{Encoder{KeysOnly: true}, record.Header{DB: "0", Type: record.Hash, Key: key}, nil,
			`{"db":"0","type":"hash","key":"k","expire_at_ms":0}`},
	} {
		if got := line(t, c.e, c.h, c.elems...); got != c.want+"\n" {
			t.Errorf("got  %swant %s", got, c.want)
		}
	}
}

func TestDamagedStreamEntries(t *testing.T) {
	for _, el := range []record.Element{
		elem("short", ""),
		elem(id(1, 1), "\x05ab"),
		elem(id(1, 1), "\x01a"),
	} {
		e := Encoder{}
		b := e.AppendBegin(nil, &record.Header{Type: record.Stream})
		if _, err := e.AppendElement(b, &el); err == nil {
			t.Errorf("%q: no error", el.Value)
		}
	}
}

func TestScores(t *testing.T) {
	for f, want := range map[float64]string{
		0: "0", 1e13: "10000000000000", 9007199254740993: "9007199254740992", 0.75: "0.75", 1e-5: "1e-05",
		1e17: "1e+17", 5e-324: "5e-324", 9.223372036854776e18: "9.223372036854776e+18",
		3.141592653589793: "3.141592653589793", 123456789.5: "123456789.5", math.Inf(1): "inf",
	} {
		if got := string(AppendScore(nil, f)); got != want {
			t.Errorf("%v: got %s, want %s", f, got, want)
		}
	}
	if got := string(AppendScore(nil, math.Copysign(0, -1))); got != "-0" {
		t.Errorf("-0.0: got %s", got)
	}
	if got := string(AppendScore(nil, math.NaN())); got != "nan" {
		t.Errorf("NaN: got %s", got)
	}
}

func FuzzScoreRoundTrip(f *testing.F) {
	f.Add(uint64(0))
	f.Add(math.Float64bits(1e16 + 1))
	f.Fuzz(func(t *testing.T, bits uint64) {
		v := math.Float64frombits(bits)
		got, err := strconv.ParseFloat(string(AppendScore(nil, v)), 64)
		if err != nil || (math.Float64bits(got) != bits && !math.IsNaN(v)) {
			t.Errorf("%x: %v, %v", bits, got, err)
		}
	})
}

func FuzzAppendText(f *testing.F) {
	for _, s := range []string{"", "plain", "\x00\x1f\"\\/", "é\u2028", "\xff\xfe", "a\xc3"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		e := Encoder{}
		var v any
		if err := json.Unmarshal(e.AppendText(nil, b), &v); err != nil {
			t.Fatal(err)
		}
		got, ok := v.(string)
		if !ok {
			raw, err := base64.StdEncoding.DecodeString(v.(map[string]any)["base64"].(string))
			if err != nil {
				t.Fatal(err)
			}
			got = string(raw)
		}
		if got != string(b) {
			t.Errorf("%q came back as %q", b, got)
		}
	})
}

func TestAllocatesNothing(t *testing.T) {
	e := Encoder{}
	h := record.Header{DB: "0", Type: record.ZSet, Key: []byte("key\xff")}
	el := record.Element{Name: []byte("member\n"), Score: 3.25}
	buf := make([]byte, 0, 1024)
	if n := testing.AllocsPerRun(100, func() {
		b, _ := e.AppendElement(e.AppendBegin(buf, &h), &el)
		e.AppendEnd(b)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkAppendText(b *testing.B) {
	for name, text := range map[string][]byte{
		"ascii":  []byte(strings.Repeat("the quick brown fox ", 5)),
		"binary": bytes.Repeat([]byte{0xFF, 'a'}, 50),
	} {
		b.Run(name, func(b *testing.B) {
			e := Encoder{}
			var buf []byte
			b.SetBytes(int64(len(text)))
			for range b.N {
				buf = e.AppendText(buf[:0], text)
			}
		})
	}
}
