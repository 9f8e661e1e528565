package rdb

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"kvferry/record"
	"kvferry/redis/rdb/pack"
)

// decoded renders the elements of a value, read in batches of a size, and the final error.
func decoded(typ Type, value []byte, atOnce int) string {
	var d Decoder
	var h record.Header
	var out []string
	err := d.Begin(typ, Header{}, value, 0, &h)
	dst := make([]record.Element, atOnce)
	for err == nil {
		var n int
		n, err = d.Read(dst)
		for _, e := range dst[:n] { // views are valid until the next call
			out = append(out, fmt.Sprintf("%s=%s", e.Name, e.Value))
		}
	}
	if err != io.EOF {
		out = append(out, err.Error())
	}
	return strings.Join(out, " ")
}

// packedOf packs texts and integers.
func packedOf(kind pack.Kind, items ...any) []byte {
	var p pack.Writer
	p.Begin(kind)
	for _, x := range items {
		switch x := x.(type) {
		case string:
			p.Add([]byte(x))
		case int:
			p.AddInt(int64(x))
		}
	}
	return bytes.Clone(p.End())
}

// compressed encodes a compressed string: runs of literals.
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
	return append(AppendLen(AppendLen([]byte{0xC3}, uint64(len(lzf))), uint64(whole)), lzf...)
}

// odd is the error of an incomplete last element.
const odd = "ends within an element"

// TestNodes: quicklist nodes: packed and plain, compressed and uncompressed, empty and full, for any batch size.
func TestNodes(t *testing.T) {
	node := func(items ...any) []byte { return AppendString([]byte{NodePacked}, packedOf(pack.Listpack, items...)) }
	zipped := func(items ...any) []byte {
		return append([]byte{NodePacked}, compressed(packedOf(pack.Listpack, items...))...)
	}
	plain := func(s string) []byte { return AppendString([]byte{NodePlain}, []byte(s)) }
	plainZipped := func(s string) []byte { return append([]byte{NodePlain}, compressed([]byte(s))...) }
	long := strings.Repeat("long", 12)
	for _, c := range []struct {
		name  string
		nodes [][]byte
		want  string
	}{
		{"plain", [][]byte{plain("a"), plain("b"), plain("c"), plain("d"), plain("e")}, "=a =b =c =d =e"},
		{"plain, compressed", [][]byte{plainZipped("aaa"), plainZipped("bbb"), plainZipped(long)}, "=aaa =bbb =" + long},
		{"one each", [][]byte{node("a"), node("b"), node("c"), node("d")}, "=a =b =c =d"},
		{"one each, compressed", [][]byte{zipped("aaaa"), zipped("bbbb"), zipped("cccc"), zipped("dddd")}, "=aaaa =bbbb =cccc =dddd"},
		{"empty ones between", [][]byte{node(), zipped("aaaa"), zipped(), zipped(), node(), zipped("bbbb"), node()}, "=aaaa =bbbb offset 10: node: " + contradicts + "it is empty"},
		{"integers", [][]byte{node(1, 2, 3), zipped(-4, 5), plain("6"), zipped(7)}, "=1 =2 =3 =-4 =5 =6 =7"},
		{"mixed", [][]byte{plain("a"), zipped("bbbb", 1), plainZipped("ccc"), node("d"), zipped("eeee")}, "=a =bbbb =1 =ccc =d =eeee"},
		{"no such container", [][]byte{node("a"), {3, 0}}, "=a offset 13: container: value 3: unknown to this version of kvferry"},
		{"damaged", [][]byte{node("a"), AppendString([]byte{NodePacked}, []byte("\x08\x00\x00\x00\x01\x00\x00\xfe"))}, "=a offset 14: node: does not end in FF"},
	} {
		value := AppendLen(nil, uint64(len(c.nodes)))
		for _, n := range c.nodes {
			value = append(value, n...)
		}
		for atOnce := 1; atOnce < 9; atOnce++ {
			if got := decoded(TypeQuicklist2, value, atOnce); got != c.want {
				t.Errorf("%s, %d at once: %s\nwant %s", c.name, atOnce, got, c.want)
			}
		}
	}
	old := append(AppendLen(nil, 3), AppendString(nil, packedOf(pack.Ziplist, "a", 2))...)
	old = append(append(old, compressed(packedOf(pack.Ziplist, "bbbb"))...), compressed(packedOf(pack.Ziplist, "cccc"))...)
	for atOnce := 1; atOnce < 6; atOnce++ {
		if got := decoded(TypeQuicklist, old, atOnce); got != "=a =2 =bbbb =cccc" {
			t.Errorf("of ziplists, %d at once: %s", atOnce, got)
		}
	}
}

