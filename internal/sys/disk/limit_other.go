//go:build !unix

package disk

// MaxOpen returns the number of files that this process may have open. Windows has no such limit; this is a safe
// value.
func MaxOpen() int { return defaultMaxOpen }
