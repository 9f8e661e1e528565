package syntax

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"testing"
)

var errOption = errors.New("unknown option")

func unknown([]byte) error { return errOption }

func words(line string) [][]byte { return bytes.Fields([]byte(line)) }

// TestCombination: weights and aggregates are read, and a sum of infinities is 0.
func TestCombination(t *testing.T) {
	for line, want := range map[string]string{
		"": "5 <nil>", "WEIGHTS 2 -1": "1 <nil>", "weights 2 -1 aggregate max": "4 <nil>", "AGGREGATE MIN": "2 <nil>", "AGGREGATE AVG": "ERR syntax error",
		"WEIGHTS 1": "unknown option", "WEIGHTS 1 x": "ERR weight value is not a float", "WITHSCORES": "5 <nil>", "AGGREGATE": "unknown option",
	} {
		var o Combination
		got := fmt.Sprint(o.Read(words(line), 2, false, false, unknown))
		if got == "<nil>" {
			got = fmt.Sprint(o.Aggregate(o.Score(0, 2), o.Score(1, 3)), " ", got)
		}
		if got != want {
			t.Errorf("%q: %s, want %s", line, got, want)
		}
	}
	for _, line := range []string{"WEIGHTS 1 1", "AGGREGATE SUM", "WITHSCORES"} { // of ZDIFFSTORE
		if err := new(Combination).Read(words(line), 2, true, true, unknown); err != errOption {
			t.Errorf("ZDIFFSTORE %s: %v", line, err)
		}
	}
	o := Combination{Weights: []float64{0}}
	if got := sum(math.Inf(1), math.Inf(-1)) + o.Score(0, math.Inf(1)); got != 0 {
		t.Errorf("inf - inf and 0 * inf: %g", got)
	}
}

// TestRange: a range takes the members within its bounds, and of these the ones that LIMIT selects.
func TestRange(t *testing.T) {
	const members = "abcdef" // with the scores 0 to 5
	for line, want := range map[string]string{
		"1 2": "bc <nil>", "-2 -1": "ef <nil>", "4 1": " <nil>", "x 1": " ERR value is not an integer or out of range", "(1 4 BYSCORE": "cde <nil>",
		"1 5 BYSCORE LIMIT 1 2": "cd <nil>", "1 5 BYSCORE LIMIT -1 2": " <nil>", "1 5 BYSCORE LIMIT 2 -1": "def <nil>", "1 5 BYSCORE LIMIT 9 9": " <nil>", "(b + BYLEX": "cdef <nil>",
		"+ [c BYLEX REV": "cdef <nil>", "0 1 BYLEX BYSCORE": " unknown option", "0 1 REV REV": " unknown option",
		"0 1 LIMIT 0 1":              " ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX",
		"[a [b BYLEX WITHSCORES":     " ERR syntax error, WITHSCORES not supported in combination with BYLEX",
		"0 1 BYSCORE LIMIT x 1":      " ERR value is not an integer or out of range",
		"0 1 BYSCORE LIMIT 1":        " unknown option",
		"0 9 BYSCORE LIMIT 0 0":      " <nil>",
		"a b BYSCORE":                " ERR min or max is not a float",
		"0 -1 WITHSCORES WITHSCORES": "abcdef <nil>",
	} {
		var r Range
		var got []byte
		err := r.Read(words(line), unknown)
		n := int64(0)
		from, to := r.Window(int64(len(members)))
		if err == nil {
			for i := range members {
				if !r.Has([]byte(members[i:i+1]), float64(i)) {
					continue
				}
				if n++; n > from && n <= to {
					got = append(got, members[i])
				}
			}
		}
		if got := fmt.Sprintf("%s %v", got, err); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
	fixed := Range{Fixed: true}
	for line, r := range map[string]Range{"0 1 WITHSCORES": {Stores: true}, "0 1 REV": fixed, "0 1 BYLEX": fixed} {
		if err := r.Read(words(line), unknown); err != errOption {
			t.Errorf("%s: %v", line, err)
		}
	}
}
