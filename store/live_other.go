//go:build !unix && !windows

package store

// CheckLive does nothing: this system does not show the locks of other processes.
func CheckLive(dir, lock string) error { return nil }
