package command

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kvferry/nemo"
	"kvferry/record"
)

// inspected is the part of inspect's JSON that these tests look at.
type inspected struct {
	Prefixes  *inspectedPrefix
	Files     int
	Deletable []struct {
		Why, Pattern, Command string
		Records, Bytes        int64
		Of                    int64 `json:"of_records"`
	}
}

type inspectedPrefix struct {
	Pattern         any
	Records, Bytes  int64
	Disk            int64   `json:"bytes_on_disk"`
	Share           float64 `json:"share"`
	Largest, Expiry any
	Prefixes        []*inspectedPrefix
}

func inspectJSON(t *testing.T, args ...string) (text string, out inspected) {
	t.Helper()
	text = ok(t, append([]string{"inspect", "--format", "json"}, args...)...)
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return text, out
}

// shown runs a command line that inspect prints, and returns the lines of its output that belong to it.
func shown(t *testing.T, line string) (lines []string) {
	t.Helper()
	line, grep, _ := strings.Cut(line, " | grep ")
	words, err := exec.Command("bash", "-c", `printf '%s\0' `+line).Output()
	if err != nil {
		t.Skip(err)
	}
	args := strings.Split(strings.TrimSuffix(string(words), "\x00"), "\x00")
	if args[0] != "kvferry" {
		t.Fatalf("%q", args)
	}
	for l := range strings.Lines(ok(t, args[1:]...)) {
		if strings.Contains(l, strings.Trim(grep, "'")) {
			lines = append(lines, l)
		}
	}
	return lines
}

// TestInspectDeletable checks that the commands which inspect prints show what it has counted.
func TestInspectDeletable(t *testing.T) {
	t.Parallel()
	text := func(s string) []record.Element { return []record.Element{{Value: []byte(s)}} }
	now := testNow.Unix()
	var records []given
	large := strings.Repeat("large ", 1000)
	for i := range 3 {
		records = append(records, given{record.String, fmt.Sprintf("a b'c:%d", i), 0, text(large)})
	}
	records = append(records, given{record.String, "gone", now - 5, text("x")})
	for i := range 40 {
		expire := now + 3600
		if i%20 == 7 {
			expire = 0
		}
		records = append(records, given{record.String, fmt.Sprintf("sess[%02d]:x", i), expire, text("value")})
	}
	src := datasetOf(t, nemo.New(), records...)
	_, got := inspectJSON(t, src)
	whys := ""
	for _, d := range got.Deletable {
		lines := shown(t, d.Command)
		whys += fmt.Sprintf("%s %d of %d, %d bytes, %d lines; ", d.Why, d.Records, d.Of, d.Bytes, len(lines))
	}
	const want = "expired 1 of 0, 0 bytes, 2 lines; no-expiry 2 of 40, 30 bytes, 3 lines; duplicates 3 of 0, 12000 bytes, 6 lines; "
	if whys != want {
		t.Errorf("%s\nwant %s", whys, want)
	}
	if out := strings.Join(shown(t, got.Deletable[0].Command), ""); !strings.Contains(out, "gone") {
		t.Errorf("expired: %s", out)
	}
	if out := strings.Join(shown(t, got.Deletable[1].Command), ""); !strings.Contains(out, "sess[07]:x") ||
		!strings.Contains(out, "sess[27]:x") {
		t.Errorf("without expiry: %s", out)
	}
	// Filters go on the command lines, too.
	_, got = inspectJSON(t, src, "--match", "gone", "--match", "a*", "--type", "string")
	if lines := shown(t, got.Deletable[0].Command); len(got.Deletable) != 2 || len(lines) != 2 ||
		!strings.Contains(got.Deletable[0].Command, "--type string") {
		t.Errorf("%+v: %q", got.Deletable, lines)
	}
	html := filepath.Join(t.TempDir(), "page.html")
	if out := ok(t, "inspect", "--html", html, src); !strings.Contains(out, "sess[#]:x") || !strings.Contains(out, "3 records with the same value, like a b'c:0\n") {
		t.Error(out)
	}
}

// TestInspectByWorkers checks that the result does not depend on the number of workers, that the root of the prefixes
// is all records and files, and that the commands which are printed run, in all formats.
func TestInspectByWorkers(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "a.rdb")
	ok(t, "convert", "--on-conflict", "rename", golden(t, "bw-basic"), "rdb:"+file)
	if text, _ := inspectJSON(t, file); !strings.Contains(text, "\n  \"files\": 1,\n") {
		t.Errorf("one file is not counted: %s", text)
	}
	for name, src := range someOf(map[string]string{"nemo": golden(t, "nemo-basic"), "Pika 4": golden(t, "pika400-basic"),
		"Kvrocks": golden(t, "kvrocks-mixed"), "SSDB": golden(t, "ssdb-basic"), "RDB": file}, "nemo", "RDB") {
		one, got := inspectJSON(t, "--workers", "1", "--redis", src)
		many, _ := inspectJSON(t, "--workers", "8", "--redis", src)
		if one != many {
			t.Errorf("%s: one worker:\n%s\neight:\n%s", name, one, many)
		}
		root := got.Prefixes
		if root.Records < 20 || root.Share != 1 || root.Disk == 0 || len(root.Prefixes) == 0 {
			t.Errorf("%s: root %+v", name, root)
		}
		holds(t, name, root)
		for _, d := range got.Deletable {
			if lines := shown(t, d.Command); len(lines) < 2 && d.Why != "garbage" {
				t.Errorf("%s: %s shows %q", name, d.Command, lines)
			}
		}
	}
}

// holds checks that a prefix has at least the sums of those below it.
func holds(t *testing.T, name string, p *inspectedPrefix) {
	t.Helper()
	var records, bytes, disk int64
	for _, c := range p.Prefixes {
		records, bytes, disk = records+c.Records, bytes+c.Bytes, disk+c.Disk
		holds(t, name, c)
	}
	if records > p.Records || bytes > p.Bytes || disk > p.Disk || p.Records > 0 && p.Largest == nil || p.Expiry == nil {
		t.Errorf("%s: %+v has %d records of %d bytes, %d on disk, below it", name, p, records, bytes, disk)
	}
}
