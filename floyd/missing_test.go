package floyd_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"kvferry/floyd"
	"kvferry/format"
	"kvferry/internal/shared/dataset"
	"kvferry/internal/testkit/formattest"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks"
	"kvferry/store/rocks/build"
)

// TestMissingInstance: a missing instance is an error, unless it is outside the selection.
func TestMissingInstance(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	formattest.Finish(t, formattest.Create(t, floyd.New(), dir, &format.CreateOptions{Create: build.Create, Instances: 3,
		Reopen: &format.OpenOptions{Store: rocks.Open}}))
	missing := func(pass func(string, record.TypeSet, string) bool) (n int) {
		src, err := floyd.New().Open(context.Background(), dir, &format.OpenOptions{Store: rocks.Open, Pass: pass,
			Options: store.Options{Report: func(f record.Finding) {
				if f.Kind == dataset.FindMissingStore {
					n++
				}
			}}})
		if err != nil {
			t.Fatal(err)
		}
		src.Close()
		return n
	}
	none := func(string, record.TypeSet, string) bool { return false }
	first := func(_ string, _ record.TypeSet, dir string) bool { return filepath.Base(dir) == "0" }
	all := func(string, record.TypeSet, string) bool { return true }
	if missing(nil) != 0 || missing(none) != 0 || missing(first) != 0 || missing(all) != 0 {
		t.Error("all are there")
	}
	if err := os.RemoveAll(filepath.Join(dir, "0")); err != nil {
		t.Fatal(err)
	}
	if a, b, c, d := missing(nil), missing(none), missing(first), missing(all); a != 1 || b != 1 || c != 0 || d != 0 {
		t.Errorf("instance 0 is gone: %d, %d, %d, %d findings", a, b, c, d)
	}
}
