// Package seed gives random tests their seed: always the same one, so that a red run means a change of the code, or the
// one in KVFERRY_SEED. make faults sets a new one each time.
package seed

import (
	"os"
	"strconv"
	"testing"
)

const variable = "KVFERRY_SEED"

// Of returns the seed of a test and logs it.
func Of(t testing.TB) int64 {
	t.Helper()
	seed := int64(20261128)
	if s := os.Getenv(variable); s != "" {
		var err error
		if seed, err = strconv.ParseInt(s, 10, 64); err != nil {
			t.Fatalf("%s: %v", variable, err)
		}
	}
	t.Logf("%s=%d", variable, seed)
	return seed
}
