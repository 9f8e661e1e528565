package command

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"kvferry/cmd/kvferry/cli"
	"kvferry/fixtures"
)

// testNow is the time of tests: after the early expiries in the goldens.
var testNow = time.Unix(1700100000, 0).UTC()

func testApp() *App {
	app := Default(Build{Version: "test"})
	app.Now = func() time.Time { return testNow }
	app.LimitMemory = nil
	return app
}

// result is the outcome of a command line.
type result struct {
	code           int
	stdout, stderr string
}

// kvferry runs a command line.
func kvferry(t testing.TB, args ...string) result {
	t.Helper()
	return kvferryFrom(t, nil, args...)
}

// kvferryFrom runs a command line with this standard input.
func kvferryFrom(t testing.TB, stdin io.Reader, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	app := testApp()
	app.Stdin = stdin
	code := app.Run(context.Background(), args, &stdout, &stderr)
	return result{code, stdout.String(), stderr.String()}
}

// ok runs a command line that must succeed and returns its standard output.
func ok(t *testing.T, args ...string) string {
	t.Helper()
	r := kvferry(t, args...)
	if r.code != cli.ExitOK {
		t.Fatalf("kvferry %s: exit %d\n%s%s", strings.Join(args, " "), r.code, r.stdout, r.stderr)
	}
	return r.stdout
}

// treeHash hashes the names, modes, sizes, times and contents of a tree.
func treeHash(t testing.TB, dir string) string {
	t.Helper()
	return hashTree(t, dir, true)
}

// treeBytes hashes the names and contents of a tree.
func treeBytes(t testing.TB, dir string) string {
	t.Helper()
	return hashTree(t, dir, false)
}

func hashTree(t testing.TB, dir string, times bool) string {
	t.Helper()
	h := sha256.New()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		st, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(h, "%q %v\n", rel, st.Mode())
		if times {
			fmt.Fprintf(h, "%v\n", st.ModTime())
		}
		if st.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(h, "%d %x\n", len(data), sha256.Sum256(data))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// unchanged checks at the end of the test that a tree has not changed.
func unchanged(t *testing.T, dir string) {
	t.Helper()
	before := treeHash(t, dir)
	t.Cleanup(func() {
		if treeHash(t, dir) != before {
			t.Errorf("%s was changed", dir)
		}
	})
}

// golden unpacks a golden database and checks at the end of the test that it has not changed.
func golden(t *testing.T, name string) string {
	t.Helper()
	dir := fixtures.Unpack(t, name)
	unchanged(t, dir)
	return dir
}

// entries lists a directory.
func entries(t testing.TB, dir string) string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

// volatile replaces text that differs between runs in transcripts.
var volatile = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`(?m)^( *)time: .*$(\n .* of source a second$)?`), "${1}time: …"},
	{regexp.MustCompile(`(?m)^  temporary files: .*$`), "  temporary files: …"},
	{regexp.MustCompile(`(?m)^  space: .* free: enough$`), "  space: …: enough"},
	{regexp.MustCompile(`held by process \d+`), "held by process PID"},
	{regexp.MustCompile(`go1\.\d+[.\w]*(, \w+/\w+)?`), "GO"},
}

func scrub(text, dir string) string {
	text = strings.ReplaceAll(text, dir, "$DIR")
	for _, v := range volatile {
		text = v.pattern.ReplaceAllString(text, v.with)
	}
	return text
}

// some returns all cases of a long test, or n of them with -short: the first ones, and in CI others every day.
func some[T any](all []T, n int) []T {
	if !testing.Short() {
		return all
	}
	if os.Getenv("CI") != "" {
		first := time.Now().UTC().YearDay() * n % len(all)
		all = slices.Concat(all[first:], all[:first])
	}
	return all[:n]
}

// someOf returns all cases, or with -short as many as there are names: those, and in CI others every day.
func someOf[T any](all map[string]T, names ...string) map[string]T {
	if os.Getenv("CI") != "" {
		names = some(slices.Sorted(maps.Keys(all)), len(names))
	}
	if testing.Short() {
		maps.DeleteFunc(all, func(name string, _ T) bool { return !slices.Contains(names, name) })
	}
	return all
}
