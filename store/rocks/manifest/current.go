package manifest

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"kvferry/internal/sys/disk"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/base"
)

// CurrentName is the name of the file with the name of the MANIFEST.
const CurrentName = "CURRENT"

// maxCurrent bounds CURRENT, which is the name of a file.
const maxCurrent = 4 << 10

// Current returns the name in CURRENT. Without CURRENT the error depends on the other files: see notStore.
func Current(dir string) (string, error) {
	b, err := store.ReadHead(disk.Join(dir, CurrentName), maxCurrent)
	if st, serr := disk.Stat(dir); errors.Is(err, fs.ErrNotExist) || serr == nil && !st.IsDir() {
		return "", notStore(dir)
	}
	if err != nil {
		return "", err
	}
	name, ok := strings.CutSuffix(string(b), "\n")
	if _, isManifest := manifestNumber(name); !ok || !isManifest {
		return "", base.Corrupt(disk.Join(dir, CurrentName), 0, "manifest name",
			fmt.Errorf("have %s, want \"MANIFEST-<number>\\n\"", record.Quote(b)))
	}
	return name, nil
}

// manifestNumber returns the number in the name of a MANIFEST; false if it is not one.
func manifestNumber(name string) (uint64, bool) {
	digits, ok := strings.CutPrefix(name, "MANIFEST-")
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, ok && err == nil
}

// notStore returns the error for a directory without CURRENT: store.MissingError for a database, else ErrNotStore.
func notStore(dir string) error {
	st, err := disk.Stat(dir)
	if err != nil {
		return err
	}
	if !st.IsDir() {
		return fmt.Errorf("%s: %w: it is a file", dir, store.ErrNotStore)
	}
	if IsStore(dir) {
		return &store.MissingError{File: disk.Join(dir, CurrentName)}
	}
	entries, err := disk.ReadDir(dir)
	if err != nil {
		return err
	}
	if len(entries) == 0 {
		return fmt.Errorf("%s: %w: it is empty", dir, store.ErrNotStore)
	}
	var names []string
	for _, e := range entries[:min(len(entries), 5)] {
		names = append(names, e.Name())
	}
	more := ""
	if n := len(entries) - len(names); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return fmt.Errorf("%s: %w: there is no %s, only %s%s", dir, store.ErrNotStore, CurrentName, strings.Join(names, ", "), more)
}

// IsStore reports whether a directory is a database, or was one: without CURRENT the other files of an engine show it.
func IsStore(dir string) bool {
	if _, err := disk.Lstat(disk.Join(dir, CurrentName)); err == nil {
		return true
	}
	entries, err := disk.ReadDir(dir)
	var tables, signed bool
	for _, e := range entries {
		switch name := e.Name(); {
		case strings.HasPrefix(name, "MANIFEST-"):
			return err == nil
		case strings.HasPrefix(name, "OPTIONS-"), name == "IDENTITY", name == "LOCK":
			signed = true
		}
		ext := filepath.Ext(e.Name())
		tables = tables || base.IsTable(ext)
	}
	return err == nil && tables && signed
}
