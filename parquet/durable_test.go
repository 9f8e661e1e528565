//go:build unix

package parquet

import (
	"path/filepath"
	"testing"

	"kvferry/fixtures"
	"kvferry/internal/testkit/durable"
	"kvferry/record"
)

// TestDurableBeforeItAppears: all files and directories are synced before the rename that makes the dataset appear, and
// the directory with its name afterwards.
func TestDurableBeforeItAppears(t *testing.T) {
	d := durable.Record(t)
	dir, _ := made(t, filepath.Join(t.TempDir(), "out"), ExportOptions{Now: fixtures.Clock, Memory: 1}, func(w *part) {
		add(t, w, record.Header{Type: record.Hash, Key: []byte("h")}, "f")
		add(t, w, record.Header{Type: record.String, Key: []byte("s")}, "v")
	})
	d.Check(t, dir)
}
