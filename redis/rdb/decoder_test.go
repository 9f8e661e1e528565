package rdb

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"testing"

	"kvferry/record"
	"kvferry/redis/rdb/crc64"
)

// decoded renders the elements of a value, read so many at once, and the error that ends them.
func decoded(typ Type, value []byte, atOnce int) string {
	var d Decoder
	var h record.Header
	var out []string
	err := d.Begin(typ, false, value, 0, &h)
	dst := make([]record.Element, atOnce)
	for err == nil {
		var n int
		n, err = d.Read(dst)
		for _, e := range dst[:n] { // views, which the next call may take
			out = append(out, fmt.Sprintf("%s=%s", e.Name, e.Value))
		}
	}
	if err != io.EOF {
		out = append(out, err.Error())
	}
	return strings.Join(out, " ")
}

// packedOf packs texts and integers.
func packedOf(kind packing, items ...any) []byte {
	var p packer
	p.begin(kind)
	for _, x := range items {
		switch x := x.(type) {
		case string:
			p.add([]byte(x))
		case int:
			p.addInt(int64(x))
		}
	}
	return bytes.Clone(p.end())
}

// compressed makes a string of a file that is compressed: in runs of literals.
func compressed(s []byte) []byte {
	var lzf []byte
	for n := len(s); len(s) > 0; n = len(s) {
		n = min(n, 32)
		lzf = append(append(lzf, byte(n-1)), s[:n]...)
		s = s[n:]
	}
	whole := 0
	for at := 0; at < len(lzf); at += 2 + int(lzf[at]) {
		whole += 1 + int(lzf[at])
	}
	return append(appendLen(appendLen([]byte{0xC3}, uint64(len(lzf))), uint64(whole)), lzf...)
}

// TestNodes: nodes of quicklists, packed and plain, compressed and not, empty and full, however many elements are read at once.
func TestNodes(t *testing.T) {
	pack := func(items ...any) []byte { return appendString([]byte{nodePacked}, packedOf(listpack, items...)) }
	zipped := func(items ...any) []byte {
		return append([]byte{nodePacked}, compressed(packedOf(listpack, items...))...)
	}
	plain := func(s string) []byte { return appendString([]byte{nodePlain}, []byte(s)) }
	plainZipped := func(s string) []byte { return append([]byte{nodePlain}, compressed([]byte(s))...) }
	long := strings.Repeat("long", 12)
	for _, c := range []struct {
		name  string
		nodes [][]byte
		want  string
	}{
		{"plain", [][]byte{plain("a"), plain("b"), plain("c"), plain("d"), plain("e")}, "=a =b =c =d =e"},
		{"plain, compressed", [][]byte{plainZipped("aaa"), plainZipped("bbb"), plainZipped(long)}, "=aaa =bbb =" + long},
		{"one each", [][]byte{pack("a"), pack("b"), pack("c"), pack("d")}, "=a =b =c =d"},
		{"one each, compressed", [][]byte{zipped("aaaa"), zipped("bbbb"), zipped("cccc"), zipped("dddd")}, "=aaaa =bbbb =cccc =dddd"},
		{"empty ones between", [][]byte{pack(), zipped("aaaa"), zipped(), zipped(), pack(), zipped("bbbb"), pack()}, "=aaaa =bbbb"},
		{"integers", [][]byte{pack(1, 2, 3), zipped(-4, 5), plain("6"), zipped(7)}, "=1 =2 =3 =-4 =5 =6 =7"},
		{"mixed", [][]byte{plain("a"), zipped("bbbb", 1), plainZipped("ccc"), pack("d"), zipped("eeee")}, "=a =bbbb =1 =ccc =d =eeee"},
		{"no such container", [][]byte{pack("a"), {3, 0}}, "=a offset 13: container: 3 is none"},
		{"damaged", [][]byte{pack("a"), appendString([]byte{nodePacked}, []byte("\x08\x00\x00\x00\x01\x00\x00\xfe"))}, "=a offset 14: node: does not end in FF"},
	} {
		value := appendLen(nil, uint64(len(c.nodes)))
		for _, n := range c.nodes {
			value = append(value, n...)
		}
		for atOnce := 1; atOnce < 9; atOnce++ {
			if got := decoded(TypeQuicklist2, value, atOnce); got != c.want {
				t.Errorf("%s, %d at once: %s\nwant %s", c.name, atOnce, got, c.want)
			}
		}
	}
	old := append(appendLen(nil, 3), appendString(nil, packedOf(ziplist, "a", 2))...)
	old = append(append(old, compressed(packedOf(ziplist, "bbbb"))...), compressed(packedOf(ziplist, "cccc"))...)
	for atOnce := 1; atOnce < 6; atOnce++ {
		if got := decoded(TypeQuicklist, old, atOnce); got != "=a =2 =bbbb =cccc" {
			t.Errorf("of ziplists, %d at once: %s", atOnce, got)
		}
	}
}

