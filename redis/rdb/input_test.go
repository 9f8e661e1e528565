package rdb

import (
	"bytes"
	"errors"
	"io"
	"testing"
)

// countedReads counts its reads.
type countedReads struct {
	io.ReaderAt
	n int
}

func (c *countedReads) ReadAt(p []byte, off int64) (int, error) {
	c.n++
	return c.ReaderAt.ReadAt(p, off)
}

// TestSkipHoldsWhatIsPinned: pinned bytes stay in the window while the skipped bytes fit maxHeld; otherwise a skip
// reads no bytes.
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
		in.pos--
		if tt.pinned {
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

// TestFieldsAcrossWindows: fields may cross the end of a window, and a file that shrank is an error.
func TestFieldsAcrossWindows(t *testing.T) {
	file := make([]byte, 5*windowSize+11)
	for i := range file {
		file[i] = byte(i ^ i>>8 ^ i>>16)
	}
	for _, have := range []int{len(file), 2*windowSize + 100} {
		var in input
		in.open(bytes.NewReader(file[:have]), 0, int64(len(file)))
		for off := 0; off < len(file); off += 13 {
			n := min(13, len(file)-off)
			got := in.takeBytes(uint64(n), "field")
			if off+n <= have && in.err == nil {
				if !bytes.Equal(got, file[off:off+n]) {
					t.Fatalf("other bytes at %d", off)
				}
				continue
			}
			if have == len(file) || got != nil || !errors.Is(in.err, io.ErrUnexpectedEOF) {
				t.Fatalf("%d of %d bytes, at %d: %v", have, len(file), off, in.err)
			}
			break
		}
		if have < len(file) && in.err == nil {
			t.Errorf("%d of %d bytes are whole", have, len(file))
		}
	}
}

// TestPinIsLetGo: the pin is dropped beyond maxHeld bytes, also at the start of the window.
func TestPinIsLetGo(t *testing.T) {
	b := make([]byte, 4*maxHeld)
	for _, from := range []uint64{0, 5} {
		in := new(input)
		in.open(bytes.NewReader(b), 0, int64(len(b)))
		in.takeBytes(from, "before")
		in.pin = in.pos
		held := 0
		for in.pin >= 0 && in.left() > 0 {
			held = in.pos - in.pin
			in.takeBytes(1000, "piece")
		}
		if in.err != nil || held <= maxHeld || held > maxHeld+2*windowSize {
			t.Errorf("from %d: %d bytes were held, %v", from, held, in.err)
		}
	}
}
