package rocks

import (
	"encoding/binary"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kvferry/internal/testkit/testsst"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/manifest"
)

// summed writes a database of two tables whose checksums by some function are in the MANIFEST.
func summed(t *testing.T, function string, sum func(file []byte) []byte) (dir string, names []string) {
	d := testsst.NewDB(t)
	for i, key := range []string{"a", "b"} {
		names = append(names, d.Table(0, 1+i, testsst.Spec{}, testsst.Put(key, 1, "value")))
		file, err := os.ReadFile(filepath.Join(d.Dir, names[i]))
		if err != nil {
			t.Fatal(err)
		}
		last := &d.Edits[len(d.Edits)-1]
		fields, end := (*last)[:len(*last)-1], (*last)[len(*last)-1:]
		*last = slices.Concat(fields, testsst.EditBytes(manifest.FileChecksum, sum(file)),
			testsst.EditBytes(manifest.FileChecksumFunc, []byte(function)), end)
	}
	return d.Finish(), names
}

// crcOf is how RocksDB writes the checksum of a file.
func crcOf(file []byte) []byte {
	return binary.BigEndian.AppendUint32(nil, crc32.Checksum(file, base.Castagnoli))
}

// TestFileChecksums: files are compared with their checksums in the MANIFEST.
func TestFileChecksums(t *testing.T) {
	for _, tt := range []struct {
		name, function string
		sum            func([]byte) []byte
		want           []string
	}{
		{"right", manifest.ChecksumCRC32C, crcOf, nil},
		{"of other files", manifest.ChecksumCRC32C, func(b []byte) []byte { return crcOf(append(b, 0)) },
			[]string{"error file-checksum", "error file-checksum"}},
		{"too long", manifest.ChecksumCRC32C, func(b []byte) []byte { return append(crcOf(b), 0) },
			[]string{"error file-checksum", "error file-checksum"}},
		{"by another function", "Mine\n", crcOf, []string{"note file-checksum"}},
		{"none", "Unknown", func([]byte) []byte { return nil }, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir, _ := summed(t, tt.function, tt.sum)
			var got []string
			for _, f := range checkBlocks(t, dir) {
				got = append(got, f.Severity.String()+" "+f.Kind)
				if strings.Contains(f.Detail, "\n") {
					t.Errorf("%q", f.Detail)
				}
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("found %q, want %q", got, tt.want)
			}
		})
	}
}

// TestFileChecksumOfDamage: an unreadable table is reported once, by the row reader.
func TestFileChecksumOfDamage(t *testing.T) {
	dir, names := summed(t, manifest.ChecksumCRC32C, crcOf)
	if err := os.Remove(filepath.Join(dir, names[0])); err != nil {
		t.Fatal(err)
	}
	db, found := openFindings(t, dir, store.Options{Salvage: true})
	if err := db.CheckBlocks(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, f := range *found {
		if f.Kind == record.FindFileChecksum {
			t.Errorf("%+v", f)
		}
	}
}
