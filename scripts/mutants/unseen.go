package main

import (
	"go/ast"
	"go/token"
	"regexp"
)

// markUnseen marks parts of a statement or call whose change tests need not detect: zero values returned with an
// error, which are meaningless by Go's convention, and capacities, which grow if too small.
func (f *finder) markUnseen(n ast.Node) {
	switch n := n.(type) {
	case *ast.IfStmt:
		for _, err := range f.notNil(n.Cond) {
			f.markIn(n.Body, err)
		}
	case *ast.ReturnStmt:
		f.markReturn(n, "")
	case *ast.CallExpr:
		if name, ok := n.Fun.(*ast.Ident); ok && name.Name == "make" {
			f.markRoom(n.Args)
		}
	}
}

// markIn marks values returned in a block in which the variable err is a non-nil error. It skips function literals,
// which run at another time.
func (f *finder) markIn(block *ast.BlockStmt, err string) {
	ast.Inspect(block, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.ReturnStmt:
			f.markReturn(n, err)
		}
		return true
	})
}

// notNil returns the text of X for every "X != nil" that a condition requires.
func (f *finder) notNil(cond ast.Expr) []string {
	n, ok := cond.(*ast.BinaryExpr)
	switch {
	case !ok:
	case n.Op == token.LAND:
		return append(f.notNil(n.X), f.notNil(n.Y)...)
	case n.Op == token.NEQ && f.code(n.Y) == "nil":
		return []string{f.code(n.X)}
	}
	return nil
}

func (f *finder) markReturn(n *ast.ReturnStmt, err string) {
	last := len(n.Results) - 1
	if last < 1 || !f.isError(n.Results[last], err) {
		return
	}
	for _, r := range n.Results[:last] {
		if text := f.code(r); text == "0" || text == "false" {
			f.unseen[r] = true
		}
	}
}

// markRoom marks the capacity of a slice or map in a call of make.
func (f *finder) markRoom(args []ast.Expr) {
	if _, isMap := args[0].(*ast.MapType); isMap && len(args) == 2 {
		f.unseen[args[1]] = true
	}
	if len(args) == 3 {
		f.unseen[args[2]] = true
	}
}

// Names of errors that are never nil, and of functions that return an error: always, or if an argument is an error.
var (
	errorValue = regexp.MustCompile(`^(.*\.)?([eE]rr[A-Z]\w*|EOF)$|^&(\w+\.)?\w*Error\{`)
	makesError = regexp.MustCompile(`^(fmt\.Errorf|errors\.New|(base\.)?Unsupported|(record\.)?Short|corrupt)$`)
	wrapsError = regexp.MustCompile(`^(errors\.Join|base\.BlockError|(.*\.)?fail)$`)
)

// isError reports whether an expression is clearly a non-nil error. err is a variable known to be one.
func (f *finder) isError(e ast.Expr, err string) bool {
	if text := f.code(e); text == err || errorValue.MatchString(text) {
		return true
	}
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	name := f.code(call.Fun)
	if wrapsError.MatchString(name) {
		for _, arg := range call.Args {
			if f.isError(arg, err) {
				return true
			}
		}
	}
	return makesError.MatchString(name)
}
