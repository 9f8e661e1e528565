package disk

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/windows"
)

// open is os.OpenFile with share modes that let other processes rename and remove the open file, as on other systems.
func open(path string, flag int, _ fs.FileMode) (*os.File, error) {
	f, err := openShared(path, flag)
	if err == nil && flag&os.O_TRUNC != 0 {
		if err = f.Truncate(0); err != nil {
			err = errors.Join(err, f.Close())
		}
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

func openShared(path string, flag int) (*os.File, error) {
	access, attributes := uint32(windows.GENERIC_READ), uint32(windows.FILE_FLAG_BACKUP_SEMANTICS) // as directories need
	switch {
	case flag&os.O_WRONLY != 0:
		access, attributes = windows.GENERIC_WRITE, windows.FILE_ATTRIBUTE_NORMAL
	case flag&os.O_RDWR != 0:
		access, attributes = windows.GENERIC_READ|windows.GENERIC_WRITE, windows.FILE_ATTRIBUTE_NORMAL
	}
	mode := uint32(windows.OPEN_EXISTING)
	switch {
	case flag&(os.O_CREATE|os.O_EXCL) == os.O_CREATE|os.O_EXCL:
		mode = windows.CREATE_NEW
	case flag&os.O_CREATE != 0:
		mode = windows.OPEN_ALWAYS
	}
	name, err := windows.UTF16PtrFromString(path)
	if err == nil {
		var h windows.Handle
		h, err = windows.CreateFile(name, access, windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE|windows.FILE_SHARE_DELETE, nil,
			mode, attributes, 0)
		if err == nil {
			return os.NewFile(uintptr(h), path), nil
		}
	}
	return nil, &fs.PathError{Op: "open", Path: path, Err: err}
}

// openTemp is os.CreateTemp based on open.
func openTemp(dir, pattern string) (*os.File, error) {
	if dir == "" {
		dir = os.TempDir()
	}
	before, after, _ := strings.Cut(pattern, "*")
	for {
		f, err := open(filepath.Join(dir, before+strconv.FormatUint(rand.Uint64(), 36)+after), os.O_RDWR|os.O_CREATE|os.O_EXCL,
			0o600)
		if !errors.Is(err, fs.ErrExist) {
			return f, err
		}
	}
}