// TestStreamEntries: entries of a node that starts at 5-1 with the fields f and g, and what is wrong with them.
func TestStreamEntries(t *testing.T) {
	const head = "\x00\x00\x00\x00\x00\x00\x00"
	id := func(ms, seq byte) string { return head + string(rune(ms)) + head + string(rune(seq)) }
	pairs := func(texts ...string) (s string) {
		for i := 0; i < len(texts); i += 2 {
			s = string(record.AppendPair([]byte(s), []byte(texts[i]), []byte(texts[i+1])))
		}
		return s
	}
	for _, c := range []struct {
		name    string
		entries []any // behind the master entry
		want    string
	}{
		{"the same fields", []any{entrySameFields, 0, 0, "1", "2", 6}, id(5, 1) + "=" + pairs("f", "1", "g", "2")},
		{"fields of its own", []any{0, 1, 2, 2, "a", "b", 3, 4, 9}, id(6, 3) + "=" + pairs("a", "b", "3", "4")},
		{"no fields", []any{0, 0, 1, 0, 5}, id(5, 2) + "="},
		{"deleted", []any{entryDeleted, 0, 0, 1, "a", "b", 7, 0, 1, 0, 1, "c", "d", 7}, id(6, 1) + "=" + pairs("c", "d")},
		{"deleted with the same fields", []any{entryDeleted | entrySameFields, 0, 0, 1, 2, 6, entrySameFields, 0, 3, 3, 4, 6}, id(5, 4) + "=" + pairs("f", "3", "g", "4")},
		{"fewer fields than none", []any{0, 0, 0, -1, 5}, errStreamEntry.Error()},
		{"more fields than bytes", []any{0, 0, 0, 5000, "a", "b", 5}, errStreamEntry.Error()},
		{"a value is missing", []any{0, 0, 0, 1, "a"}, errOdd.Error()},
		{"flags are text", []any{"x", 0, 0, 0, 5}, errStreamEntry.Error()},
		{"an id is text", []any{0, "x", 0, 0, 5}, errStreamEntry.Error()},
		{"the end is missing", []any{0, 0, 0, 0}, errOdd.Error()},
	} {
		master := []any{1, 1, 2, "f", "g", 0}
		value := appendLen(nil, 1)
		value = appendString(value, []byte(id(5, 1)))
		value = appendString(value, packedOf(listpack, append(master, c.entries...)...))
		value = appendLen(appendLen(appendLen(appendLen(value, 1), 9), 9), 0) // length, last id, groups
		for _, atOnce := range []int{1, 7} {
			if got := decoded(TypeStream, value, atOnce); got != c.want && !strings.HasSuffix(got, ": "+c.want) {
				t.Errorf("%s, %d at once: %q\nwant %q", c.name, atOnce, got, c.want)
			}
		}
	}
}

// TestPackedForms: elements of one entry, of two and of three.
func TestPackedForms(t *testing.T) {
	for _, c := range []struct {
		typ  Type
		b    []byte
		want string
	}{
		{TypeSetListpack, packedOf(listpack, "a", 2), "a= 2="},
		{TypeZSetListpack, packedOf(listpack, "a", 2, "b", "1.5"), "a= b="},
		{TypeHashListpack, packedOf(listpack, "a", "1", "b", 2), "a=1 b=2"},
		{TypeHashPackedRC, packedOf(listpack, "a", "1", 0, "b", 2, 77), "a=1 b=2"},
		{TypeHashListpack, packedOf(listpack, "a", "1", "b"), "a=1 offset 12: listpack: " + errOdd.Error()},
	} {
		for atOnce := 1; atOnce < 4; atOnce++ {
			got := decoded(c.typ, appendString(nil, c.b), atOnce)
			if before, _, bad := strings.Cut(c.want, " offset"); got != c.want && !(bad && strings.HasPrefix(got, before) && strings.HasSuffix(got, errOdd.Error())) {
				t.Errorf("%s, %d at once: %s, want %s", c.typ.Name(false), atOnce, got, c.want)
			}
		}
	}
}

// TestSlotImport passes over what Valkey writes of slots that are being imported: a name and ranges of slots.
func TestSlotImport(t *testing.T) {
	v, err := ParseVersion("valkey80")
	if err != nil {
		t.Fatal(err)
	}
	ranges := func(n, most int) []byte {
		b := appendLen(appendString(append(AppendHead(nil, v, 1), valkeyImport), []byte("job")), uint64(n))
		for i := range most {
			b = append(b, byte(i), byte(i+1))
		}
		return b
	}
	for _, n := range []int{0, 1, 20} {
		b := AppendEOF(ranges(n, n))
		b = binary.LittleEndian.AppendUint64(b, crc64.Update(0, b))
		s, err := NewScanner(bytes.NewReader(b), 0, int64(len(b)))
		if err != nil {
			t.Fatal(err)
		}
		var ops []Op
		for err == nil {
			var it *Item
			if it, err = s.Next(); err == nil && it.Op != OpAux {
				ops = append(ops, it.Op)
			}
		}
		if err != io.EOF || fmt.Sprint(ops) != fmt.Sprint([]Op{OpSlotInfo, OpEOF}) {
			t.Errorf("%d ranges: %v, %v", n, ops, err)
		}
	}
	for b, want := range map[string]string{
		string(ranges(2, 1)):    "slots",
		string(ranges(200, 20)): "slots: 200 do not fit into",
	} {
		if _, _, err := walk([]byte(b)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d bytes: %v, want %s", len(b), err, want)
		}
	}
}
