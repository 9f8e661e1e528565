package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kvferry/cmd/kvferry/cli"
	"kvferry/convert"
	"kvferry/internal/pass"
)

// at is a report of a part, "k/n" or "" for all, that ended with an exit code some seconds after others.
func at(part string, exit int, seconds int64) *anyReport {
	r := &anyReport{Bytes: 100, Seconds: 1}
	_, _ = fmt.Sscanf(part, "%d/%d", &r.Part, &r.Parts)
	r.Exit = exit
	if exit != 0 {
		r.Error, r.At = fmt.Sprintf("error %d", exit), time.Unix(seconds, 0)
	}
	return r
}

// losing adds a loss.
func losing(r *anyReport, kind string, n int64, drops bool) *anyReport {
	r.Losses = append(r.Losses, convert.LossKind{Kind: kind, Count: n, Drops: drops, Samples: []convert.Sample{{Detail: "x"}}})
	return r
}

// TestState: what reports say of a dataset. A success overrides the failure of the same part, of failures the latest one
// counts, and to come too early is none.
func TestState(t *testing.T) {
	for _, c := range []struct {
		name    string
		parts   int
		reports []*anyReport
		want    string
		next    string // first words of the command lines
	}{
		{"nothing", 3, nil, "open 0/3", "part=1 part=2 part=3 finish"},
		{"one run", 1, nil, "open 0/1", "convert"},
		{"some parts", 3, []*anyReport{at("1/3", 0, 0), at("3/3", 0, 0)}, "open 2/3, 200 bytes, 2s", "part=2 finish"},
		{"all parts", 2, []*anyReport{at("1/2", 0, 0), at("2/2", 0, 0)}, "open 2/2, 200 bytes, 2s", "finish"},
		{"a failure", 2, []*anyReport{at("1/2", 0, 0), at("2/2", 1, 5)}, "failed 1/2, exit 1: error 1, 100 bytes, 1s", "part=2 finish"},
		{"a failure that is over", 2, []*anyReport{at("2/2", 1, 5), at("2/2", 0, 0)}, "open 1/2, 100 bytes, 1s", "part=1 finish"},
		{"two failures, the latest first", 3, []*anyReport{at("1/3", 1, 9), at("2/3", 4, 5)}, "failed 0/3, exit 1: error 1", "part=1 part=2 part=3 finish"},
		{"two failures, the latest last", 3, []*anyReport{at("1/3", 1, 5), at("2/3", 4, 9)}, "failed 0/3, exit 4: error 4", "dry-run part=1 part=2 part=3 finish"},
		{"a finish that came too early", 2, []*anyReport{at("1/2", 0, 0), at("", cli.ExitMissing, 5)}, "open 1/2, 100 bytes, 1s", "part=2 finish"},
		{"done", 2, []*anyReport{at("1/2", 0, 0), at("2/2", 0, 0), at("", 0, 0)}, "done 2/2, 1s", ""},
		{"done after a failure", 1, []*anyReport{at("", 1, 5), at("", 0, 0)}, "done 1/1, 1s", ""},
		{"parts of another number", 2, []*anyReport{at("1/4", 0, 0), at("2/4", 0, 0)}, "open 2/4, 200 bytes, 2s", "part=3 part=4 finish"},
		{"losses", 2, []*anyReport{losing(losing(at("1/2", 0, 0), "a", 1, false), "b", 2, true), losing(losing(at("2/2", 0, 0), "a", 10, false), "a", 100, true)},
			"open 2/2, 200 bytes, 2s, lost a 11, b 2, a 100", "finish"},
	} {
		m := &move{command: "convert", name: "x", source: "/x", target: "rdb:/no/y", path: "/no/y", at: "/no/y", work: "/no/y",
			parts: c.parts}
		s := m.state(c.reports)
		got := fmt.Sprintf("%s %d/%d", s.State, s.PartsDone, s.Parts)
		if s.Exit != 0 {
			got += fmt.Sprintf(", exit %d: %s", s.Exit, s.Error)
		}
		if s.SourceBytes > 0 {
			got += fmt.Sprintf(", %d bytes", s.SourceBytes)
		}
		if s.Seconds > 0 {
			got += fmt.Sprintf(", %.0fs", s.Seconds)
		}
		for i, l := range s.Losses {
			got += fmt.Sprintf("%s %s %d", []string{", lost", ","}[min(i, 1)], l.Kind, l.Count)
			if l.Samples != nil {
				t.Errorf("%s: %+v", c.name, l)
			}
		}
		var next []string
		for _, line := range s.Next {
			word := "convert"
			for _, flag := range []string{"--dry-run", "--part=1", "--part=2", "--part=3", "--part=4", "--finish"} {
				if strings.Contains(line, flag) {
					word = strings.TrimPrefix(flag, "--")
				}
			}
			next = append(next, word)
		}
		if text := strings.Join(next, " "); got != c.want || text != c.next {
			t.Errorf("%s: %s, want %s; next %s, want %s", c.name, got, c.want, text, c.next)
		}
	}
}

