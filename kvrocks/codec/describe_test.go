package codec

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"kvferry/format"
	"kvferry/internal/testkit/formattest"
	"kvferry/record"
)

// described lists rows of each kind and their descriptions. meta is the value of their metadata row.
var described = []struct{ family, key, value, meta, want string }{
	{FamilyMetadata, nsText + "'s'", "81 000001dd9661ec7b 'v'", "",
		`string metadata, string, key "s", version 0, count -1, expires 2051222400123: key k[12:13]="s" flags v[0:1]=129 expiry v[1:9]=2035-01-01T00:00:00.123Z value v[9:10]="v"`},
	{FamilyMetadata, nsText + "'j'", "0a 00000001 00 '[]'", "",
		`ReJSON-RL metadata, other, key "j", version 0, count -1, expires 1000: key k[12:13]="j" flags v[0:1]=10 expiry v[1:5]=1970-01-01T00:00:01Z format v[5:6]=0 value v[6:8]="[]"`},
	{FamilyMetadata, nsText + "'l'", "83 0000000000000000 0000000000000007 0000000000000002 7fffffffffffffff 8000000000000001", "",
		`list metadata, list, key "l", version 7, count 2, expires 0: key k[12:13]="l" flags v[0:1]=131 expiry v[1:9]=0 version v[9:17]=7 size v[17:25]=2 head v[25:33]=9223372036854775807 tail v[33:41]=9223372036854775809`},
	{FamilyMetadata, nsText + "'b'", "09 00000000 0000000000000007 00000003 0001 0002 00000064 bff3333333333333 00000020", "",
		`MBbloom-- metadata, other, key "b", version 7, count 3, expires 0: key k[12:13]="b" flags v[0:1]=9 expiry v[1:5]=0 version v[5:13]=7 size v[13:17]=3 filters v[17:19]=1 expansion v[19:21]=2 capacity v[21:25]=100 error rate v[25:33]=1.2 bytes v[33:37]=32`},
	{FamilyMetadata, nsText + "'x'", "88 0000000000000000 0000000000000007 0000000000000002 0000000000000005 0000000000000001 0000000000000003 0000000000000000 " +
		"0000000000000004 0000000000000002 0000000000000003 0000000000000000 0000000000000005 0000000000000001 0000000000000009 0000000000000001", "",
		`stream metadata, stream, key "x", version 7, count 2, expires 0: key k[12:13]="x" flags v[0:1]=136 expiry v[1:9]=0 version v[9:17]=7 size v[17:25]=2 last generated v[25:41]=5-1 recorded first v[41:57]=3-0 max deleted v[57:73]=4-2 first v[73:89]=3-0 last v[89:105]=5-1 entries added v[105:113]=9 groups v[113:121]=1`},
	{FamilyMetadata, nsText + "'p'", "0b 00000000 0000000000000007 00000000 01", "", `hyperloglog metadata, string, key "p", version 7, count -1, expires 0: key k[12:13]="p" flags v[0:1]=11 expiry v[1:5]=0 version v[5:13]=7 size v[13:17]=0 encoding v[17:18]=1; offset 17: encoding: 1 is not known`},
	{FamilyMetadata, nsText + "'d'", "0c 00000000 0000000000000007 00000003 00000064 00000258 0000000000000001 0000000000000002 0000000000000003 0000000000000004 " +
		"bff0000000000000 c008000000000000 0000000000000005 0000000000000006 ee", "", `TDIS-TYPE metadata, other, key "d", version 7, count 3, expires 0: key k[12:13]="d" flags v[0:1]=12 expiry v[1:5]=0 version v[5:13]=7 size v[13:17]=3 compression v[17:21]=100 capacity v[21:25]=600 ` +
		`unmerged v[25:33]=1 merged v[33:41]=2 total weight v[41:49]=3 merged weight v[49:57]=4 min v[57:65]=1 max v[65:73]=3 observations v[73:81]=5 merges v[81:89]=6 extras v[89:90]="\xee"; offset 89: TDIS-TYPE: 1 bytes after it: bytes left over`},
	{FamilyMetadata, nsText + "'t'", "0d 00000000 0000000000000007 00000003 0000000000000064 0000000000000400 01 02 000000000000000000000000", "", `timeseries metadata, other, key "t", version 7, count 3, expires 0: key k[12:13]="t" flags v[0:1]=13 expiry v[1:5]=0 version v[5:13]=7 size v[13:17]=3 retention v[17:25]=100 ` +
		`chunk size v[25:33]=1024 chunk type v[33:34]=1 duplicate policy v[34:35]=2 extras v[35:47]="\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"`},
	{FamilyMetadata, nsText + "'q'", "8f 0000000000000000", "",
		`type 15 metadata, other, key "q", version 0, count -1, expires 0: key k[12:13]="q" flags v[0:1]=143 expiry v[1:9]=0 value v[9:9]=""; offset 0: flags: type 15 is not known`},
	{FamilyMetadata, nsText + "'e'", "", "",
		`metadata, invalid, key "e", version -1, count -1, expires 0: key k[12:13]="e" undecoded v[0:0]=""; offset 0: flags: need 1 bytes, have 0: too short`},
	{FamilyMetadata, "f0", "00", "",
		`type 0 metadata, other, key "", version -1, count -1, expires 0: undecoded k[0:1]="\xf0" flags v[0:1]=0 undecoded v[1:1]=""; offset 1: namespace: need 240 bytes, have 0: too short; offset 1: expiry: need 4 bytes, have 0: too short`},
	{FamilyDefault, nsText + "00000001 'h' 0000000000000007 'f'", "'v'", "82 0000000000000000 0000000000000007 0000000000000001",
		`hash field, hash, key "h", version 7, count -1, expires 0: klen k[12:16]=1 key k[16:17]="h" version k[17:25]=7 field k[25:26]="f" value v[0:1]="v"`},
	{FamilyDefault, nsText + "00000001 'h' 0000000000000007 'f'", "'v'", "",
		`element, invalid, key "h", version 7, count -1, expires 0: klen k[12:16]=1 key k[16:17]="h" version k[17:25]=7 sub k[25:26]="f" value v[0:1]="v"`},
	{FamilyDefault, nsText + "00000001 'h' 0000000000000007 'f'", "'v'", "82 00",
		`element, invalid, key "h", version 7, count -1, expires 0: klen k[12:16]=1 key k[16:17]="h" version k[17:25]=7 sub k[25:26]="f" value v[0:1]="v"`},
	{FamilyDefault, nsText + "00000001 'l' 0000000000000007 7fffffffffffffff", "'v'", "03 00000000 0000000000000007 00000001 7fffffffffffffff 8000000000000000",
		`list element, list, key "l", version 7, count -1, expires 0: klen k[12:16]=1 key k[16:17]="l" version k[17:25]=7 index k[25:33]=9223372036854775807 value v[0:1]="v"`},
	{FamilyDefault, nsText + "00000001 'l' 0000000000000007 'x'", "'v'", "03 00000000 0000000000000007 00000001 7fffffffffffffff 8000000000000000",
		`list element, list, key "l", version 7, count -1, expires 0: klen k[12:16]=1 key k[16:17]="l" version k[17:25]=7 undecoded k[25:26]="x" value v[0:1]="v"; offset 25: index: need 8 bytes, have 1: too short`},
	{FamilyDefault, nsText + "00000001 'z' 0000000000000007 'm'", "c014000000000000", "05 00000000 0000000000000007 00000001",
		`zset member, zset, key "z", version 7, count -1, expires 0: klen k[12:16]=1 key k[16:17]="z" version k[17:25]=7 member k[25:26]="m" score v[0:8]=5`},
	{FamilyDefault, nsText + "00000001 'z' 0000000000000007 'm'", "c0", "05 00000000 0000000000000007 00000001",
		`zset member, zset, key "z", version 7, count -1, expires 0: klen k[12:16]=1 key k[16:17]="z" version k[17:25]=7 member k[25:26]="m" undecoded v[0:1]="\xc0"; offset 0: score: need 8 bytes, have 1: too short`},
	{FamilyDefault, nsText + "00000001 'b' 0000000000000007 '1024'", "08", "06 00000000 0000000000000007 00000401",
		`bitmap segment, string, key "b", version 7, count -1, expires 0: klen k[12:16]=1 key k[16:17]="b" version k[17:25]=7 offset k[25:29]="1024" value v[0:1]="\b"`},
	{FamilyDefault, nsText + "00000001 'b' 0000000000000007 '7'", "08", "06 00000000 0000000000000007 00000401",
		`bitmap segment, string, key "b", version 7, count -1, expires 0: klen k[12:16]=1 key k[16:17]="b" version k[17:25]=7 offset k[25:26]="7" undecoded k[25:26]="7" value v[0:1]="\b"; offset 0: offset: 7 is not a multiple of 1024`},
	{FamilyDefault, nsText + "00000001 'i' 0000000000000007 0000000000000102", "", "07 00000000 0000000000000007 00000001",
		`sortedint id, set, key "i", version 7, count -1, expires 0: klen k[12:16]=1 key k[16:17]="i" version k[17:25]=7 id k[25:33]=258`},
	{FamilyDefault, nsText + "00000001 'i' 0000000000000007 0000000000000102", "'v'", "07 00000000 0000000000000007 00000001",
		`sortedint id, set, key "i", version 7, count -1, expires 0: klen k[12:16]=1 key k[16:17]="i" version k[17:25]=7 id k[25:33]=258 undecoded v[0:1]="v"; offset 0: value: 1 bytes after it: bytes left over`},
	{FamilyDefault, nsText + "00000001 'p' 0000000000000007 '16'", "00", "0b 00000000 0000000000000007 00000000 00",
		`hyperloglog segment, string, key "p", version 7, count -1, expires 0: klen k[12:16]=1 key k[16:17]="p" version k[17:25]=7 segment k[25:27]="16" undecoded k[25:27]="16" value v[0:1]="\x00"; offset 0: segment: "16" is not a number from 0 to 15`},
	{FamilyDefault, nsText + "00000001 'h' 0000000000000007 'f'", "000003bb2cc3d800 'v'", expiringHash,
		`hash field, hash, key "h", version 7, count -1, expires 4102444800000: klen k[12:16]=1 key k[16:17]="h" version k[17:25]=7 field k[25:26]="f" expiry v[0:8]=2100-01-01T00:00:00Z value v[8:9]="v"`},
	{FamilyDefault, nsText + "00000001 'h' 0000000000000007 'f'", "00", expiringHash,
		`hash field, hash, key "h", version 7, count -1, expires 0: klen k[12:16]=1 key k[16:17]="h" version k[17:25]=7 field k[25:26]="f" undecoded v[0:1]="\x00"; offset 0: expiry: need 8 bytes, have 1: too short`},
	{FamilyDefault, nsText + "00000009 'h'", "", "",
		`element, invalid, key "", version -1, count -1, expires 0: undecoded k[12:17]="\x00\x00\x00\th"; offset 12: klen: 9 bytes of key, have 1: too short`},
	{FamilyScore, nsText + "00000001 'z' 0000000000000007 c014000000000000 'm'", "", "",
		`zset member by score, zset, key "z", version 7, count -1, expires 0: klen k[12:16]=1 key k[16:17]="z" version k[17:25]=7 score k[25:33]=5 member k[33:34]="m"`},
	{FamilyScore, nsText + "00000001 'z' 0000000000000007 c0", "'v'", "",
		`zset member by score, zset, key "z", version 7, count -1, expires 0: klen k[12:16]=1 key k[16:17]="z" version k[17:25]=7 undecoded k[25:26]="\xc0" undecoded v[0:1]="v"; offset 25: score: need 8 bytes, have 1: too short; offset 0: value: 1 bytes after it: bytes left over`},
	{FamilyStream, nsText + "00000001 'x' 0000000000000007 0000000000000003 0000000000000001", "01 'f' 01 'v'", "",
		`stream entry, stream, key "x", version 7, count -1, expires 0: klen k[12:16]=1 key k[16:17]="x" version k[17:25]=7 id k[25:41]=3-1 field v[0:3]="f" value v[3:4]="v"`},
	{FamilyStream, nsText + "00000001 'x' 0000000000000007 0000000000000003 0000000000000001", "01 'f' 09 'v'", "",
		`stream entry, stream, key "x", version 7, count -1, expires 0: klen k[12:16]=1 key k[16:17]="x" version k[17:25]=7 id k[25:41]=3-1 undecoded v[0:4]="\x01f\tv"; offset 1: value: need 9 bytes, have 1: too short`},
	{FamilyStream, nsText + "00000001 'x' 0000000000000007 ffffffffffffffff 01 0000000000000001 'g'",
		"0000000000000001 0000000000000002 0000000000000003 0000000000000001 ffffffffffffffff 0000000000000004", "",
		`stream group, stream, key "x", version 7, count -1, expires 0: klen k[12:16]=1 key k[16:17]="x" version k[17:25]=7 group k[25:43]="g" consumers v[0:8]=1 pending v[8:16]=2 last delivered v[16:32]=3-1 entries read v[32:40]=-1 lag v[40:48]=4`},
	{FamilyStream, nsText + "00000001 'x' 0000000000000007 0000000000000001 'g' 0000000000000002 'c1' 'METADATA'",
		"0000000000000002 0000018bcfe56800 0000000000000000", "",
		`stream consumer, stream, key "x", version 7, count -1, expires 0: klen k[12:16]=1 key k[16:17]="x" version k[17:25]=7 group k[25:52]="g" consumer k[25:25]="c1" pending v[0:8]=2 last attempt v[8:16]=1700000000000 last success v[16:24]=0`},
	{FamilyStream, nsText + "00000001 'x' 0000000000000007 ffffffffffffffff 03 0000000000000001 'g' 0000000000000003 0000000000000001",
		"0000018bcfe56800 0000000000000003 0000000000000002 'c1'", "",
		`stream pending entry, stream, key "x", version 7, count -1, expires 0: klen k[12:16]=1 key k[16:17]="x" version k[17:25]=7 group k[25:59]="g" id k[25:25]=3-1 delivered v[0:8]=1700000000000 count v[8:16]=3 consumer v[24:26]="c1"`},
	{FamilyStream, nsText + "00000001 'x' 0000000000000007 ffffffffffffffff 01 0000000000000001 'g'", "00", "",
		`stream group, stream, key "x", version 7, count -1, expires 0: klen k[12:16]=1 key k[16:17]="x" version k[17:25]=7 group k[25:43]="g" undecoded v[0:1]="\x00"; offset 0: group: need 48 bytes, have 1: too short`},
	{FamilyStream, nsText + "00000001 'x' 0000000000000007 'short'", "00", "",
		`stream row, stream, key "x", version 7, count -1, expires 0: klen k[12:16]=1 key k[16:17]="x" version k[17:25]=7 undecoded k[25:30]="short" value v[0:1]="\x00"; offset 0: group length: need 8 bytes, have 5: too short`},
	{FamilyPropagate, "'lua_f_x'", "'return'", "",
		`propagate, invalid, key "", version -1, count -1, expires 0: key k[0:7]="lua_f_x" value v[0:6]="return"`},
	{"foo", "'a'", "'b'", "",
		`unknown, invalid, key "", version -1, count -1, expires 0: key k[0:1]="a" value v[0:1]="b"`},
}

