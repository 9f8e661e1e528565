package convert

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestIsPath: standard input and addresses are no paths, unless there is such a file.
func TestIsPath(t *testing.T) {
	t.Chdir(t.TempDir())
	for source, want := range map[string]bool{"-": false, "redis://host": false, "/data": true, "data": true, "dir:/x": true} {
		if isPath(source) != want {
			t.Errorf("%s is a path: %v", source, !want)
		}
	}
}

// TestSourceDepth: files up to six directories deep are part of a source; what lies deeper is not looked at.
func TestSourceDepth(t *testing.T) {
	dir := t.TempDir()
	deep := filepath.Join(dir, "1", "2", "3", "4", "5", "6", "7")
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	var want []string
	for at, n := deep, 7; ; at, n = filepath.Dir(at), n-1 {
		if err := os.WriteFile(filepath.Join(at, "file"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if n <= 6 {
			want = append(want, path.Join(strings.Split("1/2/3/4/5/6", "/")[:n]...)+"/file")
		}
		if n == 0 {
			break
		}
	}
	want[len(want)-1] = "file"
	files, err := sourceFiles(dir)
	var got []string
	for _, f := range files {
		got = append(got, f.Path)
	}
	slices.Sort(want)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
}
