package command

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kvferry/cmd/kvferry/cli"
)

// TestPackedDamage checks that every command reads the decompressible part of a truncated compressed RDB file.
func TestPackedDamage(t *testing.T) {
	t.Parallel()
	src := golden(t, "bw-edge")
	dir := t.TempDir()
	whole, cut, packed := filepath.Join(dir, "whole.rdb"), filepath.Join(dir, "cut.rdb"), filepath.Join(dir, "cut.rdb.gz")
	ok(t, "convert", "--on-conflict", "rename", src, "rdb:"+whole)
	plain, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	var gz bytes.Buffer
	w := gzip.NewWriter(&gz)
	w.Write(plain)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	half := gz.Bytes()[:gz.Len()*9/10]
	r, err := gzip.NewReader(bytes.NewReader(half))
	if err != nil {
		t.Fatal(err)
	}
	part, err := io.ReadAll(r)
	if err != io.ErrUnexpectedEOF {
		t.Fatal(err)
	}
	for path, b := range map[string][]byte{cut: part, packed: half} {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, got := kvferry(t, "dump", "--salvage", cut), kvferry(t, "dump", "--salvage", packed)
	if got.code != cli.ExitFindings || got.stdout != want.stdout || strings.Count(got.stdout, "\n") < 5 {
		t.Errorf("dump: exit %d: %s", got.code, got.stderr)
	}
	sarif := filepath.Join(dir, "report.sarif")
	if r := kvferry(t, "verify", "--format", "sarif", "-o", sarif, packed); r.code != cli.ExitFindings {
		t.Errorf("verify: exit %d: %s", r.code, r.stderr)
	}
	if b, err := os.ReadFile(sarif); err != nil || !bytes.Contains(b, []byte("damaged-file")) || !bytes.Contains(b, []byte("the file is cut off")) {
		t.Errorf("the report: %v: %.2000s", err, b)
	}
	if r := kvferry(t, "dump", packed); r.code != cli.ExitFailed || !strings.Contains(r.stderr, packed+": offset ") ||
		!strings.Contains(r.stderr, "kvferry verify "+packed) {
		t.Errorf("dump: exit %d: %s", r.code, r.stderr)
	}
	ok(t, "convert", "--allow-loss", "damaged", packed, "rdb:"+filepath.Join(dir, "rest.rdb"))
}
