package command_test

import (
	"encoding/binary"
	"encoding/hex"
	"strings"
	"testing"

	"kvferry/record"
	"kvferry/redis/rdb"
	"kvferry/serve/command/fake"
)

// rejson is a value of RedisJSON in an RDB file.
func rejson(text string, encver uint64) string {
	const id = "ReJSON-RL"
	var n uint64
	for _, c := range id {
		n = n<<6 | uint64(strings.IndexRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", c))
	}
	b := append(binary.BigEndian.AppendUint64([]byte{0x81}, n<<10|encver), 5)
	return string(append(rdb.AppendString(b, []byte(text)), 0))
}

// TestDocuments: JSON.GET and JSON.TYPE answer as RedisJSON does, and refuse what they would have to guess.
func TestDocuments(t *testing.T) {
	s, f := fake.New(t, "string t text")
	cbor, err := hex.DecodeString("a4" + "6161" + "01" + "6162" + "9f20f98000f94000f97bfffb3fb999999999999af5f6ff" + "6163" + "7f61786179ff" + "6164" + "a0")
	if err != nil {
		t.Fatal(err)
	}
	const doc = `{ "a": {"b": [1, 2.50, "x]\"}"]} , "é k": null, "":true, "A\u0042": -0e1, "a2": {} , "l":[ ] }`
	for key, x := range map[string][2]string{
		"j": {"kvrocks:ReJSON-RL", doc}, "c": {"kvrocks:ReJSON-RL+cbor", string(cbor)}, "r": {"ReJSON-RL", rejson(doc, 3)}, "old": {"ReJSON-RL", rejson(doc, 0)},
		"marks": {"kvrocks:ReJSON-RL+cbor", "\x6b<&>\u2028\x7f\b\x01\"/"}, "bytes": {"kvrocks:ReJSON-RL+cbor", "\x61\xff"},
		"cut": {"kvrocks:ReJSON-RL", `{"a":`}, "tag": {"kvrocks:ReJSON-RL+cbor", "\xc0\x61a"}, "short": {"kvrocks:ReJSON-RL+cbor", "\x82\x01"},
		"more": {"kvrocks:ReJSON-RL+cbor", "\x01\x01"}, "bloom": {"MBbloom--", "x"}, "end": {"ReJSON-RL", rejson(doc, 3) + "x"}, "deep": {"kvrocks:ReJSON-RL+cbor", strings.Repeat("\x81", 2000) + "\x01"},
	} {
		f.Records[key] = &fake.Record{Header: record.Header{Key: []byte(key), Type: record.Other}, Elems: []record.Element{{Name: []byte(x[0]), Value: []byte(x[1])}}}
	}
	const compact = `{\"a\":{\"b\":[1,2.50,\"x]\\\"}\"]},\"é k\":null,\"\":true,\"A\\u0042\":-0e1,\"a2\":{},\"l\":[]}`
	c := fake.NewCaller(t, s)
	for _, tt := range []struct{ line, want string }{
		{"JSON.GET j", `$"` + compact + `"`}, {"JSON.GET r .", `$"` + compact + `"`}, {"JSON.GET j $", `$"[` + compact + `]"`},
		{"JSON.GET j a.b[1]", `$"2.50"`}, {"JSON.GET j .a.b[-1]", `$"\"x]\\\"}\""`}, {"JSON.GET j $.a['b'][0]", `$"[1]"`}, {`JSON.GET j $["AB"]`, `$"[-0e1]"`},
		{"JSON.GET j $.none", `$"[]"`}, {"JSON.GET j $.a.b[3]", `$"[]"`}, {"JSON.GET j $.a.b[-4]", `$"[]"`}, {"JSON.GET j $.a[0]", `$"[]"`}, {"JSON.GET j $.a.b.c", `$"[]"`},
		{"JSON.GET j .none", `-"ERR Path \".none\" does not exist"`}, {"JSON.GET none", `$"-1"`}, {"JSON.GET none $", `$"-1"`},
		{"JSON.GET j .a2 .l", `$"{\".a2\":{},\".l\":[]}"`}, {"JSON.GET j $.a2 l", `$"{\"$.a2\":[{}],\"l\":[[]]}"`},
		{"JSON.GET j INDENT - NEWLINE | SPACE _ NOESCAPE .a", `$"{|-\"b\":_[|--1,|--2.50,|--\"x]\\\"}\"|-]|}"`},
		{"JSON.GET c", `$"{\"a\":1,\"b\":[-1,0.0,2.0,65504.0,0.1,true,null],\"c\":\"xy\",\"d\":{}}"`},
		{"JSON.GET marks", `$"\"<&>\u2028\\u007F\\b\\u0001\\\"/\""`}, {"JSON.GET j $['<'] $.none", `$"{\"$['<']\":[],\"$.none\":[]}"`},
		{"JSON.TYPE j", `$"object"`}, {"JSON.TYPE j .a.b", `$"array"`}, {"JSON.TYPE j .a.b[0]", `$"integer"`}, {"JSON.TYPE j $.a.b[1]", `*1[$"number"]`},
		{"JSON.TYPE j $.none", `*"0"`}, {"JSON.TYPE j none", `$"-1"`}, {"JSON.TYPE none $", `$"-1"`}, {"JSON.TYPE j ['']", `$"boolean"`}, {"JSON.TYPE c .c", `$"string"`}, {"JSON.TYPE c .b[6]", `$"null"`},
		{"JSON.TYPE t", `-"WRONGTYPE Operation against a key holding the wrong kind of value"`}, {"JSON.GET bloom", `-"WRONGTYPE Operation against a key holding the wrong kind of value"`},
		{"JSON.TYPE j a b", `-"ERR wrong number of arguments for 'json.type' command"`},
		{"JSON.GET cut", `-"ERR the value of \"cut\" is damaged: the document is not JSON"`},
		{"JSON.GET old", `-"ERR kvferry does not read this form of JSON: its value is not the text of a document, but encoding version 0"`},
		{"SCAN 0 TYPE rejson-rl MATCH [jc] COUNT 100", `*2[$"0" *2[$"c" $"j"]]`}, {"JSON.SET j $ 1", `-"READONLY You can't write against a read only replica."`}, {"TYPE j", `+"ReJSON-RL"`}, {"TYPE c", `+"ReJSON-RL"`}, {"TYPE r", `+"ReJSON-RL"`},
	} {
		if got := c.Do(tt.line).String(); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.line, got, tt.want)
		}
	}
	for _, path := range []string{"$..a", "$.*", "$[*]", "$.a[0:1]", "$[?(@.a)]", "$['a','b']", "$.a.", "$[", "$['a", "$[1", "$a", "$['a\\'b']", "..a", "$[+1]", "$[]", "$[0,1]"} {
		if got := c.Do("JSON.GET j " + path).String(); !strings.Contains(got, "kvferry does not read the path") {
			t.Errorf("%s: %s", path, got)
		}
	}
	for _, key := range []string{"tag", "bytes", "short", "more", "end", "deep"} {
		if got := c.Do("JSON.GET " + key).String(); !strings.HasPrefix(got, `-"ERR `) {
			t.Errorf("%s: %s", key, got)
		}
	}
}
