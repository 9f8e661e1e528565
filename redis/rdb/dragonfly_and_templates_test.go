package rdb

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"kvferry/internal/testkit/formattest"
	"kvferry/record"
	"kvferry/redis/rdb/pack"
)

// listpack is a string of a file that packs texts and integers.
func listpack(items ...any) []byte { return text(string(packedOf(pack.Listpack, items...))) }

// valueOf renders the value of an item, read two elements at a time, with the final error. The result must be equal in
// a file and in memory.
func valueOf(t *testing.T, hd Header, it Item, file []byte) string {
	t.Helper()
	var said [2]string
	for far := range said {
		if far == 1 {
			it.Value, it.Members = nil, nil
		}
		var d Decoder
		var h record.Header
		var out []string
		err := d.BeginItem(hd, &it, bytes.NewReader(file), &h)
		for dst := make([]record.Element, 2); err == nil; {
			var n int
			n, err = d.Read(dst)
			for _, e := range dst[:n] {
				one := fmt.Sprintf("%s:%s", e.Name, e.Value)
				if e.ExpireMS != 0 {
					one += fmt.Sprintf("@%d", e.ExpireMS)
				}
				out = append(out, one)
			}
		}
		if err != io.EOF {
			out = append(out, err.Error())
		}
		said[far] = strings.Join(out, " ")
	}
	if said[0] != said[1] {
		t.Errorf("in a file it is %s, in memory %s", said[1], said[0])
	}
	return said[0]
}

// contents renders the items of a file, with the final error: keys with their values, other items by kind.
func contents(t *testing.T, file []byte) string {
	t.Helper()
	s, err := NewScanner(bytes.NewReader(file), 0, int64(len(file)))
	if err != nil {
		return err.Error()
	}
	var out []string
	for {
		it, err := s.Next()
		switch {
		case err == io.EOF:
			return strings.Join(out, " | ")
		case err != nil:
			return strings.Join(append(out, err.Error()), " | ")
		case it.Op == OpKey:
			out = append(out, fmt.Sprintf("%s=%s", it.Key, valueOf(t, s.Header, *it, file)))
		case it.Op != OpEOF:
			out = append(out, strings.TrimSpace(fmt.Sprintf("op %d %s", it.Op, it.Key)))
		}
	}
}

// checkContents compares the contents of a file. Truncated anywhere, it is an error; damaged, its values are equal in
// memory and in the file.
func checkContents(t *testing.T, name, head, want string, items ...any) {
	t.Helper()
	b := append([]byte(head), of(items...)...)
	if got := contents(t, append(bytes.Clone(b), opEOF)); got != want {
		t.Errorf("%s: %s\nwant %s", name, got, want)
	}
	for n := len(head); n < len(b); n++ {
		s, err := NewScanner(bytes.NewReader(b[:n]), 0, int64(n))
		for err == nil {
			_, err = s.Next()
		}
		if err == io.EOF {
			t.Errorf("%s: %d of %d bytes are a file that ends", name, n, len(b))
		}
	}
	formattest.Damaged(b, func(b []byte) string { return contents(t, b) })
}

