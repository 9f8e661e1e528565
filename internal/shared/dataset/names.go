// Package dataset is what formats share that keep every type in a store of its own: a dataset is one
// database or several, a database the same few directories, each a store.
//
//	dump/strings  dump/hashes  …        one database, in the root
//	dump/db0/strings  dump/db0/hashes   several, in directories by their numbers
//	dump/db12/strings  …
//
// What the rows mean is up to the formats: they embed Source and Target.
package dataset

import (
	"path"
	"path/filepath"
	"strings"

	"kvferry/internal/sys/disk"
)

// InfoFile is what Pika's bgsave leaves beside the stores.
const InfoFile = "info"

// PikaBeside are the directories that Pika keeps beside its data: backups, what it sends to replicas, and logs.
var PikaBeside = []string{"bgsave", "dbsync", "dump", "log"}

// DefaultMemory is what passes and shards may buffer when nothing else is said.
const DefaultMemory = 64 << 20

// IsDB reports whether a directory name is that of a database in LayoutDB.
func IsDB(name string) bool {
	digits, ok := strings.CutPrefix(name, "db")
	return ok && IsNumber(digits)
}

// IsNumber reports whether s is a decimal number as directories are named by.
func IsNumber(s string) bool {
	if s == "" || s[0] == '0' && s != "0" {
		return false
	}
	return strings.Trim(s, "0123456789") == ""
}

// InfoFiles returns the info files that lie in some directories of a dataset, relative to its root.
func InfoFiles(root string, dirs []string) []string {
	var out []string
	for _, dir := range dirs {
		rel := path.Join(dir, InfoFile)
		if st, err := disk.Stat(filepath.Join(root, rel)); err == nil && st.Mode().IsRegular() {
			out = append(out, rel)
		}
	}
	return out
}
