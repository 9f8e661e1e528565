package bufpool

import (
	"bytes"
	"encoding/base64"
	"testing"
)

// TestPieces checks that the spilled pieces and the rest add up to the value.
func TestPieces(t *testing.T) {
	value := bytes.Repeat([]byte("0123456789"), Piece/4)
	for _, n := range []int{0, Piece, Piece + 1, len(value)} {
		var out []byte
		spills := 0
		spill := Spill(func(text []byte) []byte {
			spills++
			out = append(out, text...)
			return text[:0]
		})
		rest := spill.Append([]byte("before"), value[:n])
		if got := string(append(out, rest...)); got != "before"+string(value[:n]) || spills != max(n-1, 0)/Piece {
			t.Errorf("%d bytes: %d come out after %d spills", n, len(got), spills)
		}
		out = nil
		if got := string(spill.AppendBase64(nil, value[:n])); string(out)+got != base64.StdEncoding.EncodeToString(value[:n]) {
			t.Errorf("%d bytes: other base64", n)
		}
	}
	if Spill(nil).Long(value) {
		t.Error("nothing to spill to, and a value goes out in pieces")
	}
}
