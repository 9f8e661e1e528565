package floyd_test

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"kvferry/floyd"
	"kvferry/internal/shared/versioned"
	"kvferry/internal/testkit/formattest"
	"kvferry/record"
)

const ms = 1700000000123

func metaKey(key string) []byte { return floyd.AppendMetaKey(nil, floyd.MetaKey{Key: []byte(key)}) }

func dataKey(key, name string) []byte {
	return floyd.AppendDataKey(nil, floyd.DataKey{Key: []byte(key), Version: 5, Name: []byte(name)})
}

func scoreKey(key string, score float64, member string) []byte {
	return floyd.AppendScoreKey(nil, floyd.ScoreKey{Key: []byte(key), Version: 5, Score: score, Member: []byte(member)})
}

// describedRows are rows of every kind with the expected descriptions.
var describedRows = []struct {
	keyspace   string
	key, value []byte
	want       string
}{
	{"0/default", metaKey("s"), floyd.AppendStringValue(nil, floyd.StringValue{Bytes: []byte("v"), Ctime: 1700000000, Expiry: floyd.TimeOf(ms)}),
		`string of "s" meta until 1700000000123; key key="s" @8+3; value type=0 @0+1; value string="v" @1+1; value ctime=2023-11-14T22:13:20Z @18+8; ` +
			`value expiry=2023-11-14T22:13:20.123Z @26+8`},
	{"0/default", metaKey("l"), floyd.AppendStringValue(nil, floyd.StringValue{HyperLogLog: true}),
		`string of "l" meta; key key="l" @8+3; value type=0 @0+1; value string="" @1+0; value hyperloglog=1 @1+1; value ctime=0 @17+8; value expiry=0 @25+8`},
	{"0/default", append(metaKey("k\x00"), "xyz"...), floyd.AppendMeta(nil, floyd.Meta{Type: record.Hash, Count: 2, Version: 5}),
		`hash meta of "k\x00" meta v5 n2; key key="k\x00" @8+5; key lost="xyz" @29+3; value type=1 @0+1; value count=2 @1+4; value version=5 @5+8; ` +
			`value ctime=0 @29+8; value expiry=0 @37+8`},
	{"0/default", metaKey("k"), floyd.AppendListMeta(nil, floyd.ListMeta{Count: 1, Version: 5, Left: 7, Right: 9}),
		`list meta of "k" meta v5 n1; key key="k" @8+3; value type=3 @0+1; value count=1 @1+8; value version=5 @9+8; value left=7 @17+16; value right=9 @33+16; ` +
			`value ctime=0 @65+8; value expiry=0 @73+8`},
	{"0/default", metaKey("k"), floyd.AppendStreamMeta(nil, floyd.StreamMeta{Stream: versioned.StreamMeta{Added: 3, Last: versioned.ID{7: 1, 15: 2}}, Length: 1, Version: 5}),
		`stream meta of "k" meta v5 n1; key key="k" @8+3; value type=5 @0+1; value entries added=3 @5+8; value first id=0-0 @13+16; value last id=1-2 @29+16; ` +
			`value max deleted id=0-0 @45+16; value length=1 @61+4; value version=5 @65+8`},
	{"0/default", metaKey("k"), []byte{9}, `unknown of "k" meta; key key="k" @8+3; value undecoded="\t" @0+1; error offset 0: type: type 9: written by no known server`},
	{"0/default", metaKey("k"), []byte{2, 0}, `set meta of "k" meta; key key="k" @8+3; value type=2 @0+1; value undecoded="\x00" @1+1; ` +
		`error offset 0: count, version, times: need 45 bytes, have 2: too short`},
	{"0/default", []byte("short"), nil, `unknown of "" meta; key undecoded="short" @0+5; value undecoded="" @0+0; ` +
		`error offset 0: user key: need 8 bytes, have 5: too short | offset 0: type: need 1 bytes, have 0: too short`},
	{"db0/1/hash_data_cf", dataKey("k", "f"), []byte(suffixed("v")),
		`hash field of "k" v5; key key="k" @8+3; key version=5 @11+8; key field="f" @19+1; value value="v" @0+1; value ctime=0 @17+8`},
	{"0/hash_data_cf", dataKey("k", "f"), []byte("42"), `hash field of "k" v5; key key="k" @8+3; key version=5 @11+8; key field="f" @19+1; value value="42" @0+2`},
	{"0/set_data_cf", dataKey("k", "m"), []byte(suffixed("")), `set member of "k" v5; key key="k" @8+3; key version=5 @11+8; key member="m" @19+1; value ctime=0 @16+8`},
	{"0/set_data_cf", dataKey("k", "m"), []byte("odd"), `set member of "k" v5; key key="k" @8+3; key version=5 @11+8; key member="m" @19+1; value undecoded="odd" @0+3; ` +
		`error offset 0: reserved, ctime: need 24 bytes, have 3: too short`},
	{"0/list_data_cf", dataKey("k", "\x07\x00\x00\x00\x00\x00\x00\x00"), []byte(suffixed("v")),
		`list element of "k" v5; key key="k" @8+3; key version=5 @11+8; key index=7 @19+8; value value="v" @0+1; value ctime=0 @17+8`},
	{"0/list_data_cf", dataKey("k", "\x07"), []byte("v"), `list element of "k" v5; key key="k" @8+3; key version=5 @11+8; key undecoded="\a` + strings.Repeat(`\x00`, 16) + `" @19+17; ` +
		`value undecoded="v" @0+1; error offset 19: list element: need 8 bytes, have 1: too short | offset 0: reserved, ctime: need 24 bytes, have 1: too short`},
	{"0/zset_data_cf", dataKey("k", "m"), []byte(suffixed("\x00\x00\x00\x00\x00\x00\xf8\x3f")),
		`zset member of "k" v5; key key="k" @8+3; key version=5 @11+8; key member="m" @19+1; value score=1.5 @0+8; value ctime=0 @24+8`},
	{"0/zset_score_cf", scoreKey("k", math.Inf(-1), "m"), []byte(suffixed("")),
		`zset member by score of "k" v5; key key="k" @8+3; key version=5 @11+8; key score=-Inf @19+8; key member="m" @27+1; value ctime=0 @16+8`},
	{"0/stream_data_cf", dataKey("k", "\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x02"), []byte("\x01\x00\x00\x00f\x01\x00\x00\x00v"),
		`stream entry of "k" v5; key key="k" @8+3; key version=5 @11+8; key id=1-2 @19+16; value field="f" @0+5; value value="v" @5+5`},
	{"0/hash_data_cf", metaKey("k")[:15], nil, ``},
	{"0/other_cf", dataKey("k", "f"), nil, `unknown of ""`},
}

