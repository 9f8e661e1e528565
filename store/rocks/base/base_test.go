package base

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"

	"kvferry/record"
	"kvferry/store"
)

func TestFields(t *testing.T) {
	b := slices.Concat([]byte{7}, []byte{1, 2, 3, 4}, []byte{1, 0, 0, 0, 0, 0, 0, 2}, []byte{0xac, 0x02},
		[]byte{3, 'a', 'b', 'c'}, []byte{5})
	f := &Fields{Buf: b, Base: 100}
	if v := f.Byte("byte"); v != 7 {
		t.Errorf("byte %d", v)
	}
	if v := f.Uint32("u32"); v != 0x04030201 {
		t.Errorf("u32 %x", v)
	}
	if v := f.Uint64("u64"); v != 2<<56|1 {
		t.Errorf("u64 %x", v)
	}
	if v := f.Uvarint("varint"); v != 300 {
		t.Errorf("varint %d", v)
	}
	if v := f.Prefixed("string"); string(v) != "abc" || cap(v) != 3 {
		t.Errorf("string %q, cap %d", v, cap(v))
	}
	if !f.More() || f.Left() != 1 {
		t.Errorf("%d bytes left", f.Left())
	}
	if v := f.Prefixed("cut"); v != nil {
		t.Errorf("cut string %q", v)
	}
	var c *record.CorruptError
	if !errors.As(f.Err, &c) || c.Off != 100+int64(len(b)) || c.Field != "cut" || !errors.Is(f.Err, record.ErrShort) {
		t.Errorf("error %v", f.Err)
	}
	// The first error sticks and ends reading.
	first := f.Err
	if f.Byte("x") != 0 || f.Uint32("x") != 0 || f.Uint64("x") != 0 || f.Uvarint("x") != 0 || f.Prefixed("x") != nil ||
		f.More() || f.Err != first {
		t.Errorf("after an error: %v", f.Err)
	}
}

func TestFieldsRefuse(t *testing.T) {
	for _, tt := range []struct {
		name string
		buf  []byte
		read func(*Fields)
		want error
	}{
		{"no varint", nil, func(f *Fields) { f.Uvarint("x") }, record.ErrShort},
		{"cut varint", []byte{0x80}, func(f *Fields) { f.Uvarint("x") }, record.ErrShort},
		{"long varint", bytes.Repeat([]byte{0xff}, 11), func(f *Fields) { f.Uvarint("x") }, ErrVarint},
		{"1<<32", []byte{0x80, 0x80, 0x80, 0x80, 0x10}, func(f *Fields) { f.Uvarint32("x") }, ErrVarint},
		{"33 bits", []byte{0xff, 0xff, 0xff, 0xff, 0x1f}, func(f *Fields) { f.Uvarint32("x") }, ErrVarint},
		{"u32", []byte{1, 2, 3}, func(f *Fields) { f.Uint32("x") }, record.ErrShort},
		{"negative", []byte{1, 2, 3}, func(f *Fields) { f.Bytes("x", -1) }, record.ErrShort},
	} {
		f := &Fields{Buf: tt.buf}
		tt.read(f)
		if !errors.Is(f.Err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, f.Err, tt.want)
		}
	}
	f := &Fields{Buf: []byte{0xff, 0xff, 0xff, 0xff, 0x1f}}
	if v := f.Uvarint32("x"); v != 0 {
		t.Errorf("33 bits are %d", v)
	}
	f = &Fields{Buf: []byte{7}}
	f.Fail("x", ErrVarint)
	if f.More() {
		t.Error("there is more after an error")
	}
	f = &Fields{Buf: []byte{7, 8}}
	if v := f.Bytes("all", 2); len(v) != 2 || f.Err != nil || f.More() {
		t.Errorf("all bytes: %v, %v, more %t", v, f.Err, f.More())
	}
	f = &Fields{Buf: []byte{0, 7}}
	if v := f.Prefixed("empty"); v == nil || len(v) != 0 || f.Err != nil || f.Left() != 1 {
		t.Errorf("no bytes: %v, %v", v, f.Err)
	}
	f = &Fields{Buf: []byte{0xff, 0xff, 0xff, 0xff, 0x0f}}
	if v := f.Uvarint32("x"); v != 1<<32-1 || f.Err != nil {
		t.Errorf("%d, %v", v, f.Err)
	}
}

