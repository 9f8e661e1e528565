package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// report is the content of OUT.json.
type report struct {
	Date     string    `json:"date"`
	Commit   string    `json:"commit"`
	CPU      string    `json:"cpu"`
	Cores    int       `json:"cores"`
	Kernel   string    `json:"kernel"`
	Go       string    `json:"go"`
	RocksDB  string    `json:"rocksdb"`
	Elements int64     `json:"elements"`
	Rounds   int       `json:"rounds"`
	Seed     uint64    `json:"seed"`
	Results  []*result `json:"results"`
}

func newReport(o *options) *report {
	return &report{
		Date: time.Now().UTC().Format(time.DateOnly), Commit: output("git", "rev-parse", "--short", "HEAD"),
		CPU: cpuModel(), Cores: runtime.NumCPU(), Kernel: output("uname", "-r"), Go: runtime.Version(),
		RocksDB: rocksVersion(), Elements: o.elements, Rounds: o.rounds, Seed: o.seed,
	}
}

// output returns the output of a program, or "unknown" if it fails: it is used only in descriptions.
func output(program string, args ...string) string {
	out, err := exec.Command(program, args...).Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

func cpuModel() string {
	data, _ := os.ReadFile("/proc/cpuinfo")
	for _, line := range strings.Split(string(data), "\n") {
		if name, ok := strings.CutPrefix(line, "model name"); ok {
			return strings.TrimSpace(strings.TrimLeft(name, "\t: "))
		}
	}
	return runtime.GOARCH
}

func rocksVersion() string {
	data, _ := os.ReadFile("/usr/include/rocksdb/version.h")
	var parts []string
	for _, line := range strings.Split(string(data), "\n") {
		f := strings.Fields(line)
		if len(f) == 3 && f[0] == "#define" && strings.HasPrefix(f[1], "ROCKSDB_M") || len(f) == 3 && f[1] == "ROCKSDB_PATCH" {
			parts = append(parts, f[2])
		}
	}
	return strings.Join(parts, ".")
}

func (r *report) missed() int {
	n := 0
	for _, x := range r.Results {
		if !x.OK {
			n++
		}
	}
	return n
}

// markdown renders the results as a page.
func (r *report) markdown() string {
	var b strings.Builder
	b.WriteString("# Measured\n\n`make bench` repeats this (`ELEMENTS`, `ROUNDS`, `BENCH_DIR`; `make bench-full` grows to four times the\n" +
		"size). The reference is [a C++ program](reference.cc) that scans and loads the same rows with the RocksDB\n" +
		"library (Debian's, with assertions enabled), without decoding. 2 × means half the time.\n\n")
	fmt.Fprintf(&b, "%s elements, %d interleaved runs each, medians, warm cache; %d × %s, RocksDB %s, %s, commit %s, %s.\n\n",
		millions(r.Elements), r.Rounds, r.Cores, r.CPU, r.RocksDB, r.Go, r.Commit, r.Date)
	b.WriteString("| what | wanted | measured | |\n|---|---|---|---|\n")
	for _, x := range r.Results {
		mark := "yes"
		if !x.OK {
			mark = "**no**"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", x.Name, x.Want, x.Got, mark)
	}
	return b.String()
}

func (r *report) write(out string) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(out+".json", append(data, '\n'), 0o644); err != nil {
		return err
	}
	return os.WriteFile(out+".md", []byte(r.markdown()), 0o644)
}
