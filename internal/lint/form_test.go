package lint

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// maxLine is the number of columns of a line; a tab has four.
const maxLine = 130

func columns(b []byte) int { return utf8.RuneCount(b) + 3*bytes.Count(b, []byte("\t")) }

// tableRows returns the lines that are rows of a table: those inside of a composite literal of an array, slice or map,
// but not those of functions in it.
func tableRows(files *token.FileSet, f *ast.File) map[int]bool {
	rows := map[int]bool{}
	mark := func(from, to token.Pos, isTable bool) {
		for l := files.Position(from).Line + 1; l <= files.Position(to).Line; l++ {
			rows[l] = isTable
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			_, array := n.Type.(*ast.ArrayType)
			_, table := n.Type.(*ast.MapType)
			mark(n.Lbrace, n.Rbrace-1, n.Type == nil || array || table)
		case *ast.BlockStmt:
			mark(n.Lbrace, n.Rbrace-1, false)
		}
		return true
	})
	return rows
}

// longLines returns the lines of a file that are too long and could be shorter. Strings are not cut: one that begins
// in time may go on, and only punctuation may follow it. Drawings in comments may be wide.
func longLines(files *token.FileSet, f *ast.File, src []byte) []int {
	rows := tableRows(files, f)
	var long []int
	var s scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(src))
	s.Init(file, src, nil, scanner.ScanComments)
	line, mayGoOn := 0, false // the last line seen, and whether a string takes it beyond the last column
	for {
		pos, tok, text := s.Scan()
		if tok == token.EOF {
			return long
		}
		if tok == token.SEMICOLON && text == "\n" {
			continue
		}
		if text == "" {
			text = tok.String()
		}
		at := file.Position(pos)
		begins := columns(src[at.Offset-at.Column+1 : at.Offset])
		if at.Line != line {
			line, mayGoOn = at.Line, false
		}
		first, _, more := strings.Cut(text, "\n")
		isString := tok == token.STRING && begins < maxLine
		switch end := begins + columns([]byte(first)); {
		case isString && more: // its last line is the string's
			line, mayGoOn = at.Line+strings.Count(text, "\n"), true
		case isString:
			mayGoOn = end > maxLine-12
		case tok == token.COMMENT && strings.HasPrefix(text, "//\t"):
		case end <= maxLine || rows[line] || slices.Contains(long, line):
		case mayGoOn && strings.Contains(")]},;{:+", tok.String()):
		default:
			long = append(long, line)
		}
	}
}

// idleInits returns the if statements with a step before the condition that the condition does not use.
func idleInits(f *ast.File, src []byte, at func(token.Pos) int) []*ast.IfStmt {
	text := func(n ast.Node) string { return string(src[at(n.Pos()):at(n.End())]) }
	uses := func(cond ast.Expr, what ast.Expr) (found bool) {
		ast.Inspect(cond, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr: // its field is no variable
				found = found || text(n) == text(what)
				ast.Inspect(n.X, func(n ast.Node) bool {
					x, ok := n.(ast.Expr)
					found = found || ok && text(x) == text(what)
					return true
				})
				return false
			case ast.Expr:
				found = found || text(n) == text(what)
			}
			return true
		})
		return found
	}
	var out []*ast.IfStmt
	ast.Inspect(f, func(n ast.Node) bool {
		s, ok := n.(*ast.IfStmt)
		if !ok || s.Init == nil {
			return true
		}
		var changed []ast.Expr
		switch init := s.Init.(type) {
		case *ast.AssignStmt:
			changed = init.Lhs
		case *ast.IncDecStmt:
			changed = []ast.Expr{init.X}
		}
		if !slices.ContainsFunc(changed, func(x ast.Expr) bool { return uses(s.Cond, x) }) {
			out = append(out, s)
		}
		return true
	})
	return out
}

// formOf returns what is wrong with the form of a file.
func formOf(rel string, src []byte) ([]string, error) {
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, rel, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var wrong []string
	for _, line := range longLines(files, f, src) {
		wrong = append(wrong, fmt.Sprintf("%s:%d: longer than %d columns: break the line, or say less", rel, line, maxLine))
	}
	for _, s := range idleInits(f, src, func(p token.Pos) int { return files.Position(p).Offset }) {
		wrong = append(wrong, fmt.Sprintf("%s: the condition does not use the step before it: give the step a line of its own",
			files.Position(s.Pos())))
	}
	return wrong, nil
}

// TestForm holds all files, tests among them, to lines that are read at once and to conditions without hidden steps.
func TestForm(t *testing.T) {
	n := 0
	goFiles(t, func(rel string, src []byte) {
		if isAtWork(rel) {
			return
		}
		n++
		wrong, err := formOf(rel, src)
		if err != nil {
			t.Error(err)
		}
		for _, w := range wrong {
			t.Error(w)
		}
	})
	if n < 500 {
		t.Errorf("only %d files looked at: is this the module?", n)
	}
}

// TestForms: the rules know what they forbid and what they leave.
func TestForms(t *testing.T) {
	word, text := strings.Repeat("x", 45), `"`+strings.Repeat("y", 130)+`"`
	for body, want := range map[string]int{
		"f(" + word + ", " + word + ", " + word + ")":                                 1,
		"f(" + word + ", " + word + ")":                                               0,
		"\t\t\tf(" + word + ", " + word + ", " + word[:20] + ")":                      0,
		"\t\t\t\t\tf(" + word + ", " + word + ", " + word + ")":                       1,
		"f(" + text + ",\n" + word + ")":                                              0,
		"f(" + text + ", " + word + ")":                                               1,
		"f(" + text + " +\n" + text + ")":                                             0,
		"f(`a\n" + text + "`)":                                                        0,
		"f(`a\n" + text + "`, x)":                                                     1,
		"_ = []int{\n" + word + ", " + word + ", " + word + ",\n}":                    0,
		"_ = T{\n" + word + ", " + word + ", " + word + ",\n}":                        1,
		"_ = []T{\n{f: func() {\nf(" + word + ", " + word + ", " + word + ")\n}},\n}": 1,
		"// " + word + " " + word + " " + word + " " + word:                           1,
		"//\t" + word + " " + word + " " + word + " " + word:                          0,
		"if x := f(); y {\n}":                                                         1,
		"if x := f(); x {\n}":                                                         0,
		"if x, y := f(); y > 0 {\n}":                                                  0,
		"if f(); y {\n}":                                                              1,
		"if v.n++; v.found {\n}":                                                      1,
		"if v.n++; v.n > 3 {\n}":                                                      0,
		"if v.x = f(); v.x.y(1) {\n}":                                                 0,
		"if x = f(); v.x {\n}":                                                        1,
		"if a {\n} else if x(); y {\n}":                                               1,
	} {
		wrong, err := formOf("x.go", []byte("package x\n\nfunc g() {\n"+body+"\n}\n"))
		if err != nil || len(wrong) != want {
			t.Errorf("%s: %q, want %d, %v", body, wrong, want, err)
		}
	}
}
