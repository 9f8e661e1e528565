package testsst

import "os"

// SweepStep returns the distance between the bytes that a sweep over files damages: step, which must be coprime to
// the period of the file's content, or 1 if KVFERRY_SWEEP is "all".
func SweepStep(step int) int {
	if os.Getenv("KVFERRY_SWEEP") == "all" {
		return 1
	}
	return step
}

// SweptAt reports whether a sweep over size bytes damages byte i: the first and last 16 bytes, and every step-th byte
// between them.
func SweptAt(i, size, step int) bool {
	return i < 16 || i >= size-16 || i%SweepStep(step) == 0
}
