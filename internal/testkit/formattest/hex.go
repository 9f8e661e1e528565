package formattest

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
)

// Unhex decodes hexadecimal digits. x*n stands in the text for n copies of the byte x.
func Unhex(t testing.TB, text string) (out []byte) {
	t.Helper()
	for _, f := range strings.Fields(text) {
		digits, times, _ := strings.Cut(f, "*")
		b, err := hex.DecodeString(digits)
		if err != nil {
			t.Fatal(err)
		}
		n := 1
		fmt.Sscan(times, &n)
		for range n {
			out = append(out, b...)
		}
	}
	return out
}
