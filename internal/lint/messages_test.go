package lint

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// messageCeiling is the number of marked sentences allowed in a thousand sentences of messages. It only falls.
const messageCeiling = 5

var (
	verb      = regexp.MustCompile(`%[-+#0-9.\[\]]*[a-zA-Z]`)
	lowerWord = regexp.MustCompile(`[a-z]{2,}`)
	codeText  = regexp.MustCompile(`[{}<>=]|::|\bfunc\b`)
)

// messageSentences splits the value of a string literal into sentences: of paragraphs with four words or more, without
// indented lines and code.
func messageSentences(text string) []string {
	var out []string
	for _, para := range blankLine.Split(verb.ReplaceAllString(text, "X"), -1) {
		var lines []string
		for line := range strings.SplitSeq(para, "\n") {
			if !strings.HasPrefix(line, "\t") && !strings.HasPrefix(line, "  ") {
				lines = append(lines, line)
			}
		}
		para = strings.Join(lines, " ")
		if len(lowerWord.FindAllString(para, 4)) == 4 && !codeText.MatchString(para) {
			out = append(out, sentencesOf(para)...)
		}
	}
	return out
}

// TestMessages holds the messages of the product below their ceiling: string literals of errors, findings, help and
// output.
func TestMessages(t *testing.T) {
	var shown []string
	all, files := 0, token.NewFileSet()
	goFiles(t, func(rel string, src []byte) {
		if strings.HasSuffix(rel, "_test.go") || strings.HasSuffix(rel, ".pb.go") || strings.HasPrefix(rel, "fixtures/") {
			return
		}
		f, err := parser.ParseFile(files, rel, src, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(lit.Value)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range messageSentences(text) {
				all++
				if pageMarked(s) {
					shown = append(shown, fmt.Sprintf("%s: %s", files.Position(lit.Pos()), s))
				}
			}
			return true
		})
	})
	checkCeiling(t, "messages", shown, all, 2000, messageCeiling)
}

// TestMessageMarks: the meter of messages knows verbs, paragraphs, examples and code.
func TestMessageMarks(t *testing.T) {
	for text, want := range map[string][2]int{
		"%s: what is in %q is lost": {1, 1}, "what is lost": {0, 0}, "a plain message of words": {1, 0},
		"A first sentence of words. It says that nothing is left.\n\n  what is in an example\n": {2, 1},
		"func (x) what is in code": {0, 0}, "SELECT what is lost FROM x WHERE y = 1": {0, 0},
	} {
		n := 0
		sentences := messageSentences(text)
		for _, s := range sentences {
			if pageMarked(s) {
				n++
			}
		}
		if got := [2]int{len(sentences), n}; got != want {
			t.Errorf("%q: %v sentences and marks, want %v: %q", text, got, want, sentences)
		}
	}
}
