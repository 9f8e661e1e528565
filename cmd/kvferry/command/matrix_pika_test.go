package command

import (
	"path/filepath"
	"testing"
)

// TestMatrixPika converts into the servers that have streams beside the other types, and back.
func TestMatrixPika(t *testing.T) {
	t.Parallel()
	edge, streams := matrixTargets[1], matrixTargets[2]
	edge.path, streams.path = golden(t, "bw-edge"), generated(t, matrixTargets[2], 21)
	for _, src := range []place{edge, streams} {
		m := readModel(t, src)
		for _, name := range []string{"floyd", "pika3.5"} {
			dst, back := place{format: name, store: "rocksdb", path: filepath.Join(fastDir(t), "there")}, src
			back.path = filepath.Join(fastDir(t), "back")
			crossed(t, crossed(t, m, src, dst, keepAll), dst, back, keepAll)
		}
	}
}
