package command

import (
	"path/filepath"
	"strings"
	"testing"

	"kvferry/fixtures"
	"kvferry/internal/testkit/s3test"
)

// TestObjectsOfServer reads every golden from an S3 server: the fingerprints are those of the files on disk.
func TestObjectsOfServer(t *testing.T) {
	s := s3test.NewServer(t)
	for _, a := range fixtures.Archives(true) {
		t.Run(a.Name, func(t *testing.T) { sameInStore(t, a, s.PutTree) })
	}
}

// sameInStore compares what commands print of a golden on disk and in an object store.
func sameInStore(t *testing.T, a fixtures.Archive, put func(root string) string) {
	path, err := a.Extract(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	address := put(path)
	for _, command := range [][]string{{"fingerprint"}, {"verify"}} {
		here := kvferry(t, append(command, path)...)
		there := kvferry(t, append(command, address)...)
		if got := strings.ReplaceAll(there.stdout, address, path); there.code != here.code || got != here.stdout {
			t.Errorf("%s: exit %d\n%s%s\non disk: exit %d\n%s", command, there.code, got, there.stderr, here.code, here.stdout)
		}
	}
}

// TestObjects reads two goldens of different stores with every reading command, and converts them.
func TestObjects(t *testing.T) {
	f := s3test.NewFake(t)
	for _, a := range fixtures.Archives(false) {
		if a.Name == "bw-basic" || a.Name == "rdb-v90-basic" || a.Name == "ardb-lmdb-basic" {
			t.Run(a.Name, func(t *testing.T) { sameInStore(t, a, func(root string) string { return f.PutTree(t, root) }) })
		}
	}
	from := "s3://" + s3test.Bucket + "/bw-basic"
	out := filepath.Join(t.TempDir(), "out")
	ok(t, "convert", from, "pika3:"+out)
	if got, want := ok(t, "fingerprint", out), ok(t, "fingerprint", from); got == "" || strings.ReplaceAll(got, out, from) != want {
		t.Errorf("converted:\n%s\nwant:\n%s", got, want)
	}
}