const contradicts = "the value contradicts itself: "

// TestStreamEntries: entries of a node that starts at 5-1 with the fields f and g, valid and invalid.
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
		entries []any // after the master entry
		want    string
	}{
		{"the same fields", []any{EntrySameFields, 0, 0, "1", "2", 5}, id(5, 1) + "=" + pairs("f", "1", "g", "2")},
		{"fields of its own", []any{0, 1, 2, 2, "a", "b", 3, 4, 8}, id(6, 3) + "=" + pairs("a", "b", "3", "4")},
		{"no fields", []any{0, 0, 1, 0, 4}, id(5, 2) + "="},
		{"deleted", []any{entryDeleted, 0, 0, 1, "a", "b", 6, 0, 1, 0, 1, "c", "d", 6}, id(6, 1) + "=" + pairs("c", "d")},
		{"deleted with the same fields", []any{entryDeleted | EntrySameFields, 0, 0, 1, 2, 5, EntrySameFields, 0, 3, 3, 4, 5}, id(5, 4) + "=" + pairs("f", "3", "g", "4")},
		{"fewer fields than none", []any{0, 0, 0, -1, 5}, errStreamEntry.Error()},
		{"more fields than bytes", []any{0, 0, 0, 5000, "a", "b", 5}, errStreamEntry.Error()},
		{"a value is missing", []any{0, 0, 0, 1, "a"}, odd},
		{"flags are text", []any{"x", 0, 0, 0, 5}, errStreamEntry.Error()},
		{"an id is text", []any{0, "x", 0, 0, 5}, errStreamEntry.Error()},
		{"the end is missing", []any{0, 0, 0, 0}, odd},
		{"an unknown flag", []any{4, 0, 0, 0, 4}, "flags 0x4: " + ErrNewer.Error()},
		{"another number of items", []any{0, 0, 1, 0, 5}, id(5, 2) + "= offset 50: entry: " + contradicts + "it counts 5 items, but has 4"},
		{"more entries than it says", []any{0, 0, 1, 0, 4, 0, 0, 2, 0, 4}, id(5, 2) + "= " + id(5, 3) + "= offset 60: node: " + contradicts + "it has 1 entries more than its header counts, and 0 deleted ones"},
		{"before its node", []any{0, 0, -1, 0, 4}, id(5, 0) + "= offset 51: entry: " + contradicts + "its id is before that of its node"},
		{"behind the last", []any{0, 5, 0, 0, 4}, id(10, 1) + "= offset 50: last id: " + contradicts + "an entry is after it"},
	} {
		deleted := 0
		if strings.HasPrefix(c.name, "deleted") {
			deleted = 1
		}
		master := []any{1, deleted, 2, "f", "g", 0}
		value := AppendLen(nil, 1)
		value = AppendString(value, []byte(id(5, 1)))
		value = AppendString(value, packedOf(pack.Listpack, append(master, c.entries...)...))
		value = AppendLen(AppendLen(AppendLen(AppendLen(value, 1), 9), 9), 0) // length, last id, groups
		for _, atOnce := range []int{1, 7} {
			if got := decoded(TypeStream, value, atOnce); got != c.want && !strings.HasSuffix(got, ": "+c.want) {
				t.Errorf("%s, %d at once: %q\nwant %q", c.name, atOnce, got, c.want)
			}
		}
	}
}

// TestPackedForms: elements of one, two and three entries.
func TestPackedForms(t *testing.T) {
	for _, c := range []struct {
		typ  Type
		b    []byte
		want string
	}{
		{TypeSetListpack, packedOf(pack.Listpack, "a", 2), "a= 2="},
		{TypeZSetListpack, packedOf(pack.Listpack, "a", 2, "b", "1.5"), "a= b="},
		{TypeHashListpack, packedOf(pack.Listpack, "a", "1", "b", 2), "a=1 b=2"},
		{TypeHashPackedRC, packedOf(pack.Listpack, "b", 2, 77, "a", "1", 0), "b=2 a=1"},
		{TypeHashListpack, packedOf(pack.Listpack, "a", "1", "b"), "a=1 offset 12: listpack: " + odd},
	} {
		for atOnce := 1; atOnce < 4; atOnce++ {
			got := decoded(c.typ, AppendString(nil, c.b), atOnce)
			before, _, bad := strings.Cut(c.want, " offset")
			if got != c.want && !(bad && strings.HasPrefix(got, before) && strings.HasSuffix(got, odd)) {
				t.Errorf("%s, %d at once: %s, want %s", c.typ.Name(Header{}), atOnce, got, c.want)
			}
		}
	}
}

