package kvferry

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kvferry/fixtures"
)

// outside is a program that imports kvferry.
const outside = `package main

import (
	"context"
	"fmt"
	"os"

	"example.org/data/kvferry"
)

func main() {
	v, err := kvferry.Verify(context.Background(), os.Args[1], nil, nil)
	if err != nil {
		panic(err)
	}
	fmt.Println(v.Format, v.Records)
}
`

// TestRenameModule moves a copy of the project to another module path and builds an outside program with it.
func TestRenameModule(t *testing.T) {
	if os.Getenv("KVFERRY_RENAME") == "" {
		t.Skip("builds everything once more; make cross runs it")
	}
	files, err := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		t.Skip("not a git checkout: ", err)
	}
	module := filepath.Join(t.TempDir(), "kvferry")
	for _, name := range strings.Fields(string(files)) {
		if strings.HasPrefix(name, "fixtures/golden/") && !strings.Contains(name, "nemo-basic") {
			continue // large, and not needed for the build
		}
		data, err := os.ReadFile(name)
		if os.IsNotExist(err) {
			continue // deleted, but not committed yet
		}
		to := filepath.Join(module, name)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(to), 0o755)
		}
		if err == nil {
			err = os.WriteFile(to, data, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	run(t, module, "scripts/rename-module", "example.org/data/kvferry")
	program := filepath.Join(t.TempDir(), "program")
	if err := os.MkdirAll(program, 0o755); err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	sum, err := os.ReadFile("go.sum")
	if err != nil {
		t.Fatal(err)
	}
	// The program needs the module's requirements, so that go downloads no modules.
	text := strings.Replace(string(mod), "module kvferry\n", "module example.org/program\n", 1)
	text += "\nrequire example.org/data/kvferry v0.0.0\n\nreplace example.org/data/kvferry => " + module + "\n"
	for name, data := range map[string]string{"main.go": outside, "go.mod": text, "go.sum": string(sum)} {
		if err := os.WriteFile(filepath.Join(program, name), []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run(t, program, "go", "build", "-mod=mod", "-o", "outside", ".")
	if got := run(t, program, "./outside", fixtures.Unpack(t, "nemo-basic")); got != "nemo 554\n" {
		t.Errorf("the program prints %q", got)
	}
}

// run runs a program in a directory and returns its output.
func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}
