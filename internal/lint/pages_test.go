package lint

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// pageCeiling is the number of marked sentences allowed in a thousand sentences of the pages. It only falls.
const pageCeiling = 5

// pageMark is a construction that reads as translated. A match does not count if the text after it matches but.
type pageMark struct{ match, but *regexp.Regexp }

func (m pageMark) in(sentence string) bool {
	for _, at := range m.match.FindAllStringIndex(sentence, -1) {
		if m.but == nil || !m.but.MatchString(sentence[at[1]:]) {
			return true
		}
	}
	return false
}

// pageMarks have legitimate uses, too, so that a few are allowed.
var pageMarks = marksOf(
	`\bwhat becomes of\b|\bwhat has become\b`,
	`\bto be had\b|\bcan be had\b`,
	`\b(?:is|are|of|as|returns|than|with|by|to|like|from) (?:that|those) of\b`,
	`\bthose (?:that|which|who)\b`,
	`\bat hand\b`,
	`\b(?:is|are|was|be) told\b|\btells?\b`,
	`\bis said\b|\bsays?\b`,
	`\b(?:is|are|was|were|be) there[.,;:)]|\b(?:is|are|was|were|be) there$|\bthere (?:is|are|was|were) (?:none|no one)\b`,
	`\b(?:has|have|had|know|known|knows|read|left|kept) of (?:a|an|the|it|them|one|its|each)\b`,
	`\bof before\b|\bof old\b`,
	`\blets? go of\b`,
	`\b(?:nobody|none|nothing)\b`,
	`\b[Ww]hat (?:is|are|was|were|has|have|it|they|a|an|the|one|stands|comes|follows|came|cannot|can|could|does|do|there|`+
		`holds|lies|makes|hangs|differs|belongs)\b`,
	`\b[Ww]hoever\b|\b[Ww]hatever\b`,
	`\bstands?\b|\bstood\b`,
	`\b(?:is|are|was|were) to (?:be|go|have|hold|stop)\b`,
	`\banew\b|\bmeanwhile\b`,
	`\ball the same\b|\bfor good\b`,
	`\bof (?:its|their|our) own\b`,
	`\bin another (?:way|form|order)\b`,
	`\b(?:goes?|went|going) on\b`,
	`\b(?:as|so) far as\b`,
	`, of which\b|\bof which (?:some|all|one|each|it|they|the)\b`,
	`\bmakes? (?:the |a |an |it |its )?\w+ of (?:its|the|a|all|them)\b`,
	`\bat (?:most|least)(?:[.,;:)]|$)`,
	`(?:^|[;,(] ?)(?:nil|0|""|-1|true|false|none): [a-z]`,
	`(?:[:;,] )(?:that|these|those) (?:is|are|was|takes|costs|has|would|may|needs|does|means)\b`,
	`, too[.,;:]|, too$`,
	`\b(?:the|all) others\b|\bothers (?:are|do|have|is|come|may)\b`,
	`\bas a text\b|\ba moment\b|\bat a place\b|\bthe place of\b`,
	`\bin vain\b|\bnot at all\b`,
	`\bbehind (?:the|it|a|its)\b|\bbeside (?:the|it|a|its)\b`,
)

// marksOf compiles patterns, and adds those with exceptions.
func marksOf(patterns ...string) []pageMark {
	marks := []pageMark{
		{regexp.MustCompile(`\bso (?:many|much) `), regexp.MustCompile(`^(?:that|as|[^0-9A-Za-z_])`)},
		{regexp.MustCompile(`\bthe ones?\b`), regexp.MustCompile(`^ (?:of|in) the`)},
		{regexp.MustCompile(`\b(?:has|have) (?:it|them|those|one|none)\b`), regexp.MustCompile(`^ to`)},
	}
	for _, p := range patterns {
		marks = append(marks, pageMark{match: regexp.MustCompile(p)})
	}
	return marks
}

var (
	fenced    = regexp.MustCompile("(?ms)^```.*?^```")
	blankLine = regexp.MustCompile(`\n\s*\n`)
	codeSpan  = regexp.MustCompile("`[^`]*`")
	linked    = regexp.MustCompile(`\]\([^)]*\)`)
	pageEnd   = regexp.MustCompile("[.!?]\\s+[A-Z`*]")
)

