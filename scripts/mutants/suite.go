package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// suite holds the tests for a package's mutants: its own, and those of the packages in testedBy.
type suite struct {
	pkg      string
	dir      string // directory for binaries
	packages []tested
}

// tested is a package with tests.
type tested struct {
	path  string
	cases []testCase // fastest first
}

// testCase is one test with the blocks of the package that it reaches.
type testCase struct {
	name   string
	cpu    time.Duration
	blocks []block
}

// block is a range of a file, from one line and column to another.
type block struct {
	file     string
	from, to [2]int
	reached  bool
}

// learn runs each test alone, without a mutant, to measure its time and the blocks it reaches.
func learn(pkg, dir string) (*suite, error) {
	s := &suite{pkg: pkg, dir: dir}
	for _, path := range append([]string{pkg}, testedBy[pkg]...) {
		counting, plain := filepath.Join(dir, "counting.test"), filepath.Join(dir, "plain.test")
		if out, err := compile(path, counting, "-coverpkg=./"+pkg); err != nil {
			return nil, fmt.Errorf("%s: %w\n%s", path, err, out)
		}
		if out, err := compile(path, plain); err != nil {
			return nil, fmt.Errorf("%s: %w\n%s", path, err, out)
		}
		if _, err := os.Stat(plain); err != nil {
			continue // no tests
		}
		list, _, err := execute(path, plain, time.Minute, "-test.list", "^(Test|Example|Fuzz)")
		if err != nil {
			return nil, fmt.Errorf("%s: %w\n%s", path, err, list)
		}
		t := tested{path: path}
		for _, name := range strings.Fields(list) {
			c, err := learnCase(path, name, counting, plain, filepath.Join(dir, "profile"))
			if err != nil {
				fmt.Fprintln(os.Stderr, "left out:", err)
				continue
			}
			t.cases = append(t.cases, c)
		}
		slices.SortStableFunc(t.cases, func(a, b testCase) int { return int(a.cpu - b.cpu) })
		s.packages = append(s.packages, t)
	}
	return s, nil
}

// learnCase runs one test. A test that fails under coverage is assumed to reach all blocks.
func learnCase(path, name, counting, plain, profile string) (c testCase, err error) {
	c.name = name
	one := []string{"-test.short", "-test.run", "^" + name + "$"}
	_, c.cpu, err = execute(path, counting, 5*time.Minute, append(one, "-test.coverprofile", profile)...)
	if err == nil {
		c.blocks, err = readProfile(profile)
		return c, err
	}
	var out string
	if out, c.cpu, err = execute(path, plain, 5*time.Minute, one...); err != nil {
		return c, fmt.Errorf("%s: %s fails without a mutant: %w\n%s", path, name, err, out)
	}
	return c, nil
}

// readProfile returns the blocks of a coverage profile: lines as
//
//	kvferry/record/model.go:10.2,12.3 4 1
func readProfile(path string) (out []block, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for _, line := range strings.Split(string(data), "\n") {
		var b block
		var statements, reached int
		file, rest, ok := strings.Cut(line, ":")
		if !ok || file == "mode" {
			continue
		}
		if _, err := fmt.Sscanf(rest, "%d.%d,%d.%d %d %d", &b.from[0], &b.from[1], &b.to[0], &b.to[1], &statements, &reached); err != nil {
			return nil, fmt.Errorf("coverage profile: %q: %w", line, err)
		}
		b.file, b.reached = filepath.Base(file), reached > 0
		out = append(out, b)
	}
	return out, nil
}

// reaches reports whether a test runs the code at a point. Code in no block, such as constants and case conditions,
// counts as reached by all tests.
func (c *testCase) reaches(p *point) bool {
	at, known := [2]int{p.line, p.column}, false
	for _, b := range c.blocks {
		if b.file == filepath.Base(p.file) && slices.Compare(b.from[:], at[:]) <= 0 && slices.Compare(at[:], b.to[:]) < 0 {
			if b.reached {
				return true
			}
			known = true
		}
	}
	return !known
}

// cpu returns the time of all tests.
func (s *suite) cpu() (sum time.Duration) {
	for _, t := range s.packages {
		for _, c := range t.cases {
			sum += c.cpu
		}
	}
	return sum
}

// try runs the tests that reach a mutant, fastest first, until one fails or exceeds its time.
func (s *suite) try(p *point, overlay string) (compiles, killed bool) {
	binary := filepath.Join(s.dir, "mutant.test")
	for _, t := range s.packages {
		if _, err := compile(t.path, binary, "-overlay", overlay, "-ldflags=-s -w"); err != nil {
			return false, false
		}
		for _, names := range stages(t.cases, p) {
			args := []string{"-test.short", "-test.failfast", "-test.run", "^(" + strings.Join(names.tests, "|") + ")$"}
			if _, _, err := execute(t.path, binary, 5*time.Second+4*names.cpu, args...); err != nil {
				return true, true
			}
		}
	}
	return true, false
}

// stage is a group of tests that run together.
type stage struct {
	tests []string
	cpu   time.Duration
}

// stages groups the tests that reach a mutant: up to a second in total, up to five more, and the rest.
func stages(cases []testCase, p *point) (out []stage) {
	limits := []time.Duration{time.Second, 5 * time.Second, 1 << 62}
	var now stage
	for _, c := range cases {
		if !c.reaches(p) {
			continue
		}
		if now.cpu+c.cpu > limits[0] && len(now.tests) > 0 && len(limits) > 1 {
			out, now, limits = append(out, now), stage{}, limits[1:]
		}
		now.tests, now.cpu = append(now.tests, c.name), now.cpu+c.cpu
	}
	if len(now.tests) > 0 {
		out = append(out, now)
	}
	return out
}

// compile builds the test binary of a package.
func compile(path, binary string, flags ...string) (out string, err error) {
	if err := os.RemoveAll(binary); err != nil {
		return "", err
	}
	cmd := exec.Command("go", append(append([]string{"test", "-c", "-vet=off", "-o", binary}, flags...), "./"+path)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	text, err := cmd.CombinedOutput()
	return string(text), err
}

// execute runs a test binary in its package's directory with a limit on CPU time, and a much larger one on wall time,
// so that other load on the machine does not matter.
func execute(path, binary string, limit time.Duration, args ...string) (out string, cpu time.Duration, err error) {
	ctx, stop := context.WithTimeout(context.Background(), 30*time.Second+10*limit)
	defer stop()
	limited := append([]string{"-c", `ulimit -t "$0" && exec "$@"`, strconv.Itoa(1 + int(limit.Seconds())), binary}, args...)
	cmd := exec.CommandContext(ctx, "sh", limited...)
	cmd.Dir = path
	ownGroup(cmd)
	text, err := cmd.CombinedOutput()
	if cmd.ProcessState != nil {
		cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	return string(text), cpu, errors.Join(err, ctx.Err())
}
