package rdb

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"testing"

	"kvferry/internal/testkit/formattest"
	"kvferry/record"
	"kvferry/redis/rdb/pack"
)

// part is a piece of a file, after the header of a version.
type part struct {
	name   string
	header Header
	bytes  []byte
}

// of joins bytes: texts and bytes verbatim, numbers as lengths, uint64 as 8 bytes little endian.
func of(list ...any) (b []byte) {
	for _, x := range list {
		switch x := x.(type) {
		case string:
			b = append(b, x...)
		case []byte:
			b = append(b, x...)
		case byte:
			b = append(b, x)
		case Type:
			b = append(b, byte(x))
		case int:
			b = AppendLen(b, uint64(x))
		case uint64:
			b = binary.LittleEndian.AppendUint64(b, x)
		}
	}
	return b
}

// text is a string of a file.
func text(s string) []byte { return append(AppendLen(nil, uint64(len(s))), s...) }

// moduleID is the id of type RJkjSUN-P, version 3.
const moduleID = 0x44992349437e3c00 | 3

// parts are keys in all encodings, and all other items.
func parts() (out []part) {
	redis, old, valkey := Header{Version: 14}, Header{Version: 3}, Header{Version: 80, Valkey: true}
	add := func(name string, h Header, list ...any) { out = append(out, part{name, h, of(list...)}) }
	key := func(name string, t Type, list ...any) { add(name, redis, append([]any{t, text("key")}, list...)...) }
	lp := func(items ...any) []byte { return text(string(packedOf(pack.Listpack, items...))) }
	zl := func(items ...any) []byte { return text(string(packedOf(pack.Ziplist, items...))) }

	key("string", TypeString, text("value"))
	key("string of 14 bits", TypeString, "\x40\x05value")
	key("string of 32 bits", TypeString, "\x80\x00\x00\x00\x02", "ab")
	key("string of 64 bits", TypeString, "\x81\x00\x00\x00\x00\x00\x00\x00\x02", "ab")
	key("string as int8", TypeString, "\xc0\xfe")
	key("string as int16", TypeString, "\xc1\xfe\xff")
	key("string as int32", TypeString, "\xc2\x00\x00\x00\x80")
	key("string compressed", TypeString, compressed([]byte("compressed or not")))
	add("key compressed", redis, TypeString, compressed([]byte("compressed")), "\xc0\x07")
	key("list", TypeList, 3, text("a"), "\xc0\x07", text("c"))
	key("set", TypeSet, 2, text("a"), text("b"))
	key("zset with texts", TypeZSet, 5, text("a"), text("1.5"), text("b"), "\xfd", text("c"), "\xfe", text("d"), "\xff",
		text("e"), text("-2"))
	key("zset", TypeZSet2, 2, text("a"), uint64(0x3ff8000000000000), text("b"), uint64(0xfff0000000000000))
	key("hash", TypeHash, 2, text("f"), text("v"), "\xc0\x01", compressed([]byte("value value")))
	key("hash with expiries of 7.4-rc", TypeHashExpireRC, 2, 0, text("f"), text("v"), 77, text("g"), text("w"))
	key("hash with expiries", TypeHashExpire, uint64(1700000000000), 3, 0, text("f"), text("v"), 1, text("g"), text("w"), 5,
		text("h"), text("x"))
	add("hash with expiries of Valkey", valkey, TypeValkeyHash, text("key"), 2, text("f"), text("v"), ^uint64(0), text("g"),
		text("w"), uint64(1700000000000))
	key("zipmap", TypeHashZipmap, text("\x02\x01f\x02\x01vv\x7f\x01g\x01\x00w\xff"))
	key("list as ziplist", TypeListZiplist, zl("a", 1, 300, 70000, "b"))
	key("intset", TypeSetIntset, text("\x02\x00\x00\x00\x02\x00\x00\x00\xff\xff\x07\x00"))
	key("zset as ziplist", TypeZSetZiplist, zl("a", "1.5", "b", 2))
	key("hash as ziplist", TypeHashZiplist, zl("f", "v", "g", 2))
	key("hash as listpack", TypeHashListpack, lp("f", "v", "g", 2))
	key("zset as listpack", TypeZSetListpack, lp("a", "1.5", "b", 2))
	key("set as listpack", TypeSetListpack, lp("a", 5, "b"))
	key("listpack of 7.4-rc", TypeHashPackedRC, lp("g", "w", 77, "f", "v", 0))
	key("listpack with expiries", TypeHashPackedExp, uint64(77), lp("g", "w", 77, "f", "v", 0))
	key("quicklist", TypeQuicklist, 2, zl("a", "b"), zl(3))
	key("quicklist 2", TypeQuicklist2, 3, NodePacked, lp("a", "b"), NodePlain, text("plain"), NodePacked,
		compressed(packedOf(pack.Listpack, "cccc", 4)))
	key("module", TypeModule, "\x81", binary.BigEndian.AppendUint64(nil, moduleID), moduleSInt, 5, moduleUInt, 600, moduleFloat,
		"1234", moduleDouble, "12345678", moduleString, text("text"), moduleEOF)
	key("array", TypeArray, 4, 1, 9, 0, 0, text("a"), 3, 1, "12345678", 5, 2, "12345678", 7, 3, text("b"))
	key("array without an insert index", TypeArray, 1, 0, 5, 0, text("a"))

	id := func(ms, seq byte) string {
		return "\x00\x00\x00\x00\x00\x00\x00" + string(rune(ms)) + "\x00\x00\x00\x00\x00\x00\x00" + string(rune(seq))
	}
	node := func(ms byte) []any {
		return []any{text(id(ms, 1)), lp(2, 1, 2, "f", "g", 0, EntrySameFields, 0, 0, "1", "2", 5, entryDeleted, 0, 1, 1, "a",
			"b", 6, 0, 1, 2, 1, "c", 3, 6)}
	}
	for _, t := range []Type{TypeStream, TypeStream2, TypeStream3, TypeStream4, TypeStream5} {
		list := append(append([]any{2}, node(5)...), node(9)...)
		list = append(list, 4, 10, 3)
		if t >= TypeStream2 {
			list = append(list, 5, 1, 5, 2, 7)
		}
		list = append(list, 2, text("g1"), 5, 1)
		if t >= TypeStream2 {
			list = append(list, 3)
		}
		list = append(list, 2, id(6, 3), uint64(1700), 2, id(5, 1), uint64(1600), 1) // pending, out of order
		list = append(list, 2, text("c1"), uint64(1800))
		if t >= TypeStream3 {
			list = append(list, uint64(1801))
		}
		list = append(list, 1, id(5, 1), text("c2"), uint64(1900))
		if t >= TypeStream3 {
			list = append(list, ^uint64(0))
		}
		list = append(list, 0)
		if t >= TypeStream5 {
			list = append(list, 1, id(6, 3))
		}
		list = append(list, text("g2"), 0, 0)
		if t >= TypeStream2 {
			list = append(list, "\x81\xff\xff\xff\xff\xff\xff\xff\xff")
		}
		list = append(list, 0, 0)
		if t >= TypeStream5 {
			list = append(list, 0)
		}
		if t >= TypeStream4 {
			list = append(list, 10, 20, 1, text("p"), 1, text("m"), 5, 1, 7, 8)
		}
		key(t.Name(Header{}), t, list...)
	}

	str := append([]byte{byte(TypeString)}, "\x03key\x01v"...)
	add("expires in milliseconds", redis, byte(opExpireMS), uint64(1700000000123), str)
	add("expires in seconds", redis, byte(opExpire), "\x00\xf1\x53\x65", str)
	add("expired before 1970", redis, byte(opExpire), "\xfe\xff\xff\xff", str)
	add("never expires", redis, byte(opExpireMS), ^uint64(0), str)
	add("expires at 0", redis, byte(opExpireMS), uint64(0), str)
	add("idle and often used", redis, byte(opIdle), 300, byte(opFreq), byte(7), str)
	add("metadata", redis, byte(opKeyMeta), 2, "meta", moduleUInt, 5, moduleEOF, "META", moduleEOF, str)
	add("slot import", valkey, byte(opKeyMeta), text("job"), 2, 1, 2, 300, 400, str)
	add("slot", redis, byte(opSlotInfo), 7, 8, 9, str)
	add("database", redis, byte(opSelectDB), 12, byte(opResizeDB), 5, 300, str)
	add("facts", redis, byte(opAux), text("redis-ver"), text("7.2.0"), byte(opAux), text("ctime"), "\xc2\x00\x00\x00\x65")
	add("library", redis, byte(opFunction2), text("#!lua name=lib1\ncode"))
	add("module's own", redis, byte(opModuleAux), "\x81", binary.BigEndian.AppendUint64(nil, moduleID), moduleUInt, 2,
		moduleString, text("aux"), moduleEOF, str)
	add("no type of Valkey", valkey, TypeHashPackedRC, str[1:])
	add("no type", redis, byte(29), str[1:])
	add("module of 4.0-rc", redis, TypeModuleOld, str[1:])
	add("no opcode", redis, byte(246), str[1:])
	add("end with a checksum", redis, byte(opEOF), uint64(0x0102030405060708))
	add("end without one", old, byte(opEOF))
	return out
}