const expiringHash = "02 00000000 0000000000000007 00000002 01 0000000000000001 0000000000000000 0000000000000000"

// told formats the description of a row in one line, without the namespace.
func told(r *format.Row) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %v, key %q, version %d, count %d, expires %d:", r.Kind, r.Type, r.UserKey, r.Version, r.Count,
		r.ExpireMS)
	for _, f := range r.Fields {
		fmt.Fprintf(&b, " %s %s[%d:%d]=%s", f.Name, f.Where[:1], f.Off, f.Off+f.Len, formattest.ShowValue(f.Value))
	}
	if r.Err != nil {
		b.WriteString("; " + strings.ReplaceAll(r.Err.Error(), "\n", "; "))
	}
	return strings.Replace(b.String(), ` nslen k[0:1]=11 namespace k[1:12]="__namespace"`, "", 1)
}

func TestDescribe(t *testing.T) {
	for _, c := range described {
		lookup := func(key []byte) []byte {
			if c.meta == "" {
				return nil
			}
			return raw(t, c.meta)
		}
		key, value := raw(t, c.key), raw(t, c.value)
		row := Describe(c.family, key, value, false, lookup)
		if got := told(&row); got != c.want {
			t.Errorf("%s %s %s:\ngot  %s\nwant %s", c.family, c.key, c.value, got, c.want)
		}
		sweepRow(t, c.family, key, value, lookup)
	}
}

