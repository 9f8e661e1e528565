package blackwidow_test

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"kvferry/blackwidow"
	"kvferry/internal/shared/versioned"
	"kvferry/internal/testkit/formattest"
	"kvferry/record"
)

func TestDescribe(t *testing.T) {
	expiring := blackwidow.AppendStringValue(nil, blackwidow.StringValue{Bytes: []byte("v"), Expiry: 1700000000})
	var outcomes strings.Builder
	src := whole(t).Open(t)
	for i, c := range []struct {
		keyspace   string
		key, value []byte
		want       string
	}{
		{"strings/default", k, expiring, `string of "k" meta until 1700000000000; key key="k" @0+1; value string="v" @0+1; value expiry=2023-11-14T22:13:20Z @1+4`},
		{"strings/default", k, []byte("abc"), `string of "k" meta; key key="k" @0+1; value undecoded="abc" @0+3; error offset 0: expiry: need 4 bytes, have 3: too short`},
		{"hashes/default", k, meta(2, 5, 0), `hash meta of "k" meta v5 n2; key key="k" @0+1; value count=2 @0+4; value version=5 @4+4; value expiry=0 @8+4`},
		{"sets/default", k, nil, `set meta of "k" meta; key key="k" @0+1; value undecoded="" @0+0; error offset 0: count, version, expiry: need 12 bytes, have 0: too short`},
		{"lists/default", k, listMeta(1, left, first+1), `list meta of "k" meta v5 n1; key key="k" @0+1; value count=1 @0+8; value version=5 @8+4; value expiry=0 @12+4; ` +
			`value left=9223372036854775807 @16+8; value right=9223372036854775809 @24+8`},
		{"lists/default", k, listMeta(math.MaxUint64, 0, 0)[:31], `list meta of "k" meta; key key="k" @0+1; value undecoded="` +
			strings.Repeat(`\xff`, 8) + `\x05` + strings.Repeat(`\x00`, 22) + `" @0+31; error offset 0: count, version, expiry, left, right: need 32 bytes, have 31: too short`},
		{"hashes/data_cf", dataKey("k", 5, "f"), []byte("v"), `hash field of "k" v5; key klen=1 @0+4; key key="k" @4+1; key version=5 @5+4; key field="f" @9+1; value value="v" @0+1`},
		{"0/sets/member_cf", dataKey("", 5, "m"), nil, `set member of "" v5; key klen=0 @0+4; key key="" @4+0; key version=5 @4+4; key member="m" @8+1`},
		{"sets/member_cf", dataKey("", 5, ""), []byte("x"), `set member of "" v5; key klen=0 @0+4; key key="" @4+0; key version=5 @4+4; key member="" @8+0; value undecoded="x" @0+1; ` +
			`error offset 0: value: 1 bytes beyond the 0: bytes left over`},
		{"zsets/data_cf", dataKey("k", 5, "m"), score(1.5), `zset member of "k" v5; key klen=1 @0+4; key key="k" @4+1; key version=5 @5+4; key member="m" @9+1; value score=1.5 @0+8`},
		{"zsets/data_cf", []byte("\x09\x00\x00\x00k"), []byte("x"), `zset member of ""; key klen=9 @0+4; key undecoded="k" @4+1; value undecoded="x" @0+1; ` +
			`error offset 4: klen: need 9 bytes, have 1: too short | offset 0: score: need 8 bytes, have 1: too short`},
		{"zsets/score_cf", scoreKey("k", 5, math.Inf(-1), "m"), nil, `zset member by score of "k" v5; key klen=1 @0+4; key key="k" @4+1; key version=5 @5+4; key score=-Inf @9+8; key member="m" @17+1`},
		{"zsets/score_cf", dataKey("k", 5, "m"), nil, `zset member by score of "k" v5; key klen=1 @0+4; key key="k" @4+1; key version=5 @5+4; key undecoded="m" @9+1; ` +
			`error offset 9: score: need 8 bytes, have 1: too short`},
		{"zsets/data_cf", []byte("\xff\xff\xff\x7fk"), score(1.5), `zset member of ""; key klen=2147483647 @0+4; key undecoded="k" @4+1; value score=1.5 @0+8; ` +
			`error offset 4: klen: need 2,147,483,647 bytes, have 1: too short`},
		{"zsets/score_cf", []byte("\x01"), nil, `zset member by score of ""; key undecoded="\x01" @0+1; error offset 0: klen: need 4 bytes, have 1: too short`},
		{"lists/data_cf", itemKey("k", 5, first), []byte("x"), `list element of "k" v5; key klen=1 @0+4; key key="k" @4+1; key version=5 @5+4; key index=9223372036854775808 @9+8; value value="x" @0+1`},
		{"lists/data_cf", dataKey("k", 5, "123456789"), nil, `list element of "k" v5; key klen=1 @0+4; key key="k" @4+1; key version=5 @5+4; key undecoded="123456789" @9+9; ` +
			`value value="" @0+0; error offset 17: index: 1 bytes beyond the 8: bytes left over`},
		{"kv/default", k, nil, `unknown of ""`},
		{"streams/default", k, blackwidow.AppendStreamMeta(nil, blackwidow.StreamMeta{Stream: versioned.StreamMeta{Added: 3, Last: versioned.ID{7: 1, 15: 2}}, Length: 2, Version: 5}), ``},
	} {
		say := func(key, value []byte) string { return formattest.ShowRow(src.Describe("0", c.keyspace, key, value)) }
		if got := say(c.key, c.value); got != c.want && c.want != "" { // TestDescribeStream has that
			t.Errorf("%s %q:\ngot  %s\nwant %s", c.keyspace, c.key, got, c.want)
		}
		fmt.Fprintf(&outcomes, "row %d: key %s, value %s\n\n", i,
			formattest.Damaged(c.key, func(b []byte) string { return say(b, c.value) }),
			formattest.Damaged(c.value, func(b []byte) string { return say(c.key, b) }))
	}
	formattest.CheckOutcomes(t, "testdata/outcomes.txt", outcomes.String())
}