// TestPackedLengths: the length in the header, before the elements are read.
func TestPackedLengths(t *testing.T) {
	for _, c := range []struct {
		typ   Type
		value []byte
		want  int64
	}{
		{TypeSetListpack, packedOf(pack.Listpack, "a", 2), 2},
		{TypeHashListpack, packedOf(pack.Listpack, "a", "1", "b", 2), 2},
		{TypeZSetZiplist, packedOf(pack.Ziplist, "a", "1"), 1},
		{TypeHashPackedRC, packedOf(pack.Listpack, "a", "1", 0, "b", 2, 77), 2},
	} {
		var d Decoder
		var h record.Header
		if err := d.Begin(c.typ, Header{}, AppendString(nil, c.value), 0, &h); err != nil || h.Len != c.want {
			t.Errorf("%s: %d, want %d, %v", c.typ.Name(Header{}), h.Len, c.want, err)
		}
	}
}

// TestValkeyFields: a Valkey field expiry is in milliseconds; -1 is never, 0 is in the past.
func TestValkeyFields(t *testing.T) {
	b := AppendLen(nil, 3)
	for i, ms := range []int64{-1, 0, 1700000000000} {
		b = binary.LittleEndian.AppendUint64(AppendString(AppendString(b, []byte{'f', byte('0' + i)}), []byte("v")), uint64(ms))
	}
	var d Decoder
	var h record.Header
	if err := d.Begin(TypeValkeyHash, Header{Valkey: true}, b, 0, &h); err != nil {
		t.Fatal(err)
	}
	var got []int64
	for dst := make([]record.Element, 1); ; {
		if _, err := d.Read(dst); err != nil {
			break
		}
		got = append(got, dst[0].ExpireMS)
	}
	if fmt.Sprint(got) != "[0 1 1700000000000]" || h.Len != 3 {
		t.Errorf("expiries %d, %d fields", got, h.Len)
	}
}

// TestGroupsThatFit: a stream group takes at least five bytes.
func TestGroupsThatFit(t *testing.T) {
	for groups, field := range map[byte]string{5: "", 6: "groups"} {
		in := new(input)
		b := append([]byte{0, 0, 0, 0, groups}, make([]byte, 25)...)
		in.open(bytes.NewReader(b), 0, int64(len(b)))
		in.skipStream(TypeStream)
		var c *record.CorruptError
		errors.As(in.err, &c)
		if (c == nil) != (field == "") || c != nil && c.Field != field {
			t.Errorf("%d groups in 25 bytes: %v", groups, in.err)
		}
	}
}

// TestGroupsThatLie: an entry is pending once per group and for one consumer, in any order of entries.
func TestGroupsThatLie(t *testing.T) {
	id := func(n byte) string { return strings.Repeat("\x00", 15) + string(rune(n)) }
	entry := func(n byte) string { return id(n) + "12345678\x01" }
	consumer := func(name string, ids string) string {
		return "\x01" + name + "1234567812345678" + string(rune(len(ids)/IDLen)) + ids
	}
	for _, c := range []struct{ pending, consumers, nacked, want string }{
		{"\x02" + entry(2) + entry(1), "\x02" + consumer("a", id(1)) + consumer("b", id(2)), "\x00", "g c c p p"},
		{"\x02" + entry(1) + entry(1), "\x00", "\x00", errStreamTwin.Error()},
		{"\x02" + entry(1) + entry(1), "\x01" + consumer("a", id(1)), "\x00", errStreamTwin.Error()},
		{"\x01" + entry(1), "\x01" + consumer("a", id(2)), "\x00", errNotPending.Error()},
		{"\x01" + entry(1), "\x01" + consumer("a", id(1)+id(1)), "\x00", errStreamTwin.Error()},
		{"\x01" + entry(1), "\x02" + consumer("a", id(1)) + consumer("b", id(1)), "\x00", errStreamTwin.Error()},
		{"\x01" + entry(1), "\x02" + consumer("a", "") + consumer("a", ""), "\x00", errStreamTwin.Error()},
		{"\x02" + entry(1) + entry(2), "\x01" + consumer("a", id(1)), "\x01" + id(2), "g c p p"},
		{"\x01" + entry(1), "\x01" + consumer("a", id(1)), "\x01" + id(1), errStreamTwin.Error()},
		{"\x01" + entry(1), "\x00", "\x01" + id(3), errNotPending.Error()},
	} {
		// no nodes, length, last id, first id, max deleted, added; a group g with its last id and entries read
		value := "\x00\x00\x05\x00\x00\x00\x00\x00\x00" + "\x01\x01g\x05\x00\x00" + c.pending + c.consumers + c.nacked +
			"\x01\x01\x00\x00\x00" // producers: one second, one message each
		var d Decoder
		var h record.Header
		err := d.Begin(TypeStream5, Header{Version: 14}, []byte(value), 0, &h)
		var got []string
		for dst := make([]record.Element, 3); err == nil; {
			var n int
			n, err = d.Read(dst)
			for _, e := range dst[:n] {
				got = append(got, map[record.Kind]string{record.Group: "g", record.Consumer: "c", record.Pending: "p"}[e.Kind])
			}
		}
		all := strings.Join(got, " ")
		if err == io.EOF && all != c.want || err != io.EOF && !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("pending %q, consumers %q: %s, %v, want %s", c.pending, c.consumers, all, err, c.want)
		}
	}
}

