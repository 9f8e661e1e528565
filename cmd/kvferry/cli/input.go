package cli

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"

	"kvferry/internal/sys/disk"
)

// Standard names standard input, or standard output for a file to write. ./- is a file of that name.
const Standard = "-"

// ToStandard reports whether an output flag means standard output.
func ToStandard(path string) bool { return path == "" || path == Standard }

// OpenInput opens a file named on the command line, or standard input.
func OpenInput(path string, stdin func() io.Reader) (io.ReadCloser, error) {
	if path == Standard {
		return io.NopCloser(stdin()), nil
	}
	return OpenFile(path)
}

// NotStandard refuses standard input for a flag whose file is read too early or more than once.
func NotStandard(flag, path string) error {
	if path == Standard {
		return Usagef("--%s -: standard input is not read here: name a file (./- is a file of that name)", flag)
	}
	return nil
}

// OpenFile opens a regular input file.
func OpenFile(path string) (*disk.File, error) {
	f, err := disk.Open(path)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err == nil && st.IsDir() {
		err = fmt.Errorf("%s: is a directory", path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// maxWindow bounds the memory for decompressing a file.
const maxWindow = 32 << 20

// Decompressed reads output of toOutput, compressed or not. It ignores the file name.
func Decompressed(r io.Reader) (io.ReadCloser, error) {
	f := bufio.NewReader(r)
	head, err := f.Peek(len(zstdMagic))
	switch {
	case err != nil && err != io.EOF:
		return nil, err
	case bytes.HasPrefix(head, []byte(gzipMagic)):
		return gzip.NewReader(f)
	case bytes.HasPrefix(head, []byte(zstdMagic)):
		z, err := zstd.NewReader(f, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, err
		}
		return z.IOReadCloser(), nil
	}
	return io.NopCloser(f), nil
}

// Magic bytes of compressed files.
const (
	gzipMagic = "\x1f\x8b"
	zstdMagic = "\x28\xb5\x2f\xfd"
)