// TestDescribeGoldens: every row of the golden databases is fully decoded: its fields cover its bytes.
func TestDescribeGoldens(t *testing.T) {
	for _, name := range goldens {
		src := formattest.OpenGolden(t, blackwidow.New(), name)
		for _, ks := range src.Keyspaces() {
			it, err := ks.Rows(nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for key, value, err := it.Next(); err == nil && n < 2000; key, value, err = it.Next() {
				n++
				row := src.Describe("0", ks.Name, key, value)
				covered := 0
				for _, f := range row.Fields {
					covered += f.Len
				}
				if row.Err != nil || row.Type == 0 || covered != len(key)+len(value) {
					t.Fatalf("%s: %s: %d bytes of %d", name, formattest.ShowRow(row), covered, len(key)+len(value))
				}
			}
			it.Close()
		}
	}
}

// TestDescribeDamage: Describe never panics and always reports undecoded bytes.
func TestDescribeDamage(t *testing.T) {
	src := whole(t).Open(t)
	for _, ks := range src.Keyspaces() {
		keys, values := rowsOf(t, whole(t), ks.Name)
		for n := range len(keys[0]) {
			src.Describe("0", ks.Name, keys[0][:n], values[0])
			key := bytes.Clone(keys[0])
			key[n] ^= 0xff
			if row := src.Describe("0", ks.Name, key, values[0]); len(row.Fields) == 0 {
				t.Errorf("%s: %q: nothing described", ks.Name, key)
			}
		}
	}
	if src.Format().Name() != "blackwidow" || !src.Sorted() || src.Types("0") != record.RedisTypes&^record.Of(record.Stream) {
		t.Error("source says otherwise")
	}
}

// TestDescribeStream checks the offsets of the fields of a stream's meta row.
func TestDescribeStream(t *testing.T) {
	value := blackwidow.AppendStreamMeta(nil,
		blackwidow.StreamMeta{Stream: versioned.StreamMeta{Added: 3}, Length: 2, Version: 5})
	got := formattest.ShowRow(whole(t).Open(t).Describe("0", "streams/default", []byte("k"), value))
	for _, want := range []string{"stream meta", "value entries added=3 @4+8", "value length=2 @60+4", "value version=5 @64+4"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in %s", want, got)
		}
	}
}
