package rocks

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand"
	"strings"
	"testing"

	"kvferry/record"
	"kvferry/store/rocks/base"
)

// handFile makes a blob file by hand.
type handFile struct{ b []byte }

func newHandFile(family uint32, codec byte) *handFile {
	h := &handFile{}
	h.b = binary.LittleEndian.AppendUint32(h.b, blobMagic)
	h.b = binary.LittleEndian.AppendUint32(h.b, blobVersion)
	h.b = binary.LittleEndian.AppendUint32(h.b, family)
	h.b = append(h.b, 0, codec)
	h.b = append(h.b, make([]byte, 16)...)
	return h
}

// add appends a record and returns the blob index that leads to it.
func (h *handFile) add(number uint64, codec byte, key, value string) blobPointer {
	at := len(h.b)
	h.b = binary.LittleEndian.AppendUint64(h.b, uint64(len(key)))
	h.b = binary.LittleEndian.AppendUint64(h.b, uint64(len(value)))
	h.b = binary.LittleEndian.AppendUint64(h.b, 0)
	h.b = binary.LittleEndian.AppendUint32(h.b, base.MaskCRC(crc32.Checksum(h.b[at:at+24], base.Castagnoli)))
	h.b = binary.LittleEndian.AppendUint32(h.b, base.MaskCRC(crc32.Checksum([]byte(key+value), base.Castagnoli)))
	h.b = append(append(h.b, key...), value...)
	return blobPointer{File: number, Offset: uint64(at + blobRecordLen + len(key)), Size: uint64(len(value)), Codec: codec}
}

func (h *handFile) finish(count uint64) []byte {
	at := len(h.b)
	h.b = binary.LittleEndian.AppendUint32(h.b, blobMagic)
	h.b = binary.LittleEndian.AppendUint64(h.b, count)
	h.b = append(h.b, make([]byte, 16)...)
	h.b = binary.LittleEndian.AppendUint32(h.b, base.MaskCRC(crc32.Checksum(h.b[at:], base.Castagnoli)))
	return h.b
}

// appendIndex encodes a plain blob index.
func appendIndex(dst []byte, x blobPointer) []byte {
	dst = append(dst, blobPlain)
	for _, v := range []uint64{x.File, x.Offset, x.Size} {
		dst = binary.AppendUvarint(dst, v)
	}
	return append(dst, x.Codec)
}

