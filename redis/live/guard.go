package live

import (
	"fmt"
	"strconv"
)

const (
	// leastBound is how much an answer may take in memory in any case.
	leastBound = 16 << 20
	// maxLine is how long a line of an answer may be, and maxDepth how deep arrays may lie in arrays.
	maxLine  = 64 << 10
	maxDepth = 32
	// slotSize is what an array takes for each of its elements.
	slotSize = 16
)

// bound is how much an answer that is held in memory may take.
func (o *options) bound() int64 { return max(leastBound, o.memory/4) }

// guard follows the answers of a server that a client makes values of, and refuses an answer as soon as it says that it is
// larger than the bound: the client makes room for whatever length it reads, whoever sends it.
type guard struct {
	bound int64
	size  int64   // of the answer so far, with what it has announced
	open  []int64 // elements to come of each array that has begun
	line  []byte  // how the line begins that is being read
	long  int     // how long it is
	skip  int64   // bytes to come of a text
}

func newGuard(bound int64) *guard { return &guard{bound: bound} }

// take looks at the next bytes.
func (g *guard) take(b []byte) error {
	for len(b) > 0 {
		if g.skip > 0 {
			n := min(g.skip, int64(len(b)))
			b = b[n:]
			if g.skip -= n; g.skip == 0 {
				g.ended()
			}
			continue
		}
		c := b[0]
		b = b[1:]
		if len(g.line) < 24 {
			g.line = append(g.line, c)
		}
		if g.long++; g.long > maxLine {
			return fmt.Errorf("%w: a line of it has more than %d bytes", errAnswer, maxLine)
		}
		if c == '\n' {
			if err := g.part(); err != nil {
				return err
			}
		}
	}
	return nil
}

// part takes a line that has ended.
func (g *guard) part() error {
	g.size += int64(g.long)
	line := g.line
	g.line, g.long = g.line[:0], 0
	switch line[0] {
	case '$', '*':
		n, err := strconv.ParseInt(string(line[1:max(1, len(line)-2)]), 10, 64)
		switch {
		case err != nil || n < -1:
			return errAnswer
		case line[0] == '$' && n >= 0:
			g.skip = min(n, g.bound) + 2
			g.size += g.skip
		case line[0] == '*' && n > 0:
			g.open = append(g.open, n)
			g.size += slotSize * min(n, g.bound)
		default:
			g.ended()
		}
	case '%', '~', '>', '|', '=', '!', '(', ',', '#', '_': // those of RESP3, which nobody has asked for
		return errAnswer
	default:
		g.ended()
	}
	if g.size > g.bound || len(g.open) > maxDepth {
		return fmt.Errorf("%w: it is larger than %d MiB, or nested more than %d deep", errAnswer, g.bound>>20, maxDepth)
	}
	return nil
}

// ended notes that a part is complete, and the arrays that it completes.
func (g *guard) ended() {
	for n := len(g.open); n > 0; n-- {
		if g.open[n-1]--; g.open[n-1] > 0 {
			return
		}
		g.open = g.open[:n-1]
	}
	g.size = 0
}
