package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// fileCalls are the functions of package os that internal/sys/disk has, where tests make each of them fail.
var fileCalls = []string{"Open", "OpenFile", "Create", "CreateTemp", "ReadFile", "WriteFile", "Rename", "Remove", "RemoveAll", "Mkdir",
	"MkdirAll", "MkdirTemp", "ReadDir", "Link", "Symlink", "Stat", "Lstat", "Truncate", "Chmod", "Chtimes", "Readlink",
	"Lchown", "Chown", "CopyFS", "DirFS", "OpenInRoot", "OpenRoot"}

// pathCalls are those of package path/filepath. Glob among them takes a directory that cannot be read for an empty one.
var pathCalls = []string{"Glob", "EvalSymlinks", "Walk", "WalkDir"}

// offDisk are the directories whose system calls are not those of the program, or not of Go.
var offDisk = []string{"internal/sys/disk", "internal/testkit/redistest", "internal/testkit/formattest", "store/grocks", "internal/testkit/testsst",
	"internal/testkit/s3test", "internal/testkit/fake", "internal/testkit/seed", "internal/testkit/durable", "fixtures", "tools"}

// TestCallsOnFiles: what the program does with files goes through internal/sys/disk.
func TestCallsOnFiles(t *testing.T) {
	eachFile(t, offDisk, func(files *token.FileSet, n ast.Node) {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if pkg, ok := s.X.(*ast.Ident); ok && (pkg.Name == "os" && slices.Contains(fileCalls, s.Sel.Name) ||
				pkg.Name == "filepath" && slices.Contains(pathCalls, s.Sel.Name)) {
				t.Errorf("%s: %s.%s: use internal/sys/disk, so that tests can make it fail", files.Position(n.Pos()), pkg.Name,
					s.Sel.Name)
			}
		}
	})
}

// numbered is a count in a format. Offsets, versions and other names of things are no counts.
var numbered = regexp.MustCompile(`%d (?:more |of |other |different |missing )?(?:bytes?|rows?|records?|keys?|elements?|entries|nodes?|values?|` +
	`tables?|files?|members?|findings?|databases|differences|messages|others)\b`)

// TestCountsHaveThousandsSeparated: texts show counts by record.Number or record.Count. Fingerprints have their own form,
// and what lies below package record cannot call it.
func TestCountsHaveThousandsSeparated(t *testing.T) {
	eachFile(t, append([]string{"internal/sys", "internal/pass/filter/conditions.go", "convert/work/files.go", "store/rocks/files",
		"store/rocks/logfile", "serve/command/fake"}, offDisk...), func(files *token.FileSet, n ast.Node) {
		if s, ok := n.(*ast.BasicLit); ok && s.Kind == token.STRING && numbered.MatchString(s.Value) {
			t.Errorf("%s: %s: use record.Number", files.Position(n.Pos()), s.Value)
		}
	})
}

// eachFile visits the nodes of the program's files, outside of some directories.
func eachFile(t *testing.T, off []string, visit func(*token.FileSet, ast.Node)) {
	root, seen := filepath.Join("..", ".."), 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel := filepath.ToSlash(strings.TrimPrefix(path, root+string(filepath.Separator)))
		if d.IsDir() && (slices.Contains(off, rel) || d.Name() == "testdata") {
			return fs.SkipDir
		}
		if d.IsDir() || slices.Contains(off, rel) || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		seen++
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			visit(files, n)
			return true
		})
		return nil
	})
	if err != nil || seen < 100 {
		t.Errorf("%d files: %v", seen, err)
	}
}