// sweepRow describes the row truncated anywhere or with a byte changed: fields stay within it, and errors have an
// offset.
func sweepRow(t *testing.T, family string, key, value []byte, lookup func([]byte) []byte) {
	t.Helper()
	check := func(key, value []byte, slotted bool) {
		row := Describe(family, key, value, slotted, lookup)
		for _, f := range row.Fields {
			of := value
			if f.Where == "key" {
				of = key
			}
			if f.Off < 0 || f.Len < 0 || f.Off+f.Len > len(of) {
				t.Fatalf("%s %x %x: field %s is at %d to %d of %d bytes", family, key, value, f.Name, f.Off, f.Off+f.Len, len(of))
			}
		}
		if c := new(record.CorruptError); row.Err != nil && !errors.As(row.Err, &c) && !strings.Contains(row.Err.Error(), "slot") {
			t.Fatalf("%s %x %x: %v", family, key, value, row.Err)
		}
	}
	for _, slotted := range []bool{false, true} {
		for n := range len(key) {
			check(key[:n], value, slotted)
			changed := append([]byte{}, key...)
			changed[n] ^= 0xff
			check(changed, value, slotted)
		}
		for n := range len(value) {
			check(key, value[:n], slotted)
			changed := append([]byte{}, value...)
			changed[n] ^= 0xff
			check(key, changed, slotted)
		}
	}
}

