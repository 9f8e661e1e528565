package build

import (
	"cmp"
	"os"

	"kvferry/internal/sys/disk"
)

// writeFile writes a small file and makes it durable.
func writeFile(path string, data []byte) error {
	f, err := disk.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	err = cmp.Or(err, f.Close())
	return err
}
