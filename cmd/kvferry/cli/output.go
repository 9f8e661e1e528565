package cli

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/spf13/cobra"

	"kvferry/internal/sys/disk"
	"kvferry/internal/sys/object"
	"kvferry/internal/text/escape"
)

// OutputUsage describes the flag -o.
const OutputUsage = "write to a `file`, which appears only when it is complete; .gz and .zst files are compressed; - for standard output"

// ToOutput calls write with standard output, or with a file that appears only if write succeeds. It writes directly
// to a device or pipe, which a file cannot replace, and replaces the target of a symbolic link.
func ToOutput(cmd *cobra.Command, path string, write func(io.Writer) error) error {
	if ToStandard(path) {
		return write(cmd.OutOrStdout())
	}
	st, err := disk.Stat(path)
	switch {
	case err != nil:
		return toFile(path, path, write)
	case isFile(cmd.OutOrStdout(), st): // such as /dev/stdout
		return compressed(cmd.OutOrStdout(), path, write)
	case !st.Mode().IsRegular():
		return toDevice(path, write)
	}
	real, err := disk.EvalSymlinks(path)
	if err != nil {
		return err
	}
	return toFile(real, path, write)
}

// Local refuses the address of an object as an output file.
func Local(name, path string) error {
	if object.IsAddress(path) {
		return Usagef("--%s %s: kvferry writes this file to the local disk only; name a path, and upload the file afterwards",
			name, object.Shown(path))
	}
	return nil
}

// TryOutput refuses a path where toOutput could not create a file.
func TryOutput(cmd *cobra.Command, path string) error {
	if ToStandard(path) {
		return nil
	}
	real := path
	if st, err := disk.Stat(path); err == nil {
		if isFile(cmd.OutOrStdout(), st) || !st.Mode().IsRegular() {
			return nil
		}
		if real, err = disk.EvalSymlinks(path); err != nil {
			return err
		}
	}
	f, err := disk.Temp(filepath.Dir(real), "output")
	if err != nil {
		return unmade(path, err)
	}
	return f.Close()
}

// isFile reports whether w writes to file.
func isFile(w io.Writer, file fs.FileInfo) bool {
	f, ok := fileOf(w).(*os.File)
	if !ok {
		return false
	}
	st, err := f.Stat()
	return err == nil && os.SameFile(st, file)
}

// toDevice writes to an existing device or pipe.
func toDevice(path string, write func(io.Writer) error) error {
	f, err := disk.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(compressed(f, path, write), f.Close())
}

// toFile writes a temporary file next to path and renames it to path. The new file has the mode of the old one. given is
// the path on the command line.
func toFile(path, given string, write func(io.Writer) error) error {
	f, err := beside(path, given)
	if err != nil {
		return err
	}
	out := &unfinishedFile{file: f, given: given}
	if st, missing := disk.Stat(path); missing == nil {
		out.fail(f.Chmod(st.Mode().Perm()))
	}
	err = compressed(out, given, write)
	if err == nil {
		err = out.finish(path)
	} else {
		err = errors.Join(err, f.Close())
	}
	if err == nil {
		return nil
	}
	removed := disk.Remove(f.Name())
	if out.err != nil && removed == nil { // later errors follow from out.err
		err = fmt.Errorf("%w; %s", out.err, left(path))
	}
	return errors.Join(err, removed)
}

// beside creates a temporary file next to path, with the mode of any new file. given is the path on the command line.
func beside(path, given string) (*disk.File, error) {
	f, err := disk.OpenFile(fmt.Sprintf("%s.tmp-%d", path, rand.Uint64()), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, unmade(given, err)
	}
	return f, nil
}

// unmade returns the error for a file that could not be created, under its given path: the temporary name means
// nothing to users.
func unmade(given string, err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("create %s: %w", given, p.Err)
	}
	return err
}

// left describes the state of a path after a failed write.
func left(path string) string {
	if _, err := disk.Stat(path); err == nil {
		return "the existing file is unchanged"
	}
	return "the incomplete file was removed"
}

// unfinishedFile is the temporary file for a path. Its errors carry the given path, and it writes no more after an
// error.
type unfinishedFile struct {
	file  *disk.File
	given string
	err   error
}

// Write writes until the first error.
func (u *unfinishedFile) Write(p []byte) (int, error) {
	if u.err != nil {
		return 0, u.err
	}
	n, err := u.file.Write(p)
	u.fail(err)
	return n, u.err
}

// fail keeps the first error, with the given path.
func (u *unfinishedFile) fail(err error) {
	var p *fs.PathError
	var l *os.LinkError
	switch {
	case errors.As(err, &p):
		err = &fs.PathError{Op: p.Op, Path: u.given, Err: p.Err}
	case errors.As(err, &l):
		err = &fs.PathError{Op: l.Op, Path: u.given, Err: l.Err}
	}
	if u.err == nil {
		u.err = err
	}
}

// finish makes the file durable, renames it to path, and makes the new name durable.
func (u *unfinishedFile) finish(path string) error {
	u.fail(u.file.Sync())
	u.fail(u.file.Close())
	if u.err == nil {
		u.fail(disk.Rename(u.file.Name(), path))
	}
	if u.err == nil {
		u.fail(disk.SyncPath(filepath.Dir(path)))
	}
	return u.err
}

// compressed calls write with the compressor that the file name selects.
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

// PrintJSON prints a result as indented JSON.
func PrintJSON(w io.Writer, v any) error {
	data, err := escape.Document(v)
	if err == nil {
		_, err = w.Write(data)
	}
	return err
}
