//go:build !unix

package disk

// MaxOpen is how many files this process may have open at once. Windows has no such limit; this one is on the safe side.
func MaxOpen() int { return defaultMaxOpen }
