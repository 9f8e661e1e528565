//go:build !unix && !windows

package store

// CheckLive always returns nil: this system does not show the locks of other processes.
func CheckLive(dir, lock string) error { return nil }