// TestTemplates: hashes with a template before them in the file, or with their names before the values.
func TestTemplates(t *testing.T) {
	template := of(byte(opTemplate), 7, 2, text("b"), text("aa"))
	key := func(t Type, name string, list ...any) []byte { return of(append([]any{t, text(name)}, list...)...) }
	behind := key(TypeString, "z", text("2"))
	packed := func(items ...any) []byte { return key(TypeHashTemplPack, "k", listpack(items...)) }
	names := "op 8 | "
	for _, c := range []struct {
		name, want string
		items      []any
	}{
		{"packed", names + "k=b:v aa:5 | z=:2", []any{template, packed(7, "v", 5), behind}},
		{"plain", names + "k=b:x aa:12 | z=:2", []any{template, key(TypeHashTempl, "k", 7, text("x"), "\xc0\x0c"), behind}},
		{"no fields", "op 8 | k= | z=:2", []any{byte(opTemplate), 7, 0, key(TypeHashTempl, "k", 7), behind}},
		{"a template with the id of another", names + "k=b:x aa:y | op 8 | l=q:x | op 8 | m=q:z", []any{template, key(TypeHashTempl, "k", 7, text("x"), text("y")),
			byte(opTemplate), 7, 1, text("q"), key(TypeHashTempl, "l", 7, text("x")), byte(opTemplate), 8, 0, key(TypeHashTempl, "m", 7, text("z"))}},
		{"packed names, packed values", "k=f:v 12:w | z=:2", []any{key(TypeHashDumpPacked, "k", "\x00", listpack("f", 12), listpack(0, "v", "w")), behind}},
		{"packed names, plain values", "k=f:v g:w | z=:2", []any{key(TypeHashDump, "k", "\x00", listpack("f", "g"), text("v"), text("w")), behind}},
		{"plain names, packed values", "k=f:v g:3", []any{key(TypeHashDumpPacked, "k", "\x01", 2, text("f"), text("g"), listpack(9, "v", 3))}},
		{"plain names, plain values", "k=f:v 5:w", []any{key(TypeHashDump, "k", "\x01", 2, text("f"), "\xc0\x05", text("v"), text("w"))}},
		{"a name twice", "k=f:v offset 22: value: " + ErrTwins.Error() + ": 1 element, such as \"f\"", []any{key(TypeHashDump, "k", "\x01", 2, text("f"), text("f"), text("v"), text("w"))}},
		{"no such template", names + "offset 20: template id: no template has this id", []any{template, key(TypeHashTempl, "k", 8, text("x"), text("y"))}},
		{"no such template, packed", names + "k=offset 20: template: no template has this id | z=:2", []any{template, packed(8, "v", "w"), behind}},
		{"an id that is text", names + "k=offset 20: template: no template has this id | z=:2", []any{template, packed("a", "v", "w"), behind}},
		{"no id", names + "k=offset 20: template: " + odd + " | z=:2", []any{template, packed(), behind}},
		{"names that do not ascend", "op 8 | k=offset 20: template: the names of a template do not ascend | z=:2",
			[]any{byte(opTemplate), 7, 2, text("aa"), text("b"), packed(7, "v", "w"), behind}},
		{"a name of a template twice", "op 8 | offset 19: template id: the names of a template do not ascend",
			[]any{byte(opTemplate), 7, 2, text("b"), text("b"), key(TypeHashTempl, "k", 7, text("v"), text("w"))}},
		{"too few values", names + "k=b:v offset 33: value: " + odd + " | z=:2", []any{template, packed(7, "v"), behind}},
		{"more values than names", names + "k=b:v aa:w offset 39: value: more values than names: " + ErrNewer.Error() + " | z=:2", []any{template, packed(7, "v", "w", "x"), behind}},
		{"names of another encoding", "offset 12: fields: encoding 2: " + ErrNewer.Error(), []any{key(TypeHashDump, "k", "\x02", 1, text("f"), text("v"))}},
		{"names that are no listpack", "offset 12: fields: offset 0: listpack: need 7 bytes, have 4: too short", []any{key(TypeHashDump, "k", "\x00", text("none"), text("v"))}},
	} {
		checkContents(t, c.name, "REDIS0015", c.want, c.items...)
	}
}

