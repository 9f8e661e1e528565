package formattest

import (
	"compress/gzip"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"kvferry/format"
	"kvferry/store/rocks"
)

// shared is where databases of the original engines lie that are too large to be kept with the project, seen from the
// package of a format.
const shared = "../../shared/golden"

// OpenShared opens such a database and returns its truth. The test is skipped where there is none.
func OpenShared(t testing.TB, f format.Format, name string) (format.Source, []byte) {
	t.Helper()
	archive := filepath.Join(shared, name+".tar.gz")
	if _, err := os.Stat(archive); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	if out, err := exec.Command("tar", "-xzf", archive, "-C", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	file, err := os.Open(filepath.Join(shared, name+".truth.jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	z, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	truth, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return Open(t, f, filepath.Join(dir, name), &format.OpenOptions{Store: rocks.Open}), truth
}
