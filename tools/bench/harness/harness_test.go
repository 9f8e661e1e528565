package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func sh(script, output string) *command {
	return &command{Name: "sh", Argv: []string{"/bin/sh", "-c", script}, Output: output}
}

func TestRunFailsLoudly(t *testing.T) {
	_, err := run(sh("echo disk full >&2; exit 3", ""))
	if err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "disk full") {
		t.Errorf("error %v", err)
	}
	out := filepath.Join(t.TempDir(), "out")
	if _, err := run(sh("true", out)); err == nil || !strings.Contains(err.Error(), "without writing its output") {
		t.Errorf("error %v", err)
	}
}

func TestRunClearsItsOutput(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	beside := filepath.Join(dir, "other")
	s, err := run(sh("mkdir "+out+" && touch "+out+".kvferry-report.json "+beside+" && sleep 0.05", out))
	if err != nil {
		t.Fatal(err)
	}
	if s.Wall < 50*time.Millisecond || s.RSS == 0 {
		t.Errorf("measured %+v", s)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 || left[0].Name() != "other" {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestPinnedRunHasOneCPU(t *testing.T) {
	c := sh(`test "$GOMAXPROCS" = 1 && test "$(nproc)" = 1`, "")
	c.Pinned = true
	if _, err := run(c); err != nil {
		t.Error(err)
	}
	if _, err := run(sh(`test -z "$GOMAXPROCS"`, "")); err != nil {
		t.Error(err)
	}
}

func TestInterleaveAlternates(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	samples, err := interleave(2, sh("printf a >>"+log, ""), sh("printf b >>"+log, ""))
	if err != nil {
		t.Fatal(err)
	}
	if data, _ := os.ReadFile(log); string(data) != "ababab" {
		t.Errorf("ran %q", data)
	}
	if len(samples[0]) != 2 || len(samples[1]) != 2 {
		t.Errorf("%d and %d samples, want the warm-up left out", len(samples[0]), len(samples[1]))
	}
}

func TestMedian(t *testing.T) {
	m := median([]sample{{Wall: 9, CPU: 1, RSS: 5}, {Wall: 2, CPU: 3, RSS: 7}, {Wall: 4, CPU: 2, RSS: 6}})
	if m != (sample{Wall: 4, CPU: 2, RSS: 7}) {
		t.Errorf("median %+v", m)
	}
	if m := median([]sample{{Wall: 10}, {Wall: 20}}); m.Wall != 15 {
		t.Errorf("median of two %v", m.Wall)
	}
}

func TestProduceIsWholeOrAbsent(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	if err := produce(dir, "/bin/sh", "-c", "mkdir "+dir+partial+"; exit 1"); err == nil {
		t.Error("no error")
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("a broken dataset is there")
	}
	if err := produce(dir, "/bin/sh", "-c", "mkdir "+dir+partial); err != nil {
		t.Fatal(err)
	}
	if err := produce(dir, "/bin/false"); err != nil {
		t.Errorf("made again: %v", err)
	}
}

func TestReport(t *testing.T) {
	r := report{Elements: 5_000_000, Rounds: 3, Results: []*result{{Name: "a", Want: "≥ 1", Got: "2", OK: true}, {Name: "b"}}}
	md := r.markdown()
	if !strings.Contains(md, "5M elements, 3 interleaved") || !strings.Contains(md, "| a | ≥ 1 | 2 | yes |") ||
		!strings.Contains(md, "| b |  |  | **no** |") {
		t.Error(md)
	}
	if r.missed() != 1 {
		t.Errorf("%d missed", r.missed())
	}
	out := filepath.Join(t.TempDir(), "results")
	if err := r.write(out); err != nil {
		t.Fatal(err)
	}
	if data, _ := os.ReadFile(out + ".json"); !strings.Contains(string(data), `"ok": true`) {
		t.Errorf("%s", data)
	}
}

func TestGroups(t *testing.T) {
	var b bench
	if all, err := b.groups(""); err != nil || len(all) != 13 {
		t.Errorf("%d groups, %v", len(all), err)
	}
	if some, err := b.groups("memory,speed"); err != nil || len(some) != 2 || some[0].name != "memory" {
		t.Errorf("%v, %v", some, err)
	}
	if _, err := b.groups("speed|memory"); err == nil {
		t.Error("no error")
	}
}
