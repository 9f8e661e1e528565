package convert

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"
	"testing"

	"kvferry/record"
)

// TestIsBroken: of what lies in a work directory missing, odd and damaged files are not as an earlier process left them; a file
// that cannot be read now, or one elsewhere, says nothing.
func TestIsBroken(t *testing.T) {
	dir := filepath.Join("work", "dir")
	in, out := filepath.Join(dir, "a", "000001.sst"), filepath.Join("work", "dir2", "000001.sst")
	at := func(path string, err error) error {
		return fmt.Errorf("opening: %w", &fs.PathError{Op: "open", Path: path, Err: err})
	}
	for _, c := range []struct {
		err  error
		want bool
	}{
		{at(in, fs.ErrNotExist), true}, {at(in, syscall.ENOENT), true}, {at(in, fs.ErrExist), true}, {at(in, syscall.ENOTDIR), true}, {at(in, syscall.EISDIR), true},
		{at(in, syscall.EACCES), false}, {at(in, syscall.EIO), false}, {at(out, fs.ErrNotExist), false}, {at(dir, fs.ErrNotExist), false},
		{fmt.Errorf("reading: %w", &record.CorruptError{File: in, Err: record.ErrShort}), true}, {&record.CorruptError{File: out, Err: record.ErrShort}, false},
		{errors.New("another"), false}, {nil, false},
	} {
		if isBroken(c.err, dir) != c.want {
			t.Errorf("%v: broken %v", c.err, !c.want)
		}
	}
}
