package work

import (
	"cmp"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"kvferry/internal/sys/disk"
)

// maxDepth limits the directory levels below a source. Stores are at most four levels deep, and symbolic links may
// lead anywhere.
const maxDepth = 6

// File is a file of the source.
type File struct {
	Path  string    `json:"path"`
	Size  int64     `json:"size"`
	MTime time.Time `json:"mtime"`
	// Real is the resolved path if a symbolic link leads to the file.
	Real string `json:"real,omitempty"`
	// Version differs for different contents of an object in an object store; "" for a file on disk.
	Version string `json:"version,omitempty"`

	info fs.FileInfo // nil if it was read from JSON
}

// Real returns the absolute path of a file with symbolic links resolved.
func Real(path string) (string, error) {
	path, err := disk.Abs(path)
	if err != nil {
		return "", err
	}
	return disk.EvalSymlinks(path)
}

// List lists the files below dir, also behind symbolic links, with the attributes that reveal changes.
func List(dir string) ([]File, error) {
	var out []File
	err := disk.WalkTree(dir, func(rel string, info fs.FileInfo, linked bool) error {
		if info.IsDir() {
			if strings.Count(rel, "/") >= maxDepth {
				return fs.SkipDir
			}
			return nil
		}
		f := File{Path: rel, Size: info.Size(), MTime: info.ModTime().UTC(), Version: disk.Version(info), info: info}
		if linked && info.Mode()&fs.ModeSymlink == 0 {
			var err error
			if f.Real, err = Real(disk.Join(dir, filepath.FromSlash(rel))); err != nil {
				return err
			}
		}
		out = append(out, f)
		return nil
	})
	slices.SortFunc(out, func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
	return out, err
}

// same returns nil if all files are unchanged. Otherwise the error names a file that differs.
func same(was, is []File) error {
	have := make(map[string]File, len(is))
	for _, f := range is {
		have[f.Path] = f
	}
	for _, f := range was {
		g, ok := have[f.Path]
		switch {
		case !ok:
			return fmt.Errorf("%s is gone", f.name())
		case g.Real != f.Real:
			return fmt.Errorf("%s is at %s now, was at %s", f.name(), cmp.Or(g.Real, "(none)"), cmp.Or(f.Real, "(none)"))
		case g.Size != f.Size:
			return fmt.Errorf("%s has %d bytes, had %d", f.name(), g.Size, f.Size)
		case g.Version != f.Version:
			return fmt.Errorf("%s was replaced at %s", f.name(), g.MTime.Format(time.RFC3339))
		case !g.MTime.Equal(f.MTime):
			return fmt.Errorf("%s was modified at %s", f.name(), g.MTime.Format(time.RFC3339))
		}
		delete(have, f.Path)
	}
	for _, f := range have {
		return fmt.Errorf("%s is new", f.name())
	}
	return nil
}

// untouched returns nil unless a file of both lists was changed by its ctime, which other programs cannot set.
func untouched(was, is []File) error {
	have := make(map[string]fs.FileInfo, len(is))
	for _, f := range is {
		have[f.Path] = f.info
	}
	for _, f := range was {
		if now := have[f.Path]; f.info != nil && now != nil && disk.Touched(f.info, now) {
			return fmt.Errorf("%s was written to, or its attributes were changed", f.name())
		}
	}
	return nil
}

// name returns the path, or "the file" if the dataset is a single file.
func (f *File) name() string {
	if f.Path == "." {
		return "the file"
	}
	return f.Path
}

// Source returns the real path of a source and its files. walDir is the directory of its logs, "" if they are in the
// source.
func Source(location, walDir string) (path string, files []File, err error) {
	path = location
	if isPath(location) {
		if path, err = Real(location); err == nil {
			files, err = List(path)
		}
	}
	if err != nil || walDir == "" {
		return path, files, err
	}
	logs, err := List(walDir)
	for _, f := range logs {
		f.Path = "wal-dir:" + f.Path
		files = append(files, f)
	}
	return path, files, err
}
