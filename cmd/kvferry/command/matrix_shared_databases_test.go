package command

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kvferry/fixtures"
)

// outsideSources maps name prefixes of the databases next to the repository to their formats.
var outsideSources = map[string]place{
	"pika35": {format: "pika3.5", store: "rocksdb"},
	"pika4":  {format: "floyd", store: "rocksdb"},
}

// sourceOf returns the format of a golden next to the repository.
func sourceOf(name string) (p place, known bool) {
	for prefix, p := range outsideSources {
		if strings.HasPrefix(name, prefix) {
			return p, true
		}
	}
	return p, false
}

// TestMatrixOutside converts each database next to the repository to one format and back, such that together they
// cover all formats; with KVFERRY_MATRIX=all, each to all formats.
func TestMatrixOutside(t *testing.T) {
	n := 0
	for _, name := range fixtures.OutsideNames() {
		src, known := sourceOf(name)
		if _, inMatrix := matrixGoldens[name]; !known || inMatrix {
			continue
		}
		dsts := slices.DeleteFunc(slices.Clone(matrixTargets), func(p place) bool { return p.format == src.format })
		if os.Getenv("KVFERRY_MATRIX") != "all" {
			dsts = dsts[n%len(dsts):][:1]
		}
		n++
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			src := src
			src.path = fixtures.UnpackOutside(t, name)
			unchanged(t, src.path)
			m := readModel(t, src)
			for _, dst := range dsts {
				t.Run("to "+dst.format+" "+dst.store, func(t *testing.T) {
					back := src
					dst.path, back.path = filepath.Join(fastDir(t), "there"), filepath.Join(fastDir(t), "back")
					crossed(t, crossed(t, m, src, dst, keepAll), dst, back, keepAll)
				})
			}
		})
	}
}
