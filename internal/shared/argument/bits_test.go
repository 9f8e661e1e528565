package argument

import (
	"bytes"
	"slices"
	"testing"
)

func TestBitOps(t *testing.T) {
	for line, want := range map[string][]BitOp{
		"GET u63 7": {{Kind: 'G', Width: 63, Off: 7, Overflow: 'W'}},
		"set i64 #2 -5 overflow sat INCRBY u4 0 3 OVERFLOW FAIL OVERFLOW WRAP": {
			{Kind: 'S', Signed: true, Width: 64, Off: 128, Value: -5, Overflow: 'W'}, {Kind: 'I', Width: 4, Value: 3, Overflow: 'S'}},
		"GET i64 #9223372036854775807": {{Kind: 'G', Signed: true, Width: 64, Off: 64 * MaxBit, Overflow: 'W'}},
		"":                             nil,
	} {
		if got, err := ParseBitOps(bytes.Fields([]byte(line))); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v", line, got, err)
		}
	}
	for _, line := range []string{"GET u64 0", "GET x8 0", "GET i 0", "GET i65 0", "GET u8 -1", "GET u8 x", "GET u8", "SET u8 0",
		"SET u8 0 x", "OVERFLOW", "OVERFLOW x", "x"} {
		if ops, err := ParseBitOps(bytes.Fields([]byte(line))); err == nil {
			t.Error(line, ops)
		}
	}
}
