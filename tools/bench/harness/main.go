// Harness runs kvferry and the C++ reference alternately on datasets that it generates, and reports ratios. It runs
// the programs from the outside, like a user.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

type options struct {
	dir      string
	bin      string
	elements int64
	rounds   int
	seed     uint64
	full     bool
	keep     bool
	check    bool
	only     string
	out      string
}

func main() {
	var o options
	flag.StringVar(&o.dir, "dir", "", "directory for datasets and outputs (default: a new one below $TMPDIR)")
	flag.StringVar(&o.bin, "bin", "bin", "directory of kvferry, kvferry-gen, reference and overlap")
	flag.Int64Var(&o.elements, "elements", 5_000_000, "elements of the datasets")
	flag.IntVar(&o.rounds, "rounds", 5, "measured runs of each program, after one to warm the cache")
	flag.Uint64Var(&o.seed, "seed", 1, "seed of the datasets")
	flag.BoolVar(&o.full, "full", false, "measure growth up to four times as many elements")
	flag.BoolVar(&o.keep, "keep", false, "keep the datasets")
	flag.BoolVar(&o.check, "check", false, "exit 1 when a bound is missed")
	flag.StringVar(&o.only, "only", "", "run only these groups, separated by commas: speed, workers, growth, memory, ardb, kvrocks, ssdb, pika, parquet, objects, reading, redis, serve")
	flag.StringVar(&o.out, "out", "results", "write OUT.json and OUT.md")
	flag.Parse()
	// An interrupt kills the program being measured. Its failure ends this program, which cleans up.
	signal.Notify(make(chan os.Signal, 1), os.Interrupt, syscall.SIGTERM)
	if err := mainErr(&o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func mainErr(o *options) error {
	cleanup, err := prepare(o)
	if err != nil {
		return err
	}
	defer cleanup()
	program := func(name string) string { return filepath.Join(o.bin, name) }
	b := bench{
		o: *o, kvferry: program("kvferry"), reference: program("reference"), scan: program("scan"), limit: program("limit"),
		data: &datasets{dir: o.dir, seed: o.seed, gen: program("kvferry-gen"), overlap: program("overlap"),
			convert: program("kvferry"), reference: program("reference")},
	}
	groups, err := b.groups(o.only)
	if err != nil {
		return err
	}
	report := newReport(o)
	for _, group := range groups {
		results, err := group.run()
		if err != nil {
			return fmt.Errorf("%s: %w", group.name, err)
		}
		for _, r := range results {
			fmt.Fprintf(os.Stderr, "%s: %s\n", r.Name, r.Got)
		}
		report.Results = append(report.Results, results...)
		// Write after each group, so that an hour of measuring survives a failure.
		if err := report.write(o.out); err != nil {
			return err
		}
	}
	fmt.Print(report.markdown())
	if missed := report.missed(); o.check && missed > 0 {
		return fmt.Errorf("%d bounds missed", missed)
	}
	return nil
}

// prepare creates the working directory. cleanup removes it.
func prepare(o *options) (cleanup func(), err error) {
	if o.dir == "" {
		o.dir, err = os.MkdirTemp("", "kvferry-bench-")
	} else {
		o.dir = filepath.Join(o.dir, "kvferry-bench")
		err = os.MkdirAll(o.dir, 0o755)
	}
	return func() {
		if o.keep {
			fmt.Fprintln(os.Stderr, "datasets kept in", o.dir)
			return
		}
		os.RemoveAll(o.dir)
	}, err
}
