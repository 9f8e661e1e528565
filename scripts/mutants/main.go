// Command mutants changes operators, branches and constants at random, one at a time, and runs the package's tests
// that reach the change, fastest first. A change that no test detects is a survivor. It does not modify the tree: the
// go command reads the changed file from an overlay. It prints one figure and every survivor.
//
// It skips two kinds of changes because no caller depends on them: a 0 or false returned with an error, and the
// capacity given to make for a slice or a map.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// defaults are the packages whose survivors are reviewed: packages that move and prove records, the model, and the
// codecs.
var defaults = []string{"convert", "convert/inventory", "convert/result", "convert/paths", "convert/plan", "convert/workers", "convert/transfer", "convert/work", "record", "nemo", "blackwidow", "floyd", "kvrocks", "kvrocks/codec", "ardb", "redis/rdb", "redis/rdb/encode", "redis/rdb/pack",
	"internal/shared/versioned", "internal/shared/dataset", "store/rocks", "store/rocks/base", "store/rocks/blob", "store/rocks/blocks",
	"store/rocks/files", "store/rocks/logfile", "store/rocks/lsm", "store/rocks/manifest", "store/rocks/sst", "store/rocks/wal"}

// testedBy maps a package to other packages whose tests exercise it.
var testedBy = map[string][]string{
	"internal/shared/versioned": {"floyd", "blackwidow", "nemo"},
	"internal/shared/dataset":   {"nemo", "floyd"},
	"convert/inventory":         {"convert"},
	"convert/result":            {"convert"},
	"convert/paths":             {"convert"},
	"convert/plan":              {"convert"},
	"convert/workers":           {"convert"},
	"convert/transfer":          {"convert"},
	"convert/work":              {"convert"},
}

// slow is a limit of CPU time for the tests of a package. A package with slower tests gets half as many mutants.
const slow = 15 * time.Second

// knownEquivalent lists mutants that no test can kill, with the reason.
const knownEquivalent = "scripts/mutants/equivalent.txt"

func main() {
	seed := flag.Uint64("seed", uint64(time.Now().UnixNano())%1e9, "decides which mutants are made")
	n := flag.Int("n", 300, "how many mutants")
	only := flag.String("line", "", "only mutants of a `file:line`")
	flag.Parse()
	if err := run(*seed, *n, *only, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// run makes n mutants, spread evenly over the packages as far as they have enough points.
func run(seed uint64, n int, only string, packages []string) error {
	if len(packages) == 0 {
		packages = defaults
	}
	known, err := readKnown(knownEquivalent)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "kvferry-mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	fmt.Printf("seed %d, %d mutants of %s\n", seed, n, strings.Join(packages, " "))
	var all score
	for i, pkg := range packages {
		points, err := pointsOf(pkg, only)
		if err != nil {
			return err
		}
		r := rand.New(rand.NewPCG(seed, hashOf(pkg)))
		r.Shuffle(len(points), func(a, b int) { points[a], points[b] = points[b], points[a] })
		share := (n - all.made()) / (len(packages) - i)
		if only != "" {
			share = len(points)
		}
		s, err := sample(pkg, points, share, dir, known)
		if err != nil {
			return err
		}
		fmt.Printf("%s: %s\n", pkg, s)
		all.add(s)
	}
	fmt.Printf("all: %s\n", all)
	return nil
}

// hashOf returns a package's part of the seed. It makes the sample of a package independent of the other packages
// measured.
func hashOf(pkg string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(pkg))
	return h.Sum64()
}

// score counts mutants.
type score struct{ killed, survived, equivalent, invalid int }

func (s score) made() int { return s.killed + s.survived + s.equivalent }

func (s *score) add(o score) {
	s.killed += o.killed
	s.survived += o.survived
	s.equivalent += o.equivalent
	s.invalid += o.invalid
}

// String shows the share of killed mutants among those that can be killed.
func (s score) String() string {
	part := 100.0
	if s.killed+s.survived > 0 {
		part = 100 * float64(s.killed) / float64(s.killed+s.survived)
	}
	return fmt.Sprintf("%.1f %% die: %d killed, %d survived; %d known for equivalent, %d do not compile", part, s.killed, s.survived,
		s.equivalent, s.invalid)
}

// sample tries points of a package until n mutants compile.
func sample(pkg string, points []point, n int, dir string, known map[string]bool) (s score, err error) {
	if n == 0 || len(points) == 0 {
		return s, nil
	}
	tests, err := learn(pkg, dir)
	if err != nil {
		return s, err
	}
	if tests.cpu() > slow {
		n = (n + 1) / 2
	}
	for _, p := range points {
		if s.made() >= n {
			break
		}
		if known[p.key()] {
			s.equivalent++
			continue
		}
		overlay, err := p.write(dir)
		if err != nil {
			return s, err
		}
		switch compiles, killed := tests.try(&p, overlay); {
		case !compiles:
			s.invalid++
		case killed:
			s.killed++
		default:
			s.survived++
			fmt.Printf("survivor %s:%d:%d: %s\n    %s\n", p.file, p.line, p.column, p.change(), p.text)
		}
	}
	return s, nil
}

// write writes the changed file and an overlay that refers to it to dir.
func (p *point) write(dir string) (overlay string, err error) {
	src, err := os.ReadFile(p.file)
	if err != nil {
		return "", err
	}
	changed := slices.Concat(src[:p.from], []byte(p.with), src[p.to:])
	file := filepath.Join(dir, "mutant.go")
	path, err := filepath.Abs(p.file)
	if err != nil {
		return "", err
	}
	data, err := json.Marshal(map[string]map[string]string{"Replace": {path: file}})
	overlay = filepath.Join(dir, "overlay.json")
	return overlay, errors.Join(err, os.WriteFile(file, changed, 0o644), os.WriteFile(overlay, data, 0o644))
}

// readKnown reads the list of equivalent mutants. Each line has the fields file, change, line of code and reason,
// separated by tabs.
func readKnown(path string) (map[string]bool, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for i, line := range strings.Split(string(data), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(line, "\t")
		if len(fields) != 4 || fields[3] == "" {
			return nil, fmt.Errorf("%s:%d: want file, change, code and reason, parted by tabs", path, i+1)
		}
		known[strings.Join(fields[:3], "\t")] = true
	}
	return known, nil
}
