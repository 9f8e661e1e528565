package command

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/spf13/cobra"
)

// outputUsage describes the flag -o.
const outputUsage = "write to a `file`, which exists only when it is complete; compressed when it ends in .gz or .zst"

// toOutput calls write with standard output, or with a file that appears when write has succeeded.
func toOutput(cmd *cobra.Command, path string, write func(io.Writer) error) error {
	if path == "" {
		return write(cmd.OutOrStdout())
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".tmp-*")
	if err != nil {
		var p *fs.PathError
		if errors.As(err, &p) { // the temporary name means nothing to anybody
			err = fmt.Errorf("create %s: %w", path, p.Err)
		}
		return err
	}
	err = compressed(f, path, write)
	if err == nil {
		err = f.Chmod(0o644)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// decompressed reads what toOutput wrote to a file of that name.
func decompressed(f io.Reader, path string) (io.ReadCloser, error) {
	switch {
	case strings.HasSuffix(path, ".gz"):
		return gzip.NewReader(f)
	case strings.HasSuffix(path, ".zst"):
		z, err := zstd.NewReader(f, zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, err
		}
		return z.IOReadCloser(), nil
	}
	return io.NopCloser(f), nil
}

// compressed calls write with a compressor that the name of the file asks for.
func compressed(f io.Writer, path string, write func(io.Writer) error) error {
	var c io.WriteCloser
	switch {
	case strings.HasSuffix(path, ".gz"):
		c = gzip.NewWriter(f)
	case strings.HasSuffix(path, ".zst"):
		z, err := zstd.NewWriter(f, zstd.WithEncoderConcurrency(1))
		if err != nil {
			return err
		}
		c = z
	default:
		return write(f)
	}
	return errors.Join(write(c), c.Close())
}
