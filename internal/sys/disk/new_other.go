//go:build !linux && !windows

package disk

// renameNew renames without replacing. It is not atomic.
func renameNew(from, to string) error { return renameChecked(from, to) }
