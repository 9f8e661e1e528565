package lint

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// marks are constructions that read as translated into English. Each has legitimate uses, so packages are held to a share.
var marks = []*regexp.Regexp{
	regexp.MustCompile(`\bwhat becomes of\b|\bwhat has become\b`),
	regexp.MustCompile(`\bto be had\b|\bcan be had\b|\bis had by\b`),
	regexp.MustCompile(`\bputs? (?:a |the )?\w* ?by\b|\bput by\b`),
	regexp.MustCompile(`\b(?:is|are|of|as|returns|than|with|by|to) (?:that|those) of\b`),
	regexp.MustCompile(`\bthose (?:that|which|who)\b|\bat hand\b|\b(?:is|are|was|be) told\b|\btells?\b|\bis said\b|\bsays?\b`),
	regexp.MustCompile(`\b(?:is|are|was|were|be) there\b|\bthere (?:is|are|was|were) (?:none|no|one|any)\b`),
	regexp.MustCompile(`\b(?:has|have|had|is|are|know|known|knows|read|left|kept|makes?) of (?:a|an|the|it|them|one|its|each)\b`),
	regexp.MustCompile(`\bof before\b|\bof old\b|\blets? go\b|\blet go\b`),
	regexp.MustCompile(`\b(?:nobody|none|nothing)\b`),
	regexp.MustCompile(`\b[Ww]hat (?:is|are|was|were|has|have|it|they|a|an|the|one|stands|comes|follows|came|cannot|can|could|does|do|holds|lies|makes|hangs|differs|belongs|there)\b`),
	regexp.MustCompile(`\b[Ww]ho(?:ever)\b|\b[Ww]hatever\b|\bthe ones?\b|\bstands?\b|\bstood\b`),
	regexp.MustCompile(`\b(?:is|are|was|were) to (?:be|go|have|hold|stop)\b`),
	regexp.MustCompile(`\banew\b|\bmeanwhile\b|\btherefore\b|\ball the same\b|\bfor good\b|\bas well as it\b`),
}

// Ceilings of marked sentences, in percent: of packages that other programs read, and of all others.
const (
	publicProse = 5
	innerProse  = 8
)

// inner reports whether a package's comments are read by its developers alone.
func inner(pkg string) bool {
	top, _, _ := strings.Cut(pkg, "/")
	return top == "internal" || top == "cmd" || top == "tools" || strings.Contains(pkg, "/internal/")
}

// sentences splits a comment into sentences, without layout drawings.
func sentences(comment string) []string {
	var text []string
	for _, line := range strings.Split(comment, "\n") {
		line = strings.TrimPrefix(strings.TrimPrefix(line, "//"), " ")
		if strings.HasPrefix(line, "\t") || strings.HasPrefix(line, "+-") || strings.HasPrefix(line, "|") ||
			strings.HasPrefix(line, "go:") {
			line = ""
		}
		text = append(text, line)
	}
	all := strings.TrimSpace(strings.Join(text, " "))
	var out []string
	for {
		at := sentenceEnd.FindStringIndex(all)
		if at == nil {
			break
		}
		out, all = append(out, all[:at[0]+1]), all[at[1]-1:]
	}
	if all != "" {
		out = append(out, all)
	}
	return out
}

var sentenceEnd = regexp.MustCompile(`[.!?]\s+[A-Z]`)

func marked(sentence string) bool {
	for _, m := range marks {
		if m.MatchString(sentence) {
			return true
		}
	}
	return false
}

// TestProse holds the comments of each package below its ceiling. One marked sentence is always allowed.
func TestProse(t *testing.T) {
	type count struct{ all, marked int }
	packages, shown := map[string]*count{}, map[string][]string{}
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel := filepath.ToSlash(strings.TrimPrefix(file, root+string(filepath.Separator)))
		if d.IsDir() && (d.Name() == "testdata" || d.Name() == "fixtures" ||
			strings.HasPrefix(d.Name(), ".") && len(d.Name()) > 2) {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(rel, ".go") || strings.HasSuffix(rel, "_test.go") {
			return nil
		}
		src, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		files := token.NewFileSet()
		f, err := parser.ParseFile(files, file, src, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		pkg := path.Dir(rel)
		if packages[pkg] == nil {
			packages[pkg] = new(count)
		}
		for _, g := range f.Comments {
			var lines []string
			for _, c := range g.List {
				lines = append(lines, c.Text)
			}
			for _, s := range sentences(strings.Join(lines, "\n")) {
				packages[pkg].all++
				if marked(s) {
					packages[pkg].marked++
					shown[pkg] = append(shown[pkg], files.Position(g.Pos()).String()+": "+s)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(packages) < 60 {
		t.Errorf("%d packages", len(packages))
	}
	for pkg, n := range packages {
		ceiling := publicProse
		if inner(pkg) {
			ceiling = innerProse
		}
		if n.marked > 1 && n.marked*100 > n.all*ceiling {
			t.Errorf("%s: %d of %d sentences read as translated, which is more than %d %%: say it in plain English\n%s",
				pkg, n.marked, n.all, ceiling, strings.Join(shown[pkg], "\n"))
		}
	}
}

// TestMarks: the meter knows the constructions, and how sentences end.
func TestMarks(t *testing.T) {
	for text, want := range map[string]int{
		"// x says that nothing is left. It is fine.": 1, "// the name of a file": 0, "// Rest is what is left.\n// It lets go of it. Nothing more.": 2,
		"// a drawing:\n//\twhat is there\n// |what is|": 0,
	} {
		n := 0
		for _, s := range sentences(text) {
			if marked(s) {
				n++
			}
		}
		if n != want {
			t.Errorf("%q: %d, want %d: %q", text, n, want, sentences(text))
		}
	}
}
