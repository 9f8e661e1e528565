package work

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"kvferry/internal/sys/disk"
)

// linkTable links a table of a part to the data of another work directory, or copies it on a file system without links.
func linkTable(from, to, file string) error {
	if !filepath.IsLocal(filepath.FromSlash(file)) {
		return fmt.Errorf("%s: its table %q lies outside", from, file)
	}
	src := filepath.Join((&Dir{Path: from}).Data(), filepath.FromSlash(file))
	dst := filepath.Join((&Dir{Path: to}).Data(), filepath.FromSlash(file))
	if err := disk.MkdirAll(filepath.Dir(dst)); err != nil {
		return err
	}
	err := disk.Link(src, dst)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return copyTable(src, dst)
}

// copyTable copies a file; the copy has its name only when it is complete.
func copyTable(src, dst string) error {
	in, err := disk.Open(src)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := disk.Create(dst + halfSuffix)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Sync(), out.Close()); err != nil {
		return err
	}
	return disk.Rename(dst+halfSuffix, dst)
}

// syncDirs syncs the directories of a tree, whose files are durable. It need not exist.
func syncDirs(dir string) error {
	err := disk.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			err = disk.SyncPath(path)
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
