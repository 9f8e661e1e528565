package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"kvferry/fixtures"
)

// class is a class of faults. It counts its cases and their results.
type class struct {
	name    string
	do      func(h *harness, c *class, n int) error
	share   int
	short   int
	cases   int
	done    bool // no cases are left
	spent   time.Duration
	slowest time.Duration
	counts  map[string]int
	wrong   []string
}

func (c *class) count(what string) { c.counts[what]++ }

// fail records a failure.
func (c *class) fail(format string, args ...any) {
	c.wrong = append(c.wrong, fmt.Sprintf(format, args...))
	fmt.Printf("WRONG %s\n", c.wrong[len(c.wrong)-1])
}

// compareOutcomes compares a command's outcome on a damaged source with its outcome on the sound source.
func (c *class) compareOutcomes(command string, got, sound *outcome, label string, nature func() string) {
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

// damaged runs case n of random damages.
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
	c.compareOutcomes("dump", h.run.dump(p.dir), s.dump, label, nature)
	c.compareOutcomes("verify", h.run.verify(p.dir), s.verify, label, nature)
	if r.Chance(30) && s.convert.code == 0 {
		c.compareOutcomes("convert", h.run.convert(p.dir, s.target), s.convert, label, nature)
	}
	if after, err := listing(p.dir); err != nil || !slices.Equal(before, after) {
		c.fail("%s: the source was changed: %v", label, err)
	}
	return nil
}

// listing returns the names, sizes, times and modes of a tree's files.
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
