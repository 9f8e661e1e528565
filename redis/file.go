package redis

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/klauspost/compress/zstd"

	"kvferry/format"
	"kvferry/internal/disk"
	"kvferry/record"
)

// openFile returns the file at a location, unpacked and seekable. What it is unpacked to has no name and goes with it.
func openFile(ctx context.Context, location string, o *format.OpenOptions) (*disk.File, error) {
	if location == "-" {
		if o.Stdin == nil {
			return nil, errors.New("standard input cannot be read here")
		}
		return spool(ctx, o.Stdin, location, o.Options.TempDir)
	}
	f, err := disk.Open(location)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if st.IsDir() {
		return nil, errors.Join(fmt.Errorf("%s: is a directory; name the RDB file in it, such as dump.rdb", location), f.Close())
	}
	var head [4]byte
	n, _ := f.ReadAt(head[:], 0)
	if st.Mode().IsRegular() && !isPacked(head[:n]) {
		return f, nil
	}
	out, err := spool(ctx, f, location, o.Options.TempDir)
	return out, errors.Join(err, f.Close())
}

var (
	gzipMagic = []byte{0x1f, 0x8b}
	zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}
)

func isPacked(head []byte) bool {
	return bytes.HasPrefix(head, gzipMagic) || bytes.HasPrefix(head, zstdMagic)
}

// unpacked returns what a stream called name has when it is unpacked.
func unpacked(r io.Reader, name string) (io.ReadCloser, error) {
	b := bufio.NewReaderSize(r, 1<<16)
	head, err := b.Peek(len(zstdMagic))
	if err != nil && err != io.EOF {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(head, gzipMagic):
		z, err := gzip.NewReader(b)
		if err != nil {
			return nil, damagedPack(name, err)
		}
		return &packed{z, name}, nil
	case bytes.HasPrefix(head, zstdMagic):
		z, err := zstd.NewReader(b)
		if err != nil {
			return nil, damagedPack(name, err)
		}
		return &packed{z.IOReadCloser(), name}, nil
	}
	return io.NopCloser(b), nil
}

// packed reads a stream called name that is compressed.
type packed struct {
	io.ReadCloser
	name string
}

func (p *packed) Read(b []byte) (int, error) {
	n, err := p.ReadCloser.Read(b)
	return n, damagedPack(p.name, err)
}

// damagedPack is an error of unpacking a stream. Errors of the file that it is read from have its name already.
func damagedPack(name string, err error) error {
	var file *fs.PathError
	if err == nil || err == io.EOF || errors.As(err, &file) {
		return err
	}
	return &record.CorruptError{File: name, Off: record.NoOffset, Err: fmt.Errorf("the compressed file is damaged or cut off (%w)", err)}
}

// spool copies a stream called name, unpacked, to a temporary file in dir that has no name.
func spool(ctx context.Context, r io.Reader, name, dir string) (f *disk.File, err error) {
	in, err := unpacked(r, name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	f, err = disk.CreateTemp(dir, "kvferry-rdb-")
	if err != nil {
		return nil, err
	}
	if err = disk.Remove(f.Name()); err == nil {
		_, err = io.Copy(f, &interrupted{ctx, in})
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// interrupted reads until the context ends.
type interrupted struct {
	ctx context.Context
	r   io.Reader
}

func (i *interrupted) Read(p []byte) (int, error) {
	if i.ctx.Err() != nil {
		return 0, context.Cause(i.ctx)
	}
	return i.r.Read(p)
}

// maxHead is how much of a file detection sees.
const maxHead = 4 << 10

// Head returns how a file begins, unpacked when it is compressed. What is no whole file of that kind begins as it does.
func Head(path string) ([]byte, error) {
	f, err := disk.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	head := make([]byte, maxHead)
	r, err := unpacked(f, path)
	if err != nil {
		n, err := f.ReadAt(head, 0)
		if err == io.EOF {
			err = nil
		}
		return head[:n], err
	}
	defer r.Close()
	n, _ := io.ReadFull(r, head)
	return head[:n], nil
}
