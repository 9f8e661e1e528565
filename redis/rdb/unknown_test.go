package rdb

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kvferry/record"
	"kvferry/redis/rdb/pack"
)

// unread is the number of bits of a part that may change without effect or error, with the reason. TestUnknownForms
// fails if the number differs.
var unread = map[string]struct {
	bits int
	why  string
}{
	"zipmap":                     {8, "a byte that is free behind a value"},
	"listpack with expiries":     {64, "the least expiry is a hint that servers take from the fields themselves"},
	"hash of a template of DUMP": {7, "the integer before the values of a payload stands for nothing"},
	"stream listpacks":           {64, deletedEntry},
	"stream listpacks 2":         {64, deletedEntry},
	"stream listpacks 3":         {64, deletedEntry},
	"stream listpacks 4":         {117, deletedEntry + "; what producers sent is a finding"},
	"stream listpacks 5":         {117, deletedEntry + "; what producers sent is a finding"},
	"slot import":                {41, hint},
	"slot":                       {18, hint},
	"database":                   {21, hint},
	"mask":                       {33, "the key is sticky, and its flags of memcached"},
	"of Redis Enterprise":        {20, hint},
	"old library":                {64, "of a library that is named, and not read, only the name counts"},
	"expires at 0":               {1, "has passed, like the moment after"},
	"no type":                    {31, "the rest is not read, and that is an error"},
	"no opcode":                  {33, "the rest is not read, and that is an error"},
	"metadata":                   {70, "it is a finding that it is not read"},
}

const (
	deletedEntry = "texts and ids of entries that were deleted"
	hint         = "numbers that records do not depend on"
)

// otherParts are keys and opcodes that outcomes.txt lacks.
func otherParts() (out []part) {
	dragonfly, newest := Header{Version: 9, Dragonfly: true}, Header{Version: 15}
	add := func(name string, h Header, list ...any) { out = append(out, part{name, h, of(list...)}) }
	key := func(name string, h Header, t Type, list ...any) {
		add(name, h, append([]any{t, text("key")}, list...)...)
	}
	lp := func(items ...any) []byte { return text(string(packedOf(pack.Listpack, items...))) }
	zeros := strings.Repeat("\x01", 24)
	str := of(TypeString, text("key"), text("v"))

	key("JSON", dragonfly, TypeJSON, text("{}"))
	key("hash of Dragonfly", dragonfly, TypeHashMember, 2, text("f"), text("v"), "\xc0\xff", text("g"), text("w"), "\xc1\xf4\x01")
	key("set of Dragonfly", dragonfly, TypeSetMember, 2, text("a"), "\xc0\xff", text("b"), text("500"))
	key("Bloom filter", dragonfly, TypeBloom, 2, zeros[:16], 1, 2, 3, 1, 4, text("ab"))
	key("Bloom filter in chunks", dragonfly, TypeBloom2, 2, zeros[:16], 1, 2, 3, 1, 4, 3, 2, "ab", 1, "c")
	key("count-min sketch", dragonfly, TypeCountMin, 3, 1, 9, zeros)
	key("top-k", dragonfly, TypeTopK, 1, 2, 3, 4, zeros[:8], 1, text("i"), 9, 4, "abcd")
	key("cuckoo filter", dragonfly, TypeCuckoo, 1, 2, 3, 4, 5, 6, 1, 4, 2, "ab", 2, "cd")
	key("cron job", newest, TypeCron, text("code"), zeros[:16], 1, text("k1"), 1, text("x"))
	key("hash of a template of DUMP", newest, TypeHashDumpPacked, "\x00", lp("f", "g"), lp(1, "v", "w"))
	key("hash with its template", newest, TypeHashDump, "\x01", 2, text("f"), text("g"), text("v"), text("w"))
	add("templates", newest, byte(opTemplate), 7, 2, text("b"), text("aa"), TypeHashTempl, text("key"), 7, text("x"), text("y"),
		TypeHashTemplPack, text("k"), lp(7, "x", "y"))
	add("mask", dragonfly, byte(opMask), "\x03\x00\x00\x00", "\x00\x00\x00\x07", str)
	add("of Redis Enterprise", newest, byte(opRAMLRU), "\x40\x43", byte(opSlotNum), 3, str)
	add("old library", newest, byte(opFunction), text("lib"), text("LUA"), 1, text("d"), text("code"), str)
	return out
}

// contentsOf renders all items of a file, with the final error.
func contentsOf(file []byte) string {
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
		fmt.Fprintf(&out, "op %d db %d %q expires %d idle %d freq %d meta %t\n", it.Op, it.DB, it.Key, it.ExpireMS, it.Idle,
			it.Freq, it.Meta)
		switch it.Op {
		case OpEOF:
			sum, _, err := s.Checksum()
			fmt.Fprintf(&out, "sum %x %v", sum, err)
			return out.String()
		case OpAux, OpFunction, OpModuleAux:
			fmt.Fprintf(&out, "%q\n", it.Value)
		case OpKey:
			text, err := decodeAll(it.Type, s.Header, it.Value, it.From)
			fmt.Fprintf(&out, "%s%v\n", text, err)
		}
	}
}

// decodeAll renders a value, with the final error.
func decodeAll(t Type, hd Header, value []byte, off int64) (string, error) {
	var d Decoder
	var h record.Header
	var out strings.Builder
	err := d.Begin(t, hd, value, off, &h)
	fmt.Fprintf(&out, "%s len %d last %x added %d deleted %x\n", h.Type, h.Len, h.Last, h.Added, h.MaxDeleted)
	for dst := make([]record.Element, 3); err == nil; {
		var n int
		n, err = d.Read(dst)
		for _, e := range dst[:n] {
			fmt.Fprintf(&out, "  %d %q %q %v %d\n", e.Kind, e.Name, e.Value, e.Score, e.ExpireMS)
		}
	}
	return out.String(), err
}

