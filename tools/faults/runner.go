package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"kvferry/cmd/kvferry/command"
)

// clock is the value of --now for all commands.
const clock = "1700100000"

// patience is the time limit of a command on these small datasets.
const patience = 90 * time.Second

// runner runs command lines in this process.
type runner struct {
	work string // directory of the case, emptied after it
}

// sums adds up lines, regardless of their order.
type sums struct {
	lines int64
	sum   [4]uint64
	rest  []byte
}

func (s *sums) Write(p []byte) (int, error) {
	n := len(p)
	for {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			s.rest = append(s.rest, p...)
			return n, nil
		}
		s.rest = append(s.rest, p[:i]...)
		h := sha256.Sum256(s.rest)
		for j := range s.sum {
			s.sum[j] += binary.LittleEndian.Uint64(h[8*j:])
		}
		s.lines++
		s.rest, p = s.rest[:0], p[i+1:]
	}
}

// outcome is the result of a command.
type outcome struct {
	code   int
	sum    sums             // of the records
	told   map[string]int64 // warnings and errors by kind
	stderr string
	panic  string
	slow   bool
}

// same reports whether two outcomes have the same records.
func (o *outcome) same(as *outcome) bool {
	return o.sum.lines == as.sum.lines && o.sum.sum == as.sum.sum
}

// tells reports whether it has more findings of a kind than another outcome.
func (o *outcome) tells(more *outcome) bool {
	for kind, n := range o.told {
		if n > more.told[kind] {
			return true
		}
	}
	return false
}

// run runs one command line.
func (r *runner) run(stdout *bytes.Buffer, sum *sums, args ...string) (o *outcome) {
	o = &outcome{code: -1, told: map[string]int64{}}
	var stderr bytes.Buffer
	began := time.Now()
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	defer func() {
		if p := recover(); p != nil {
			o.panic = fmt.Sprintf("%v\n%s", p, debug.Stack())
		}
		o.stderr, o.slow = stderr.String(), time.Since(began) > patience
	}()
	app := command.Default(command.Build{Version: "faults"})
	app.LimitMemory = nil
	if sum != nil {
		o.code = app.Run(ctx, args, sum, &stderr)
		o.sum = *sum
	} else {
		o.code = app.Run(ctx, args, stdout, &stderr)
	}
	return o
}

// dump reads all records. Its findings are lines of its standard error.
func (r *runner) dump(src string, more ...string) *outcome {
	o := r.run(nil, new(sums), append([]string{"dump", "--now", clock, "--temp-dir", r.work, src}, more...)...)
	for _, line := range strings.Split(o.stderr, "\n") {
		if f := strings.Fields(line); len(f) > 2 && f[0] == "kvferry:" {
			o.told[strings.TrimSuffix(f[2], ":")]++
		}
	}
	return o
}

// told is the part of a report with findings.
type told struct {
	Findings []struct {
		Kind, Severity string
		Count          int64
	} `json:"findings"`
	Counts []struct {
		Kind, Severity string
		Count          int64
	} `json:"counts"`
	Records, Elements int64
	Fingerprint       json.RawMessage
}

// note counts the findings of a report, and adds the part that must be equal to the sum.
func (o *outcome) note(report []byte, equal func(t *told) string) {
	var t told
	if json.Unmarshal(report, &t) != nil {
		return
	}
	for _, f := range slices.Concat(t.Findings, t.Counts) {
		if f.Severity != "note" {
			o.told[f.Kind] += max(1, f.Count)
		}
	}
	fmt.Fprintln(&o.sum, equal(&t))
}

// verify checks a dataset.
func (r *runner) verify(src string) *outcome {
	var out bytes.Buffer
	o := r.run(&out, nil, "verify", "--format", "json", "--now", clock, "--temp-dir", r.work, src)
	o.note(out.Bytes(), func(t *told) string { return fmt.Sprint(t.Records, t.Elements) })
	return o
}

// convert converts a dataset, and removes the target.
func (r *runner) convert(src, target string) *outcome {
	dst := filepath.Join(r.work, "dst")
	var out bytes.Buffer
	o := r.run(&out, nil, "convert", "--format", "json", "--now", clock, "--workers", "1", src, target+":"+dst)
	o.note(out.Bytes(), func(t *told) string { return string(t.Fingerprint) })
	if err := removeAll(dst, dst+".kvferry", dst+".kvferry-report.json"); err != nil {
		o.panic = err.Error()
	}
	return o
}

func removeAll(paths ...string) error {
	for _, path := range paths {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	return nil
}
