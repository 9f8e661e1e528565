package suggest

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"kvferry/internal/sys/disk"
	"kvferry/internal/sys/object"
	"kvferry/internal/text/escape"
)

// Path returns the end of an error message about a path that does not exist: the directory that is missing, and paths
// like this one.
func Path(path string) string {
	if object.IsAddress(path) {
		return ""
	}
	missing, rest, advice := filepath.Clean(path), "", ""
	for {
		dir, name := filepath.Split(missing)
		entries, err := disk.ReadDir(filepath.Clean(dir))
		if parent := filepath.Clean(dir); errors.Is(err, fs.ErrNotExist) && parent != missing {
			missing, rest = parent, filepath.Join(name, rest)
			advice = "; there is no directory " + escape.Text(missing)
			continue
		}
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		meant := Nearest(name, names)
		for i := range meant {
			meant[i] = filepath.Join(dir, meant[i], rest)
		}
		meant = slices.DeleteFunc(meant, func(p string) bool { _, err := disk.Lstat(p); return err != nil })
		return advice + didYouMean(meant)
	}
}