// TestUnknownForms: every bit of a value, opcode or payload counts: trailing bytes, missing bytes, and a changed bit
// without effect are errors.
func TestUnknownForms(t *testing.T) {
	types := map[Type]bool{}
	for _, p := range append(parts(), otherParts()...) {
		file := append([]byte(p.header.String()), p.bytes...)
		if p.header.Dragonfly {
			file = append(append([]byte(p.header.String()), AppendAux(nil, "df-ver", "v1")...), p.bytes...)
		}
		whole, free := contentsOf(file), 0
		for i := len(file) - len(p.bytes); i < len(file); i++ {
			for bit := range 8 {
				b := bytes.Clone(file)
				b[i] ^= 1 << bit
				if contentsOf(b) == whole {
					free++
				}
			}
		}
		if want := unread[p.name]; free != want.bits && !strings.Contains(whole, ErrNewer.Error()) {
			t.Errorf("%s: %d bits may be any, want %d %s", p.name, free, want.bits, want.why)
		}
		s, err := NewScanner(bytes.NewReader(file), 0, int64(len(file)))
		for err == nil {
			var it *Item
			if it, err = s.Next(); err == nil && it.Op == OpKey {
				types[it.Type] = true
				checkLength(t, p.name, s.Header, it.Type, bytes.Clone(it.Value), it.From)
			}
		}
	}
	for typ := range len(redisShapes) {
		if !types[Type(typ)] && (Header{Version: 15}).shape(Type(typ)).form != formNone {
			t.Errorf("no value of type %d", typ)
		}
	}
	for typ := TypeJSON; int(typ) < len(dragonflyShapes); typ++ {
		if !types[typ] {
			t.Errorf("no value of type %d", typ)
		}
	}
}

// checkLength appends to a value, and to the collection packed in it, and truncates it.
func checkLength(t *testing.T, name string, hd Header, typ Type, value []byte, off int64) {
	t.Helper()
	if _, err := decodeAll(typ, hd, value, off); err != io.EOF {
		t.Errorf("%s: %v", name, err)
	}
	check := func(what string, b []byte) {
		_, err := decodeAll(typ, hd, b, off)
		var c *record.CorruptError
		if !errors.As(err, &c) {
			t.Errorf("%s, %s: %v", name, what, err)
		}
		if d, err := OpenDump(append([]byte{byte(typ)}, b...), uint16(hd.Version)); err == nil {
			if _, err := decodeAll(typ, d.Header, d.Value, 0); err == io.EOF {
				t.Errorf("%s, %s: a good payload", name, what)
			}
		}
	}
	for _, more := range []string{"\x00", "\xff", "\x01\x02\x03\x04\x05\x06\x07\x08"} {
		check(fmt.Sprintf("%x appended", more), append(bytes.Clone(value), more...))
		if lead, packed, ok := packedIn(hd, typ, value); ok {
			check(fmt.Sprintf("%x behind the entries", more),
				append(bytes.Clone(lead), text(longer(hd.shape(typ).pack, packed, len(packed), more))...))
			check(fmt.Sprintf("%x among the entries", more),
				append(bytes.Clone(lead), text(longer(hd.shape(typ).pack, packed, len(packed)-1, more))...))
		}
	}
	for n := range value {
		check(fmt.Sprintf("cut to %d bytes", n), value[:n])
	}
}

// packedIn returns the packed collection of a value, after its prefix.
func packedIn(hd Header, typ Type, value []byte) (lead []byte, packed string, ok bool) {
	if f := hd.shape(typ).form; f < formPackedList || f > formPackedExpiring {
		return nil, "", false
	}
	var in input
	in.reset(value, 0)
	if typ == TypeHashPackedExp {
		in.skip(8, "")
	}
	lead = value[:in.offset()]
	b, _ := in.str("", nil)
	return lead, string(b), true
}

// longer inserts bytes into a collection and updates its length.
func longer(kind pack.Kind, packed string, at int, more string) string {
	b := []byte(packed[:at] + more + packed[at:])
	if kind == pack.Ziplist || kind == pack.Listpack {
		binary.LittleEndian.PutUint32(b, uint32(len(b)))
	}
	return string(b)
}

// TestUnknownFormsOfServers: values written by servers, the smallest of each type, are errors if longer or shorter.
func TestUnknownFormsOfServers(t *testing.T) {
	const most = 2 // per type and file
	paths, _ := filepath.Glob("../../fixtures/golden/rdb-*.rdb.gz")
	shared, _ := filepath.Glob("../../../shared/golden/rdb-*.rdb.gz")
	if len(shared) == 0 {
		t.Log("SKIPPED: the files of older and newer servers are not here")
	}
	for _, path := range append(paths, shared...) {
		b := unzipped(t, path)
		s, err := NewScanner(bytes.NewReader(b), 0, int64(len(b)))
		seen := map[Type]int{}
		for err == nil {
			var it *Item
			it, err = s.Next()
			if err != nil || it.Op != OpKey || it.Value == nil || len(it.Value) > 400 || seen[it.Type] == most {
				continue
			}
			seen[it.Type]++
			checkLength(t, fmt.Sprintf("%s %q", filepath.Base(path), it.Key), s.Header, it.Type, bytes.Clone(it.Value), it.From)
		}
		if err != io.EOF || len(seen) == 0 {
			t.Errorf("%s: %v, types %v", path, err, seen)
		}
	}
}

func unzipped(t *testing.T, path string) []byte {
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
