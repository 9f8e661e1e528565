package keys_test

import (
	"strings"
	"testing"

	"kvferry/internal/shared/hll"
	"kvferry/record"
	"kvferry/serve/command/fake"
)

// TestReplies: replies are those of Redis 7.0, which the table was recorded from.
func TestReplies(t *testing.T) {
	s, _ := fake.New(t, "string s Hello,World", "string n 12345", "string bits foobar", "string ohmy ohmytext", "string mine mynewtext", "list l a")
	c := fake.NewCaller(t, s)
	for _, tt := range [][2]string{
		{"GET s", `$"Hello,World"`},
		{"GET none", `$"-1"`},
		{"GET l", `-"WRONGTYPE Operation against a key holding the wrong kind of value"`},
		{"MGET s none l n", `*4[$"Hello,World" $"-1" $"-1" $"12345"]`},
		{"STRLEN s", `:"11"`},
		{"STRLEN none", `:"0"`},
		{"STRLEN l", `-"WRONGTYPE Operation against a key holding the wrong kind of value"`},
		{"GETRANGE s 0 4", `$"Hello"`},
		{"GETRANGE s -5 -1", `$"World"`},
		{"GETRANGE s 7 3", `$""`},
		{"GETRANGE s -1 -5", `$""`},
		{"GETRANGE s -100 100", `$"Hello,World"`},
		{"GETRANGE s 20 30", `$""`},
		{"GETRANGE s 0 -100", `$"H"`},
		{"GETRANGE s 0 x", `-"ERR value is not an integer or out of range"`},
		{"GETRANGE none 0 -1", `$""`},
		{"GETRANGE l 0 -1", `-"WRONGTYPE Operation against a key holding the wrong kind of value"`},
		{"SUBSTR s 1 2", `$"el"`},
		{"LCS ohmy mine", `$"mytext"`},
		{"LCS ohmy mine LEN", `:"6"`},
		{"LCS ohmy mine IDX", `*4[$"matches" *2[*2[*2[:"4" :"7"] *2[:"5" :"8"]] *2[*2[:"2" :"3"] *2[:"0" :"1"]]] $"len" :"6"]`},
		{"LCS ohmy mine IDX MINMATCHLEN 4", `*4[$"matches" *1[*2[*2[:"4" :"7"] *2[:"5" :"8"]]] $"len" :"6"]`},
		{"LCS ohmy mine IDX MINMATCHLEN 4 WITHMATCHLEN", `*4[$"matches" *1[*3[*2[:"4" :"7"] *2[:"5" :"8"] :"4"]] $"len" :"6"]`},
		{"LCS ohmy mine IDX LEN", `-"ERR If you want both the length and indexes, please just use IDX."`},
		{"LCS ohmy mine MINMATCHLEN", `-"ERR syntax error"`},
		{"LCS ohmy mine MINMATCHLEN x", `-"ERR value is not an integer or out of range"`},
		{"LCS ohmy none", `$""`},
		{"LCS ohmy l", `-"ERR The specified keys must contain string values"`},
		{"LCS none none IDX", `*4[$"matches" *"0" $"len" :"0"]`},
		{"GETBIT bits 0", `:"0"`},
		{"GETBIT bits 1", `:"1"`},
		{"GETBIT bits 47", `:"0"`},
		{"GETBIT bits 48", `:"0"`},
		{"GETBIT bits -1", `-"ERR bit offset is not an integer or out of range"`},
		{"GETBIT bits 4294967296", `-"ERR bit offset is not an integer or out of range"`},
		{"GETBIT bits x", `-"ERR bit offset is not an integer or out of range"`},
		{"GETBIT none 1", `:"0"`},
		{"GETBIT l 1", `-"WRONGTYPE Operation against a key holding the wrong kind of value"`},
		{"BITCOUNT bits", `:"26"`},
		{"BITCOUNT bits 0 0", `:"4"`},
		{"BITCOUNT bits 1 1", `:"6"`},
		{"BITCOUNT bits -2 -1", `:"7"`},
		{"BITCOUNT bits 5 30 BIT", `:"17"`},
		{"BITCOUNT bits 5 30 BYTE", `:"4"`},
		{"BITCOUNT bits 5 30 WORD", `-"ERR syntax error"`},
		{"BITCOUNT bits 1", `-"ERR syntax error"`},
		{"BITCOUNT bits 3 1", `:"0"`},
		{"BITCOUNT none", `:"0"`},
		{"BITCOUNT none 1", `:"0"`},
		{"BITCOUNT l", `-"WRONGTYPE Operation against a key holding the wrong kind of value"`},
		{"BITPOS bits 1", `:"1"`},
		{"BITPOS bits 0", `:"0"`},
		{"BITPOS bits 0 2", `:"16"`},
		{"BITPOS bits 1 -1 -1", `:"41"`},
		{"BITPOS bits 1 2 -1 BIT", `:"2"`},
		{"BITPOS bits 1 9 9 BIT", `:"9"`},
		{"BITPOS bits 2", `-"ERR The bit argument must be 1 or 0."`},
		{"BITPOS bits x", `-"ERR value is not an integer or out of range"`},
		{"BITPOS none 0", `:"0"`},
		{"BITPOS none 1", `:"-1"`},
		{"BITPOS l 1", `-"WRONGTYPE Operation against a key holding the wrong kind of value"`},
		{"BITPOS bits 1 0 1 WORD", `-"ERR syntax error"`},
		{"BITFIELD_RO bits GET u8 0", `*1[:"102"]`},
		{"BITFIELD_RO bits GET i5 3 GET u4 #2", `*2[:"6" :"6"]`},
		{"BITFIELD_RO bits GET u8 44", `*1[:"32"]`},
		{"BITFIELD_RO none GET u8 0", `*1[:"0"]`},
		{"BITFIELD_RO bits GET u8 99999999999 47", `-"ERR bit offset is not an integer or out of range"`},
		{"BITFIELD_RO bits GET u64 0", `-"ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is."`},
		{"BITFIELD_RO bits GET i64 0", `*1[:"7381240782615871488"]`},
		{"BITFIELD_RO bits SET u8 0 1", `-"ERR BITFIELD_RO only supports the GET subcommand"`},
		{"BITFIELD_RO bits INCRBY u8 0 1", `-"ERR BITFIELD_RO only supports the GET subcommand"`},
		{"BITFIELD_RO bits GET u8", `-"ERR syntax error"`},
		{"BITFIELD_RO bits GET u8 -1", `-"ERR bit offset is not an integer or out of range"`},
		{"BITFIELD_RO bits GET u8 4294967290", `*1[:"0"]`},
		{"BITFIELD_RO l GET u8 0", `-"WRONGTYPE Operation against a key holding the wrong kind of value"`},
		{"PFCOUNT none", `:"0"`},
		{"PFCOUNT none none2", `:"0"`},
		{"PFCOUNT s", `-"WRONGTYPE Key is not a valid HyperLogLog string value."`},
		{"PFCOUNT l", `-"WRONGTYPE Operation against a key holding the wrong kind of value"`},
		{"GET", `-"ERR wrong number of arguments for 'get' command"`},
		{"MGET", `-"ERR wrong number of arguments for 'mget' command"`},
		{"SET s x", `-"READONLY You can't write against a read only replica."`},
	} {
		c.Check(tt[0], tt[1])
	}
}

// TestHyperLogLogs: PFCOUNT counts the union of sketches, and refuses one that is cut.
func TestHyperLogLogs(t *testing.T) {
	s, f := fake.New(t, "string text x")
	for key, members := range map[string]string{"a": "1 2 3 4 5", "b": "4 5 6 7"} {
		sketch := hll.New()
		for member := range strings.FieldsSeq(members) {
			sketch, _, _ = hll.Sketch(sketch).Add([]byte(member))
		}
		f.Records[key] = &fake.Record{Header: record.Header{Key: []byte(key), Type: record.String}, Elems: []record.Element{{Value: sketch}}}
	}
	cut := *f.Records["a"]
	cut.Elems = []record.Element{{Value: cut.Elems[0].Value[:20]}}
	f.Records["cut"] = &cut
	fake.NewCaller(t, s).Check(
		"PFCOUNT a", `:"5"`, "PFCOUNT b", `:"4"`, "PFCOUNT a b none", `:"7"`,
		"PFCOUNT a text", `-"WRONGTYPE Key is not a valid HyperLogLog string value."`,
		"PFCOUNT cut", `-"INVALIDOBJ Corrupted HLL object detected"`)
}
