package disk

import (
	"io/fs"
	"os"
)

// RenameNew renames and refuses to replace: the error is an fs.ErrExist then.
func RenameNew(from, to string) error {
	if err := check("rename", from); err != nil {
		return err
	}
	return renameNew(from, to)
}

// renameChecked renames where the system cannot refuse to replace by itself. Between the check and the rename
// somebody could make the new name; rename(2) then replaces a directory only when it is empty, and fails otherwise.
func renameChecked(from, to string) error {
	if _, err := os.Lstat(to); err == nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: fs.ErrExist}
	}
	return os.Rename(from, to)
}
