package command

import (
	"encoding/json"
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kvferry/cmd/kvferry/cli"
	"kvferry/fixtures"
	"kvferry/nemo"
)

// TestVerifyReports checks that all report formats agree, to a file or to standard output, with the same exit code.
func TestVerifyReports(t *testing.T) {
	dir := buildSmall(t, nemo.New(), smallSet()...)
	alter(t, filepath.Join(dir, "hash"), func(r *rows) { r.del("default", []byte("Hk")) })
	alter(t, filepath.Join(dir, "kv"), func(r *rows) { r.put("default", nk, []byte("short")) })
	unchanged(t, dir)
	out := t.TempDir()
	for form, valid := range map[string]func([]byte) bool{
		"text":  func(b []byte) bool { return strings.Contains(string(b), "1 error, 1 warning") },
		"json":  json.Valid,
		"sarif": func(b []byte) bool { return json.Valid(b) && strings.Contains(string(b), `"version": "2.1.0"`) },
		"junit": func(b []byte) bool { return xml.Unmarshal(b, new(struct{ XMLName xml.Name })) == nil },
	} {
		path := filepath.Join(out, form)
		r := kvferry(t, "verify", "--format", form, "-o", path, dir)
		text, err := os.ReadFile(path)
		if err != nil || r.code != cli.ExitFindings || r.stdout != "" || strings.Count(r.stderr, "\n") != 1 ||
			!strings.Contains(r.stderr, "; lost: ") {
			t.Errorf("%s: exit %d, %v, %s%s", form, r.code, err, r.stdout, r.stderr)
		}
		if again := kvferry(t, "verify", "--format", form, dir).stdout; again != string(text) {
			t.Errorf("%s: the file and standard output differ", form)
		}
		if !valid(text) || !strings.Contains(string(text), "short-value") || !strings.Contains(string(text), "orphan-rows") {
			t.Errorf("%s: %s", form, text)
		}
	}
	if got := entries(t, out); got != "json junit sarif text" {
		t.Errorf("left behind: %s", got)
	}
	for failOn, want := range map[string]int{"error": cli.ExitFindings, "warning": cli.ExitFindings, "note": cli.ExitFindings} {
		if r := kvferry(t, "verify", "--fail-on", failOn, dir); r.code != want {
			t.Errorf("--fail-on %s: exit %d", failOn, r.code)
		}
	}
	if r := kvferry(t, "verify", "--type", "hash", dir); r.code != cli.ExitOK || !strings.Contains(r.stdout, "orphan-rows") {
		t.Errorf("a warning alone: exit %d\n%s", r.code, r.stdout)
	}
}

// TestInspectHTML checks that the page is written in addition to the other output, completely or not at all.
func TestInspectHTML(t *testing.T) {
	src, out := golden(t, "ardb-leveldb-basic"), t.TempDir()
	page := filepath.Join(out, "page.html")
	var doc struct {
		Types  []struct{ Records int64 }
		Levels []any
	}
	mustJSON(t, []byte(ok(t, "inspect", src, "--format", "json", "--html", page)), &doc)
	text, err := os.ReadFile(page)
	if err != nil || !strings.HasPrefix(string(text), "<!DOCTYPE html>") || len(doc.Types) < 10 || len(doc.Levels) == 0 {
		t.Errorf("%v, %d types, %d levels, page %.80s", err, len(doc.Types), len(doc.Levels), text)
	}
	r := kvferry(t, "inspect", src, "--html", filepath.Join(out, "no", "page.html"))
	if r.code != cli.ExitUsage || entries(t, out) != "page.html" {
		t.Errorf("exit %d, %s; left: %s", r.code, r.stderr, entries(t, out))
	}
}

// TestVerifyDamagedLMDB checks that a damaged page of an LMDB file is a finding, even if the database cannot be
// opened because of it.
func TestVerifyDamagedLMDB(t *testing.T) {
	dir := fixtures.Unpack(t, "ardb-lmdb-basic")
	path := filepath.Join(dir, "lmdb", "data.mdb")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const page = 4096
	for n := len(data)/page - 1; n > 2; n-- {
		p := data[n*page : (n+1)*page]
		if flags := p[10]; flags != 2 || p[11] != 0 || p[0] != byte(n) || p[1] != byte(n>>8) {
			continue // not a leaf page
		}
		p[12], p[13] = 0xFF, 0xFF // the lower bound of the page's free space
		break
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	unchanged(t, dir)
	r := kvferry(t, "verify", dir)
	if r.code != cli.ExitFindings || !strings.Contains(r.stdout, "damaged-page") && !strings.Contains(r.stdout, "damaged-block") {
		t.Errorf("exit %d\n%s%s", r.code, r.stdout, r.stderr)
	}
}

// TestFormatEverywhere requests JSON from every command that prints results.
func TestFormatEverywhere(t *testing.T) {
	src := golden(t, "nemo-basic")
	for _, args := range [][]string{
		{"convert", src, "blackwidow:" + filepath.Join(t.TempDir(), "dst")},
		{"convert", "-n", src, "blackwidow:" + filepath.Join(t.TempDir(), "dst")},
		{"verify", src}, {"inspect", src}, {"fingerprint", src}, {"diff", src, src}, {"explain", src, "s1:stale0"},
		{"dump", src}, {"formats"}, {"version"},
	} {
		var v any
		if err := json.Unmarshal([]byte(ok(t, append(args, "--format", "json")...)), &v); err != nil {
			t.Errorf("%q: %v", args, err)
		}
	}
}

func TestFingerprintText(t *testing.T) {
	out := ok(t, "fingerprint", golden(t, "nemo-basic"), "--format", "text")
	if !strings.Contains(out, "database") || strings.Count(out, "\n") != 7 || !strings.Contains(out, "12,725") {
		t.Error(out)
	}
}
