package server

import (
	"bytes"
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"kvferry/record"
)

const (
	// leastBound is the least limit for an answer's memory.
	leastBound = 16 << 20
	// maxLine limits the length of a line, and maxDepth the nesting of arrays.
	maxLine  = 64 << 10
	maxDepth = 32
	// maxHead is how much of a line is kept, enough for a length.
	maxHead = 24
	// slotSize is the memory per array element.
	slotSize = 16
)

// bound limits the memory of an answer.
func (o *Options) bound() int64 { return max(leastBound, o.memory/4) }

// guard checks the answers that redigo decodes and rejects one as soon as its announced size exceeds the bound.
// Without it, redigo would allocate any length that it reads.
type guard struct {
	bound int64
	size  int64   // of the answer so far, with announced lengths
	open  []int64 // remaining elements of each open array
	line  []byte  // the first bytes of the current line
	long  int     // length of the current line
	skip  int64   // remaining bytes of a bulk string
}

func newGuard(bound int64) *guard { return &guard{bound: bound} }

// checkBytes checks the next bytes.
func (g *guard) checkBytes(b []byte) error {
	for len(b) > 0 {
		if g.skip > 0 {
			n := min(g.skip, int64(len(b)))
			b = b[n:]
			if g.skip -= n; g.skip == 0 {
				g.ended()
			}
			continue
		}
		if g.long == 0 && strings.IndexByte("+-:$*", b[0]) < 0 { // RESP3, or no server of Redis
			return fmt.Errorf("%w: %q", ErrAnswer, b[:min(len(b), 16)])
		}
		end := bytes.IndexByte(b, '\n') + 1
		more := b[:cmp.Or(end, len(b))]
		g.line = append(g.line, more[:min(len(more), maxHead-len(g.line))]...)
		if g.long += len(more); g.long > maxLine {
			return fmt.Errorf("%w: a line of it has more than %s bytes", ErrAnswer, record.Number(maxLine))
		}
		b = b[len(more):]
		if end > 0 {
			if err := g.part(); err != nil {
				return err
			}
		}
	}
	return nil
}

// part handles a complete line.
func (g *guard) part() error {
	g.size += int64(g.long)
	line := g.line
	g.line, g.long = g.line[:0], 0
	switch line[0] {
	case '$', '*':
		n, err := strconv.ParseInt(string(line[1:max(1, len(line)-2)]), 10, 64)
		switch {
		case err != nil || n < -1:
			return ErrAnswer
		case line[0] == '$' && n >= 0:
			g.skip = min(n, g.bound) + 2
			g.size += g.skip
		case line[0] == '*' && n > 0:
			g.open = append(g.open, n)
			g.size += slotSize * min(n, g.bound)
		default:
			g.ended()
		}
	default:
		g.ended()
	}
	if g.size > g.bound || len(g.open) > maxDepth {
		return fmt.Errorf("%w: it is larger than %d MiB, or nested more than %d deep", ErrAnswer, g.bound>>20, maxDepth)
	}
	return nil
}

// ended closes a value, and each array that it completes.
func (g *guard) ended() {
	for n := len(g.open); n > 0; n-- {
		if g.open[n-1]--; g.open[n-1] > 0 {
			return
		}
		g.open = g.open[:n-1]
	}
	g.size = 0
}
