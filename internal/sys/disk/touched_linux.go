package disk

import (
	"io/fs"
	"syscall"
)

// touched reports whether a file changed since, whatever its time of modification says: it can be set, unlike that of the last
// change. Links made and removed, as backups and snapshots do, are such changes and leave the content alone.
func touched(was, is fs.FileInfo) bool {
	a, okA := was.Sys().(*syscall.Stat_t)
	b, okB := is.Sys().(*syscall.Stat_t)
	return okA && okB && a.Nlink == b.Nlink && a.Ctim != b.Ctim
}
