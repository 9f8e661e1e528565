package lsm

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"

	"kvferry/internal/sys/disk"
	"kvferry/store/rocks/base"
)

// Values longer than largeValue bypass the sorter, which would hold and write each several times. They wait in a
// separate file, and the sorter gets
//
//	+-------------+-------------+---------------+
//	| offset (8B) | length (8B) | checksum (4B) |
//	+-------------+-------------+---------------+
//
// little endian; the checksum is a CRC32c. largeFlag is set in the origin's File for such an entry.
const (
	largeValue = 1 << 20
	largeFlag  = 1 << 31
)

// largeRef locates a large value in the temporary file.
type largeRef struct {
	off, size int64
	sum       uint32
}

func (r largeRef) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(r.off))
	b = binary.LittleEndian.AppendUint64(b, uint64(r.size))
	return binary.LittleEndian.AppendUint32(b, r.sum)
}

func decodeLargeRef(b []byte) largeRef {
	return largeRef{int64(binary.LittleEndian.Uint64(b)), int64(binary.LittleEndian.Uint64(b[8:])),
		binary.LittleEndian.Uint32(b[16:])}
}

// largeValues is the file of a sorter's large values, created with the first.
type largeValues struct {
	f    *disk.File
	size int64
}

// put appends a value of n bytes.
func (l *largeValues) put(dir string, n int64, src io.Reader) (largeRef, error) {
	if l.f == nil {
		f, err := disk.Temp(dir, "spool")
		if err != nil {
			return largeRef{}, err
		}
		l.f = f
	}
	sum := crc32.New(base.Castagnoli)
	if _, err := io.CopyN(io.MultiWriter(l.f, sum), src, n); err != nil {
		return largeRef{}, err
	}
	r := largeRef{l.size, n, sum.Sum32()}
	l.size += n
	return r, nil
}

// copy appends the entry of a large value to a spool.
func (l *largeValues) copy(w *spoolWriter, key []byte, r largeRef, o Origin) error {
	sum := crc32.New(base.Castagnoli)
	if err := w.addLarge(key, r.size, io.TeeReader(io.NewSectionReader(l.f, r.off, r.size), sum), o); err != nil {
		return err
	}
	if sum.Sum32() != r.sum {
		return base.Corrupt(l.f.Name(), r.off, "value",
			fmt.Errorf("the temporary file was changed or the disk is failing: %w", base.ErrChecksum))
	}
	return nil
}

// close closes the file, which deletes it.
func (l *largeValues) close() error {
	if l.f == nil {
		return nil
	}
	f := l.f
	l.f = nil
	return f.Close()
}
