package kvferry

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"kvferry/catalog"
	"kvferry/fixtures"
	"kvferry/inspect/stats"
	"kvferry/record"
)

// TestPublicNames checks that the public API has no type that an outside program cannot name.
func TestPublicNames(t *testing.T) {
	files := token.NewFileSet()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(files, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		hidden := map[string]bool{}
		for _, spec := range file.Imports {
			if path := strings.Trim(spec.Path.Value, `"`); strings.Contains(path, "/internal/") {
				hidden[path[strings.LastIndexByte(path, '/')+1:]] = true
			}
		}
		public := func(n ast.Node) {
			seen++
			ast.Inspect(n, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok {
					if x, ok := s.X.(*ast.Ident); ok && hidden[x.Name] {
						t.Errorf("%s: %s.%s is internal", files.Position(s.Pos()), x.Name, s.Sel.Name)
					}
				}
				return true
			})
		}
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() {
					public(d.Type)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					s, ok := spec.(*ast.TypeSpec)
					if !ok || !s.Name.IsExported() {
						continue
					}
					if st, ok := s.Type.(*ast.StructType); ok {
						for _, f := range st.Fields.List {
							if len(f.Names) == 0 || f.Names[0].IsExported() {
								public(f.Type)
							}
						}
						continue
					}
					public(s.Type)
				}
			}
		}
	}
	if seen < 40 {
		t.Errorf("only %d declarations were looked at", seen)
	}
}

