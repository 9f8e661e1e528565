package logfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"kvferry/internal/testkit/testsst"
	"kvferry/store/rocks/base"
)

// readLog returns the first byte and the length of each record, and how the log ends.
func readLog(l *Reader) string {
	var out []string
	for {
		rec, off, err := l.Next()
		if err == io.EOF {
			return strings.Join(append(out, "end"), " ")
		}
		if err != nil {
			what := "damage"
			switch {
			case err == ErrTorn:
				what = "torn"
			case errors.Is(err, base.ErrUnsupported):
				what = "unsupported"
			}
			return strings.Join(append(out, fmt.Sprintf("%s@%d", what, off)), " ")
		}
		switch {
		case l.Skipped:
			out = append(out, fmt.Sprintf("huge%d@%d", l.Size, off))
		case len(rec) == 0:
			out = append(out, "0")
		default:
			out = append(out, fmt.Sprintf("%c%d", rec[0], len(rec)))
		}
	}
}

func rec(c string, n int) []byte { return []byte(strings.Repeat(c, n)) }

func TestRecords(t *testing.T) {
	for _, reuse := range []bool{false, true} {
		log := testsst.Log(7, reuse, rec("a", 10), nil, rec("b", BlockSize), rec("c", 3*BlockSize), rec("d", BlockSize-40),
			rec("e", 1))
		want := "a10 0 b32768 c98304 d32728 e1 end"
		if got := readLog(NewReader(bytes.NewReader(log), 7)); got != want {
			t.Errorf("reuse %t: %s, want %s", reuse, got, want)
		}
		if got := readLog(NewReader(iotest.OneByteReader(bytes.NewReader(log)), 7)); got != want { // no ReaderAt
			t.Errorf("reuse %t, from a stream: %s, want %s", reuse, got, want)
		}
	}
}

// TestHugeRecords: a record beyond Huge is passed over, and Body reads it.
func TestHugeRecords(t *testing.T) {
	late := testsst.Log(7, true, rec("a", 10), rec("b", 2*BlockSize), rec("c", 3*BlockSize), rec("d", 9))
	ll := NewReader(bytes.NewReader(late), 7)
	ll.Huge = BlockSize
	for _, want := range [][]byte{nil, rec("b", 2*BlockSize), rec("c", 3*BlockSize)} { // the last begins in the third block
		_, off, err := ll.Next()
		if err != nil || ll.Skipped != (want != nil) {
			t.Fatalf("skipped %t, %v", ll.Skipped, err)
		}
		if want == nil {
			continue
		}
		body, err := ll.Body(off)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(body); err != nil || !bytes.Equal(got, want) {
			t.Errorf("at %d: %d bytes, %v", off, len(got), err)
		}
	}
	log := testsst.Log(7, true, rec("a", 10), rec("b", 5*BlockSize), rec("c", 100))
	l := NewReader(bytes.NewReader(log), 7)
	l.Huge = BlockSize
	l.Next()
	b, off, err := l.Next()
	if b != nil || err != nil || !l.Skipped || l.Size != 5*BlockSize {
		t.Fatalf("%d bytes, %v, skipped %t, size %d", len(b), err, l.Skipped, l.Size)
	}
	body, err := l.Body(off)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(body); err != nil || !bytes.Equal(got, rec("b", 5*BlockSize)) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if got := readLog(l); got != "c100 end" {
		t.Errorf("then %s", got)
	}
	// A body that changes under the reader is an error, not a short record.
	l = NewReader(bytes.NewReader(log), 7)
	l.Huge = BlockSize
	l.Next()
	_, off, _ = l.Next()
	body, _ = l.Body(off)
	clear(log[3*BlockSize:])
	if _, err := io.ReadAll(body); err == nil {
		t.Error("the rest of the record is zeros")
	}
	l = NewReader(iotest.OneByteReader(bytes.NewReader(log)), 7)
	if _, err := l.Body(0); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("of a stream: %v", err)
	}
}