// outcome renders all data read from a file, with the final error.
func outcome(file []byte) string {
	var out strings.Builder
	s, err := NewScanner(bytes.NewReader(file), 0, int64(len(file)))
	if err != nil {
		return err.Error()
	}
	for {
		it, err := s.Next()
		if err != nil {
			fmt.Fprintf(&out, "%v", err)
			return out.String()
		}
		fmt.Fprintf(&out, "op %d %s db %d %q expires %d at %d value %d-%d %.24q idle %d freq %d meta %t\n", it.Op,
			it.Type.Name(s.Header), it.DB, it.Key, it.ExpireMS, it.Off, it.From, it.To, it.Value, it.Idle, it.Freq, it.Meta)
		switch it.Op {
		case OpEOF:
			sum, ok, err := s.Checksum()
			fmt.Fprintf(&out, "sum %x %t %v, then %d", sum, ok, err, s.Offset())
			return out.String()
		case OpKey:
			var d, far Decoder
			var h record.Header
			at := elements(&d, d.Begin(it.Type, s.Header, it.Value, it.From, &h), &h)
			other := elements(&far, far.BeginAt(it.Type, s.Header, bytes.NewReader(file), it.From, it.To, &h), &h)
			if other != at {
				fmt.Fprintf(&out, "in a file it is other than in memory: %s", other)
			}
			out.WriteString(at)
		}
	}
}

