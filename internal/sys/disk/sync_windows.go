package disk

import (
	"errors"
	"os"
)

// SyncPath makes a file or a directory durable. Windows flushes only handles that are open for writing, and no
// directories: its file systems journal names.
func SyncPath(path string) error {
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		return check("sync", path)
	}
	f, err := OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
