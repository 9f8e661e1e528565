package filter

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
)

const (
	// maxKey is the longest key that is taken from a list, in bytes: what RocksDB is made for.
	maxKey = 8 << 20
	// maxLine is the longest line, which is such a key in hex.
	maxLine = 2*maxKey + len("hex:") + len("\r\n")
	// keyMemory is what a key takes in memory besides its bytes.
	keyMemory = 64
)

// byteOrderMark is what some editors begin a text with. Nobody can tell whether it is of the first key.
const byteOrderMark = "\ufeff"

var errByteOrderMark = errors.New("line 1 begins with a byte order mark, EF BB BF: " +
	"take it away, or give the key as hex:… when it begins with these bytes")

// ErrKeyMemory says that a list of keys takes more memory than it may.
var ErrKeyMemory = errors.New("the keys need more memory than is allowed")

// ReadKeys reads a list of keys, one a line, as --key-file has them: text, hex:… or base64:…. It stops with
// ErrKeyMemory before they take more than some bytes of memory; every line counts, so that the list has an end.
func ReadKeys(r io.Reader, memory int64) (map[string]struct{}, error) {
	longest := int(min(memory, int64(maxLine)))
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, longest)
	keys := map[string]struct{}{}
	var held int64
	n := 1
	for ; lines.Scan(); n++ {
		line := lines.Text()
		if held += int64(len(line)) + keyMemory; held > memory {
			return nil, fmt.Errorf("line %d: %w", n, ErrKeyMemory)
		}
		if line == "" {
			continue
		}
		if n == 1 && strings.HasPrefix(line, byteOrderMark) {
			return nil, errByteOrderMark
		}
		key, err := ParseKey(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		keys[string(key)] = struct{}{}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong) && longest < maxLine:
		return nil, fmt.Errorf("line %d: %w", n, ErrKeyMemory)
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf("line %d is longer than any key: at most %d bytes, twice as many in hex", n, maxKey)
	case err != nil:
		return nil, err
	}
	return keys, nil
}
