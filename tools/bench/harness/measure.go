package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// command is a program to measure. The path Output is removed before and after each run, together with kvferry's
// files next to it.
type command struct {
	Name   string   // in tables, such as "kvferry" or "reference"
	Argv   []string // Argv[0] is a path
	Output string
	Pinned bool // run on one CPU, with GOMAXPROCS=1
}

// sample holds the measurements of one run.
type sample struct {
	Wall time.Duration `json:"wall_ns"`
	CPU  time.Duration `json:"cpu_ns"` // user and system time
	RSS  int64         `json:"peak_rss_bytes"`
	Out  int64         `json:"output_bytes,omitempty"` // if the output is a file
}

// run runs c once. If it fails, the error contains its output to stderr.
func run(c *command) (sample, error) {
	if err := clear(c.Output); err != nil {
		return sample{}, err
	}
	s, err := measure(c)
	if err != nil {
		return sample{}, err
	}
	if c.Output == "" {
		return s, nil
	}
	info, err := os.Stat(c.Output)
	if err != nil {
		return sample{}, fmt.Errorf("%s: succeeded without writing its output: %w", strings.Join(c.Argv, " "), err)
	}
	if info.Mode().IsRegular() {
		s.Out = info.Size()
	}
	return s, clear(c.Output)
}

// clear removes path and the files that kvferry writes next to it.
func clear(path string) error {
	if path == "" {
		return nil
	}
	for _, p := range []string{path, path + ".kvferry", path + ".kvferry-report.json"} {
		if err := os.RemoveAll(p); err != nil {
			return err
		}
	}
	return nil
}

func measure(c *command) (sample, error) {
	cmd := exec.Command(c.Argv[0], c.Argv[1:]...)
	var said bytes.Buffer
	cmd.Stderr = &said
	if c.Pinned {
		cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
		restore, err := pin()
		if err != nil {
			return sample{}, err
		}
		defer restore()
	}
	began := time.Now()
	if err := cmd.Run(); err != nil {
		return sample{}, fmt.Errorf("%s: %w\n%s", strings.Join(c.Argv, " "), err, said.Bytes())
	}
	s := sample{Wall: time.Since(began), CPU: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
	s.RSS = peak(cmd.ProcessState)
	return s, nil
}

// interleave runs the commands alternately, once to warm the cache and then rounds times.
func interleave(rounds int, commands ...*command) ([][]sample, error) {
	out := make([][]sample, len(commands))
	for round := -1; round < rounds; round++ {
		for i, c := range commands {
			s, err := run(c)
			if err != nil {
				return nil, err
			}
			if round >= 0 {
				out[i] = append(out[i], s)
			}
		}
	}
	return out, nil
}

// median returns the medians of the times, and the maxima of memory and output.
func median(samples []sample) sample {
	pick := func(f func(sample) time.Duration) time.Duration {
		v := make([]time.Duration, len(samples))
		for i, s := range samples {
			v[i] = f(s)
		}
		slices.Sort(v)
		return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
	}
	m := sample{
		Wall: pick(func(s sample) time.Duration { return s.Wall }),
		CPU:  pick(func(s sample) time.Duration { return s.CPU }),
	}
	for _, s := range samples {
		m.RSS, m.Out = max(m.RSS, s.RSS), max(m.Out, s.Out)
	}
	return m
}