func TestDescribe(t *testing.T) {
	src := plant(t).Open(t)
	for _, c := range describedRows {
		got := formattest.ShowRow(src.Describe("0", c.keyspace, c.key, c.value))
		if c.want == "" { // a truncated key is an error
			if !strings.Contains(got, "; error ") {
				t.Errorf("%s of %d bytes: %s", c.keyspace, len(c.key), got)
			}
			continue
		}
		if got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.keyspace, got, c.want)
		}
	}
}

// TestDescribeDamaged truncates and flips: fields lie within the row, and undecoded bytes are reported.
func TestDescribeDamaged(t *testing.T) {
	src := plant(t).Open(t)
	describe := func(keyspace string, key, value []byte) {
		for _, f := range src.Describe("0", keyspace, key, value).Fields {
			size := map[string]int{"key": len(key), "value": len(value)}[f.Where]
			if f.Off < 0 || f.Len < 0 || f.Off+f.Len > size {
				t.Errorf("%s %x = %x: field %s at %d+%d of %d", keyspace, key, value, f.Name, f.Off, f.Len, size)
			}
		}
	}
	for _, c := range describedRows {
		for i := range c.key {
			key := bytes.Clone(c.key)
			key[i] ^= 0xff
			describe(c.keyspace, key, c.value)
			describe(c.keyspace, c.key[:i], c.value)
		}
		for i := range c.value {
			value := bytes.Clone(c.value)
			value[i] ^= 0xff
			describe(c.keyspace, c.key, value)
			describe(c.keyspace, c.key, c.value[:i])
		}
	}
}

// TestOutcomes compares the descriptions of damaged rows with testdata/outcomes.txt.
func TestOutcomes(t *testing.T) {
	src := plant(t).Open(t)
	var got strings.Builder
	for i, c := range describedRows {
		say := func(key, value []byte) string { return formattest.ShowRow(src.Describe("0", c.keyspace, key, value)) }
		fmt.Fprintf(&got, "row %d: key %s, value %s\n\n", i,
			formattest.Damaged(c.key, func(b []byte) string { return say(b, c.value) }),
			formattest.Damaged(c.value, func(b []byte) string { return say(c.key, b) }))
	}
	formattest.CheckOutcomes(t, "testdata/outcomes.txt", got.String())
}
