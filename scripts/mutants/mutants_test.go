package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestPoints(t *testing.T) {
	points, err := pointsIn("x.go", []byte(`package x
func f(a []int) string {
	for i := range a {
		if i < 2 && true {
			continue
		}
		i++
	}
	return "a" + "b"
}
`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range points {
		got = append(got, p.change())
	}
	want := []string{"i < 2 && true -> !(i < 2 && true)", "&& -> ||", "< -> <=", "< -> >=", "2 -> 3", "2 -> 1", "true -> false",
		"continue -> break", "++ -> --"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if key := points[1].key(); key != "x.go\t&& -> ||\tif i < 2 && true {" {
		t.Errorf("key %q", key)
	}
}

// TestSample: of three sums the tests look at one, and another one is known for equivalent.
func TestSample(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module x\n",
		"p/x.go": "package p\n\nfunc Sum(a, b int) int { return a + b }\nfunc Unseen(a, b int) int { return a + b }\n" +
			"func Known(a, b int) int { return a + b }\n",
		"p/x_test.go": "package p\n\nimport \"testing\"\n\nfunc TestSum(t *testing.T) {\n\tif Sum(2, 3) != 5 {\n\t\tt.Fail()\n\t}\n}\n",
		"known.txt":   "# one\np/x.go\t+ -> -\tfunc Known(a, b int) int { return a + b }\ta reason\n",
		"bad.txt":     "p/x.go\t+ -> -\tfunc Known(a, b int) int { return a + b }\t\n",
	} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	here, err := os.Getwd()
	if err == nil {
		err = os.Chdir(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer os.Chdir(here)
	if _, err := readKnown("bad.txt"); err == nil {
		t.Error("a mutant is equivalent without a reason")
	}
	known, err := readKnown("known.txt")
	if err != nil {
		t.Fatal(err)
	}
	points, err := pointsOf("p", "")
	if err != nil {
		t.Fatal(err)
	}
	got, err := sample("p", points, 5, t.TempDir(), known)
	if err != nil || got != (score{killed: 1, survived: 1, equivalent: 1}) || !strings.HasPrefix(got.String(), "50.0 % die: 1 killed") {
		t.Errorf("%v, %v", got, err)
	}
}

// TestStages: tests that reach a line run, the quick ones together and first; lines in no block belong to all tests.
func TestStages(t *testing.T) {
	profile := filepath.Join(t.TempDir(), "profile")
	if err := os.WriteFile(profile, []byte("mode: set\nx/p/a.go:10.20,12.3 2 1\nx/p/a.go:14.2,14.9 1 0\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	blocks, err := readProfile(profile)
	if err != nil || len(blocks) != 2 {
		t.Fatalf("%v, %v", blocks, err)
	}
	a := testCase{"a", 100 * time.Millisecond, blocks}
	at := func(file string, line, column int) *point { return &point{file: file, line: line, column: column} }
	for _, c := range []struct {
		p    *point
		want bool
	}{
		{at("p/a.go", 10, 20), true}, {at("p/a.go", 11, 1), true}, {at("p/a.go", 12, 2), true}, {at("p/a.go", 14, 3), false},
		{at("p/a.go", 10, 19), true}, {at("p/b.go", 14, 3), true}, // in no block
	} {
		if a.reaches(c.p) != c.want {
			t.Errorf("%+v: %v", c.p, !c.want)
		}
	}
	cases := []testCase{a, {"b", 800 * time.Millisecond, blocks}, {"c", time.Second, nil}, {"d", 4 * time.Second, blocks}, {"e", 9 * time.Second, blocks},
		{"f", time.Hour, blocks}}
	show := func(p *point) (s string) {
		for _, stage := range stages(cases, p) {
			s += strings.Join(stage.tests, "") + " "
		}
		return s
	}
	if got := show(at("p/a.go", 11, 1)); got != "ab cd ef " {
		t.Errorf("stages %q", got)
	}
	if got := show(at("p/a.go", 14, 3)); got != "c " {
		t.Errorf("stages of a line that one test may reach %q", got)
	}
}
