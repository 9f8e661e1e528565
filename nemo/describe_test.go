package nemo_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"kvferry/format"
	"kvferry/internal/testkit/formattest"
	"kvferry/nemo"
	"kvferry/record"
)

// render formats a row on one line: fields as name=value@place.
func render(r format.Row) string {
	s := fmt.Sprintf("%s %q", r.Kind, r.UserKey)
	for _, f := range r.Fields {
		s += fmt.Sprintf(" %s=%s@%s%d+%d", f.Name, formattest.ShowValue(f.Value), f.Where[:1], f.Off, f.Len)
	}
	s += fmt.Sprintf(" v%d n%d e%d", r.Version, r.Count, r.ExpireMS)
	if r.Meta {
		s += " meta"
	}
	if r.Err != nil {
		s += " error: " + strings.ReplaceAll(r.Err.Error(), "\n", "; ")
	}
	return s
}

func TestDescribe(t *testing.T) {
	src := newMemory(t).stores().Open(t)
	suffix := string(nemo.AppendSuffix(nil, nemo.Suffix{Version: 5, Expiry: 1700000000}))
	n := func(v int64) string { return string(nemo.AppendMeta(nil, nemo.Meta{Count: v})[:8]) }
	var outcomes strings.Builder
	for i, c := range []struct{ keyspace, key, value, want string }{
		{"kv", "k", "val\x00\x00\x00\x00" + suffix[4:], `string "k" key="k"@k0+1 value="val"@v0+3 version=0@v3+4 expiry=2023-11-14T22:13:20Z@v7+4 v0 n-1 e1700000000000 meta`},
		{"kv", "", "short", `string "" key=""@k0+0 v-1 n-1 e0 meta error: offset 0: suffix: need 8 bytes, have 5: too short`},
		{"kv", "k", "\x00\x00\x00\x00\xff\xff\xff\xff", `string "k" key="k"@k0+1 value=""@v0+0 version=0@v0+4 expiry=1969-12-31T23:59:59Z@v4+4 v0 n-1 e0 meta`},
		{"hash", "Hk", n(3) + suffix, `hash meta "k" kind=H@k0+1 key="k"@k1+1 count=3@v0+8 version=5@v8+4 expiry=2023-11-14T22:13:20Z@v12+4 v5 n3 e1700000000000 meta`},
		{"hash", "H", n(3) + "x" + suffix, `hash meta "" kind=H@k0+1 key=""@k1+0 count=3@v0+8 version=5@v9+4 expiry=2023-11-14T22:13:20Z@v13+4 value="x"@v8+1 v5 n3 e1700000000000 meta ` +
			`error: offset 1: klen: 0 bytes: the engine accepts keys of 1 to 254 bytes; offset 8: value: 1 bytes: bytes left over`},
		{"hash", "h\x01k=f", "v" + suffix, `hash field "k" kind=h@k0+1 klen=1@k1+1 key="k"@k2+1 separator==@k3+1 field="f"@k4+1 value="v"@v0+1 version=5@v1+4 expiry=2023-11-14T22:13:20Z@v5+4 v5 n-1 e0`},
		{"hash", "h\x09k=f", suffix, `hash field "" kind=h@k0+1 klen=9@k1+1 v-1 n-1 e0 error: offset 2: klen: need 9 bytes, have 3: too short`},
		{"hash", "h", suffix, `separator "" kind=h@k0+1 version=5@v0+4 expiry=2023-11-14T22:13:20Z@v4+4 v5 n-1 e0`},
		{"hash", "x", suffix, `unknown row "" kind=x@k0+1 v-1 n-1 e0 error: no row of the hash store starts with 'x'`},
		{"hash", "", suffix, `unknown row "" v-1 n-1 e0 error: offset 0: kind: need 1 bytes, have 0: too short`},
		{"kv", "k", string(nemo.AppendSuffix(nil, nemo.Suffix{Version: 5})), `string "k" key="k"@k0+1 value=""@v0+0 version=5@v0+4 expiry=0@v4+4 v5 n-1 e0 meta ` +
			`error: offset 0: version: 5 in a string: written by no known server`},
		{"hashes", "x", suffix, `unknown row "" v-1 n-1 e0 error: nemo has no store "hashes"`},
		{"list", "Lk", n(1) + n(2) + n(2) + suffix, `list meta "k" kind=L@k0+1 key="k"@k1+1 count=1@v0+8 left=2@v8+8 right=2@v16+8 version=5@v24+4 expiry=2023-11-14T22:13:20Z@v28+4 v5 n1 e1700000000000 meta ` +
			`error: offset 24: next_seq: need 8 bytes, have 0: too short`},
		{"list", "l\x01k" + n(7), n(6) + n(8) + "item" + suffix, `list node "k" kind=l@k0+1 klen=1@k1+1 key="k"@k2+1 seq=7@k3+8 prev=6@v0+8 next=8@v8+8 element="item"@v16+4 version=5@v20+4 expiry=2023-11-14T22:13:20Z@v24+4 v5 n-1 e0`},
		{"list", "l\x01k1234", n(6) + suffix, `list node "k" kind=l@k0+1 klen=1@k1+1 key="k"@k2+1 seq="1234"@k3+4 prev=6@v0+8 version=5@v8+4 expiry=2023-11-14T22:13:20Z@v12+4 v5 n-1 e0 ` +
			`error: offset 3: seq: need 8 bytes, have 4: too short; offset 8: next: need 8 bytes, have 0: too short`},
		{"set", "s\x01km", "x" + suffix, `set member "k" kind=s@k0+1 klen=1@k1+1 key="k"@k2+1 member="m"@k3+1 version=5@v1+4 expiry=2023-11-14T22:13:20Z@v5+4 value="x"@v0+1 v5 n-1 e0 error: offset 0: value: 1 bytes: bytes left over`},
		{"zset", "z\x01km", "\x00\x00\x00\x00\x00\x00\xf8\x3f" + suffix, `zset score "k" kind=z@k0+1 klen=1@k1+1 key="k"@k2+1 member="m"@k3+1 score=1.5@v0+8 version=5@v8+4 expiry=2023-11-14T22:13:20Z@v12+4 v5 n-1 e0`},
		{"zset", string(indexKey("k", "m", -1.5)), suffix, `zset index "k" kind=y@k0+1 klen=1@k1+1 key="k"@k2+1 score=-1.5@k3+8 member="m"@k11+1 version=5@v0+4 expiry=2023-11-14T22:13:20Z@v4+4 v5 n-1 e0`},
	} {
		say := func(key, value []byte) string { return render(src.Describe("0", c.keyspace, key, value)) }
		if got := say([]byte(c.key), []byte(c.value)); got != c.want {
			t.Errorf("%s %q:\ngot  %s\nwant %s", c.keyspace, c.key, got, c.want)
		}
		fmt.Fprintf(&outcomes, "row %d: key %s, value %s\n\n", i,
			formattest.Damaged([]byte(c.key), func(b []byte) string { return say(b, []byte(c.value)) }),
			formattest.Damaged([]byte(c.value), func(b []byte) string { return say([]byte(c.key), b) }))
	}
	formattest.CheckOutcomes(t, "testdata/outcomes.txt", outcomes.String())
}

