package manifest

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"kvferry/fixtures"
	"kvferry/internal/testkit/testsst"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/logfile"
)

// FuzzVersionEdit decodes a version edit and applies it.
func FuzzVersionEdit(f *testing.F) {
	for _, name := range []string{"nemo-basic", "bw-basic", "ardb-leveldb-basic"} {
		for _, dir := range testsst.StoresBelow(f, fixtures.Unpack(f, name)) {
			m, _ := filepath.Glob(filepath.Join(dir, "MANIFEST-*"))
			b, err := os.ReadFile(m[0])
			if err != nil {
				f.Fatal(err)
			}
			log := logfile.NewReader(bytes.NewReader(b), 0)
			for {
				rec, _, err := log.Next()
				if err != nil {
					break
				}
				f.Add(bytes.Clone(rec))
			}
		}
	}
	// A table that was ingested: it has one sequence number, and its edit no log number.
	f.Add([]byte("\x03\x03\a\x06\x05w\x0f\x04\x010\x01\x00\x01\x00\x01$\x00\x00\x00\x00\x00\x00\x12\x04\x03foo\x02\xfe\xfd\x01\x00\x01\x99\xdd\x00\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := Decode(b)
		if err != nil {
			return
		}
		v := newVersion()
		v.add(e)
		for _, f := range v.Sorted() {
			for _, t := range f.Tables {
				base.SplitKey(t.Smallest)
				base.SplitKey(t.Largest)
			}
		}
	})
}
