package filter

import (
	"bufio"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"kvferry/internal/text/escape"
	"kvferry/record"
)

const (
	// maxKey is the longest key accepted from a list, in bytes. RocksDB is not made for longer ones.
	maxKey = 8 << 20
	// maxLine is the longest line: a key of maxKey bytes in hex.
	maxLine = 2*maxKey + len("hex:") + len("\r\n")
	// keyMemory is the memory of a key besides its bytes.
	keyMemory = 64
)

// byteOrderMark is written by some editors at the start of a text. It could also belong to the first key.
const byteOrderMark = "\ufeff"

var errByteOrderMark = errors.New("line 1 begins with a byte order mark, EF BB BF: " +
	"take it away, or give the key as hex:… when it begins with these bytes")

// ErrKeyMemory means that a list of keys exceeds its memory limit.
var ErrKeyMemory = errors.New("the keys need more memory than is allowed")

// ReadKeys reads a list of keys, one per line, as text, hex:… or base64:…. It returns ErrKeyMemory if the lines
// exceed the memory limit. Empty lines and duplicates count, too, so that reading an endless list ends.
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
		return nil, fmt.Errorf("line %d is longer than any key: at most %s bytes, twice as many in hex", n, record.Number(maxKey))
	case err != nil:
		return nil, err
	}
	return keys, nil
}

// ParseKey parses a key from the command line: plain text, or hex:… or base64:… for any bytes.
func ParseKey(s string) ([]byte, error) {
	if text, ok := strings.CutPrefix(s, "hex:"); ok {
		key, err := hex.DecodeString(text)
		if err != nil {
			return nil, fmt.Errorf("key %q: want pairs of hexadecimal digits after hex:, such as hex:00ff", s)
		}
		return key, nil
	}
	if text, ok := strings.CutPrefix(s, "base64:"); ok {
		key, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, fmt.Errorf("key %q: want padded base64 after base64:, such as base64:AP8=", s)
		}
		return key, nil
	}
	return []byte(s), nil
}

// KeyText formats a key for ParseKey, in one line: as it is if it is visible text, else as hex:….
func KeyText(key []byte) string {
	text := string(key)
	if text == "" || escape.Text(text) != text || strings.HasPrefix(text, "hex:") || strings.HasPrefix(text, "base64:") {
		return "hex:" + hex.EncodeToString(key)
	}
	return text
}