// TestDescribeGoldens describes all rows of a database that the engine wrote: each byte of key and value is in
// a field, without errors. It describes truncated rows, too.
func TestDescribeGoldens(t *testing.T) {
	src := formattest.OpenGolden(t, nemo.New(), goldens[0])
	for _, ks := range src.Keyspaces() {
		it, err := ks.Rows(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; ; i++ {
			key, value, err := it.Next()
			if err != nil {
				break
			}
			row := src.Describe(ks.DB, ks.Name, key, value)
			if row.Err != nil || row.Type == 0 || covered(row, "key") != len(key) || covered(row, "value") != len(value) {
				t.Fatalf("%s %s: %s", ks.Name, record.Quote(key), render(row))
			}
			if i%50 == 0 && len(value) < 200 {
				describeCut(src, ks.Name, key, value)
			}
		}
		if err := it.Close(); err != nil {
			t.Error(err)
		}
	}
}

func covered(row format.Row, where string) int {
	n := 0
	for _, f := range row.Fields {
		if f.Where == where {
			n += f.Len
		}
	}
	return n
}

// describeCut describes all prefixes and flipped bytes of a row; it only has to return.
func describeCut(src format.Source, keyspace string, key, value []byte) {
	for n := range key {
		src.Describe("0", keyspace, key[:n], value)
		flipped := bytes.Clone(key)
		flipped[n] ^= 0xff
		src.Describe("0", keyspace, flipped, value)
	}
	for n := range value {
		src.Describe("0", keyspace, key, value[:n])
	}
}
