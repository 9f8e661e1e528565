package disk

import (
	"io/fs"
	"syscall"
)

// touched reports whether the ctime of a file changed. Programs can set the modification time, but not the ctime.
// Backups and snapshots add and remove links: that changes the ctime, too, but not the content, so a new link count
// does not count.
func touched(was, is fs.FileInfo) bool {
	a, okA := was.Sys().(*syscall.Stat_t)
	b, okB := is.Sys().(*syscall.Stat_t)
	return okA && okB && a.Nlink == b.Nlink && a.Ctim != b.Ctim
}