// TestSmallestElements: values of minimal elements are read to the last one; a count one higher is rejected.
func TestSmallestElements(t *testing.T) {
	const n = 40
	for _, c := range []struct {
		typ             Type
		valkey          bool
		before, element string
	}{
		{TypeList, false, "", "\x00"}, {TypeSet, false, "", "\x00"}, {TypeZSet, false, "", "\x00\xff"}, {TypeZSet2, false, "", "\x0012345678"}, {TypeHash, false, "", "\x00\x00"},
		{TypeHashExpireRC, false, "", "\x00\x00\x00"}, {TypeHashExpire, false, "12345678", "\x00\x00\x00"}, {TypeValkeyHash, true, "", "\x00\x0012345678"},
		{TypeQuicklist, false, "", "\x00"}, {TypeQuicklist2, false, "", "\x01\x00"},
	} {
		var d Decoder
		var h record.Header
		value := append(AppendLen([]byte(c.before), n), strings.Repeat(c.element, n)...)
		begin := func() (skipped, begun error) {
			in := new(input)
			in.reset(value, 0)
			in.skipValue(c.typ, Header{Valkey: c.valkey})
			if in.err == nil && in.left() != 0 {
				t.Errorf("%s: %d bytes are left", c.typ.Name(Header{Valkey: c.valkey}), in.left())
			}
			return in.err, d.Begin(c.typ, Header{Valkey: c.valkey}, value, 0, &h)
		}
		want := int64(n)
		if c.typ == TypeQuicklist || c.typ == TypeQuicklist2 {
			want = -1 // a count of nodes
		}
		if skipped, begun := begin(); skipped != nil || begun != nil || h.Len != want {
			t.Errorf("%s: %d of %d elements, %v, %v", c.typ.Name(Header{Valkey: c.valkey}), h.Len, n, begun, skipped)
		}
		value[len(c.before)]++
		if skipped, begun := begin(); skipped == nil || begun == nil {
			t.Errorf("%s: %d elements in %d bytes", c.typ.Name(Header{Valkey: c.valkey}), n+1, len(value)-1)
		}
	}
}

// TestExpires: a field expiry is absent, or relative to the least one, and within the valid range.
func TestExpires(t *testing.T) {
	for _, c := range []struct {
		form   form
		least  int64
		n      uint64
		want   int64
		refuse bool
	}{
		{formHashBefore, 0, 0, 0, false}, {formHashBefore, 0, 77, 77, false}, {formHashBefore, 0, 1<<48 - 1, 1<<48 - 1, false}, {formHashBefore, 0, 1 << 48, 0, true},
		{formHashBefore, 0, 1 << 63, 0, true},
		{formHashDelta, 100, 0, 0, false}, {formHashDelta, 100, 1, 100, false}, {formHashDelta, 100, 6, 105, false}, {formHashDelta, 1<<48 - 1, 1, 1<<48 - 1, false},
		{formHashDelta, 1<<48 - 1, 2, 0, true}, {formHashDelta, -5, 1<<63 + 1, 0, true}, {formHashDelta, -5, 1 << 63, 0, true},
	} {
		d := Decoder{form: c.form, expiry: c.least}
		d.in.reset(nil, 0)
		if got := d.expires(c.n); (d.in.err != nil) != c.refuse || got != c.want && !c.refuse {
			t.Errorf("%+v: %d, %v", c, got, d.in.err)
		}
	}
}