// elements reads a value, three elements at a time.
func elements(d *Decoder, err error, h *record.Header) string {
	var out strings.Builder
	fmt.Fprintf(&out, "  %s len %d last %x added %d deleted %x by name %t\n", h.Type, h.Len, h.Last, h.Added, h.MaxDeleted,
		h.ByName)
	for dst := make([]record.Element, 3); err == nil; {
		var n int
		n, err = d.Read(dst)
		for _, e := range dst[:n] {
			fmt.Fprintf(&out, "  %d %q %q %v %d\n", e.Kind, e.Name, e.Value, e.Score, e.ExpireMS)
		}
	}
	if err != io.EOF {
		fmt.Fprintf(&out, "  %v\n", err)
	}
	if says, has, ok := d.StreamLength(); ok {
		fmt.Fprintf(&out, "  says %d, has %d\n", says, has)
	}
	return out.String()
}

// TestOutcomes: every encoding and opcode reads as in testdata/outcomes.txt, field by field. For the same files
// truncated or changed at any byte, testdata has a hash of all results and errors: it changes with a message, an offset
// or a bound.
func TestOutcomes(t *testing.T) {
	var got strings.Builder
	for _, p := range parts() {
		file := append([]byte(p.header.String()), p.bytes...)
		fmt.Fprintf(&got, "%s\n%s\n", p.name, outcome(file))
		fmt.Fprintf(&got, "%s\n\n", formattest.Damaged(file, outcome))
	}
	formattest.CheckOutcomes(t, "testdata/outcomes.txt", got.String())
}
