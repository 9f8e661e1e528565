package testsst

import "os"

// SweepStep is how far apart the bytes are that a sweep over files damages: step, which has no common divisor with what
// files repeat, or every byte where KVFERRY_SWEEP is "all".
func SweepStep(step int) int {
	if os.Getenv("KVFERRY_SWEEP") == "all" {
		return 1
	}
	return step
}

// SweptAt reports whether a sweep over size bytes takes the one at i: the first and last 16, and each step-th between.
func SweptAt(i, size, step int) bool {
	return i < 16 || i >= size-16 || i%SweepStep(step) == 0
}
