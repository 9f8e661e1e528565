package testsst

import (
	"os"
	"testing"
	"time"
)

// tail is where a file says how the rest is to be read.
const tail = 64

// FlipBits changes bits of a file one by one, and requires that check returns an error for each. It changes one of rarely
// bits of the first and last 4 KiB, others every day, and more of the last bytes.
func FlipBits(t testing.TB, path string, rarely int, check func() error) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write := func() {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const end = 4 << 10
	day := time.Now().UTC().YearDay()
	for at := range data {
		if at >= end && at < len(data)-end {
			continue
		}
		step := rarely
		if at >= len(data)-tail {
			step = max(1, rarely/64)
		}
		for bit := range 8 {
			if (8*at+bit+day)%step != 0 {
				continue
			}
			data[at] ^= 1 << bit
			write()
			if check() == nil {
				t.Errorf("%s: bit %d of byte %d of %d passes", path, bit, at, len(data))
			}
			data[at] ^= 1 << bit
		}
	}
	write()
	if check() != nil {
		t.Errorf("%s: %v", path, check())
	}
}
