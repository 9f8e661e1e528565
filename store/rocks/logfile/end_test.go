package logfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"kvferry/internal/testkit/testsst"
)

// show reads a log to its end: the first byte and the length of each record, the full errors, and the state at the end.
// After an error it reads on; no record may come back.
func show(l *Reader) (s string) {
	for {
		rec, off, err := l.Next()
		switch {
		case err == io.EOF:
			if l.Leftover {
				s += " leftover"
			}
			if l.Older {
				s += " older"
			}
			if l.ZeroAt != -1 {
				s += fmt.Sprintf(" zeros@%d", l.ZeroAt)
			}
			if _, _, again := l.Next(); again != io.EOF {
				s += " then " + fmt.Sprint(again)
			}
			return s
		case err != nil:
			s += fmt.Sprintf(" [%d: %v]", off, err)
			if err == ErrTorn {
				s += fmt.Sprintf(" %d left", len(l.Partial))
			}
			if !errors.Is(err, ErrWithin) {
				l.Resync()
			}
		case l.Skipped:
			s += fmt.Sprintf(" huge%d", l.Size)
		case len(rec) == 0:
			s += " 0"
		default:
			s += fmt.Sprintf(" %c%d", rec[0], len(rec))
		}
	}
}

// TestEnds: how logs end that were cut, damaged or written over an older one, to the word and the offset.
func TestEnds(t *testing.T) {
	a, frame := testsst.Log(7, false, rec("a", 10)), testsst.Frame // 17 bytes
	r := testsst.Log(7, true, rec("a", 10))                        // 21 bytes
	long := func(typ byte, size int, rest []byte) []byte {
		return append([]byte{1, 2, 3, 4, byte(size), byte(size >> 8), typ}, rest...)
	}
	junk := bytes.Repeat([]byte{0xee}, 30)
	for _, c := range []struct {
		name string
		log  []byte
		want string
	}{
		{"reaches beyond its block", slices.Concat(a, long(fragFull, BlockSize-17-7+1, junk)),
			" a10 [17: fragment of type 1 and 32745 bytes, where its block has room for 32744]"},
		{"reaches to the end of its block", slices.Concat(a, long(fragFull, BlockSize-17-7, junk)), " a10 [17: the last record is incomplete] 30 left"},
		{"goes on but does not fill its block", slices.Concat(a, long(fragFirst, BlockSize-17-7-1, junk)),
			" a10 [17: fragment of type 2 and 32743 bytes, where its block has room for 32744]"},
		{"goes on and fills its block", slices.Concat(a, long(fragFirst, BlockSize-17-7, junk)), " a10 [17: the last record is incomplete] 30 left"},
		{"a middle part that does not fill its block", slices.Concat(a, long(fragMiddle, 100, junk)),
			" a10 [17: fragment of type 3 and 100 bytes, where its block has room for 32744]"},
		{"compressed parts may be of any length", slices.Concat(announce, long(fragFirst, 100, junk)), " [11: the last record is incomplete] 0 left"},
		{"a whole one follows", slices.Concat(a, long(fragFull, 100, slices.Concat(junk, a))), " a10 [17: fragment of 100 bytes, 47 left in its block]"},
		{"a whole one of no bytes follows at the end", slices.Concat(a, long(fragFull, 100, frame(fragFull, 7, false, nil))),
			" a10 [17: fragment of 100 bytes, 7 left in its block]"},
		{"a whole one follows the first byte", slices.Concat(r, []byte{9}, frame(fragFull, 7, false, nil)),
			" a10 [21: damaged fragment: a whole one follows at offset 22]"},
		{"one of another kind at the place itself", slices.Concat(r, frame(fragFull, 7, false, nil)), " a10 [21: the last record is incomplete] 0 left"},
		{"unknown type in a new log", slices.Concat(a, long(42, 1, junk)), " a10 [17: unknown fragment type 42]"},
		{"an older log's bytes", slices.Concat(r, junk), " a10 leftover"},
		{"an older log's bytes, with a fragment that has no number", slices.Concat(r, junk, a, junk), " a10 leftover"},
		{"an older log's record that reaches beyond the file", slices.Concat(r, long(fragFull, 100, junk)), " a10 leftover"},
		{"an older log's, of another number", slices.Concat(r, long(fragFull+fragReuse, 100, junk)), " a10 leftover"},
		{"an older log's, of a type with a number since", slices.Concat(r, long(FragTimestamps+1, 100, junk)), " a10 leftover"},
		{"an older log's, and this one follows", slices.Concat(r, long(fragFull, 100, slices.Concat(junk, r))),
			" a10 [21: fragment of 100 bytes, 51 left in its block]"},
		{"this log's record that reaches beyond the file", slices.Concat(r, long(fragFull+fragReuse, 100, slices.Concat([]byte{7, 0, 0, 0}, junk))),
			" a10 [21: the last record is incomplete] 30 left"},
		{"this log's or an older one's, cut before its number", slices.Concat(r, long(fragFull+fragReuse, 100, []byte{7, 0, 0})), " a10 [21: the last record is incomplete] 0 left"},
		{"only an older log's that reaches beyond the file", long(fragFull+fragReuse, 100, junk), " leftover"},
		{"a record of this log follows the first byte", slices.Concat(r, []byte{0xee}, r), " a10 [21: unknown fragment type 0]"},
		{"a record of this log of no bytes follows at the end", slices.Concat(r, junk, testsst.Log(7, true, nil)), " a10 [21: fragment of type 238 and 61166 bytes, where its block has room for 32740]"},
		{"a record of this log follows at a block", slices.Concat(r, bytes.Repeat([]byte{0xee}, BlockSize-len(r)), r),
			" a10 [21: fragment of type 238 and 61166 bytes, where its block has room for 32740] a10"},
		{"an older log of two blocks", slices.Concat(r, testsst.Log(3, true, rec("o", 10), rec("o", 2*BlockSize))[len(r):]), " a10 older"},
		{"an older log, and this one at the next block", slices.Concat(r, testsst.Log(3, true, rec("o", 10), rec("o", BlockSize-len(r)-ReuseHeaderLen))[len(r):], r),
			" a10 older"},
		{"empty first part", slices.Concat(frame(fragFirst, 7, false, nil), a), " a10"},
		{"first part of one byte", slices.Concat(frame(fragFirst, 7, false, []byte("x")), a), " [8: a record starts inside another at offset 0] a10"},
		{"zeros", slices.Concat(a, make([]byte, 3*BlockSize)), " a10 zeros@17"},
		{"zeros to the end of a block", slices.Concat(a, make([]byte, BlockSize-17)), " a10 zeros@17"},
		{"zeros for blocks, then a record", slices.Concat(a, make([]byte, 3*BlockSize-17), a), " a10 [17: zeros between records] a10"},
	} {
		if got := show(NewReader(bytes.NewReader(c.log), 7)); got != c.want {
			t.Errorf("%s:\nhave%s\nwant%s", c.name, got, c.want)
		}
	}
}

