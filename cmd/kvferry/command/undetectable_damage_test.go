package command

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"kvferry/cmd/kvferry/cli"
	"kvferry/fixtures"
	"kvferry/record"
)

// noEvidence is what -v shows of formats that nothing speaks for.
var noEvidence = regexp.MustCompile(`^([a-z]+: score 0\n)+`)

// TestDamagedBeyondDetection checks a dataset whose only store is damaged where the format would be detected. It is
// not called unknown: the error names the store, the file with its size and fault, and how to continue.
func TestDamagedBeyondDetection(t *testing.T) {
	page := os.Getpagesize()
	for _, c := range []struct {
		golden, file string
		to           int    // the remaining size
		what         string // the fault
	}{
		{"ardb-lmdb-basic", "lmdb/data.mdb", 0, "meta page: there is none: too short: neither meta page is valid"},
		{"ardb-lmdb-basic", "lmdb/data.mdb", 100, "offset 0: meta page: need 152 bytes, have 100: too short: neither meta page is valid"},
		{"ardb-lmdb-basic", "lmdb/data.mdb", page, "is beyond the end of the file"},
		{"ardb-lmdb-basic", "lmdb/data.mdb", 2 * page, "is beyond the end of the file"},
	} {
		src := fixtures.Unpack(t, c.golden)
		file, size := filepath.Join(src, c.file), fmt.Sprintf("; the file has %s bytes)", record.Number(c.to))
		if err := os.Truncate(file, int64(c.to)); err != nil {
			t.Fatal(err)
		}
		unchanged(t, src)
		for _, args := range [][]string{{"inspect", src}, {"inspect", "-v", src}, {"verify", src}} {
			r := kvferry(t, args...)
			line := noEvidence.ReplaceAllString(r.stderr, "")
			if r.code != cli.ExitFailed || !strings.HasPrefix(line, "kvferry: "+src+": cannot detect the format: found a ") ||
				strings.Count(line, "\n") != 1 ||
				!strings.Contains(line, c.what) || !strings.Contains(line, size) || !strings.Contains(line, filepath.Dir(file)) ||
				!strings.Contains(line, "ardb:"+src) || !strings.HasSuffix(line, ":"+src+"\n") {
				t.Errorf("%s: %v: exit %d: %s", args, c.to, r.code, r.stderr)
			}
		}
		if r := kvferry(t, "verify", "ardb:"+src); r.code != cli.ExitFindings ||
			!strings.Contains(r.stdout, " damaged-file") && !strings.Contains(r.stdout, " missing-file") {
			t.Errorf("%v: verify: exit %d: %s%s", c.to, r.code, r.stdout, r.stderr)
		}
	}
	// A MANIFEST that CURRENT does not name still identifies databases of RocksDB and LevelDB, and half of an LMDB
	// file identifies LMDB.
	for _, c := range []struct{ golden, file, to, what string }{
		{"ardb-rocksdb-basic", "rocksdb/CURRENT", "", `offset 0: manifest name: have "", want "MANIFEST-<number>\n"`},
		{"ardb-rocksdb-basic", "rocksdb/CURRENT", "MANIFEST-999999\n", "rocksdb/MANIFEST-999999: CURRENT lists this file, but it does not exist"},
		{"ardb-leveldb-basic", "leveldb/CURRENT", "rubbish", `offset 0: manifest name: have "rubbish", want "MANIFEST-<number>\n"`},
	} {
		src := fixtures.Unpack(t, c.golden)
		if err := os.WriteFile(filepath.Join(src, c.file), []byte(c.to), 0o644); err != nil {
			t.Fatal(err)
		}
		if r := kvferry(t, "inspect", src); r.code != cli.ExitFailed || !strings.Contains(r.stderr, c.what) ||
			!strings.Contains(r.stderr, "--salvage") {
			t.Errorf("%q: inspect: exit %d: %s", c.to, r.code, r.stderr)
		}
		if r := kvferry(t, "verify", src); r.code != cli.ExitFindings ||
			!strings.Contains(r.stdout, " damaged-file") && !strings.Contains(r.stdout, " missing-file") {
			t.Errorf("%q: verify: exit %d: %s%s", c.to, r.code, r.stdout, r.stderr)
		}
	}
	src := fixtures.Unpack(t, "ardb-lmdb-basic")
	file := filepath.Join(src, "lmdb/data.mdb")
	st, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(file, st.Size()/2); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("is beyond the end of the file at %d: too short", st.Size()/2)
	if r := kvferry(t, "inspect", src); r.code != cli.ExitFailed || !strings.HasPrefix(r.stderr, "kvferry: lmdb ") ||
		!strings.Contains(r.stderr, file) ||
		!strings.Contains(r.stderr, want) {
		t.Errorf("half a file: exit %d: %s", r.code, r.stderr)
	}
}
