package manifest

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"kvferry/fixtures"
	"kvferry/store/internal/handmade"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/logfile"
)

// FuzzVersionEdit decodes a version edit and applies it.
func FuzzVersionEdit(f *testing.F) {
	for _, name := range []string{"nemo-basic", "bw-basic", "ardb-leveldb-basic"} {
		for _, dir := range handmade.StoresBelow(f, fixtures.Unpack(f, name)) {
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
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := Decode(b)
		if err != nil {
			return
		}
		v := &Version{Families: map[uint32]*Family{0: newFamily(0, "default")}, Mentioned: map[uint64]bool{}}
		v.add(e)
		for _, f := range v.Sorted() {
			for _, t := range f.Tables {
				base.SplitKey(t.Smallest)
				base.SplitKey(t.Largest)
			}
		}
	})
}