// TestTemplatesElsewhere: a template proves that Dragonfly did not write a file. A section uses the templates of its
// file and does not read them again; a payload has none.
func TestTemplatesElsewhere(t *testing.T) {
	template := of(byte(opTemplate), 7, 2, text("b"), text("aa"))
	hash := of(TypeHashTempl, text("k"), 7, text("x"), text("y"))
	file := append(of("REDIS0012", template, hash), opEOF)
	if got := contents(t, file); got != "op 8 | k=b:x aa:y" {
		t.Errorf("a version before templates: %s", got)
	}
	s, err := NewScanner(bytes.NewReader(file), 0, int64(len(file)))
	for err == nil {
		_, err = s.Next()
	}
	if err != io.EOF {
		t.Fatal(err)
	}
	sec := Section(bytes.NewReader(file), s.Header, 3, headerLen,
		int64(len(file)-1)).Carry(Attributes{ExpireMS: 77, Idle: -1, Freq: 5})
	it, err := sec.Next()
	if err != nil || it.Op != OpOther || it.DB != 3 || it.ExpireMS != 77 {
		t.Fatalf("%+v, %v", it, err)
	}
	it, err = sec.Next()
	if err != nil || string(it.Key) != "k" || it.ExpireMS != 77 || it.Freq != 5 || it.Carried.ExpireMS != 77 {
		t.Fatalf("%+v, %v", it, err)
	}
	if got := valueOf(t, sec.Header, *it, file); got != "b:x aa:y" || len(s.Header.templates.byID[7]) != 1 {
		t.Errorf("in a section: %s", got)
	}
	var d Decoder
	var h record.Header
	for typ, value := range map[Type][]byte{TypeHashTempl: of(7, text("x"), text("y")), TypeHashTemplPack: listpack(7, "x", "y")} {
		if err := d.Begin(typ, PayloadHeader(15), value, 0, &h); !errors.Is(err, errNoTemplate) {
			t.Errorf("%s in a payload: %v", typ.Name(PayloadHeader(15)), err)
		}
	}
	for _, c := range []struct {
		body []byte
		want string
	}{
		{of(TypeHashDumpPacked, "\x00", listpack("f", "g"), listpack(1, "v", "w")), "f:v g:w"},
		{of(TypeHashDump, "\x01", 1, text("f"), text("v")), "f:v"},
	} {
		dump, err := OpenDump(c.body, 15)
		if err != nil {
			t.Fatal(err)
		}
		it := Item{Type: dump.Type, Value: dump.Value, From: dump.Off, To: dump.Off + int64(len(dump.Value)),
			End: dump.Off + int64(len(dump.Value))}
		if got := valueOf(t, dump.Header, it, c.body); got != c.want {
			t.Errorf("%q: %s, want %s", c.body, got, c.want)
		}
	}
}

