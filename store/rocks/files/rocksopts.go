package files

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"kvferry/internal/sys/disk"
	"kvferry/store"
)

// most bounds an OPTIONS file. With many column families it has some hundred KiB.
const most = 16 << 20

// Option returns the value of an option in the newest OPTIONS file of a database, and the name of the file; both are ""
// without such a file.
func Option(dir, option string) (value, file string, err error) {
	lines, file, err := newest(dir)
	for _, line := range lines {
		if v, ok := strings.CutPrefix(line, option+"="); ok {
			value = v
		}
	}
	return value, file, err
}

// Family is a column family of an OPTIONS file.
type Family struct{ Name, Comparator string }

// Families lists the column families in the newest OPTIONS file of a database, in the order of their ids.
func Families(dir string) (out []Family, err error) {
	lines, _, err := newest(dir)
	for _, line := range lines {
		if name, ok := strings.CutPrefix(line, `[CFOptions "`); ok {
			out = append(out, Family{Name: strings.TrimSuffix(name, `"]`)})
		}
		if c, ok := strings.CutPrefix(line, "comparator="); ok && len(out) > 0 {
			out[len(out)-1].Comparator = c
		}
	}
	return out, err
}

// newest returns the lines and the name of the newest OPTIONS file; the name is "" without such a file.
func newest(dir string) (lines []string, file string, err error) {
	matches, err := disk.Glob(dir, "OPTIONS-*")
	if err != nil {
		return nil, "", err
	}
	var newest uint64
	for _, m := range matches {
		n, err := strconv.ParseUint(strings.TrimPrefix(filepath.Base(m), "OPTIONS-"), 10, 64)
		if err == nil && n >= newest {
			newest, file = n, m
		}
	}
	if file == "" {
		return nil, "", nil
	}
	b, err := store.ReadHead(file, most)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	for line := range strings.Lines(string(b)) {
		lines = append(lines, strings.TrimSpace(line))
	}
	return lines, filepath.Base(file), nil
}

// VersionAtLeast reports whether a version of RocksDB, such as 8.7.3, is major.minor or later. An invalid version is not.
func VersionAtLeast(version string, major, minor int) bool {
	a, rest, _ := strings.Cut(version, ".")
	b, _, _ := strings.Cut(rest, ".")
	x, err := strconv.Atoi(a)
	y, err2 := strconv.Atoi(b)
	return err == nil && err2 == nil && (x > major || x == major && y >= minor)
}
