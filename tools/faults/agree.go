package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"kvferry/fixtures"
)

// reading has the outcomes of all commands on the same files.
type reading struct {
	dump, verify, fingerprint, inspect, diff, convert *outcome
	resorted                                          *outcome         // dump with --resort, if a table is not in order
	counts                                            map[string]int64 // unexpired records, by command
}

// commands lists the outcome of each command, in a fixed order.
func (x *reading) commands() []struct {
	name string
	*outcome
} {
	return []struct {
		name string
		*outcome
	}{{"dump", x.dump}, {"verify", x.verify}, {"fingerprint", x.fingerprint}, {"inspect", x.inspect}, {"diff", x.diff},
		{"convert", x.convert}}
}

// counted has the record counts of a command's report.
type counted struct {
	Records, Expired int64
	Parts, Types     []struct{ Records int64 }
}

// records sums up the unexpired records of a report.
func (c *counted) records() (n int64) {
	n = c.Records - c.Expired
	for _, p := range slices.Concat(c.Parts, c.Types) {
		n += p.Records
	}
	return n
}

// read runs every command on a dataset; diff compares it with the sound dataset.
func (r *runner) read(dir, sound, target string) *reading {
	x := &reading{counts: map[string]int64{}}
	x.dump = r.dump(dir)
	x.counts["dump"] = x.dump.sum.lines
	report := func(name string, args ...string) *outcome {
		var out bytes.Buffer
		o := r.run(&out, nil, append([]string{name, "--now", clock, "--temp-dir", r.work}, args...)...)
		var c counted
		if json.Unmarshal(out.Bytes(), &c) == nil {
			x.counts[name] = c.records()
		}
		if name == "fingerprint" { // the output depends only on the records
			o.sum.Write(out.Bytes())
		}
		if name == "verify" {
			o.note(out.Bytes(), func(t *told) string { return fmt.Sprint(t.Records, t.Elements) })
		}
		o.heed()
		return o
	}
	x.verify = report("verify", "--format", "json", dir)
	if x.dump.code != 0 && x.verify.told["key-order"] > 0 {
		x.resorted = r.dump(dir, "--resort")
	}
	x.fingerprint = report("fingerprint", dir)
	x.inspect = report("inspect", "--format", "json", "--top", "0", dir)
	fmt.Fprintln(&x.inspect.sum, x.counts["inspect"])
	x.diff = r.run(new(bytes.Buffer), nil, "diff", "--now", clock, "--temp-dir", r.work, sound, dir)
	x.convert = r.convert(dir, target)
	return x
}

// heed counts the findings that a command writes to standard error.
func (o *outcome) heed() {
	for _, line := range strings.Split(o.stderr, "\n") {
		if f := strings.Fields(line); len(f) > 2 && f[0] == "kvferry:" {
			o.told[strings.TrimSuffix(f[2], ":")]++
		}
	}
}

// largeChance is the share in percent of cases on large databases, of which each takes as long as 50 of the others.
const largeChance = 2

// maxTries is the number of tries to find a dataset and a file that a forgery fits. From largeTries on they are on large
// databases: none of the small ones may be fit.
const (
	maxTries   = 1000
	largeTries = 100
)

// forged runs case n of faults inside files with valid checksums.
func (h *harness) forged(c *class, n int) error {
	if err := h.makeTiny(); err != nil {
		return err
	}
	r := fixtures.NewRand(h.seed, 'f', uint64(n))
	for tries := 0; ; tries++ {
		from := h.tiny
		if len(h.sources) > 0 && (len(h.tiny) == 0 || tries >= largeTries || r.Chance(largeChance)) {
			from = h.sources
		}
		if len(from) == 0 || tries == maxTries {
			return fmt.Errorf("-files %s -sources %s: no dataset has a file that can be forged", h.files, h.names)
		}
		s := fixtures.Pick(r, from)
		if !s.has(h.files) || !s.read(h.run) {
			continue
		}
		p := &patient{r: r, s: s, only: h.files, dir: filepath.Join(h.run.work, filepath.Base(s.dir))}
		if p.file, _ = p.choose(forgeable); p.file == "" {
			continue
		}
		if err := s.copyTo(p.dir); err != nil {
			return err
		}
		d, hidden, ok, err := p.forge()
		if err != nil {
			return err
		}
		if ok {
			h.judgeForged(c, p, d, hidden, fmt.Sprintf("forge/%d %s: %s", n, s.name, d))
			return nil
		}
		if err := os.RemoveAll(p.dir); err != nil {
			return err
		}
	}
}

// read runs every command on the sound source. If any command reports a problem the source is unusable.
func (s *source) read(r *runner) bool {
	if s.sound == nil {
		s.sound = r.read(s.dir, s.dir, s.target)
	}
	return !slices.ContainsFunc(s.sound.commands(), func(x struct {
		name string
		*outcome
	}) bool {
		return x.code != 0
	})
}

