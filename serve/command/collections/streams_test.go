package collections_test

import (
	"encoding/binary"
	"testing"

	"kvferry/record"
	"kvferry/serve/command/fake"
)

// id is a stream id.
func id(ms, seq uint64) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, ms), seq)
}

// streamOf adds a stream with two groups, and an empty one.
func streamOf(f *fake.Dataset) {
	pairs := func(words ...string) (b []byte) {
		for i := 0; i < len(words); i += 2 {
			b = record.AppendPair(b, []byte(words[i]), []byte(words[i+1]))
		}
		return b
	}
	consumer := func(group, name string, seen int64) record.Element {
		return record.Element{Name: []byte(group), Kind: record.Consumer, Value: record.AppendConsumer(nil, &record.ConsumerState{Name: []byte(name), SeenMS: seen, ActiveMS: -1})}
	}
	pending := func(group, name string, id []byte, ms, count int64) record.Element {
		return record.Element{Name: []byte(group), Kind: record.Pending, Value: record.AppendPending(nil, &record.PendingEntry{ID: id, Consumer: []byte(name), DeliveredMS: ms, Count: count})}
	}
	group := func(name string, last []byte, read int64) record.Element {
		return record.Element{Name: []byte(name), Kind: record.Group, Value: record.AppendGroup(nil, &record.GroupState{Last: last, Read: read})}
	}
	now := fake.Now.UnixMilli()
	f.Records["x"] = &fake.Record{Header: record.Header{Key: []byte("x"), Type: record.Stream, Len: 4, ByName: true, Last: id(9, 9), Added: 5, MaxDeleted: id(3, 5)}, Elems: []record.Element{
		{Name: id(1, 1), Value: pairs("a", "1")}, {Name: id(1, 2), Value: pairs("a", "2", "b", "3")}, {Name: id(2, 0), Value: pairs("c", "")}, {Name: id(5, 7), Value: pairs("d", "4")},
		group("g", id(2, 0), 3), consumer("g", "alice", now-1000), consumer("g", "bob", now-500), pending("g", "alice", id(1, 1), now-1000, 1), pending("g", "alice", id(1, 2), now-800, 3), pending("g", "bob", id(2, 0), now-500, 1),
		group("h", id(0, 0), 0),
	}}
	f.Records["e"] = &fake.Record{Header: record.Header{Key: []byte("e"), Type: record.Stream, ByName: true, Last: id(4, 0), Added: 1, MaxDeleted: id(4, 0)}}
}

