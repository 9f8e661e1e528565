package convert

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"

	"kvferry/format"
	"kvferry/internal/sys/disk"
	"kvferry/store"
)

// maxInfo limits the bytes read of an info file.
const maxInfo = 1 << 16

// eachExtra calls f with each file beside the stores that is a regular file of the dataset, and its path. The others are
// findings.
func eachExtra(src format.Source, from string, f func(rel, path string) error) error {
	for _, rel := range src.Extra() {
		path, err := store.Inside(from, rel)
		if errors.Is(err, store.ErrNotRegular) {
			continue
		}
		if err == nil {
			err = f(rel, path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// copyExtra copies the files beside the stores to the target.
func copyExtra(src format.Source, from, to string) error {
	return eachExtra(src, from, func(rel, path string) error { return copyFile(path, extraPath(to, rel)) })
}

// sameExtra compares the other files of a target with their originals in the source.
func sameExtra(src format.Source, from, to string) error {
	return eachExtra(src, from, func(rel, path string) error {
		copied := extraPath(to, rel)
		want, err := store.ReadHead(path, maxExtra+1)
		if err != nil {
			return err
		}
		if got, err := disk.ReadFile(copied); err != nil || !bytes.Equal(got, want) {
			return cmp.Or(err, fmt.Errorf("%s: it differs from the file that was copied", copied))
		}
		return nil
	})
}

// maxExtra limits the size of a file beside the stores. Servers write about a hundred bytes.
const maxExtra = 64 << 20

// copyFile copies a small file.
func copyFile(from, to string) (err error) {
	src, err := store.OpenRegular(from)
	if err != nil {
		return err
	}
	defer closing(&err, src.Close)
	dst, err := disk.Create(to)
	if err != nil {
		return err
	}
	defer closing(&err, dst.Close)
	n, err := io.Copy(dst, io.LimitReader(src, maxExtra+1))
	if err == nil && n > maxExtra {
		err = fmt.Errorf("%s: larger than %d MiB, so no server wrote it; move it out of the dataset", from, maxExtra>>20)
	}
	return err
}

// Following describes how servers on the target can continue to replicate from the old servers, from the end of the
// dump on.
type Following struct {
	Commands   []string `json:"commands"`
	Conditions []string `json:"conditions"` // that the commands need
}

// following returns how servers on the target can follow the old ones, or nil if they cannot.
func following(src format.Source, target format.Format, from string) (*Following, error) {
	f, ok := target.(format.Follower)
	if !ok {
		return nil, nil
	}
	conditions, ok := f.Follows(src.Format().Name())
	if !ok {
		return nil, nil
	}
	lines, err := followLines(src, from)
	if len(lines) == 0 || err != nil {
		return nil, err
	}
	return &Following{lines, conditions}, nil
}

// followLines returns the replication commands derived from the info files of a dump.
func followLines(src format.Source, from string) ([]string, error) {
	var lines []string
	err := eachExtra(src, from, func(_, path string) error {
		info, err := store.ReadHead(path, maxInfo)
		if line, ok := slaveOf(info); ok {
			lines = append(lines, line)
		}
		return err
	})
	return lines, err
}

// extraPath returns the path of an extra file in the target: in the same directory, or in the root if the target
// lacks that directory.
func extraPath(to, rel string) string {
	path := filepath.Join(to, filepath.FromSlash(rel))
	if st, err := disk.Stat(filepath.Dir(path)); err == nil && st.IsDir() {
		return path
	}
	return filepath.Join(to, filepath.Base(path))
}

// slaveOf reads the info file that Pika's BGSAVE leaves:
//
//	line 1  seconds that the dump took, "3s"
//	line 2  host
//	line 3  port
//	line 4  number of the binlog file
//	line 5  offset in it
//
// More lines may follow. It returns the command for the new server.
func slaveOf(info []byte) (string, bool) {
	lines := bytes.Split(info, []byte("\n"))
	if len(lines) < 5 {
		return "", false
	}
	host := string(bytes.TrimSpace(lines[1]))
	var numbers [3]uint64
	for i := range numbers {
		n, err := strconv.ParseUint(string(bytes.TrimSpace(lines[2+i])), 10, 64)
		if err != nil {
			return "", false
		}
		numbers[i] = n
	}
	if host == "" {
		return "", false
	}
	return fmt.Sprintf("slaveof %s %d %d %d", host, numbers[0], numbers[1], numbers[2]), true
}

// closing joins the error of a close to an earlier one.
func closing(err *error, close func() error) {
	*err = errors.Join(*err, close())
}