// TestKinds: the kinds equal the numbers in RocksDB's db/dbformat.h.
func TestKinds(t *testing.T) {
	for kind, want := range map[byte]byte{KindDelete: 0, KindPut: 1, KindMerge: 2, KindLogData: 3, KindCFDelete: 4, KindCFPut: 5,
		KindCFMerge:      6,
		KindSingleDelete: 7, KindCFSingleDelete: 8, KindNoop: 13, KindCFRangeDelete: 14, KindRangeDelete: 15, KindCFBlobIndex: 16,
		KindBlobIndex: 17, KindDeleteTimestamp: 20, KindWideColumns: 22, KindCFWideColumns: 23, KindWriteTime: 24, KindCFWriteTime: 25} {
		if kind != want {
			t.Errorf("kind %d, want %d", kind, want)
		}
	}
	if MaxSequence != 0xff_ffff_ffff_ffff || TrailerLen != 8 {
		t.Errorf("sequence numbers up to %#x, trailers of %d bytes", uint64(MaxSequence), TrailerLen)
	}
}

func TestKeys(t *testing.T) {
	k := AppendKey([]byte("x"), []byte("user"), Trailer(0x123456, KindMerge))
	if want := "xuser\x02\x56\x34\x12\x00\x00\x00\x00"; string(k) != want {
		t.Errorf("key %q, want %q", k, want)
	}
	user, tr := SplitKey(k[1:])
	if string(user) != "user" || tr>>8 != 0x123456 || byte(tr) != KindMerge || cap(user) != 4 {
		t.Errorf("%q %x", user, tr)
	}
	key := func(u string, seq uint64, kind byte) []byte { return AppendKey(nil, []byte(u), Trailer(seq, kind)) }
	sorted := [][]byte{key("", 1, KindPut), key("a", 9, KindDelete), key("a", 8, KindPut), key("a", 8, KindDelete),
		key("ab", 1, KindPut), key("b", 9, KindPut)}
	for i, a := range sorted {
		for j, b := range sorted {
			if got, want := CompareKeys(bytes.Compare, a, b), min(max(i-j, -1), 1); got != want {
				t.Errorf("%q and %q compare as %d, want %d", a, b, got, want)
			}
		}
	}
}

func TestCommonPrefix(t *testing.T) {
	for range 2000 {
		n, m := rand.IntN(30), rand.IntN(30)
		a := bytes.Repeat([]byte("x"), n)
		b := bytes.Repeat([]byte("x"), m)
		want := min(n, m)
		if want > 0 && rand.IntN(3) > 0 {
			want = rand.IntN(want)
			b[want] = 'y'
		}
		if got := CommonPrefix(a, b, rand.IntN(want+1)); got != want {
			t.Fatalf("%q and %q share %d, want %d", a, b, got, want)
		}
	}
}

// TestMaskCRC: the example of RocksDB's own test, crc32c("foo"), masked as a log stores it.
func TestMaskCRC(t *testing.T) {
	c := crc32.Checksum([]byte("123456789"), Castagnoli)
	if c != 0xe3069283 {
		t.Errorf("CRC32c %08x", c)
	}
	if m := MaskCRC(c); m != (c>>15|c<<17)+0xa282ead8 || m == c {
		t.Errorf("masked %08x", m)
	}
}

func TestErrors(t *testing.T) {
	damage := Corrupt("file", 7, "block", ErrChecksum)
	var c *record.CorruptError
	if !errors.As(damage, &c) || c.File != "file" || c.Off != 7 || c.Field != "block" {
		t.Errorf("%v", damage)
	}
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{damage, true},
		{fmt.Errorf("more: %w", damage), true},
		{&store.MissingError{File: "x", By: "y"}, true},
		{&fs.PathError{Op: "read", Path: "x", Err: syscall.EACCES}, false},
		{Corrupt("file", 1, "block", Unsupported("codec %d", 9)), true},
		{Corrupt("file", 1, "read", ErrShrank), false},
		{errors.New("other"), false},
		{nil, false},
	} {
		if got := IsDamage(tt.err); got != tt.want {
			t.Errorf("%v: damage %t", tt.err, got)
		}
		var b *store.BlockError
		if got := errors.As(BlockError(tt.err), &b); got != tt.want {
			t.Errorf("%v: marked %t", tt.err, got)
		}
	}
	if err := Unsupported("codec %d", 9); !errors.Is(err, ErrUnsupported) || err.Error() != "codec 9: not supported by the native reader" {
		t.Errorf("%v", err)
	}
}

// TestBadVarint: an invalid varint has the value 0.
func TestBadVarint(t *testing.T) {
	for _, b := range [][]byte{nil, {0x80}, bytes.Repeat([]byte{0xff}, 11)} {
		f := &Fields{Buf: b}
		if v := f.Uvarint("number"); v != 0 || f.Err == nil || f.Off != 0 {
			t.Errorf("%x: %d, at %d, %v", b, v, f.Off, f.Err)
		}
	}
}

func TestXXH32(t *testing.T) {
	for in, want := range map[string]uint32{"": 0x02cc5d05, "a": 0x550d7456, "abc": 0x32d153ff,
		"Nobody inspects the spammish repetition": 0xe2293b2f} {
		if got := XXH32([]byte(in)); got != want {
			t.Errorf("xxh32(%q) = %08x, want %08x", in, got, want)
		}
	}
}
