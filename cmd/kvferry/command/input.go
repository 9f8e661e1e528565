package command

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

// standard names standard input, or standard output for a file to write. ./- is a file of that name.
const standard = "-"

// toStandard reports whether an output flag means standard output.
func toStandard(path string) bool { return path == "" || path == standard }

// openInput opens a file named on the command line, or standard input.
func openInput(path string, stdin func() io.Reader) (io.ReadCloser, error) {
	if path == standard {
		return io.NopCloser(stdin()), nil
	}
	return openFile(path)
}

// notStandard refuses standard input for a flag whose file is read too early or more than once.
func notStandard(flag, path string) error {
	if path == standard {
		return usagef("--%s -: standard input is not read here: name a file (./- is a file of that name)", flag)
	}
	return nil
}

// openFile opens a regular input file.
func openFile(path string) (*disk.File, error) {
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

// decompressed reads output of toOutput, compressed or not. It ignores the file name.
func decompressed(r io.Reader) (io.ReadCloser, error) {
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
