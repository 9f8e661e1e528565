package filter

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"

	"kvferry/internal/text/escape"
)

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
