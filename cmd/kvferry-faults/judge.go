package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"kvferry/fixtures"
)

// A class of faults counts its cases and what came of them.
type class struct {
	name    string
	do      func(h *harness, c *class, n int) error
	share   int
	short   int
	cases   int
	done    bool // nothing is left to be tried
	spent   time.Duration
	slowest time.Duration
	counts  map[string]int
	wrong   []string
}

func (c *class) count(what string) { c.counts[what]++ }

// fail notes what must not happen.
func (c *class) fail(format string, args ...any) {
	c.wrong = append(c.wrong, fmt.Sprintf(format, args...))
	fmt.Printf("WRONG %s\n", c.wrong[len(c.wrong)-1])
}

// judge compares what a command did with a damaged source with what it does with the sound one.
func (c *class) judge(command string, got, sound *outcome, label string, nature func() string) {
	switch {
	case got.panic != "":
		c.count("panicked")
		c.fail("%s: %s: panic: %s", label, command, got.panic)
	case got.slow:
		c.count("hung")
		c.fail("%s: %s: not done after %v", label, command, patience)
	case got.code != 0:
		c.count("refused or reported")
	case got.same(sound):
		c.count("right")
	case got.tells(sound):
		c.count("warned")
	default:
		why := nature()
		if why == "" {
			c.count("wrong and silent")
			c.fail("%s: %s: exit 0, no warning, %d lines instead of %d", label, command, got.sum.lines, sound.sum.lines)
			return
		}
		c.count("undetectable: " + why)
	}
}

// damaged does case number n of random damages.
func (h *harness) damaged(c *class, n int) error {
	r := fixtures.NewRand(h.seed, 'd', uint64(n))
	s, other := fixtures.Pick(r, h.sources), fixtures.Pick(r, h.sources)
	for !s.learn(h.run) || !s.has(h.files) {
		s = fixtures.Pick(r, h.sources)
	}
	p := &patient{r: r, s: s, other: other, only: h.files, dir: filepath.Join(h.run.work, filepath.Base(s.dir))}
	if err := s.copyTo(p.dir); err != nil {
		return err
	}
	d, err := p.suffer()
	if err != nil {
		return err
	}
	label := fmt.Sprintf("damage/%d %s: %s", n, s.name, d)
	h.now(label)
	before, err := listing(p.dir)
	if err != nil {
		return err
	}
	nature := func() string { return undetectable(p, d) }
	c.judge("dump", h.run.dump(p.dir), s.dump, label, nature)
	c.judge("verify", h.run.verify(p.dir), s.verify, label, nature)
	if r.Chance(30) && s.convert.code == 0 {
		c.judge("convert", h.run.convert(p.dir, s.target), s.convert, label, nature)
	}
	if after, err := listing(p.dir); err != nil || !slices.Equal(before, after) {
		c.fail("%s: the source was changed: %v", label, err)
	}
	return nil
}

// listing has the names, sizes and times of a tree.
func listing(dir string) (out []string, err error) {
	files, err := filesOf(dir)
	for _, f := range files {
		st, err := os.Stat(filepath.Join(dir, f))
		if err != nil {
			return nil, err
		}
		out = append(out, fmt.Sprint(f, st.Size(), st.ModTime(), st.Mode()))
	}
	return out, err
}
