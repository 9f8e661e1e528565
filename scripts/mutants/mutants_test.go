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

// TestUnseen checks that values returned with an error and capacities in make have no points, while similar code
// does.
func TestUnseen(t *testing.T) {
	for code, want := range map[string]string{
		`return 0, false, fmt.Errorf("%d", 0)`:              "0 -> 1",
		`return 0, &record.CorruptError{Field: "x"}`:        "",
		`return 0, io.EOF`:                                  "",
		`return false, record.ErrShort`:                     "",
		`return 0, corrupt(off, "x", nil)`:                  "",
		`if x.err != nil { return 0, x.err }`:               "x.err != nil -> !(x.err != nil), != -> ==",
		`if err != nil { return 0, errors.Join(err, c()) }`: "err != nil -> !(err != nil), != -> ==",
		`if a && err != nil { return 0, w.fail(err) }`:      "a && err != nil -> !(a && err != nil), && -> ||, != -> ==",
		`if a || err != nil { return 0, err }`:              "a || err != nil -> !(a || err != nil), || -> &&, != -> ==, 0 -> 1",
		`if err != nil { f(func() int { return 0, err }) }`: "err != nil -> !(err != nil), != -> ==, 0 -> 1",
		`return 0, err`:                                     "0 -> 1", // it may be nil
		`return 0, pass(errRow)`:                            "0 -> 1",
		`return 0, errors.Join(err, c())`:                   "0 -> 1",
		`return true, errRow`:                               "true -> false", // a meaningful value
		`return 1, errRow`:                                  "1 -> 2, 1 -> 0",
		`return 0, nil`:                                     "0 -> 1",
		`return errRow`:                                     "",
		`_ = make([]byte, 0, n+1)`:                          "0 -> 1",
		`_ = make([]byte, n+m)`:                             "+ -> -",
		`_ = make(map[string]bool, n+1)`:                    "",
	} {
		points, err := pointsIn("x.go", []byte("package x\nfunc f() { "+code+" }\n"))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range points {
			got = append(got, p.change())
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s: %q, want %q", code, got, want)
		}
	}
}

// TestSample samples three additions: tests check one of them, and one is a known equivalent.
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

// TestStages checks that the tests that reach a line run, fast ones together and first, and that lines in no block
// belong to all tests.
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