// TestDragonfly: types 30 to 37 belong to Dragonfly in its own files, and in files older than these types in Redis.
func TestDragonfly(t *testing.T) {
	const at = (memberEpoch + 500) * 1000
	zeros := strings.Repeat("\x00", 24)
	key := func(t Type, list ...any) []byte { return of(append([]any{t, text("k")}, list...)...) }
	other := func(value ...any) string { return "k=dragonfly:" + string(of(value...)) + " | z=:2" }
	behind := of(TypeString, text("z"), text("2"))
	bloom := []any{2, zeros[:16], 1, 2, 3}
	cuckoo := []any{1, 2, 3, 4, 5, 6, 2, 4, 2, "ab", 2, "cd", 1, 1, "x"}
	for _, c := range []struct {
		name, want string
		items      []any
	}{
		{"fields", fmt.Sprintf("k=f:v g:w@%d h:x | z=:2", at), []any{key(TypeHashMember, 3, text("f"), text("v"), "\xc0\xff", text("g"), text("w"), "\xc1\xf4\x01",
			text("h"), text("x"), text("-1")), behind}},
		{"members", fmt.Sprintf("k=a: b:@%d | z=:2", at), []any{key(TypeSetMember, 2, text("a"), "\xc0\xff", text("b"), text("500")), behind}},
		{"a time that is none", "k=offset 17: expiry: \"x\" is not a number of seconds | z=:2", []any{key(TypeHashMember, 1, text("f"), text("v"), text("x")), behind}},
		{"a time before all", "k=offset 15: expiry: \"-2\" is not a number of seconds | z=:2", []any{key(TypeSetMember, 1, text("a"), "\xc0\xfe"), behind}},
		{"JSON", other(text("{}")), []any{key(TypeJSON, text("{}")), behind}},
		{"a Bloom filter", other(append(bloom, 2, 4, text("ab"), 5, text(""))...), []any{key(TypeBloom, append(bloom, 2, 4, text("ab"), 5, text(""))...), behind}},
		{"a Bloom filter in chunks", other(append(bloom, 1, 4, 3, 2, "ab", 1, "c")...), []any{key(TypeBloom2, append(bloom, 1, 4, 3, 2, "ab", 1, "c")...), behind}},
		{"a count-min sketch", other(3, 1, 9, zeros), []any{key(TypeCountMin, 3, 1, 9, zeros), behind}},
		{"one of nothing", other(0, 5, 9), []any{key(TypeCountMin, 0, 5, 9), behind}},
		{"top-k", other(1, 2, 3, 4, zeros[:8], 2, text("i"), 9, text("j"), 8, 4, "abcd"), []any{key(TypeTopK, 1, 2, 3, 4, zeros[:8], 2, text("i"), 9, text("j"), 8, 4, "abcd"), behind}},
		{"a cuckoo filter", other(cuckoo...), []any{key(TypeCuckoo, cuckoo...), behind}},
		{"a mask", "k=:v | z=:2", []any{byte(opMask), "\x01\x00\x00\x00", byte(opMask), "\x02\x00\x00\x00\x07\x00\x00\x00", key(TypeString, text("v")), behind}},
	} {
		checkContents(t, c.name, "REDIS0009", c.want, c.items...)
		for head, before := range map[string]string{"REDIS0015" + string(AppendAux(nil, "df-ver", "v1")): "op 1 df-ver | ",
			"REDIS0015" + string(AppendAux(nil, "redis-ver", "df-v1.40")): "op 1 redis-ver | "} {
			got := contents(t, append(append([]byte(head), of(c.items...)...), opEOF))
			if want := before + c.want; got != want && !strings.Contains(want, "offset") {
				t.Errorf("%s, says so: %s\nwant %s", c.name, got, want)
			}
		}
	}
	for name, b := range map[string][]byte{
		"more counters than bytes":     key(TypeCountMin, 1<<40, 1<<40, 9, zeros),
		"a chunk of nothing":           key(TypeCuckoo, 1, 2, 3, 4, 5, 6, 1, 3, 0, 3, "abc"),
		"a chunk that is longer":       key(TypeBloom2, append(bloom, 1, 4, 2, 3, "abc")...),
		"more filters than bytes":      key(TypeBloom, append(bloom, 90, 4, text("ab"))...),
		"bits of a mask nobody writes": of(byte(opMask), "\x04\x00\x00\x00", key(TypeString, text("v"))),
	} {
		file := append(of("REDIS0009", b), opEOF)
		var c *record.CorruptError
		s, err := NewScanner(bytes.NewReader(file), 0, int64(len(file)))
		if err == nil {
			_, err = s.Next()
		}
		if !errors.As(err, &c) || c.Off <= headerLen || c.Off > int64(len(file)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSnapshots: a part of a snapshot is rejected because of fields that occur only there.
func TestSnapshots(t *testing.T) {
	is := string(AppendAux(nil, "df-ver", "v1"))
	for b, snapshot := range map[string]bool{
		is + string(AppendAux(nil, "shard-id", "0")): true, is + string(AppendAux(nil, "shard-count", "4")): true, is + "\xc8": true, is + "\xf0": true,
		string(AppendAux(nil, "shard-id", "0")): false, "\xc8": false, is + "\xf1": false, is + "\xc7": false,
	} {
		s, err := NewScanner(strings.NewReader("REDIS0009"+b), 0, int64(9+len(b)))
		for err == nil {
			_, err = s.Next()
		}
		if errors.Is(err, ErrSnapshot) != snapshot {
			t.Errorf("%q: %v", b, err)
		}
	}
}

// TestServersOwn: opcodes and types of a single server, and unknown ones, which end a file with their number and
// offset.
func TestServersOwn(t *testing.T) {
	str := of(TypeString, text("a"), text("b"))
	cron := of(text("code"), strings.Repeat("\x00", 16), 2, text("k1"), text("k2"), 1, text("x"))
	opcode := func(n int) string {
		return fmt.Sprintf("offset 9: type: %d is a type or an opcode: %s", n, ErrNewer)
	}
	for _, c := range []struct {
		name, head, want string
		items            []any
	}{
		{"Redis Enterprise", "REDIS0012", "a=:b | a=:b", []any{byte(opRAMLRU), "\x40\x43", str, byte(opSlotNum), 300, byte(opRAMLRU), 0, str}},
		{"its opcodes in Valkey", "VALKEY080", opcode(opRAMLRU), []any{byte(opRAMLRU), "\x05", str}},
		{"its slot in Valkey", "VALKEY080", opcode(opSlotNum), []any{byte(opSlotNum), "\x05", str}},
		{"a library of a candidate", "REDIS0010", "op 7 lib | op 7 l2 | a=:b", []any{byte(opFunction), text("lib"), text("LUA"), 1, text("what it is"), text("code"),
			byte(opFunction), text("l2"), text("LUA"), 0, text("code"), str}},
		{"a mask of Redis", "REDIS0015", opcode(opMask), []any{byte(opMask), "\x00\x00\x00\x00", str}},
		{"an update of Valkey", "VALKEY081", opcode(opTemplate), []any{byte(opTemplate), text("x"), str}},
		{"an opcode of nobody", "REDIS0015", opcode(241), []any{"\xf1", str}},
		{"a type of nobody", "REDIS0015", "offset 9: type: type 63: " + ErrNewer.Error(), []any{"\x3f", text("k"), str}},
		{"a type beyond all", "REDIS0015", opcode(65), []any{"\x41", text("k"), str}},
		{"a cron job of KeyDB", "REDIS0009", "k=keydb-cron:" + string(cron) + " | a=:b", []any{TypeCron, text("k"), cron, str}},
		{"a cron job of Valkey", "VALKEY080", "offset 9: type: type 64: " + ErrNewer.Error(), []any{TypeCron, text("k"), cron, str}},
		{"a flag of an array", "REDIS0015", "offset 14: flag: value 7: " + ErrNewer.Error(), []any{TypeArray, text("k"), "\x01\x07", strings.Repeat("\x00", 9)}},
		{"a tag of an array", "REDIS0015", "offset 16: tag: value 4: " + ErrNewer.Error(), []any{TypeArray, text("k"), "\x01\x00\x00\x04", strings.Repeat("\x00", 9)}},
		{"an item of a module", "REDIS0015", "offset 13: module item: value 6: " + ErrNewer.Error(), []any{TypeModule, text("k"), "\x05\x06", strings.Repeat("\x00", 9)}},
	} {
		checkContents(t, c.name, c.head, c.want, c.items...)
	}
}

// TestMemberExpiries: KeyDB writes member expiries after the value, possibly for members that no longer exist.
func TestMemberExpiries(t *testing.T) {
	aux := func(name, value string) []byte { return AppendAux(nil, name, value) }
	expires := func(member, when string) []byte { return append(aux(memberName, member), aux(memberWhen, when)...) }
	set := of(TypeSet, text("k"), 3, text("a"), text("b"), text("c"))
	behind := of(TypeString, text("z"), text("2"))
	for _, c := range []struct {
		name, want string
		items      []any
	}{
		{"two of three", "k=a:@1795672971509 b: c:@5 | z=:2", []any{set, expires("c", "5"), expires("gone", "7"), expires("a", "1795672971509"), behind}},
		{"at once", "k=a:@1 b: c: | z=:2", []any{set, expires("a", "0"), behind}},
		{"another field of the file", "k=a: b: c: | op 1 mvcc-tstamp | z=:2", []any{set, aux("mvcc-tstamp", "1"), behind}},
		{"not a time", "k=offset 19: member expiry: \"x\" is not a time | z=:2", []any{set, expires("a", "x"), behind}},
		{"before 1970", "k=offset 19: member expiry: \"-1\" is not a time | z=:2", []any{set, expires("a", "-1"), behind}},
		{"no time", "k=offset 42: member expiry: no keydb-subexpire-when | z=:2", []any{set, aux(memberName, "a"), behind}},
		{"no member", "k=offset 19: member expiry: no keydb-subexpire-key | z=:2", []any{set, aux(memberWhen, "5"), behind}},
	} {
		file := append(of("REDIS0009", of(c.items...)), opEOF)
		if got := contents(t, file); got != c.want {
			t.Errorf("%s: %s\nwant %s", c.name, got, c.want)
		}
	}
	var d Decoder
	d.members.lost = 3
	if d.Unread() != 3 {
		t.Error("members that were not kept are not told")
	}
}

// TestKinds checks the record type and the name of value types, by server.
func TestKinds(t *testing.T) {
	redis, valkey, dragonfly := Header{Version: 15}, Header{Version: 80, Valkey: true}, Header{Version: 9, Dragonfly: true}
	for _, c := range []struct {
		h    Header
		t    Type
		typ  record.Type
		name string
	}{
		{redis, TypeString, record.String, "string"},
		{redis, TypeHashExpireRC, record.Hash, "hash with field expiry of 7.4-rc"},
		{valkey, TypeValkeyHash, record.Hash, "hash 2"},
		{redis, TypeHashPackedExp, record.Hash, "hash listpack with field expiry"},
		{redis, TypeHashTempl, record.Hash, "hash of a template"},
		{dragonfly, TypeSetMember, record.Set, "set with member expiry of Dragonfly"},
		{dragonfly, TypeHashMember, record.Hash, "hash with member expiry of Dragonfly"},
		{redis, TypeHashDump, record.Hash, "hash with its template"},
		{dragonfly, TypeCuckoo, record.Other, "cuckoo filter of Dragonfly"},
		{redis, TypeCuckoo, 0, "type 37"},
		{valkey, TypeHashExpire, 0, "type 24"},
	} {
		if typ := c.t.RecordType(c.h); typ != c.typ || c.t.Name(c.h) != c.name {
			t.Errorf("%s, type %d: %v, %s", c.h, c.t, typ, c.t.Name(c.h))
		}
	}
	for head, is := range map[string]bool{"REDIS0011": true, "VALKEY080\xfa": true, "REDIS9999": true, "REDIS001": false,
		"REDIS00x1": false, "MEMIS0011": false} {
		if IsRDB([]byte(head)) != is {
			t.Errorf("%q begins a file: %t", head, !is)
		}
	}
	if _, err := ParseVersion("13"); err == nil || !strings.Contains(err.Error(), "valkey80") {
		t.Errorf("a version that cannot be written: %v", err)
	}
	if !AllRead(fmt.Errorf("x: %w", ErrOdd)) || !AllRead(ErrTwins) || AllRead(io.EOF) || AllRead(nil) {
		t.Error("errors after which all is read")
	}
}

// TestAppendsItems: appended framing reads back.
func TestAppendsItems(t *testing.T) {
	b := AppendFunction([]byte("REDIS0010"), []byte("#!lua name=l\ncode"))
	b = AppendModuleAux(b, of("\x81", []byte{0x44, 0x99, 0x23, 0x49, 0x43, 0x7e, 0x3c, 0x03}, moduleUInt, 2, moduleEOF))
	b = AppendAttributes(b, &Attributes{ExpireMS: 77, Idle: 300, Freq: 9})
	b = append(AppendKey(b, TypeString, []byte("k"), 0), text("v")...)
	b = AppendEOF(append(AppendKey(AppendAttributes(b, &Attributes{Idle: -1, Freq: -1}), TypeString, []byte("l"), 0),
		text("v")...))
	s, err := NewScanner(bytes.NewReader(b), 0, int64(len(b)))
	var out []string
	for err == nil {
		var it *Item
		if it, err = s.Next(); err == nil {
			out = append(out, fmt.Sprintf("%d %q %d %d %d", it.Op, it.Key, it.ExpireMS, it.Idle, it.Freq))
		}
	}
	want := `5 "" 0 -1 -1, 6 "RJkjSUN-P" 0 -1 -1, 0 "k" 77 300 9, 0 "l" 0 -1 -1, 9 "" 0 -1 -1`
	if got := strings.Join(out, ", "); got != want || err != io.EOF {
		t.Errorf("%s, %v\nwant %s", got, err, want)
	}
	p := AppendDump(nil, TypeList, DefaultVersion, []byte("\x01"), text("a"))
	if d, err := OpenDump(p[:len(p)-10], uint16(DefaultVersion.Number)); err != nil || d.Type != TypeList ||
		string(d.Value) != "\x01\x01a" || p[len(p)-10] != 9 || p[len(p)-9] != 0 {
		t.Errorf("a payload %q: %+v, %v", p, d, err)
	}
}

// TestStreamChecks: rejected groups of a stream.
func TestStreamChecks(t *testing.T) {
	group := func(name string) []byte { return of(text(name), 5, 1, 0, 0) }
	stream := func(groups ...any) []byte { return of(append([]any{0, 0, 5, 1, len(groups)}, groups...)...) }
	for _, c := range []struct {
		name  string
		value []byte
		err   error
	}{
		{"two groups", stream(group("g"), group("h")), io.EOF},
		{"a group twice", stream(group("g"), group("g")), errStreamTwin},
		{"a node whose id is short", of(1, text("short"), listpack(0, 0, 0, 0), 0, 0, 0, 0), errStreamID},
	} {
		var d Decoder
		var h record.Header
		err := d.Begin(TypeStream, Header{}, c.value, 0, &h)
		for dst := make([]record.Element, 2); err == nil; {
			_, err = d.Read(dst)
		}
		if !errors.Is(err, c.err) {
			t.Errorf("%s: %v, want %v", c.name, err, c.err)
		}
	}
}