// zeroReader is endless zeros.
type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// TestZerosBounded: the zeros that a MANIFEST ends in are bounded, those of a log are not.
func TestZerosBounded(t *testing.T) {
	a := testsst.Log(0, false, rec("a", 10))
	for _, c := range []struct {
		start  []byte
		zeros  int64
		number uint64
		want   string
	}{
		{nil, 64<<20 + 1, 0, " zeros@0"},
		{a, 64 << 20, 0, " a10 zeros@17"},
		{nil, 64<<20 + BlockSize + 1, 0, " [0: more than 67108864 bytes of zeros]"},
		{nil, 64<<20 + BlockSize + 1, 1, " zeros@0"},
	} {
		l := NewReader(io.MultiReader(bytes.NewReader(c.start), io.LimitReader(zeroReader{}, c.zeros)), c.number)
		var got string
		if _, _, err := l.Next(); err != nil && err != io.EOF {
			got = fmt.Sprintf(" [%d: %v]", l.ZeroAt, err)
		} else if err == nil {
			got = " a10" + show(l)
		} else {
			got = show(l)
		}
		if got != c.want {
			t.Errorf("%d zeros:%s, want%s", c.zeros, got, c.want)
		}
	}
}

// TestHugeEdges: a record of as many bytes as may be held is held, one of a byte more is not, and no room is made for it.
func TestHugeEdges(t *testing.T) {
	for _, n := range []int{1, 2, 100, 3*BlockSize + 5, 5 * BlockSize} {
		want := rec("a", n)
		plain, packed := testsst.Log(7, false, want), testsst.LogAfter(announce, 7, false, pack(t, want)...)
		for huge, held := range map[int]bool{1: n == 1, n - 1: n == 1, n: true, n + 1: true} {
			whole := n <= BlockSize-HeaderLen // of one fragment, which needs no room
			for name, r := range map[string]io.Reader{"plain": bytes.NewReader(plain), "packed": bytes.NewReader(packed),
				"stream": iotestReader{bytes.NewReader(plain)}} {
				if name == "stream" && huge < n {
					continue // a stream is not looked at before
				}
				l := NewReader(r, 7)
				l.Huge = huge
				got, _, err := l.Next()
				held := held || whole && name != "packed"
				if err != nil || l.Skipped == held || held && !bytes.Equal(got, want) || l.Size != int64(n) {
					t.Errorf("%s, %d bytes where %d may be held: %d bytes, skipped %t, size %d, %v", name, n, huge, len(got),
						l.Skipped, l.Size, err)
				}
				if l.Skipped && name == "plain" && cap(l.rec) > 0 {
					t.Errorf("room for %d bytes of a record of %d that is not held", cap(l.rec), n)
				}
			}
		}
	}
}

// TestBodyDamage: a record that changes while it is read is damage at its place.
func TestBodyDamage(t *testing.T) {
	log := testsst.Log(7, true, rec("a", 10), rec("b", 100))
	l := NewReader(bytes.NewReader(log), 7)
	l.Next()
	_, off, err := l.Next()
	if err != nil {
		t.Fatal(err)
	}
	log[off+20] ^= 1
	body, err := l.Body(off)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(body); err == nil || err.Error() != "at 21: checksum mismatch" {
		t.Errorf("%v", err)
	}
}

// TestWithin: a log is not read any further once its context is done.
func TestWithin(t *testing.T) {
	ctx, stop := context.WithCancelCause(context.Background())
	log := testsst.Log(7, false, rec("a", 10))
	r := Within(ctx, io.NewSectionReader(bytes.NewReader(log), 0, int64(len(log))))
	if got := show(NewReader(r, 7)); got != " a10" {
		t.Error(got)
	}
	reason := errors.New("reason")
	stop(reason)
	if n, err := r.Read(make([]byte, 1)); n != 0 || err != reason {
		t.Errorf("%d, %v", n, err)
	}
}
