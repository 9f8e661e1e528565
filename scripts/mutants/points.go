package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// point is a change of a few bytes in a file.
type point struct {
	file         string
	line, column int
	from, to     int    // offsets of the bytes
	was, with    string // the bytes and their replacement
	text         string // the line of code, trimmed
}

// change describes the change.
func (p *point) change() string { return p.was + " -> " + p.with }

// key identifies a mutant in the list of equivalents. It has no line number, as lines move.
func (p *point) key() string { return p.file + "\t" + p.change() + "\t" + p.text }

// operators maps an operator to its replacements.
var operators = map[token.Token][]token.Token{
	token.EQL: {token.NEQ}, token.NEQ: {token.EQL},
	token.LSS: {token.LEQ, token.GEQ}, token.LEQ: {token.LSS, token.GTR},
	token.GTR: {token.GEQ, token.LEQ}, token.GEQ: {token.GTR, token.LSS},
	token.LAND: {token.LOR}, token.LOR: {token.LAND},
	token.ADD: {token.SUB}, token.SUB: {token.ADD}, token.MUL: {token.QUO}, token.QUO: {token.MUL}, token.REM: {token.QUO},
	token.SHL: {token.SHR}, token.SHR: {token.SHL}, token.AND: {token.OR}, token.OR: {token.AND}, token.XOR: {token.AND},
}

// pointsOf finds the points of a package. only restricts them to a line of a file.
func pointsOf(pkg, only string) (out []point, err error) {
	paths, err := filepath.Glob(filepath.Join(pkg, "*.go"))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("%s: no Go files here: run it from the project's directory", pkg)
	}
	for _, path := range paths {
		src, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if strings.HasSuffix(path, "_test.go") || bytes.HasPrefix(src, []byte("//go:build")) {
			continue
		}
		points, err := pointsIn(path, src)
		if err != nil {
			return nil, err
		}
		for _, p := range points {
			if only == "" || only == fmt.Sprintf("%s:%d", p.file, p.line) {
				out = append(out, p)
			}
		}
	}
	return out, nil
}

// finder finds the points of a file.
type finder struct {
	files *token.FileSet
	path  string
	src   []byte
	out   []point

	unseen map[ast.Node]bool // nodes without points
}

func pointsIn(path string, src []byte) ([]point, error) {
	f := &finder{files: token.NewFileSet(), path: path, src: src, unseen: map[ast.Node]bool{}}
	file, err := parser.ParseFile(f.files, path, src, 0)
	if err != nil {
		return nil, err
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if f.unseen[n] {
			return false
		}
		f.markUnseen(n)
		switch n := n.(type) {
		case *ast.BinaryExpr:
			f.binary(n)
		case *ast.IfStmt:
			f.add(n.Cond.Pos(), n.Cond.End(), "!("+f.code(n.Cond)+")")
		case *ast.BasicLit:
			f.literal(n)
		case *ast.Ident:
			f.boolean(n)
		case *ast.BranchStmt:
			f.branch(n)
		case *ast.IncDecStmt:
			f.add(n.TokPos, n.TokPos+2, map[token.Token]string{token.INC: "--", token.DEC: "++"}[n.Tok])
		case *ast.ImportSpec:
			return false
		}
		return true
	})
	return f.out, nil
}

func (f *finder) code(n ast.Node) string {
	return string(f.src[f.files.Position(n.Pos()).Offset:f.files.Position(n.End()).Offset])
}

func (f *finder) add(from, to token.Pos, with string) {
	at := f.files.Position(from)
	end := f.files.Position(to).Offset
	lines := bytes.Split(f.src, []byte("\n"))
	f.out = append(f.out, point{filepath.ToSlash(f.path), at.Line, at.Column, at.Offset, end, string(f.src[at.Offset:end]), with,
		strings.TrimSpace(string(lines[at.Line-1]))})
}

// binary adds replacements of an operator. Concatenation of strings has no replacement.
func (f *finder) binary(n *ast.BinaryExpr) {
	if n.Op == token.ADD && (isText(n.X) || isText(n.Y)) {
		return
	}
	for _, op := range operators[n.Op] {
		f.add(n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), op.String())
	}
}

// isText reports whether an expression contains a string literal.
func isText(e ast.Expr) (found bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		lit, ok := n.(*ast.BasicLit)
		found = found || ok && lit.Kind == token.STRING
		return !found
	})
	return found
}

// literal adds a number's neighbours.
func (f *finder) literal(n *ast.BasicLit) {
	v, err := strconv.ParseInt(n.Value, 0, 64)
	if n.Kind != token.INT || err != nil {
		return
	}
	f.add(n.Pos(), n.End(), strconv.FormatInt(v+1, 10))
	if v > 0 {
		f.add(n.Pos(), n.End(), strconv.FormatInt(v-1, 10))
	}
}

func (f *finder) boolean(n *ast.Ident) {
	switch n.Name {
	case "true":
		f.add(n.Pos(), n.End(), "false")
	case "false":
		f.add(n.Pos(), n.End(), "true")
	}
}

// branch swaps break and continue without labels.
func (f *finder) branch(n *ast.BranchStmt) {
	switch {
	case n.Label != nil:
	case n.Tok == token.CONTINUE:
		f.add(n.Pos(), n.End(), "break")
	case n.Tok == token.BREAK:
		f.add(n.Pos(), n.End(), "continue")
	}
}