// TestReplies: replies are those of Redis 7.0, which the table was recorded from; only the times are of the test.
func TestReplies(t *testing.T) {
	s, f := fake.New(t, "list l a")
	streamOf(f)
	c := fake.NewCaller(t, s)
	for _, tt := range [][2]string{
		{"XLEN x", `:"4"`},
		{"XLEN e", `:"0"`},
		{"XLEN none", `:"0"`},
		{"XLEN l", `-"WRONGTYPE Operation against a key holding the wrong kind of value"`},
		{"XRANGE x - +", `*4[*2[$"1-1" *2[$"a" $"1"]] *2[$"1-2" *4[$"a" $"2" $"b" $"3"]] *2[$"2-0" *2[$"c" $""]] *2[$"5-7" *2[$"d" $"4"]]]`},
		{"XRANGE x 1 1", `*2[*2[$"1-1" *2[$"a" $"1"]] *2[$"1-2" *4[$"a" $"2" $"b" $"3"]]]`},
		{"XRANGE x 1-2 5", `*3[*2[$"1-2" *4[$"a" $"2" $"b" $"3"]] *2[$"2-0" *2[$"c" $""]] *2[$"5-7" *2[$"d" $"4"]]]`},
		{"XRANGE x (1-1 (5-7", `*2[*2[$"1-2" *4[$"a" $"2" $"b" $"3"]] *2[$"2-0" *2[$"c" $""]]]`},
		{"XRANGE x (1 +", `*4[*2[$"1-1" *2[$"a" $"1"]] *2[$"1-2" *4[$"a" $"2" $"b" $"3"]] *2[$"2-0" *2[$"c" $""]] *2[$"5-7" *2[$"d" $"4"]]]`},
		{"XRANGE x - + COUNT 2", `*2[*2[$"1-1" *2[$"a" $"1"]] *2[$"1-2" *4[$"a" $"2" $"b" $"3"]]]`},
		{"XRANGE x - + COUNT 0", `*"-1"`},
		{"XRANGE x - + COUNT -1", `*"-1"`},
		{"XRANGE x - + COUNT x", `-"ERR value is not an integer or out of range"`},
		{"XRANGE x - + LIMIT 2", `-"ERR syntax error"`},
		{"XRANGE x + -", `*"0"`},
		{"XRANGE x x +", `-"ERR Invalid stream ID specified as stream command argument"`},
		{"XRANGE x (18446744073709551615-18446744073709551615 +", `-"ERR invalid start ID for the interval"`},
		{"XRANGE x - (0-0", `-"ERR invalid end ID for the interval"`},
		{"XRANGE e - +", `*"0"`},
		{"XRANGE none - +", `*"0"`},
		{"XRANGE l - +", `-"WRONGTYPE Operation against a key holding the wrong kind of value"`},
		{"XREVRANGE x + -", `*4[*2[$"5-7" *2[$"d" $"4"]] *2[$"2-0" *2[$"c" $""]] *2[$"1-2" *4[$"a" $"2" $"b" $"3"]] *2[$"1-1" *2[$"a" $"1"]]]`},
		{"XREVRANGE x 2 1 COUNT 1", `*1[*2[$"2-0" *2[$"c" $""]]]`},
		{"XREVRANGE x (5-7 (1-1", `*2[*2[$"2-0" *2[$"c" $""]] *2[$"1-2" *4[$"a" $"2" $"b" $"3"]]]`},
		{"XREVRANGE x - +", `*"0"`},
		{"XREVRANGE none + -", `*"0"`},
		{"XREAD STREAMS x 0", `*1[*2[$"x" *4[*2[$"1-1" *2[$"a" $"1"]] *2[$"1-2" *4[$"a" $"2" $"b" $"3"]] *2[$"2-0" *2[$"c" $""]] *2[$"5-7" *2[$"d" $"4"]]]]]`},
		{"XREAD COUNT 1 STREAMS x none 1-1 0", `*1[*2[$"x" *1[*2[$"1-2" *4[$"a" $"2" $"b" $"3"]]]]]`},
		{"XREAD STREAMS x $", `*"-1"`},
		{"XREAD STREAMS x 5-7", `*"-1"`},
		{"XREAD STREAMS none 0", `*"-1"`},
		{"XREAD STREAMS x e 0", `-"ERR Unbalanced XREAD list of streams: for each stream key an ID or '$' must be specified."`},
		{"XREAD STREAMS l 0", `-"WRONGTYPE Operation against a key holding the wrong kind of value"`},
		{"XREAD COUNT x STREAMS x 0", `-"ERR value is not an integer or out of range"`},
		{"XREAD COUNT 1", `-"ERR wrong number of arguments for 'xread' command"`},
		{"XREAD FOO 1 STREAMS x 0", `-"ERR syntax error"`},
		{"XREAD STREAMS x bad", `-"ERR Invalid stream ID specified as stream command argument"`},
		{"XREAD STREAMS x >", `-"ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> option."`},
		{"XREAD BLOCK -1 STREAMS x 0", `-"ERR timeout is negative"`},
		{"XREAD BLOCK x STREAMS x 0", `-"ERR timeout is not an integer or out of range"`},
		{"XINFO STREAM x", `*20[$"length" :"4" $"radix-tree-keys" :"1" $"radix-tree-nodes" :"2" $"last-generated-id" $"9-9" $"max-deleted-entry-id" $"3-5" $"entries-added" :"5" $"recorded-first-entry-id" $"1-1" $"groups" :"2" $"first-entry" *2[$"1-1" *2[$"a" $"1"]] $"last-entry" *2[$"5-7" *2[$"d" $"4"]]]`},
		{"XINFO STREAM e", `*20[$"length" :"0" $"radix-tree-keys" :"0" $"radix-tree-nodes" :"1" $"last-generated-id" $"4-0" $"max-deleted-entry-id" $"4-0" $"entries-added" :"1" $"recorded-first-entry-id" $"0-0" $"groups" :"0" $"first-entry" $"-1" $"last-entry" $"-1"]`},
		{"XINFO STREAM none", `-"ERR no such key"`},
		{"XINFO STREAM l", `-"WRONGTYPE Operation against a key holding the wrong kind of value"`},
		{"XINFO STREAM x FULL", `*18[$"length" :"4" $"radix-tree-keys" :"1" $"radix-tree-nodes" :"2" $"last-generated-id" $"9-9" $"max-deleted-entry-id" $"3-5" $"entries-added" :"5" $"recorded-first-entry-id" $"1-1" $"entries" *4[*2[$"1-1" *2[$"a" $"1"]] *2[$"1-2" *4[$"a" $"2" $"b" $"3"]] *2[$"2-0" *2[$"c" $""]] *2[$"5-7" *2[$"d" $"4"]]] $"groups" *2[*14[$"name" $"g" $"last-delivered-id" $"2-0" $"entries-read" :"3" $"lag" $"-1" $"pel-count" :"3" $"pending" *3[*4[$"1-1" $"alice" :"1699999999000" :"1"] *4[$"1-2" $"alice" :"1699999999200" :"3"] *4[$"2-0" $"bob" :"1699999999500" :"1"]] $"consumers" *2[*8[$"name" $"alice" $"seen-time" :"1699999999000" $"pel-count" :"2" $"pending" *2[*3[$"1-1" :"1699999999000" :"1"] *3[$"1-2" :"1699999999200" :"3"]]] *8[$"name" $"bob" $"seen-time" :"1699999999500" $"pel-count" :"1" $"pending" *1[*3[$"2-0" :"1699999999500" :"1"]]]]] *14[$"name" $"h" $"last-delivered-id" $"0-0" $"entries-read" :"0" $"lag" $"-1" $"pel-count" :"0" $"pending" *"0" $"consumers" *"0"]]]`},
		{"XINFO STREAM x FULL COUNT 1", `*18[$"length" :"4" $"radix-tree-keys" :"1" $"radix-tree-nodes" :"2" $"last-generated-id" $"9-9" $"max-deleted-entry-id" $"3-5" $"entries-added" :"5" $"recorded-first-entry-id" $"1-1" $"entries" *1[*2[$"1-1" *2[$"a" $"1"]]] $"groups" *2[*14[$"name" $"g" $"last-delivered-id" $"2-0" $"entries-read" :"3" $"lag" $"-1" $"pel-count" :"3" $"pending" *1[*4[$"1-1" $"alice" :"1699999999000" :"1"]] $"consumers" *2[*8[$"name" $"alice" $"seen-time" :"1699999999000" $"pel-count" :"2" $"pending" *1[*3[$"1-1" :"1699999999000" :"1"]]] *8[$"name" $"bob" $"seen-time" :"1699999999500" $"pel-count" :"1" $"pending" *1[*3[$"2-0" :"1699999999500" :"1"]]]]] *14[$"name" $"h" $"last-delivered-id" $"0-0" $"entries-read" :"0" $"lag" $"-1" $"pel-count" :"0" $"pending" *"0" $"consumers" *"0"]]]`},
		{"XINFO STREAM x FULL COUNT x", `-"ERR value is not an integer or out of range"`},
		{"XINFO STREAM x FOO", `-"ERR unknown subcommand or wrong number of arguments for 'STREAM'. Try XINFO HELP."`},
		{"XINFO GROUPS x", `*2[*12[$"name" $"g" $"consumers" :"2" $"pending" :"3" $"last-delivered-id" $"2-0" $"entries-read" :"3" $"lag" $"-1"] *12[$"name" $"h" $"consumers" :"0" $"pending" :"0" $"last-delivered-id" $"0-0" $"entries-read" :"0" $"lag" $"-1"]]`},
		{"XINFO GROUPS e", `*"0"`},
		{"XINFO GROUPS none", `-"ERR no such key"`},
		{"XINFO CONSUMERS x g", `*2[*6[$"name" $"alice" $"pending" :"2" $"idle" :"1000"] *6[$"name" $"bob" $"pending" :"1" $"idle" :"500"]]`},
		{"XINFO CONSUMERS x h", `*"0"`},
		{"XINFO CONSUMERS x none", `-"NOGROUP No such consumer group 'none' for key name 'x'"`},
		{"XINFO CONSUMERS none g", `-"ERR no such key"`},
		{"XINFO FOO x", `-"ERR unknown subcommand 'FOO'. Try XINFO HELP."`},
		{"XINFO STREAM", `-"ERR wrong number of arguments for 'xinfo|stream' command"`},
		{"XPENDING x g", `*4[:"3" $"1-1" $"2-0" *2[*2[$"alice" $"2"] *2[$"bob" $"1"]]]`},
		{"XPENDING x h", `*4[:"0" $"-1" $"-1" *"-1"]`},
		{"XPENDING x none", `-"NOGROUP No such key 'x' or consumer group 'none'"`},
		{"XPENDING none g", `-"NOGROUP No such key 'none' or consumer group 'g'"`},
		{"XPENDING l g", `-"WRONGTYPE Operation against a key holding the wrong kind of value"`},
		{"XPENDING x g - + 10", `*3[*4[$"1-1" $"alice" :"1000" :"1"] *4[$"1-2" $"alice" :"800" :"3"] *4[$"2-0" $"bob" :"500" :"1"]]`},
		{"XPENDING x g - + 1", `*1[*4[$"1-1" $"alice" :"1000" :"1"]]`},
		{"XPENDING x g 1-2 + 10 alice", `*1[*4[$"1-2" $"alice" :"800" :"3"]]`},
		{"XPENDING x g (1-1 (2-0 10", `*1[*4[$"1-2" $"alice" :"800" :"3"]]`},
		{"XPENDING x g - + 10 carol", `*"0"`},
		{"XPENDING x g IDLE 600 - + 10", `*2[*4[$"1-1" $"alice" :"1000" :"1"] *4[$"1-2" $"alice" :"800" :"3"]]`},
		{"XPENDING x g IDLE 600 - + 10 alice", `*2[*4[$"1-1" $"alice" :"1000" :"1"] *4[$"1-2" $"alice" :"800" :"3"]]`},
		{"XPENDING x g - + x", `-"ERR value is not an integer or out of range"`},
		{"XPENDING x g - +", `-"ERR syntax error"`},
		{"XPENDING x g IDLE x - + 10", `-"ERR value is not an integer or out of range"`},
		{"XPENDING x g - + 10 alice bob", `*2[*4[$"1-1" $"alice" :"1000" :"1"] *4[$"1-2" $"alice" :"800" :"3"]]`},
		{"XPENDING x", `-"ERR wrong number of arguments for 'xpending' command"`},
	} {
		c.Check(tt[0], tt[1])
	}
}