func TestDamage(t *testing.T) {
	big, small, last := rec("b", 3*BlockSize), rec("s", 10), rec("l", 20)
	whole := testsst.Log(7, false, big, small, last)
	smallAt := len(testsst.Log(7, false, big))
	lastAt := len(testsst.Log(7, false, big, small))
	flip := func(at int) []byte {
		b := slices.Clone(whole)
		b[at] ^= 0x40
		return b
	}
	at := func(what string, off int) string { return fmt.Sprintf("%s@%d", what, off) }
	zstdFrame := testsst.Frame(FragCompression, 0, false, []byte{codecZstd, 0, 0, 0})
	for _, tt := range []struct {
		name string
		log  []byte
		want string
	}{
		{"whole", whole, "b98304 s10 l20 end"},
		{"within the last record", whole[:lastAt+9], "b98304 s10 " + at("torn", lastAt)},
		{"within the last header", whole[:lastAt+3], "b98304 s10 " + at("torn", lastAt)},
		{"at a record's end", whole[:lastAt], "b98304 s10 end"},
		{"between fragments", whole[:2*BlockSize], "torn@0"},
		{"within a fragment", whole[:BlockSize+100], at("torn", BlockSize)},
		{"zeros after", append(slices.Clone(whole), make([]byte, 50000)...), "b98304 s10 l20 end"},
		{"nothing but zeros", make([]byte, 50000), "end"},
		{"zeros within", slices.Concat(whole[:lastAt], make([]byte, 20), whole[lastAt:]), "b98304 s10 " + at("damage", lastAt)},
		{"payload", flip(smallAt + 20), "b98304 s10 " + at("damage", lastAt)},
		{"length", flip(smallAt + 4), "b98304 " + at("damage", smallAt)},
		{"type", flip(smallAt + 6), "b98304 " + at("damage", smallAt)},
		{"missing middle", slices.Concat(whole[:BlockSize], whole[2*BlockSize:]), "b65543 s10 l20 end"},
		{"missing first", whole[BlockSize:], "damage@0"},
		{"first twice", slices.Concat(whole[:BlockSize], whole), at("damage", BlockSize)},
		{"empty", nil, "end"},
		{"compressed by LZ4", testsst.Frame(9, 0, false, []byte{4, 0, 0, 0}), "unsupported@0"},
		{"compressed by what", testsst.Frame(9, 0, false, []byte{7}), "damage@0"},
		{"compressed twice", slices.Concat(zstdFrame, zstdFrame), at("damage", len(zstdFrame))},
		{"compressed late", slices.Concat(whole, zstdFrame), "b98304 s10 l20 " + at("damage", len(whole))},
		{"timestamps", testsst.Frame(10, 0, false, []byte{1}), "unsupported@0"},
		{"unknown type", testsst.Frame(42, 0, false, []byte{1}), "unsupported@0"},
		{"unknown type and a wrong checksum", append([]byte{1}, testsst.Frame(42, 0, false, []byte{1})[1:]...), "damage@0"},
	} {
		if got := readLog(NewReader(bytes.NewReader(tt.log), 7)); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// TestTypeInErrors: errors show the type of an unexpected fragment without the offset for log numbers.
func TestTypeInErrors(t *testing.T) {
	for typ, want := range map[byte]string{1: "type 1 ", 4: "type 4 ", 5: "type 1 ", 8: "type 4 ", 9: "type 9 "} {
		b := append([]byte{1, 2, 3, 4, 0xff, 0xff, typ}, make([]byte, 100)...)
		l := NewReader(bytes.NewReader(b), 7)
		l.records = true
		if _, _, err := l.Next(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("type %d: %v", typ, err)
		}
	}
}

// TestReuse: the leftover of an older use of the file ends the log, unless more of this log follows.
func TestReuse(t *testing.T) {
	old := testsst.Log(3, true, rec("o", 500), rec("p", 500))
	log := testsst.Log(7, true, rec("a", 100))
	l := NewReader(bytes.NewReader(append(slices.Clone(log), old[len(log):]...)), 7)
	if got := readLog(l); got != "a100 end" || !l.Leftover {
		t.Errorf("%s, leftover %t", got, l.Leftover)
	}
	l = NewReader(bytes.NewReader(append(slices.Clone(log), old...)), 7)
	if got := readLog(l); got != "a100 end" || l.Leftover {
		t.Errorf("%s, leftover %t", got, l.Leftover)
	}
	damaged := testsst.Log(7, true, rec("a", 100), rec("b", 100), rec("c", 100))
	damaged[len(log)+20] ^= 1
	if got, want := readLog(NewReader(bytes.NewReader(damaged), 7)), fmt.Sprintf("a100 damage@%d", len(log)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestResync: after damage the reader continues with the next record, or with the next block if the length of the
// damaged record leads nowhere.
func TestResync(t *testing.T) {
	log := testsst.Log(7, false, rec("a", BlockSize-100), rec("b", 50), rec("c", 50), rec("d", 200))
	for what, tt := range map[string]struct {
		flips []int
		want  string
	}{
		"payload":              {[]int{50}, "b50 c50 d200 end"},
		"length":               {[]int{4}, "d200 end"},
		"the next record, too": {[]int{50, BlockSize - 100 + HeaderLen + 10}, "d200 end"},
	} {
		broken := slices.Clone(log)
		for _, at := range tt.flips {
			broken[at] ^= 1
		}
		l := NewReader(bytes.NewReader(broken), 7)
		l.Salvage = true
		if _, _, err := l.Next(); err == nil {
			t.Fatal("the damage was not seen")
		}
		l.Resync()
		if got := readLog(l); got != tt.want {
			t.Errorf("%s: then %s, want %s", what, got, tt.want)
		}
	}
	log[50] ^= 1
	l := NewReader(bytes.NewReader(log[:60]), 7)
	l.Next()
	l.Resync()
	if got := readLog(l); got != "end" {
		t.Errorf("behind the last block %s", got)
	}
}

// TestZeroAt: where the zeros begin that a log ends in.
func TestZeroAt(t *testing.T) {
	log := testsst.Log(7, false, rec("a", 100))
	l := NewReader(bytes.NewReader(append(slices.Clone(log), make([]byte, 3*BlockSize)...)), 7)
	if got := readLog(l); got != "a100 end" || l.ZeroAt != int64(len(log)) {
		t.Errorf("%s, zeros from %d", got, l.ZeroAt)
	}
	l = NewReader(bytes.NewReader(log), 7)
	readLog(l)
	if l.ZeroAt != -1 {
		t.Errorf("zeros from %d", l.ZeroAt)
	}
}

func TestReadErrors(t *testing.T) {
	log := testsst.Log(7, false, rec("a", 2*BlockSize))
	l := NewReader(io.MultiReader(bytes.NewReader(log[:BlockSize]), iotest.ErrReader(io.ErrClosedPipe)), 7)
	if _, _, err := l.Next(); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("%v", err)
	}
}

// TestEmptyFirst: writers before 2013 could leave an empty first fragment at the end of a block.
func TestEmptyFirst(t *testing.T) {
	log := testsst.Log(7, false, rec("a", BlockSize-2*HeaderLen))
	log = append(log, testsst.Frame(fragFirst, 0, false, nil)...)
	log = append(log, testsst.Frame(fragFull, 0, false, rec("b", 9))...)
	if got := readLog(NewReader(bytes.NewReader(log), 7)); got != "a32754 b9 end" {
		t.Error(got)
	}
	// A header that promises more than its block has, in the last block of the file.
	b := binary.LittleEndian.AppendUint16(make([]byte, 4), 1000)
	if got := readLog(NewReader(bytes.NewReader(append(b, fragFull, 'x')), 7)); got != "torn@0" {
		t.Error(got)
	}
}

func FuzzReader(f *testing.F) {
	f.Add(testsst.Log(7, false, rec("a", 10), rec("b", 2*BlockSize)))
	f.Add(append(testsst.Log(7, true, rec("a", 10)), testsst.Log(3, true, rec("a", 10))...))
	f.Fuzz(func(t *testing.T, b []byte) {
		l := NewReader(bytes.NewReader(b), 7)
		l.Salvage = true
		for n := 0; n <= len(b); n++ {
			_, off, err := l.Next()
			if off < 0 || off > int64(len(b)) {
				t.Fatalf("record %d at %d of %d bytes", n, off, len(b))
			}
			if err == io.EOF {
				return
			}
			if err != nil && !errors.Is(err, ErrWithin) {
				l.Resync()
			}
		}
		t.Fatal("more records than bytes")
	})
}

// TestKnown: the types of fragments, including types that later versions may skip.
func TestKnown(t *testing.T) {
	for typ, want := range map[byte]bool{0: false, 1: true, 8: true, 9: true, 11: true, 12: false, 127: false, 128: true,
		255: true} {
		if isDefined(typ) != want {
			t.Errorf("type %d is known: %t", typ, !want)
		}
	}
}

// TestLeftAtBlock: the leftover of an older use of the file may begin at the start of a block.
func TestLeftAtBlock(t *testing.T) {
	log := testsst.Log(7, true, rec("a", BlockSize-ReuseHeaderLen))
	log = append(log, bytes.Repeat([]byte{0x5a}, BlockSize)...)
	if got, want := readLog(NewReader(bytes.NewReader(log), 7)), fmt.Sprintf("a%d end", BlockSize-ReuseHeaderLen); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestHugeRecord: what is held of a log at once is no larger than a batch of servers is.
func TestHugeRecord(t *testing.T) {
	for n, want := range map[int]string{HugeRecord / 2: "a2097152 end", HugeRecord + 1: "huge4194305@0 end"} {
		l := NewReader(bytes.NewReader(testsst.Log(7, false, rec("a", n))), 7)
		l.Huge = HugeRecord
		if got := readLog(l); got != want {
			t.Errorf("%d bytes: %s, want %s", n, got, want)
		}
	}
}

// TestWhatIsLeft: the start of a truncated record is available, unless it is compressed; a record that begins within
// another one is read, in whichever block; a single byte is a truncated record.
func TestWhatIsLeft(t *testing.T) {
	want := rec("a", 2*BlockSize)
	log := testsst.Log(7, false, want)
	l := NewReader(bytes.NewReader(log[:BlockSize+100]), 7)
	if _, _, err := l.Next(); err != ErrTorn || len(l.Partial) < BlockSize-HeaderLen || !bytes.HasPrefix(want, l.Partial) {
		t.Errorf("%d bytes are left, %v", len(l.Partial), err)
	}
	packed := testsst.LogAfter(announce, 7, false, pack(t, noise(2*BlockSize))...)
	l = NewReader(bytes.NewReader(packed[:BlockSize+100]), 7)
	if _, _, err := l.Next(); err != ErrTorn || l.Partial != nil {
		t.Errorf("%d bytes of a frame are left, %v", len(l.Partial), err)
	}
	for _, blocks := range []int{0, 1, 3} {
		cut := testsst.Log(7, false, rec("a", blocks*(BlockSize-HeaderLen)+100))
		begun := testsst.Frame(fragFirst, 7, false, rec("b", 50))
		l := NewReader(bytes.NewReader(append(append(cut, begun...), testsst.Frame(fragFull, 7, false, rec("c", 60))...)), 7)
		var got []string
		for range 3 {
			rec, _, err := l.Next()
			switch {
			case errors.Is(err, ErrWithin):
				got = append(got, "within")
			case err != nil:
				got = append(got, err.Error())
			default:
				got = append(got, fmt.Sprintf("%c%d", rec[0], len(rec)))
			}
		}
		if s := strings.Join(got, " "); s != fmt.Sprintf("a%d within c60", blocks*(BlockSize-HeaderLen)+100) {
			t.Errorf("behind %d blocks: %s", blocks, s)
		}
	}
	l = NewReader(bytes.NewReader([]byte{1}), 7)
	for _, want := range []error{ErrTorn, io.EOF} {
		if _, _, err := l.Next(); err != want {
			t.Errorf("one byte: %v, want %v", err, want)
		}
	}
}

// TestZerosOfManifests: the space that RocksDB sets aside for a MANIFEST ends it.
func TestZerosOfManifests(t *testing.T) {
	log := append(testsst.Log(0, false, rec("a", 10)), make([]byte, 4<<20)...)
	if got := readLog(NewReader(bytes.NewReader(log), 0)); got != "a10 end" {
		t.Error(got)
	}
}