// TestRecordsAreThoseOfTheFingerprint compares the counts of an iteration with the fingerprint, also if some elements
// are left unread.
func TestRecordsAreThoseOfTheFingerprint(t *testing.T) {
	ctx := context.Background()
	for _, name := range []string{"nemo-basic", "bw-basic", "ardb-lmdb-basic"} {
		d, err := Open(ctx, fixtures.Unpack(t, name), &Options{Now: time.Unix(1700100000, 0)})
		if err != nil {
			t.Fatal(err)
		}
		want, err := d.Fingerprint(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := map[record.Part][2]int64{}
		n := 0
		for r, err := range d.Records(ctx, nil) {
			if err != nil {
				t.Fatal(err)
			}
			c := got[record.Part{DB: r.DB, Type: r.Type}]
			c[0]++
			if n++; n%7 == 0 {
				for range r.Elements() {
					break // skip the rest
				}
			}
			for _, err := range r.Elements() {
				if err != nil {
					t.Fatal(err)
				}
				c[1]++
			}
			if n%7 == 0 {
				c[1]++
			}
			got[record.Part{DB: r.DB, Type: r.Type}] = c
		}
		for p, digest := range want.Parts() {
			if got[p] != [2]int64{digest.Records, digest.Elements} {
				t.Errorf("%s %v: %v, want %d records, %d elements", name, p, got[p], digest.Records, digest.Elements)
			}
		}
		if files, bytes := d.Files(); files == 0 || bytes == 0 {
			t.Errorf("%s: %d files, %d bytes", name, files, bytes)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestRecordsEnd checks that an iteration ends when its caller stops it and when its context is cancelled.
func TestRecordsEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	d, err := Open(ctx, fixtures.Unpack(t, "nemo-basic"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for range d.Records(ctx, nil) {
		break
	}
	n := 0
	var last error
	for _, err := range d.Records(ctx, nil) {
		if last = err; last != nil {
			break
		}
		if n++; n == 10 {
			cancel()
		}
	}
	if n != 10 || !errors.Is(last, context.Canceled) {
		t.Errorf("%d records, then %v", n, last)
	}
}

func TestDamageIsAnError(t *testing.T) {
	dir := fixtures.Unpack(t, "nemo-basic")
	tables, err := filepath.Glob(filepath.Join(dir, "hash", "*.sst"))
	if err != nil || len(tables) == 0 {
		t.Fatal(tables, err)
	}
	data, err := os.ReadFile(tables[0])
	if err != nil {
		t.Fatal(err)
	}
	data[10] ^= 0xFF
	if err := os.WriteFile(tables[0], data, 0o644); err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	d, err := Open(ctx, dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	var last error
	for _, err := range d.Records(ctx, nil) {
		last = err
	}
	if last == nil {
		t.Error("a damaged block is not noticed")
	}
	v, err := Verify(ctx, dir, nil, nil)
	if err != nil || v.Total(record.Error) == 0 {
		t.Errorf("%+v, %v", v, err)
	}
	if _, err := Convert(ctx, dir, "blackwidow:"+filepath.Join(t.TempDir(), "new"), nil); err == nil {
		t.Error("a damaged dataset converts")
	}
	c, err := Convert(ctx, dir, "blackwidow:"+filepath.Join(t.TempDir(), "new"), &ConvertOptions{AllowLoss: []string{"damaged"}})
	if err != nil || !c.Proved || len(c.Losses) == 0 {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestConvertOptions(t *testing.T) {
	ctx := context.Background()
	src, dst := fixtures.Unpack(t, "nemo-basic"), filepath.Join(t.TempDir(), "new")
	told := 0
	o := &ConvertOptions{Filter: &Filter{Types: []record.Type{record.Set}, MinElements: 2}, DryRun: true,
		Progress: func(p Progress) {
			told++
			if p.Steps == 0 || p.Percent < 0 && p.Percent != -1 || p.Percent > 100 {
				t.Errorf("%+v", p)
			}
		}}
	plan, err := Convert(ctx, src, "blackwidow:"+dst, o)
	if err != nil || plan.Proved || plan.ReportFile != "" {
		t.Fatalf("%+v, %v", plan, err)
	}
	o.DryRun = false
	done, err := Convert(ctx, src, "blackwidow:"+dst, o)
	if err != nil || !done.Proved || done.Records != plan.Records || done.Elements != plan.Elements || done.Records == 0 {
		t.Fatalf("%+v, planned %+v, %v", done, plan, err)
	}
	if _, err := os.Stat(done.ReportFile); err != nil || told == 0 {
		t.Errorf("%v; progress was told %d times", err, told)
	}
}

// TestTargetOptions checks that options of a target have an effect, and are refused where they have none.
func TestTargetOptions(t *testing.T) {
	ctx, src := context.Background(), fixtures.Unpack(t, "nemo-basic")
	only := &Filter{Types: []record.Type{record.String}, Func: func(h *record.Header) bool { return string(h.Key) == "s1:stale0" }}
	for i, c := range []struct {
		target string
		o      ConvertOptions
		want   string // in the error
	}{
		{"pika4", ConvertOptions{Instances: 2}, ""},
		{"kvrocks", ConvertOptions{Namespace: "ns"}, ""},
		{"rdb", ConvertOptions{RDBVersion: "12"}, ""},
		{"pika4", ConvertOptions{Estimate: true}, ""},
		{"pika3", ConvertOptions{Instances: 2}, "does not spread keys"},
		{"pika4", ConvertOptions{Instances: 2000}, "want 1 to 1024"},
		{"pika4", ConvertOptions{Namespace: "ns"}, "have numbers"},
		{"pika4", ConvertOptions{RDBVersion: "9"}, "writes no RDB files"},
		{"rdb", ConvertOptions{RDBVersion: "x"}, `RDBVersion "x"`},
		{"pika4", ConvertOptions{OnConflict: OnConflict{Rename: true, Keep: []record.Type{record.Set}}}, "do not go together"},
		{"pika4", ConvertOptions{Resume: true}, "cannot be resumed"},
	} {
		dst := filepath.Join(t.TempDir(), "new")
		c.o.Filter = only
		done, err := Convert(ctx, src, c.target+":"+dst, &c.o)
		var usage *UsageError
		if c.want != "" {
			if !errors.As(err, &usage) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%d: %v, want %s", i, err, c.want)
			}
			continue
		}
		if err != nil || done.Proved == c.o.Estimate {
			t.Fatalf("%d: %+v, %v", i, done, err)
		}
		there := func(name string) bool { _, err := os.Stat(filepath.Join(dst, name)); return err == nil }
		switch {
		case c.o.Estimate:
			if there(".") {
				t.Error("an estimate wrote the target")
			}
			continue
		case c.o.Instances != 0 && (!there("db0/1") || there("db0/2")):
			t.Errorf("%d instances: %v", c.o.Instances, err)
		case c.o.RDBVersion != "":
			if head, err := os.ReadFile(dst); err != nil || !strings.HasPrefix(string(head), "REDIS0012") {
				t.Errorf("an RDB file of version 12: %.9s, %v", head, err)
			}
		}
		d, err := Open(ctx, dst, nil)
		if err != nil {
			t.Fatal(err)
		}
		if c.o.Namespace != "" && !slices.Contains(d.Databases(), "ns") {
			t.Errorf("the databases are %q", d.Databases())
		}
		if sum, err := d.Inspect(ctx, nil); err != nil || sum.Records() != 1 {
			t.Errorf("%d: %+v, %v", i, sum, err)
		}
		d.Close()
	}
}

// TestDefaults checks that the zero value of Options means what the command line does.
func TestDefaults(t *testing.T) {
	o := (*Options)(nil).orDefault()
	if o.Workers != min(runtime.GOMAXPROCS(0), maxWorkers) || o.Memory != readMemory || o.Now.IsZero() {
		t.Errorf("%+v", o)
	}
	d, err := find(catalog.Default(), fixtures.Unpack(t, "nemo-basic"), &Options{Memory: convertMemory})
	if err != nil {
		t.Fatal(err)
	}
	c, err := new(ConvertOptions).options(d, "pika3:"+filepath.Join(t.TempDir(), "new"))
	if err != nil || c.Memory != convertMemory || c.Workers != o.Workers {
		t.Errorf("a conversion: %+v, %v", c, err)
	}
}

// TestInspectDefaults checks that prefixes are found as on the command line, and that commands name the dataset.
func TestInspectDefaults(t *testing.T) {
	dir := fixtures.Unpack(t, "nemo-basic")
	d, err := Open(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	zero, err := d.Inspect(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	usual, err := d.Inspect(t.Context(), &InspectOptions{Top: 20, Delimiter: stats.Auto, Depth: stats.MaxDepth})
	if err != nil {
		t.Fatal(err)
	}
	if len(usual.Prefixes.Children) == 0 || !reflect.DeepEqual(zero.Prefixes, usual.Prefixes) {
		t.Errorf("prefixes\n%+v, want\n%+v", zero.Prefixes, usual.Prefixes)
	}
	if len(zero.Deletable) == 0 || !slices.Contains(zero.Deletable[0].Command, dir) {
		t.Errorf("deletable: %+v", zero.Deletable)
	}
}

func TestUsage(t *testing.T) {
	ctx := context.Background()
	src := fixtures.Unpack(t, "nemo-basic")
	var usage *UsageError
	if _, err := Open(ctx, "nosuch:"+src, nil); !errors.As(err, &usage) {
		t.Errorf("an unknown format: %v", err)
	}
	if _, err := Open(ctx, src+"/nowhere", nil); err == nil {
		t.Error("a directory that is not there opens")
	}
	if _, err := Convert(ctx, src, "redis://127.0.0.1:1", nil); !errors.As(err, &usage) {
		t.Errorf("a server: %v", err)
	}
	if _, err := Convert(ctx, src, t.TempDir()+"/x", nil); !errors.As(err, &usage) {
		t.Errorf("no format: %v", err)
	}
	backwards := &Filter{ExpireFrom: time.Unix(2000, 0), ExpireTo: time.Unix(1000, 0)}
	if _, err := Verify(ctx, src, backwards, nil); !errors.As(err, &usage) {
		t.Errorf("a span of time that ends before it begins: %v", err)
	}
}

// TestLibraryPage checks that the program on the page compiles.
func TestLibraryPage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("docs", "library.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(page), "```go\n")
	program, _, ok := strings.Cut(after, "```")
	if !ok {
		t.Fatal("no program")
	}
	file := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(file, []byte(program), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "vet", file).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
