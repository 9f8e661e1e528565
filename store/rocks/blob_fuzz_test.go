package rocks

import (
	"bytes"
	"testing"
)

// FuzzDecodeIndex checks that a decoded index encodes to the same place.
func FuzzDecodeIndex(f *testing.F) {
	f.Add(appendIndex(nil, blobPointer{300, 70000, 1 << 20, 4}))
	f.Add([]byte{0, 1, 'x'})
	f.Add([]byte{2, 1, 1, 1, 1, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		x, err := decodeBlobPointer(b)
		if err != nil {
			return
		}
		if y, err := decodeBlobPointer(appendIndex(nil, x)); err != nil || y != x {
			t.Fatalf("%+v, %v; want %+v", y, err, x)
		}
	})
}

// FuzzFile scans bytes as a file, and reads the value that an index in the input points to.
func FuzzFile(f *testing.F) {
	whole, xs, keys := sweepBlobs()
	f.Add(whole, appendIndex(nil, xs[4]), []byte(keys[4]))
	f.Add(whole[:100], appendIndex(nil, xs[0]), []byte(keys[0]))
	f.Fuzz(func(t *testing.T, b, index, key []byte) {
		file, err := openBlob(bytes.NewReader(b), int64(len(b)), "x", 3)
		if err != nil {
			return
		}
		n, err := file.Scan(func(off int64, err error) error {
			if off < blobHeaderLen || off > int64(len(b)) {
				t.Fatalf("damage at %d of %d: %v", off, len(b), err)
			}
			return nil
		})
		if err != nil || n.Bytes > int64(len(b)) {
			t.Fatalf("%+v, %v", n, err)
		}
		x, err := decodeBlobPointer(index)
		if err != nil {
			return
		}
		var rd blobBuffer
		if v, err := rd.Value(file, x, key); err == nil && uint64(len(v)) != x.Size {
			t.Fatalf("%d bytes of %d", len(v), x.Size)
		}
	})
}
