package rdb

import (
	"bytes"
	"io"
	"testing"
)

// countedReads counts how often it is read.
type countedReads struct {
	io.ReaderAt
	n int
}

func (c *countedReads) ReadAt(p []byte, off int64) (int, error) {
	c.n++
	return c.ReaderAt.ReadAt(p, off)
}

// TestSkipHoldsWhatIsPinned: what is pinned stays in the window while what is skipped is small enough to be held, and nothing
// is read to be passed over otherwise.
func TestSkipHoldsWhatIsPinned(t *testing.T) {
	file := make([]byte, 4<<20)
	for i := range file {
		file[i] = byte(i ^ i>>8 ^ i>>16)
	}
	for _, tt := range []struct {
		name   string
		pinned bool
		skips  []uint64
		held   bool
		reads  int
	}{
		{"within the window", true, []uint64{1000}, true, 1},
		{"pinned", true, []uint64{2 * windowSize}, true, 2},
		{"pinned, as large as is held", true, []uint64{maxHeld - 1}, true, 2},
		{"pinned, a step as large as is held", true, []uint64{maxHeld}, true, 2},
		{"pinned, a step too large", true, []uint64{maxHeld + 1}, false, 1},
		{"pinned, large, and a step", true, []uint64{maxHeld - 1, 2 * windowSize}, true, 3},
		{"pinned, too large, and a step", true, []uint64{maxHeld, 2 * windowSize}, false, 2},
		{"not pinned", false, []uint64{2 * windowSize, 2 * windowSize}, false, 1},
	} {
		src := &countedReads{ReaderAt: bytes.NewReader(file)}
		in := new(input)
		in.open(src, 0, int64(len(file)))
		in.byte("first")
		if in.pos--; tt.pinned {
			in.pin = in.pos
		}
		in.pos++
		at := int64(1)
		for _, n := range tt.skips {
			in.skip(n, "skipped")
			at += int64(n)
		}
		if in.err != nil || in.offset() != at || src.n != tt.reads || (in.pin >= 0) != tt.held {
			t.Errorf("%s: at %d, want %d, %d reads, pinned at %d, %v", tt.name, in.offset(), at, src.n, in.pin, in.err)
		}
		if tt.held && !bytes.Equal(in.buf[in.pin:in.pos], file[:at]) {
			t.Errorf("%s: other bytes are held", tt.name)
		}
		if got := in.byte("next"); got != file[at] {
			t.Errorf("%s: then comes %d, want %d", tt.name, got, file[at])
		}
	}
}
