package rocks

import (
	"archive/tar"
	"compress/gzip"
	"io"
	"os"
	"path"
	"path/filepath"
	"testing"
)

// TestBlobGoldens scans the blob files that RocksDB 8.7 and 10.6 wrote: every record is sound, also of those files that
// the MANIFEST no longer names.
func TestBlobGoldens(t *testing.T) {
	for name, want := range map[string]int{"pika35-blob": 5, "pika4-blob": 13, "kvrocks-blob": 21} {
		t.Run(name, func(t *testing.T) {
			n := 0
			eachBlobFile(t, name, func(file string, b []byte) {
				n++
				h, err := decodeBlobHeader(b[:blobHeaderLen])
				if err != nil {
					t.Fatalf("%s: %v", file, err)
				}
				f, err := openBlob(readerAt(b), int64(len(b)), file, h.Family)
				if err != nil {
					t.Fatal(err)
				}
				if got := mustScan(t, f); got.Count == 0 || got.Bytes != int64(len(b))-blobHeaderLen-blobFooterLen {
					t.Errorf("%s: %+v of %d bytes", file, got, len(b))
				}
			})
			if n != want {
				t.Errorf("%d blob files, want %d", n, want)
			}
		})
	}
}

type readerAt []byte

func (r readerAt) ReadAt(b []byte, off int64) (int, error) {
	if n := copy(b, r[min(off, int64(len(r))):]); n < len(b) {
		return n, io.EOF
	}
	return len(b), nil
}

// eachBlobFile calls f with the blob files of a golden, if it exists.
func eachBlobFile(t *testing.T, name string, f func(file string, b []byte)) {
	t.Helper()
	file, err := os.Open(filepath.Join("../../../../shared/golden", name+".tar.gz"))
	if err != nil {
		t.Skip(err)
	}
	defer file.Close()
	z, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if path.Ext(h.Name) != ".blob" {
			continue
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		f(h.Name, b)
	}
}