// judgeForged compares the commands' outcomes with the sound source's, and with each other.
func (h *harness) judgeForged(c *class, p *patient, d damage, hidden, label string) {
	h.now(label)
	x := h.run.read(p.dir, p.s.dir, p.s.target)
	sound := p.s.sound.commands()
	c.count("format " + p.s.target)
	for i, did := range x.commands() {
		if did.name != "diff" {
			c.compareOutcomes(did.name, did.outcome, sound[i].outcome, label, func() string { return hidden })
		}
	}
	if x.diff.panic != "" || x.diff.slow {
		c.fail("%s: diff: %s", label, x.diff.panic)
	}
	c.agree(x, p.s.sound, label)
	if n, was := x.counts["dump"], p.s.sound.counts["dump"]; hidden == byName && x.dump.code == 0 && (n < was-1 || n > was+1) {
		c.fail("%s: one key was changed, and dump has %d records instead of %d: %s", label, n, was, firstLine(x))
	}
	if d.kind == brokenIndex {
		if got := h.run.dump(p.dir, "--salvage"); got.same(p.s.sound.dump) {
			c.count("index-bit: all rows salvaged")
		} else {
			c.fail("%s: dump --salvage has %d lines instead of %d", label, got.sum.lines, p.s.sound.dump.sum.lines)
		}
	}
	if d.kind == unforged && !(x.verify.code == 0 && x.dump.same(p.s.sound.dump)) {
		c.fail("%s: only its form is another: %s", label, firstLine(x))
	}
}

// agree checks that all commands agree.
func (c *class) agree(x, sound *reading, label string) {
	var refused, took []string
	for _, did := range x.commands() {
		same := did.name != "diff" || did.code == 1
		switch {
		case did.name == "diff" && did.code == 3: // a difference or findings
			if x.dump.code == 0 && x.dump.same(sound.dump) && x.verify.code == 0 {
				c.fail("%s: diff finds a difference, but dumps are equal", label)
			}
		case did.code == 0:
			took = append(took, did.name)
			if n, ok := x.counts[did.name]; ok && x.dump.code == 0 && n != x.counts["dump"] {
				c.fail("%s: %s counts %d records, dump %d", label, did.name, n, x.counts["dump"])
			}
			if did.name == "diff" && x.dump.code == 0 && !x.dump.same(sound.dump) {
				c.fail("%s: diff finds no difference, but dumps differ", label)
			}
		case same:
			refused = append(refused, did.name)
		}
	}
	switch {
	case len(refused) == 0 || len(took) == 0:
	case x.sorts(refused):
		c.count(sorted)
	case x.bySet(took, sound):
		c.count(unread)
	default:
		c.count("only some refuse")
		c.fail("%s: %s read the file, %s refuse it; verify: %v; %s", label, strings.Join(took, ", "), strings.Join(refused, ", "),
			x.verify.told, firstLine(x))
	}
}

// Accepted disagreements of commands, with their reasons.
const (
	sorted = "verify refuses tables out of order: other commands sort them, report it, and read all rows, dump of a large table with --resort"
	unread = "fingerprint, inspect and diff read sorted sets by member, and do not compare them with their index by score"
)

// sorts reports whether verify alone refuses the files, for the order of a table that the others sort; dump may need
// --resort.
func (x *reading) sorts(refused []string) bool {
	did := x.dump
	if x.resorted != nil && len(refused) == 2 && refused[0] == "dump" {
		did, refused = x.resorted, refused[1:]
	}
	return slices.Equal(refused, []string{"verify"}) && x.verify.told["key-order"] > 0 && did.code == 0 &&
		did.told["unordered-table"] > 0
}

// bySet reports whether verify, dump and convert refuse the files while took has only commands that read sorted sets in
// any order, and these either read the sound records or the fault is in an index by score.
func (x *reading) bySet(took []string, sound *reading) bool {
	index := x.verify.told["zset-score-mismatch"] + x.verify.told["zset-missing-score-row"] + x.verify.told["zset-missing-member-row"]
	for _, name := range took {
		switch {
		case index > 0 && (name == "fingerprint" || name == "inspect"):
		case name == "fingerprint" && x.fingerprint.same(sound.fingerprint), name == "inspect" && x.inspect.same(sound.inspect),
			name == "diff":
		default:
			return false
		}
	}
	return x.verify.code != 0 && x.dump.code != 0 && x.convert.code != 0
}

// firstLine returns the first line of standard error of the first failed command.
func firstLine(x *reading) string {
	for _, did := range x.commands() {
		if did.code != 0 && did.stderr != "" {
			line, _, _ := strings.Cut(did.stderr, "\n")
			return line
		}
	}
	return ""
}
