//go:build !windows

package disk

import "errors"

// SyncPath makes a file or a directory durable.
func SyncPath(path string) error {
	f, err := Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