func open(t testing.TB, b []byte) *blobData {
	t.Helper()
	f, err := openBlob(bytes.NewReader(b), int64(len(b)), "000009.blob", 3)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// mustScan scans a whole file that must be sound.
func mustScan(t testing.TB, f *blobData) blobTotals {
	t.Helper()
	n, err := f.Scan(func(off int64, err error) error { return fmt.Errorf("at %d: %w", off, err) })
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestGolden reads annotated bytes: one record, "k" → "value", in column family 3.
func TestGolden(t *testing.T) {
	h := newHandFile(3, 0)
	x := h.add(9, 0, "k", "value")
	got := fmt.Sprintf("%x", h.finish(1))
	// header: magic, version, family, flags, codec
	want := "378f2400" + "01000000" + "03000000" + "00" + "00" + strings.Repeat("00", 16) +
		"0100000000000000" + "0500000000000000" + strings.Repeat("00", 8) + // key length, value length, expiry
		"????????" + "????????" + "6b" + "76616c7565" + // checksums, key, value
		"378f2400" + "0100000000000000" + strings.Repeat("00", 16) + "????????" // footer
	if len(got) != len(want) {
		t.Fatalf("%d digits, want %d", len(got), len(want))
	}
	for i := range want {
		if want[i] != '?' && want[i] != got[i] {
			t.Fatalf("digit %d: have %s, want %s", i, got[i:], want[i:])
		}
	}
	if x.Offset != 30+32+1 {
		t.Errorf("offset %d", x.Offset)
	}
	f := open(t, h.b)
	var r blobBuffer
	v, err := r.Value(f, x, []byte("k"))
	if string(v) != "value" || err != nil {
		t.Errorf("%q, %v", v, err)
	}
	if n := mustScan(t, f); n != (blobTotals{1, 38}) {
		t.Errorf("%+v", n)
	}
}

func TestIndex(t *testing.T) {
	for _, x := range []blobPointer{{}, {1, 63, 5, 0}, {1 << 40, 1<<63 + 5, 1<<64 - 1, 7}} {
		got, err := decodeBlobPointer(appendIndex(nil, x))
		if err != nil || got != x {
			t.Errorf("%+v: %+v, %v", x, got, err)
		}
	}
	whole := appendIndex(nil, blobPointer{300, 70000, 1 << 20, 4})
	for n := range whole {
		if _, err := decodeBlobPointer(whole[:n]); !isCorrupt(err) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	if _, err := decodeBlobPointer(append(whole, 0)); !isCorrupt(err) {
		t.Errorf("left over: %v", err)
	}
	for _, kind := range []byte{0, 2} {
		if _, err := decodeBlobPointer(append([]byte{kind}, whole[1:]...)); !errors.Is(err, errBlobTTL) {
			t.Errorf("kind %d: %v", kind, err)
		}
	}
	if _, err := decodeBlobPointer([]byte{3, 1, 1, 1, 1}); !isCorrupt(err) {
		t.Errorf("kind 3: %v", err)
	}
	if _, err := decodeBlobPointer(append([]byte{1}, bytes.Repeat([]byte{0xff}, 11)...)); !isCorrupt(err) {
		t.Errorf("long varint: %v", err)
	}
}

// TestPlaces: errors name their place in the file.
func TestPlaces(t *testing.T) {
	h := newHandFile(3, 0)
	x := h.add(9, 0, "k", "value")
	f := open(t, h.finish(1))
	footer := bytes.Clone(h.b[len(h.b)-blobFooterLen:])
	footer[28] ^= 1
	_, short := decodeBlobFooter(footer[1:])
	_, sum := decodeBlobFooter(footer)
	_, _, beyond := f.record(blobPointer{File: x.File, Offset: 1 << 63, Size: 5}, []byte("k"))
	_, _, before := f.record(blobPointer{File: x.File, Offset: x.Offset - 1, Size: 5}, []byte("k"))
	_, _, long := f.record(blobPointer{File: x.File, Offset: x.Offset, Size: uint64(f.size) - x.Offset + 1}, []byte("k"))
	_, _, codec := f.record(blobPointer{File: x.File, Offset: x.Offset, Size: 5, Codec: 7}, []byte("k"))
	for name, c := range map[string]struct {
		err   error
		off   int64
		field string
	}{"short": {short, 0, "footer"}, "checksum": {sum, 28, "footer"}, "beyond": {beyond, 1 << 62, "value"},
		"before": {before, int64(x.Offset) - 1, "value"},
		"long":   {long, int64(x.Offset), "value"}, "codec": {codec, int64(x.Offset), "value"}} {
		var at *record.CorruptError
		if !errors.As(c.err, &at) || at.Off != c.off || at.Field != c.field {
			t.Errorf("%s: %v, want %s at %d", name, c.err, c.field, c.off)
		}
	}
}

// isCorrupt reports whether an error names its place.
func isCorrupt(err error) bool {
	var c *record.CorruptError
	return errors.As(err, &c) && c.Field != ""
}

// TestReader reads values in the order of files, backwards and at random, small and larger than a window.
func TestReader(t *testing.T) {
	r := rand.New(rand.NewSource(7))
	type wanted struct {
		f          *blobData
		x          blobPointer
		key, value string
	}
	var all []wanted
	for n := range uint64(2*maxWindow + 1) {
		h := newHandFile(3, 0)
		var part []wanted
		for i := range 40 {
			w := wanted{key: fmt.Sprintf("key-%d", i), value: strings.Repeat(string(rune('a'+i%26)), r.Intn(3000))}
			if i%13 == 5 {
				w.value = strings.Repeat("L", window+r.Intn(window))
			}
			w.x = h.add(n, 0, w.key, w.value)
			part = append(part, w)
		}
		f := open(t, h.finish(40))
		for i := range part {
			part[i].f = f
		}
		all = append(all, part...)
	}
	var rd blobBuffer
	check := func(i int) {
		w := all[i]
		v, err := rd.Value(w.f, w.x, []byte(w.key))
		if err != nil || string(v) != w.value {
			t.Fatalf("value %d: %d bytes, want %d: %v", i, len(v), len(w.value), err)
		}
	}
	for i := range all {
		check(i)
		check(i * 7919 % len(all))
	}
	for i := len(all) - 1; i >= 0; i-- {
		check(i)
	}
	rd.Trim()
	for range 2000 {
		check(r.Intn(len(all)))
	}
}

// TestReadAhead counts reads: values in the order of the file cost one for a window.
func TestReadAhead(t *testing.T) {
	h := newHandFile(3, 0)
	var xs []blobPointer
	for i := range 1000 {
		xs = append(xs, h.add(1, 0, fmt.Sprintf("%04d", i), strings.Repeat("v", 64)))
	}
	c := &countingReader{Reader: bytes.NewReader(h.finish(1000))}
	f, err := openBlob(c, int64(len(h.b)), "x", 3)
	if err != nil {
		t.Fatal(err)
	}
	c.n = 0
	var rd blobBuffer
	allocs := testing.AllocsPerRun(1, func() {
		for i, x := range xs {
			if _, err := rd.Value(f, x, []byte(fmt.Sprintf("%04d", i))); err != nil {
				t.Fatal(err)
			}
		}
	})
	if limit := 2 * (len(h.b)/window + 20); c.n > limit {
		t.Errorf("%d reads of %d bytes, want at most %d", c.n, len(h.b), limit)
	}
	if allocs > 3*1000 {
		t.Errorf("%v allocations", allocs)
	}
}

type countingReader struct {
	*bytes.Reader
	n int
}

func (c *countingReader) ReadAt(b []byte, off int64) (int, error) {
	c.n++
	return c.Reader.ReadAt(b, off)
}

func TestWrongPlace(t *testing.T) {
	h := newHandFile(3, 4)
	a := h.add(1, 4, "a", "one")
	b := h.add(1, 4, "b", "two")
	f := open(t, h.finish(2))
	var rd blobBuffer
	for name, c := range map[string]struct {
		x   blobPointer
		key string
	}{
		"another key":        {a, "b"},
		"a longer key":       {a, "aa"},
		"a key of no length": {a, ""},
		"a longer value":     {blobPointer{1, a.Offset, 4, 4}, "a"},
		"before the header":  {blobPointer{1, 20, 3, 4}, "a"},
		"beyond the end":     {blobPointer{1, 1 << 62, 3, 4}, "a"},
		"an endless value":   {blobPointer{1, b.Offset, 1<<64 - 1, 4}, "b"},
		"another codec":      {blobPointer{1, a.Offset, 3, 1}, "a"},
	} {
		if v, err := rd.Value(f, c.x, []byte(c.key)); !isCorrupt(err) {
			t.Errorf("%s: %q, %v", name, v, err)
		}
	}
	if v, err := rd.Value(f, b, []byte("b")); string(v) != "two" || err != nil {
		t.Errorf("%q, %v", v, err)
	}
	var other *record.CorruptError
	if _, err := openBlob(bytes.NewReader(h.b), int64(len(h.b)), "x", 4); !errors.As(err, &other) || other.Off != 8 {
		t.Errorf("another column family: %v", err)
	}
}

func TestBlobsRefused(t *testing.T) {
	h := newHandFile(3, 0)
	h.b[12] = blobFlagTTL
	if _, err := decodeBlobHeader(h.b); !errors.Is(err, errBlobTTL) {
		t.Errorf("flag: %v", err)
	}
	h = newHandFile(3, 0)
	h.b[29] = 1
	if _, err := decodeBlobHeader(h.b); !errors.Is(err, errBlobTTL) {
		t.Errorf("range: %v", err)
	}
	b := newHandFile(3, 0).finish(0)[blobHeaderLen:]
	b[20] = 1
	binary.LittleEndian.PutUint32(b[28:], base.MaskCRC(crc32.Checksum(b[:28], base.Castagnoli)))
	if _, err := decodeBlobFooter(b); !errors.Is(err, errBlobTTL) {
		t.Errorf("footer: %v", err)
	}
	b = make([]byte, blobRecordLen)
	b[16] = 1
	binary.LittleEndian.PutUint32(b[24:], base.MaskCRC(crc32.Checksum(b[:24], base.Castagnoli)))
	if _, err := decodeBlobRecord(b); !errors.Is(err, errBlobTTL) {
		t.Errorf("record: %v", err)
	}
	h = newHandFile(3, 0)
	h.b[4] = 2
	if _, err := decodeBlobHeader(h.b); !isCorrupt(err) {
		t.Errorf("version: %v", err)
	}
}

// sweepBlobs is a small file for sweeps, with where its records start.
func sweepBlobs() (b []byte, xs []blobPointer, keys []string) {
	h := newHandFile(3, 0)
	for i := range 5 {
		k := strings.Repeat(string(rune('a'+i)), i)
		keys = append(keys, k)
		xs = append(xs, h.add(1, 0, k, strings.Repeat("v", 3*i)))
	}
	return h.finish(5), xs, keys
}

// TestSweep reads every strict prefix of a file and every variant with one byte flipped: a value is either correct or
// an error, and a scan finds all damage.
func TestSweep(t *testing.T) {
	whole, xs, keys := sweepBlobs()
	check := func(name string, b []byte) {
		f, err := openBlob(bytes.NewReader(b), int64(len(b)), "x", 3)
		if err != nil {
			return
		}
		found := 0
		if _, err := f.Scan(func(int64, error) error { found++; return nil }); err != nil || found == 0 {
			t.Errorf("%s: damage found %d times, %v", name, found, err)
		}
		var rd blobBuffer
		for i, x := range xs {
			v, err := rd.Value(f, x, []byte(keys[i]))
			if err == nil && string(v) != strings.Repeat("v", 3*i) {
				t.Errorf("%s: value %d is %q", name, i, v)
			}
			if err != nil && !isCorrupt(err) && !errors.Is(err, errBlobTTL) {
				t.Errorf("%s: value %d: %v", name, i, err)
			}
		}
	}
	for n := range whole {
		check(fmt.Sprintf("prefix of %d", n), whole[:n])
	}
	for i := range whole {
		for _, x := range []byte{1, 0x80, 0xff} {
			b := bytes.Clone(whole)
			b[i] ^= x
			if i == 13 {
				continue // another codec alone is not damage
			}
			check(fmt.Sprintf("byte %d ^ %#x", i, x), b)
		}
	}
}

// TestScanGoesOn reads past a record whose value is damaged, and ends at one whose length is.
func TestScanGoesOn(t *testing.T) {
	whole, xs, _ := sweepBlobs()
	b := bytes.Clone(whole)
	b[xs[3].Offset] ^= 1
	var at []int64
	n, err := open(t, b).Scan(func(off int64, err error) error { at = append(at, off); return nil })
	if err != nil || n.Count != 5 || len(at) != 1 || at[0] != int64(xs[3].Offset)-blobRecordLen-3 {
		t.Errorf("%+v, %v, %v", n, at, err)
	}
	b = bytes.Clone(whole)
	b[int(xs[3].Offset)-blobRecordLen-3] ^= 1
	at = nil
	n, err = open(t, b).Scan(func(off int64, err error) error { at = append(at, off); return nil })
	if err != nil || n.Count != 3 || len(at) != 1 {
		t.Errorf("%+v, %v, %v", n, at, err)
	}
	stop := errors.New("stop")
	if _, err := open(t, b).Scan(func(int64, error) error { return stop }); err != stop {
		t.Errorf("%v", err)
	}
}

// errReader fails with an error of the system.
type errReader struct{ err error }

func (e errReader) ReadAt([]byte, int64) (int, error) { return 0, e.err }

// TestDiskError: errors of the system are returned unchanged, because they are not damage of the file.
func TestDiskError(t *testing.T) {
	whole, xs, keys := sweepBlobs()
	f := open(t, whole)
	boom := errors.New("boom")
	f.r = errReader{boom}
	if _, err := f.Scan(func(int64, error) error { t.Error("damage"); return nil }); err != boom {
		t.Error(err)
	}
	var rd blobBuffer
	if _, err := rd.Value(f, xs[4], []byte(keys[4])); err != boom {
		t.Error(err)
	}
	if _, err := openBlob(f.r, 100, "x", 3); err != boom {
		t.Error(err)
	}
}

// TestLastPlace: an empty value may lie at the end of the file.
func TestLastPlace(t *testing.T) {
	f := &blobData{size: 200}
	off, size, err := f.record(blobPointer{Offset: 200}, []byte("key"))
	if off != 200-blobRecordLen-3 || size != blobRecordLen+3 || err != nil {
		t.Errorf("%d, %d, %v", off, size, err)
	}
	if _, _, err := f.record(blobPointer{Offset: 201}, []byte("key")); !isCorrupt(err) {
		t.Errorf("beyond the end: %v", err)
	}
}

// TestTrim: a buffer much larger than a window is freed, a smaller one is kept.
func TestTrim(t *testing.T) {
	for n, kept := range map[int]bool{maxWindow * window: true, maxWindow*window + 1: false} {
		r := blobBuffer{big: make([]byte, n)}
		r.Trim()
		if (r.big != nil) != kept {
			t.Errorf("room for %d bytes is kept: %t", n, !kept)
		}
	}
}

// sumFooter recomputes the checksum of a footer.
func sumFooter(b []byte) {
	f := b[len(b)-blobFooterLen:]
	binary.LittleEndian.PutUint32(f[28:], base.MaskCRC(crc32.Checksum(f[:28], base.Castagnoli)))
}

// sumRecord recomputes the checksum of a record's lengths.
func sumRecord(b []byte) {
	binary.LittleEndian.PutUint32(b[24:], base.MaskCRC(crc32.Checksum(b[:24], base.Castagnoli)))
}

// TestMessages compares whole error messages: fault, place, and the numbers of both sides.
func TestMessages(t *testing.T) {
	h := newHandFile(3, 4)
	h.add(9, 4, "key", "value") // at 30, value at 65, footer at 70
	whole := h.finish(1)
	opened := func(b []byte) error {
		_, err := openBlob(bytes.NewReader(b), int64(len(b)), "f", 3)
		return err
	}
	scanned := func(b []byte) error {
		f, err := openBlob(bytes.NewReader(b), int64(len(b)), "f", 3)
		if err != nil {
			return err
		}
		_, err = f.Scan(func(_ int64, err error) error { return err })
		return err
	}
	value := func(x blobPointer, key string) func([]byte) error {
		return func(b []byte) error {
			f, err := openBlob(bytes.NewReader(b), int64(len(b)), "f", 3)
			if err != nil {
				return err
			}
			_, err = new(blobBuffer).Value(f, x, []byte(key))
			return err
		}
	}
	set := func(at int, with ...byte) func(b []byte) []byte {
		return func(b []byte) []byte { copy(b[at:], with); return b }
	}
	lengths := func(key, value byte) func(b []byte) []byte {
		return func(b []byte) []byte { b[30], b[38] = key, value; sumRecord(b[30:]); return b }
	}
	cut := func(n int) func(b []byte) []byte { return func(b []byte) []byte { return b[:n] } }
	for _, c := range []struct {
		change func(b []byte) []byte
		do     func(b []byte) error
		want   string
	}{
		{cut(29), opened, `f: offset 0: header: the file has 29 bytes: too short`},
		{cut(30), opened, ``},
		{set(0, 0), opened, `f: offset 0: magic number: 00248f00 is not that of a blob file`},
		{set(4, 2), opened, `f: offset 4: version: 2, want 1: not supported by the native reader`},
		{set(8, 4), opened, `f: offset 8: header: column family 4, want 3`},
		{set(12, 2), opened, `f: offset 12: flags: 0x2: not supported by the native reader`},
		{set(12, 1), opened, `f: offset 0: blob files with a TTL: not supported by the native reader`},
		{cut(30), scanned, `f: offset 30: footer: 0 bytes: too short`},
		{cut(35), scanned, `f: offset 30: footer: 5 bytes: too short`},
		{cut(67), scanned, `f: offset 30: record: 5 bytes: too short`},
		{set(30, 4), scanned, `f: offset 30: record: lengths: checksum mismatch`},
		{lengths(9, 0), scanned, `f: offset 30: record: key of 9 bytes and value of 0, 8 are left`},
		{lengths(3, 6), scanned, `f: offset 30: record: key of 3 bytes and value of 6, 8 are left`},
		{lengths(8, 0), scanned, ``}, // the same bytes, all of them key
		{set(69, 'E'), scanned, `f: offset 30: record: checksum mismatch`},
		{set(70, 0), scanned, `f: offset 70: footer: magic number 00248f00: the file has no footer`},
		{set(98, 0, 0), scanned, `f: offset 98: footer: checksum mismatch`},
		{func(b []byte) []byte { b[74] = 2; sumFooter(b); return b }, scanned, `f: offset 74: footer: 2 records, 1 are there`},
		{set(0), value(blobPointer{9, 65, 5, 4}, "key"), ``},
		{set(0), value(blobPointer{9, 65, 38, 4}, "key"), `f: offset 65: value: 38 bytes after a key of 3, but the file has 102`},
		{set(0), value(blobPointer{9, 65, 5, 7}, "key"), `f: offset 65: value: codec 7, the file has 4`},
		{set(0), value(blobPointer{9, 65, 6, 4}, "key"), `f: offset 30: record: key of 3 bytes and value of 5, the blob index leads to 3 and 6`},
		{lengths(4, 5), value(blobPointer{9, 65, 5, 4}, "key"), `f: offset 30: record: key of 4 bytes and value of 5, the blob index leads to 3 and 5`},
		{set(0), value(blobPointer{9, 65, 5, 4}, "kez"), `f: offset 30: record: it is of key "key"`},
	} {
		err := c.do(c.change(bytes.Clone(whole)))
		if got := fmt.Sprint(err); got != c.want && (c.want != "" || err != nil) {
			t.Errorf("have %s, want %s", got, c.want)
		}
	}
	for index, want := range map[string]string{
		"":                         "offset 0: blob index: too short",
		"\x03":                     "offset 0: blob index: kind 3: not supported by the native reader",
		"\x01\x80":                 "offset 1: blob index: varint: too short",
		"\x01\x05\x06\x07":         "offset 4: codec of the blob index: 0 bytes, want 1",
		"\x01\x05\x06\x07\x00\x00": "offset 4: codec of the blob index: 2 bytes, want 1",
	} {
		if _, err := decodeBlobPointer([]byte(index)); err == nil || err.Error() != want {
			t.Errorf("blob index %q: %v, want %s", index, err, want)
		}
	}
	if _, err := decodeBlobHeader(whole[:29]); err == nil || err.Error() != "offset 0: header: 29 bytes: too short" {
		t.Errorf("header: %v", err)
	}
}

// TestTTL: a byte of an expiry refuses a footer or a record, and the bytes beside it do not.
func TestTTL(t *testing.T) {
	h := newHandFile(3, 0)
	h.add(9, 0, "key", "value")
	whole := h.finish(1)
	for i := range 28 {
		b := bytes.Clone(whole[len(whole)-blobFooterLen:])
		b[i] ^= 1
		sumFooter(b)
		if _, err := decodeBlobFooter(b); errors.Is(err, errBlobTTL) != (i >= 12) {
			t.Errorf("byte %d of a footer: %v", i, err)
		}
	}
	for i := range 24 {
		b := bytes.Clone(whole[blobHeaderLen:])
		b[i] ^= 1
		sumRecord(b)
		if _, err := decodeBlobRecord(b); errors.Is(err, errBlobTTL) != (i >= 16) {
			t.Errorf("byte %d of a record: %v", i, err)
		}
	}
}

// TestWindows counts reads and allocations: a window is filled once and used to its last byte, a Reader has eight, and
// the buffer of a large value is reused.
func TestWindows(t *testing.T) {
	if blobWindow != 128<<10 {
		t.Errorf("a Reader takes %d bytes", blobWindow)
	}
	var files []*blobData
	var xs []blobPointer
	reads := &countingReader{}
	for range maxWindow {
		h := newHandFile(3, 0)
		xs = xs[:0]
		for i := range 32 { // sixteen fill a window
			xs = append(xs, h.add(1, 0, string(rune('A'+i)), strings.Repeat("v", window/16-blobRecordLen-1)))
		}
		xs = append(xs, h.add(1, 0, "large", strings.Repeat("L", 2*window)))
		b := h.finish(33)
		reads.Reader = bytes.NewReader(b)
		files = append(files, open(t, b))
		files[len(files)-1].r = &countingReader{Reader: reads.Reader}
	}
	var rd blobBuffer
	value := func(f *blobData, i int) {
		key := string(rune('A' + i))
		if i == 32 {
			key = "large"
		}
		if v, err := rd.Value(f, xs[i], []byte(key)); err != nil || uint64(len(v)) != xs[i].Size {
			t.Fatalf("value %d: %d bytes, %v", i, len(v), err)
		}
	}
	count := func() (n int) {
		for _, f := range files {
			n += f.r.(*countingReader).n
			f.r.(*countingReader).n = 0
		}
		return n
	}
	for i := range 16 {
		for _, f := range files {
			value(f, i)
			value(f, 0)
		}
	}
	if n := count(); n != maxWindow {
		t.Errorf("%d reads for a window of each of %d files", n, maxWindow)
	}
	value(files[0], 15)
	for range 2 {
		value(files[0], 16)
		value(files[0], 31)
	}
	if n := count(); n != 1 {
		t.Errorf("%d reads for a second window", n)
	}
	for _, order := range [][]int{{0, 31}, {32}} {
		n := testing.AllocsPerRun(10, func() {
			for _, i := range order {
				value(files[0], i)
			}
		})
		if n != 0 {
			t.Errorf("%v allocations for values %v", n, order)
		}
	}
}

// TestFooterNotRead: an error of the system at the footer is returned unchanged.
func TestFooterNotRead(t *testing.T) {
	h := newHandFile(3, 0)
	h.add(9, 0, "k", strings.Repeat("v", 3*scanChunk))
	b := h.finish(1)
	f := open(t, b)
	boom := errors.New("boom")
	f.r = failsAt{bytes.NewReader(b), int64(len(b)) - blobFooterLen, boom}
	n, err := f.Scan(func(int64, error) error { t.Error("damage"); return nil })
	if err != boom || n.Count != 1 {
		t.Errorf("%+v, %v", n, err)
	}
}

// failsAt fails all reads from an offset on.
type failsAt struct {
	*bytes.Reader
	off int64
	err error
}

func (f failsAt) ReadAt(b []byte, off int64) (int, error) {
	if n := f.off - off; n < int64(len(b)) {
		n, _ := f.Reader.ReadAt(b[:max(n, 0)], off)
		return n, f.err
	}
	return f.Reader.ReadAt(b, off)
}
