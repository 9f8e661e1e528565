// Command faults damages datasets, kills conversions, and makes system calls fail, at random, and compares
// kvferry's behavior with its behavior on the sound dataset. It prints its seed and one line for each class of faults,
// and exits with code 1 after any failure.
package main

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"kvferry/cmd/kvferry/command"
)

// asKvferry in the environment makes the process run kvferry itself, to be killed or signaled.
const asKvferry = "KVFERRY_FAULTS_CHILD"

// harness is one run.
type harness struct {
	seed    uint64
	dir     string
	sources []*source
	files   string    // pattern of files to damage
	names   string    // pattern of datasets
	tiny    []*source // sources to forge
	small   []*job    // on small datasets: each file operation fails in turn
	large   []*job    // on goldens: their processes are killed
	run     *runner
	label   string // path of a file with the current case
	bench   *bench
	engines []*engine // reference servers
	single  bool      // only one case is run
}

// chosen reports whether datasets with a name are used.
func (h *harness) chosen(name string) bool {
	ok, _ := filepath.Match(h.names, name)
	return ok || h.names == ""
}

// now writes the current case to a file, which survives a crash of the process.
func (h *harness) now(label string) { os.WriteFile(h.label, []byte(label+"\n"), 0o644) }

// classes are the kinds of faults; do runs case n. share is the class's part of the time, relative to the sum of all
// shares; short is the number of cases in a test.
var classes = []struct {
	name         string
	do           func(h *harness, c *class, n int) error
	share, short int
}{
	{"damage", (*harness).damaged, 16, 25},
	{"forge", (*harness).forged, 16, 40},
	{"values", (*harness).values, 8, 1000},
	{"commands", (*harness).commands, 8, 20},
	{"call", (*harness).call, 8, 40},
	{"full", (*harness).full, 2, 12},
	{"kill", (*harness).kill, 4, 2},
	{"signal", (*harness).signal, 2, 4},
	{"pipe", (*harness).pipe, 1, 2},
}

func main() {
	if os.Getenv(asKvferry) != "" {
		os.Exit(command.Main(command.Build{Version: "faults"}))
	}
	var o options
	flag.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixNano())%1e9, "decides all that is random")
	flag.DurationVar(&o.span, "for", 2*time.Minute, "how long to go on, over all classes")
	flag.StringVar(&o.only, "only", "", "classes, joined by commas, or a case as damage/123")
	flag.StringVar(&o.files, "files", "*", "damage only files of such a name, as *.log")
	flag.StringVar(&o.names, "sources", "*", "use only databases of such a name, as pika*")
	flag.BoolVar(&o.outside, "outside", true, "also use the databases next to the repository")
	flag.Parse()
	wrong, err := o.run()
	if err != nil {
		fmt.Fprintln(os.Stderr, "kvferry-faults:", err)
		os.Exit(2)
	}
	if wrong > 0 {
		os.Exit(1)
	}
}

// options are the command-line options.
type options struct {
	seed    uint64
	span    time.Duration
	only    string
	outside bool
	files   string // pattern
	names   string // pattern; "" matches all
	short   bool   // few cases of each class
}

// memory returns a file system in memory, where a sync costs nothing, or "" for the default directory.
func memory() string {
	if _, err := os.Stat("/dev/shm"); err != nil || os.Getenv("TMPDIR") != "" {
		return ""
	}
	return "/dev/shm"
}

// run runs cases of all classes in turn until the time is over, and returns the number of failures.
func (o *options) run() (wrong int, err error) {
	debug.SetGCPercent(800) // the commands allocate little, and there are thousands of them
	dir, err := os.MkdirTemp(memory(), "kvferry-faults-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	fmt.Printf("seed %d, %v\n", o.seed, o.span)
	h := &harness{seed: o.seed, dir: dir, files: o.files, names: o.names, run: &runner{work: filepath.Join(dir, "work")},
		label: filepath.Join(dir, "case")}
	if err := os.Mkdir(h.run.work, 0o755); err != nil {
		return 0, err
	}
	if err := o.datasets(h); err != nil {
		return 0, err
	}
	h.bench = &bench{dir: dir}
	defer h.bench.close()
	began := time.Now()
	done, err := o.classes(h)
	for _, c := range done {
		c.print()
		wrong += len(c.wrong)
	}
	fmt.Printf("%d wrong, %v, seed %d\n", wrong, time.Since(began).Round(time.Second), o.seed)
	return wrong, err
}

// datasets unpacks and makes the datasets to damage. Classes that compare with servers make their own.
func (o *options) datasets(h *harness) error {
	only := strings.FieldsFunc(o.only, func(c rune) bool { return c == ',' || c == '/' })
	if len(only) > 0 && !slices.ContainsFunc(classNames(), func(name string) bool {
		return slices.Contains(only, name) && name != "values" && name != "commands"
	}) {
		return nil
	}
	err := os.Mkdir(filepath.Join(h.dir, "golden"), 0o755)
	if err != nil {
		return err
	}
	if h.sources, err = unpack(filepath.Join(h.dir, "golden"), o.outside); err != nil {
		return err
	}
	h.sources = slices.DeleteFunc(h.sources, func(s *source) bool {
		return !h.chosen(s.name)
	})
	if !strings.HasPrefix(o.only, "forge") && !slices.ContainsFunc(h.sources, func(s *source) bool { return s.has(o.files) }) {
		return fmt.Errorf("-files %s -sources %s: no dataset has such a file", o.files, o.names)
	}
	return h.makeSmall()
}

// classNames returns the names of all classes.
func classNames() (out []string) {
	for _, c := range classes {
		out = append(out, c.name)
	}
	return out
}

// classes runs the chosen classes until the time is over, always the class with the smallest used part of its share.
func (o *options) classes(h *harness) (out []*class, err error) {
	name, number, single := strings.Cut(o.only, "/")
	for _, c := range classes {
		if o.only == "" || slices.Contains(strings.Split(name, ","), c.name) {
			out = append(out, &class{name: c.name, do: c.do, share: c.share, short: c.short, counts: map[string]int{}})
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("-only %s: no such class", o.only)
	}
	if single {
		n, err := strconv.Atoi(number)
		if err != nil {
			return nil, err
		}
		h.single = true
		return out, h.one(out[0], n)
	}
	for began := time.Now(); time.Since(began) < o.span; {
		var next *class
		for _, c := range out {
			if !c.done && (!o.short || c.cases < c.short) &&
				(next == nil || c.spent/time.Duration(c.share) < next.spent/time.Duration(next.share)) {
				next = c
			}
		}
		if next == nil {
			break
		}
		if err := h.one(next, next.cases); err != nil {
			return out, err
		}
	}
	return out, nil
}

// one runs one case in an empty directory.
func (h *harness) one(c *class, n int) error {
	if err := errors.Join(os.RemoveAll(h.run.work), os.MkdirAll(h.run.work, 0o755)); err != nil {
		return err
	}
	began := time.Now()
	defer func() {
		took := time.Since(began)
		c.spent += took
		c.slowest = max(c.slowest, took)
	}()
	c.cases++
	return c.do(h, c, n)
}

// print prints the class's line.
func (c *class) print() {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(c.counts)) {
		parts = append(parts, fmt.Sprintf("%s %d", k, c.counts[k]))
	}
	fmt.Printf("%s: %d cases, %d wrong: %s; the longest took %.1f s\n", c.name, c.cases, len(c.wrong), strings.Join(parts, ", "),
		c.slowest.Seconds())
}
