package disk

import (
	"errors"
	"os"
)

// SyncPath makes a file or a directory durable. Windows flushes what is open for writing, and no directory: its file systems
// keep a journal of names.
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
