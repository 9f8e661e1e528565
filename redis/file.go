package redis

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/klauspost/compress/zstd"

	"kvferry/format"
	"kvferry/internal/sys/disk"
	"kvferry/record"
	"kvferry/redis/rdb"
)

// openFile opens a file, decompressed and seekable. Decompressed data goes to an unlinked temporary file. damage is the
// reason why decompression stopped early.
func openFile(ctx context.Context, location string, o *format.OpenOptions) (file *disk.File, damage, err error) {
	if location == "-" {
		if o.Stdin == nil {
			return nil, nil, errors.New("standard input cannot be read here")
		}
		return spool(ctx, o.Stdin, o.Options.TempDir)
	}
	if filepath.Ext(location) == ".dfs" { // some files of a Dragonfly snapshot lack a recognizable header
		return nil, nil, rdb.ErrSnapshot
	}
	f, err := o.Options.Sources.OpenWhole(location)
	if err != nil {
		return nil, nil, err
	}
	st, err := f.Stat()
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	if st.IsDir() {
		return nil, nil, errors.Join(fmt.Errorf("%s: is a directory; name the RDB file in it, such as dump.rdb", location),
			f.Close())
	}
	var head [4]byte
	n, _ := f.ReadAt(head[:], 0)
	if st.Mode().IsRegular() && !isPacked(head[:n]) {
		return f, nil, nil
	}
	file, damage, err = spool(ctx, f, o.Options.TempDir)
	return file, damage, errors.Join(err, f.Close())
}

var (
	gzipMagic = []byte{0x1f, 0x8b}
	zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}
)

func isPacked(head []byte) bool {
	return bytes.HasPrefix(head, gzipMagic) || bytes.HasPrefix(head, zstdMagic)
}

// unpacked returns a reader of the decompressed stream.
func unpacked(r io.Reader) (io.ReadCloser, error) {
	b := bufio.NewReaderSize(r, 1<<16)
	head, err := b.Peek(len(zstdMagic))
	if err != nil && err != io.EOF {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(head, gzipMagic):
		return gzip.NewReader(b)
	case bytes.HasPrefix(head, zstdMagic):
		z, err := zstd.NewReader(b)
		if err != nil {
			return nil, err
		}
		return z.IOReadCloser(), nil
	}
	return io.NopCloser(b), nil
}

// spool copies a stream, decompressed, to a temporary file. damage is the reason why decompression stopped early; the
// file then holds the data before it.
func spool(ctx context.Context, r io.Reader, dir string) (f *disk.File, damage, err error) {
	f, err = disk.Temp(dir, "rdb")
	if err != nil {
		return nil, nil, err
	}
	from := &interrupted{ctx: ctx, r: r}
	if damage, err = from.unpackTo(f); err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, damage, nil
}

// interrupted reads until the context ends, and keeps the first read error. It distinguishes read errors from errors of
// the decompressor: those mean damaged input.
type interrupted struct {
	ctx context.Context
	r   io.Reader
	err error
}

func (i *interrupted) Read(p []byte) (int, error) {
	if i.ctx.Err() != nil {
		i.err = context.Cause(i.ctx)
		return 0, i.err
	}
	n, err := i.r.Read(p)
	if err != nil && err != io.EOF {
		i.err = err
	}
	return n, err
}

// unpackTo writes the decompressed bytes to f.
func (i *interrupted) unpackTo(f *disk.File) (damage, err error) {
	in, err := unpacked(i)
	if i.err != nil {
		return nil, i.err
	}
	if err != nil {
		return packedError(0, err), nil
	}
	defer in.Close()
	head := make([]byte, headerLen)
	n, err := io.ReadFull(in, head)
	if err == nil {
		if _, err := rdb.ParseHeader(head); err != nil { // a device may have no end
			return nil, err
		}
	}
	to := &written{w: f}
	_, err = io.Copy(to, io.MultiReader(bytes.NewReader(head[:n]), in))
	switch {
	case err == nil, to.err != nil:
		return nil, to.err
	case i.err != nil:
		return nil, i.err
	case i.ctx.Err() != nil:
		return nil, context.Cause(i.ctx)
	}
	return packedError(to.n, err), nil
}

// headerLen is the length of the magic and version.
const headerLen = 9

// packedError is the error of a compressed file after n decompressed bytes.
func packedError(n int64, err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || err == io.EOF {
		err = fmt.Errorf("the compressed data has no end: %w", record.ErrShort)
	}
	return &record.CorruptError{Off: n, Field: "compressed bytes", Err: err}
}

// written counts the bytes written and keeps the error.
type written struct {
	w   io.Writer
	n   int64
	err error
}

func (w *written) Write(p []byte) (n int, err error) {
	n, w.err = w.w.Write(p)
	w.n += int64(n)
	return n, w.err
}

// maxHead limits the bytes passed to format detection.
const maxHead = 4 << 10

// Head returns the first bytes of a file, decompressed. If the decompressor cannot start, it returns the raw bytes.
func Head(path string) ([]byte, error) {
	f, err := disk.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	head := make([]byte, maxHead)
	r, err := unpacked(f)
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
