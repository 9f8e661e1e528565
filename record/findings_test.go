package record

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const root = ".."

// TestFindingKindsAreListed checks that the list has exactly the kinds of findings that the code can report.
func TestFindingKindsAreListed(t *testing.T) {
	used := kindsInCode(t)
	if len(used) < 40 {
		t.Fatalf("only %d kinds found in the code: %v", len(used), used)
	}
	for kind, where := range used {
		k, ok := FindingKindOf(kind)
		switch {
		case !ok:
			t.Errorf("%s reports %q, which record.FindingKinds does not list", where, kind)
		case !slices.Contains(FindingGroups, k.Group) || !strings.HasSuffix(k.Text, "."):
			t.Errorf("%q is not described: %+v", kind, k)
		}
	}
	for _, k := range FindingKinds() {
		if _, ok := used[k.Kind]; !ok {
			t.Errorf("%q is listed, but nothing reports it", k.Kind)
		}
	}
}

var slug = regexp.MustCompile(`^[a-z]+(-[a-z0-9]+)+$|^newer$`)

// kindsInCode finds the constants named Find… and the literal kinds in findings.
func kindsInCode(t *testing.T) map[string]string {
	t.Helper()
	used := make(map[string]string)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && strings.HasPrefix(d.Name(), ".") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			for _, kind := range kindsOf(n) {
				used[kind] = path
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return used
}

func kindsOf(n ast.Node) (out []string) {
	add := func(e ast.Expr) {
		if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if s, err := strconv.Unquote(lit.Value); err == nil && slug.MatchString(s) {
				out = append(out, s)
			}
		}
	}
	switch n := n.(type) {
	case *ast.ValueSpec:
		for i, name := range n.Names {
			if strings.HasPrefix(name.Name, "Find") && i < len(n.Values) {
				add(n.Values[i])
			}
		}
	case *ast.AssignStmt: // f.Kind, f.Severity = "…", …
		for i, left := range n.Lhs {
			if sel, ok := left.(*ast.SelectorExpr); ok && sel.Sel.Name == "Kind" && len(n.Lhs) == len(n.Rhs) {
				add(n.Rhs[i])
			}
		}
	case *ast.CompositeLit:
		if sel, ok := n.Type.(*ast.SelectorExpr); !ok || sel.Sel.Name != "Finding" {
			return nil
		}
		for _, e := range n.Elts {
			if kv, ok := e.(*ast.KeyValueExpr); ok {
				if key, ok := kv.Key.(*ast.Ident); ok && key.Name == "Kind" {
					add(kv.Value)
				}
			}
		}
	}
	return out
}

// TestFindingsAreDocumented compares docs/findings.md with the list. KVFERRY_REWRITE=1 rewrites the page.
func TestFindingsAreDocumented(t *testing.T) {
	path := filepath.Join(root, "docs", "findings.md")
	doc, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- kinds -->\n", "<!-- end of kinds -->\n"
	before, rest, ok := strings.Cut(string(doc), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the kinds", path)
	}
	want := before + begin + kindTables() + end + after
	if string(doc) == want {
		return
	}
	if os.Getenv("KVFERRY_REWRITE") == "" {
		t.Fatalf("%s is not what record.FindingKinds says; KVFERRY_REWRITE=1 go test ./record writes it anew", path)
	}
	if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

func kindTables() string {
	var b strings.Builder
	group := ""
	for _, k := range FindingKinds() {
		if k.Group != group {
			group = k.Group
			fmt.Fprintf(&b, "\n## %s%s\n\n| kind | severity | meaning |\n|---|---|---|\n", strings.ToUpper(group[:1]), group[1:])
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", k.Kind, k.Severity, k.Text)
	}
	return b.String() + "\n"
}

func TestFindingKindOf(t *testing.T) {
	for _, kind := range consequences {
		if k, ok := FindingKindOf(kind); !ok || k.Group == "files" {
			t.Errorf("%s follows from missing rows, and is of group %q", kind, k.Group)
		}
	}
	if k, ok := FindingKindOf(FindKeyOrder); !ok || k.Severity != Error || k.Group != "files" {
		t.Errorf("key-order is %+v, %v", k, ok)
	}
	if _, ok := FindingKindOf("nothing"); ok {
		t.Error("there is a kind called nothing")
	}
}

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 1 << 40: "1.0 TiB",
		1<<63 - 1: "8.0 EiB"} {
		if got := Bytes(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
