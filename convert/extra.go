package convert

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"kvferry/format"
)

// maxInfo is how much of an info file is looked at.
const maxInfo = 1 << 16

// copyExtra carries the files beside the stores over into the target, and returns the lines that
// make a server built on it follow the old one.
func copyExtra(src format.Source, from, to string) ([]string, error) {
	var lines []string
	for _, rel := range src.Extra() {
		data, err := os.ReadFile(filepath.Join(from, filepath.FromSlash(rel)))
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(extraPath(to, rel), data, 0o644); err != nil {
			return nil, err
		}
		if line, ok := slaveOf(data); ok {
			lines = append(lines, line)
		}
	}
	return lines, nil
}

// extraPath is the same place in the target, or its root when it has no such directory.
func extraPath(to, rel string) string {
	path := filepath.Join(to, filepath.FromSlash(rel))
	if st, err := os.Stat(filepath.Dir(path)); err == nil && st.IsDir() {
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
	lines := bytes.Split(info[:min(len(info), maxInfo)], []byte("\n"))
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
