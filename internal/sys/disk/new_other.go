//go:build !linux && !windows

package disk

// renameNew renames and refuses to replace, as far as the system allows.
func renameNew(from, to string) error { return renameChecked(from, to) }
