package disk

import (
	"os"

	"golang.org/x/sys/windows"
)

// renameNew renames atomically without replacing.
func renameNew(from, to string) error {
	old, err := windows.UTF16PtrFromString(from)
	if err == nil {
		var name *uint16
		if name, err = windows.UTF16PtrFromString(to); err == nil {
			err = windows.MoveFileEx(old, name, 0)
		}
	}
	if err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return nil
}