// FuzzDescribe describes any bytes.
func FuzzDescribe(f *testing.F) {
	for _, c := range described {
		f.Add(c.family, raw(f, c.key), raw(f, c.value), raw(f, c.meta))
	}
	f.Fuzz(func(t *testing.T, family string, key, value, meta []byte) {
		if len(key)+len(value) < 100 {
			sweepRow(t, family, append(key, 0), append(value, 0), func([]byte) []byte { return meta })
		}
	})
}

// TestReverse: the bits of a byte are reversed.
func TestReverse(t *testing.T) {
	dst := []byte{1, 1, 1}
	Reverse(dst, []byte{0x80, 0x03})
	if string(dst) != "\x01\xc0\x01" {
		t.Errorf("%x", dst)
	}
}

// TestCheckPairs: the error has the offset of the invalid pair.
func TestCheckPairs(t *testing.T) {
	good := record.AppendPair(record.AppendPair(nil, []byte("f"), []byte("v")), []byte("g"), nil)
	if err := CheckPairs(good); err != nil {
		t.Error(err)
	}
	var c *record.CorruptError
	if err := CheckPairs(good[:len(good)-1]); !errors.As(err, &c) || c.Off != 4 {
		t.Errorf("%v, %+v", err, c)
	}
}

// TestLastValue: rows of one key look up its metadata once, even if it has none.
func TestLastValue(t *testing.T) {
	var l LastValue
	asked := ""
	look := func(key []byte) []byte {
		asked += string(key) + " "
		if string(key) == "none" {
			return nil
		}
		return append([]byte("value of "), key...)
	}
	for _, c := range []struct {
		key, want string
	}{{"", "value of "}, {"a", "value of a"}, {"a", "value of a"}, {"none", ""}, {"none", ""}, {"b", "value of b"}, {"a", "value of a"}} {
		key := []byte(c.key)
		if got := l.Of(key, look); string(got) != c.want {
			t.Errorf("%q: %q", c.key, got)
		}
		clear(key) // it is a view of a row
	}
	if asked != " a none b a " {
		t.Errorf("asked for %q", asked)
	}
}
