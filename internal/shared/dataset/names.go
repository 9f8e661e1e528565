// Package dataset is shared by formats that keep each type in its own store: a dataset is one or several databases, a
// database a fixed set of directories, each a store.
//
//	dump/strings  dump/hashes  …        one database, in the root
//	dump/db0/strings  dump/db0/hashes   several, in directories by their numbers
//	dump/db12/strings  …
//
// The meaning of rows is up to the formats: they embed Source and Target.
package dataset

import (
	"path"
	"strings"

	"kvferry/internal/sys/disk"
)

// InfoFile is the file that Pika's bgsave writes beside the stores.
const InfoFile = "info"

// PikaStart is how all versions of Pika find a target, see format.Limits.
const PikaStart = "Set `db-path` in pika.conf to `{path}` and `databases` to {databases}."

// PikaBeside lists the directories that Pika keeps beside its data: backups, dumps for replicas, and logs.
var PikaBeside = []string{"bgsave", "dbsync", "dump", "log"}

// IsDB reports whether a directory name belongs to a database in LayoutDB.
func IsDB(name string) bool {
	digits, ok := strings.CutPrefix(name, "db")
	return ok && IsNumber(digits)
}

// IsNumber reports whether s is a decimal number without leading zeros, as in directory names.
func IsNumber(s string) bool {
	if s == "" || s[0] == '0' && s != "0" {
		return false
	}
	return strings.Trim(s, "0123456789") == ""
}

// InfoFiles returns the info files that lie in some directories of a dataset, relative to its root, whatever they are.
func InfoFiles(root string, dirs []string) []string {
	var out []string
	for _, dir := range dirs {
		rel := path.Join(dir, InfoFile)
		if _, err := disk.Lstat(disk.Join(root, rel)); err == nil {
			out = append(out, rel)
		}
	}
	return out
}