// TestReadReports: reports are found by their names, and belong to the dataset with their target. The report of a whole
// dump says how many parts there were.
func TestReadReports(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "new")
	put := func(name string, r *anyReport, to string) {
		r.Target.Path = to
		data, err := json.Marshal(r)
		if err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), data, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	put("new.kvferry-report.json", &anyReport{Failure: Failure{Parts: 2}}, target+"/")
	put(filepath.Base(FailurePath(target, pass.Part{K: 2, N: 2})), at("2/2", 1, 5), target)
	put("other.kvferry-report.json", &anyReport{}, filepath.Join(dir, "other"))
	put("text.json", at("1/2", 1, 9), target) // another name
	m := &move{command: "convert", name: "x", source: "/x", target: "rdb:" + target, path: target, at: target, work: target,
		parts: 2}
	s, err := (&File{path: "f.yaml", moves: []*move{m}}).State([]string{dir})
	if err != nil || !s.Done() || len(s.Unread) > 0 || s.moves[0].State != "done" {
		t.Errorf("%+v, %v", s, err)
	}
	if err := os.Remove(filepath.Join(dir, "new.kvferry-report.json")); err != nil {
		t.Fatal(err)
	}
	s, err = (&File{path: "f.yaml", moves: []*move{m}}).State([]string{dir + "/**"})
	if err != nil || s.Done() || s.moves[0].Exit != 1 {
		t.Errorf("%+v, %v", s.moves[0], err)
	}
}

// TestNextLines: up to maxNext command lines of a dataset are printed, and the number of the others.
func TestNextLines(t *testing.T) {
	for n, more := range map[int]string{maxNext: "", maxNext + 1: "  and 1 more", maxNext + 7: "  and 7 more"} {
		lines := nextLines([]*State{{Name: "a", State: "open", Next: slices.Repeat([]string{"kvferry x"}, n)},
			{Name: "b", State: "done", Next: []string{"no"}}})
		want := 2 + maxNext
		if more != "" {
			want++
		}
		if last := lines[len(lines)-1]; len(lines) != want || more != "" && !strings.HasPrefix(last, more) {
			t.Errorf("%d: %d lines, the last one %q", n, len(lines), last)
		}
	}
}

// TestPartsOf: a dataset has as many parts of a size as cover it.
func TestPartsOf(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "sub"), 0o755),
		os.WriteFile(filepath.Join(dir, "a"), make([]byte, 300), 0o600),
		os.WriteFile(filepath.Join(dir, "sub", "b"), make([]byte, 700), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		part, command string
		options       []string
		want          int
		bad           string
	}{
		{"", "convert", nil, 1, ""}, {"1000", "convert", nil, 1, ""}, {"999", "convert", nil, 2, ""}, {"500", "convert", nil, 2, ""}, {"499", "convert", nil, 3, ""},
		{"1", "convert", nil, min(1000, pass.MaxParts), ""}, {"1MiB", "convert", nil, 1, ""},
		{"500", "verify", nil, 2, "need a time in common"}, {"500", "verify", []string{"--now=2026-01-01T00:00:00Z"}, 2, ""}, {"1000", "verify", nil, 1, ""},
		{"0", "convert", nil, 0, "want a number of bytes"},
	} {
		m := &move{command: c.command, options: c.options, path: "/x"}
		n, err := m.partsOf(dir, c.part)
		if n != c.want || (err == nil) != (c.bad == "") || err != nil && !strings.Contains(err.Error(), c.bad) {
			t.Errorf("%s in parts of %q: %d, %v; want %d", c.command, c.part, n, err, c.want)
		}
	}
}

// TestFound: a pattern matches datasets, not what kvferry left beside targets, and names them by what it matched.
func TestFound(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a/dump", "b/dump", "c/other", "d.kvferry/dump"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"e", filepath.Base(convert.ReportPath("a")), filepath.Base(FailurePath("a", pass.Part{})),
		filepath.Base(FailurePath("a", pass.Part{K: 1, N: 2}))} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for pattern, want := range map[string]string{"*/dump": "a b", "*": "a b c e", "[b-z]/*": "b-dump c-other", "a": "a",
		"*/none": "", "none/*": "", "e/*": ""} {
		var names []string
		found, err := datasets(filepath.Join(dir, pattern), nil)
		for _, f := range found {
			names = append(names, f.name)
		}
		if got := strings.Join(names, " "); got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %s, %v; want %s", pattern, got, err, want)
		}
	}
}

// TestPodMemory: a pod has a third more than --memory, in whole MiB.
func TestPodMemory(t *testing.T) {
	for memory, want := range map[cli.SizeFlag]cli.SizeFlag{768 << 20: 1 << 30, 3 << 20: 4 << 20, 3<<20 + 3: 5 << 20,
		64 << 20: 86 << 20} {
		if got := (&move{memory: memory}).podMemory(); got != want {
			t.Errorf("%d: %d, want %d", memory, got, want)
		}
	}
}
