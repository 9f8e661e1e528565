package disk

import (
	"io/fs"
	"os"
)

// RenameNew renames a file or directory. If the new name exists, it returns an fs.ErrExist and changes nothing.
func RenameNew(from, to string) error {
	if err := check("rename", from); err != nil {
		return err
	}
	return renameNew(from, to)
}

// renameChecked is renameNew for systems without an atomic way. If another process creates the new name between the
// check and the rename, rename(2) replaces a file or an empty directory, and fails for any other directory.
func renameChecked(from, to string) error {
	if _, err := os.Lstat(to); err == nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: fs.ErrExist}
	}
	return os.Rename(from, to)
}