// pageSentences splits a page into sentences of four words or more: of paragraphs, items of lists and cells of tables,
// without headings and code.
func pageSentences(page string) []string {
	var out []string
	for _, para := range blankLine.Split(fenced.ReplaceAllString(page, ""), -1) {
		if strings.HasPrefix(para, "    ") || strings.HasPrefix(para, "\t") || strings.HasPrefix(para, "#") {
			continue
		}
		for _, item := range items(para) {
			item = linked.ReplaceAllString(codeSpan.ReplaceAllString(item, "X"), "]")
			cells := []string{item}
			if strings.HasPrefix(item, "|") {
				cells = strings.Split(item, "|")
			}
			for _, cell := range cells {
				out = append(out, sentencesOf(strings.Join(strings.Fields(cell), " "))...)
			}
		}
	}
	return out
}

// items splits a paragraph before each line that begins an item of a list or a row of a table.
func items(para string) []string {
	var out []string
	for _, line := range strings.SplitAfter(para, "\n") {
		if len(out) > 0 && !strings.HasPrefix(line, "*") && !strings.HasPrefix(line, "-") && !strings.HasPrefix(line, "|") {
			out[len(out)-1] += line
		} else {
			out = append(out, line)
		}
	}
	return out
}

func sentencesOf(text string) []string {
	var out []string
	add := func(s string) {
		if len(strings.Fields(s)) >= 4 {
			out = append(out, s)
		}
	}
	for {
		at := pageEnd.FindStringIndex(text)
		if at == nil {
			break
		}
		add(text[:at[0]+1])
		text = text[at[1]-1:]
	}
	add(text)
	return out
}

func pageMarked(sentence string) bool {
	for _, m := range pageMarks {
		if m.in(sentence) {
			return true
		}
	}
	return false
}

// TestPages holds the pages below their ceiling: Markdown files, but not the changelog.
func TestPages(t *testing.T) {
	var shown []string
	all, root := 0, filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && (name == "testdata" || name == "vendor" || strings.HasPrefix(name, ".") && len(name) > 2):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".md") || strings.Contains(name, "CHANGELOG"):
			return nil
		}
		page, err := os.ReadFile(file)
		for _, s := range pageSentences(string(page)) {
			all++
			if pageMarked(s) {
				shown = append(shown, fmt.Sprintf("%s: %s", strings.TrimPrefix(file, root+string(filepath.Separator)), s))
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	checkCeiling(t, "pages", shown, all, 3000, pageCeiling)
}

// checkCeiling holds the marked sentences of a kind of text, of at least so many, below a ceiling in a thousand.
func checkCeiling(t *testing.T, of string, marked []string, all, least, ceiling int) {
	t.Helper()
	if all < least {
		t.Errorf("only %d sentences", all)
	}
	t.Logf("%d of %d sentences are marked", len(marked), all)
	if len(marked)*1000 > all*ceiling {
		t.Errorf("%d of %d sentences of %s read as translated, which is more than %d of 1000: say it in plain English\n%s",
			len(marked), all, of, ceiling, strings.Join(marked, "\n"))
	}
}

// TestPageMarks: the meter of pages knows the constructions, their exceptions, and the parts of a page.
func TestPageMarks(t *testing.T) {
	for page, want := range map[string][2]int{
		"# What is there to see\n\nThe server has none of it.\n":                             {1, 1},
		"One of the ones in the list. It has one to give. It has so many that they fit.\n":   {3, 0},
		"It is the one. It has one key. We have so much data.\n":                             {3, 3},
		"A plain sentence of words\nover two lines. `Nothing` is a word of code.\n":          {2, 0},
		"* an item that is plain\n* an item that says nothing\n  over two lines\n":           {2, 1},
		"| cell | what is in the cell |\n|---|---|\n| see [what is linked](what-is) | x |\n": {2, 2},
		"```\nwhat is in a fence\n```\n\n    what is in indented code\n\nShort one.\n":       {0, 0},
	} {
		sentences, n := pageSentences(page), 0
		for _, s := range sentences {
			if pageMarked(s) {
				n++
			}
		}
		if got := [2]int{len(sentences), n}; got != want {
			t.Errorf("%q: %v sentences and marks, want %v: %q", page, got, want, sentences)
		}
	}
}
