package filter

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
)

// ParseKey parses a key from the command line: plain text, or hex:… or base64:… for any bytes.
func ParseKey(s string) ([]byte, error) {
	if text, ok := strings.CutPrefix(s, "hex:"); ok {
		key, err := hex.DecodeString(text)
		if err != nil {
			return nil, fmt.Errorf("key %q: %w", s, err)
		}
		return key, nil
	}
	if text, ok := strings.CutPrefix(s, "base64:"); ok {
		key, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, fmt.Errorf("key %q: %w", s, err)
		}
		return key, nil
	}
	return []byte(s), nil
}
