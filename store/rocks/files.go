package rocks

import (
	"slices"

	"kvferry/store"
	"kvferry/store/rocks/lsm"
	"kvferry/store/rocks/manifest"
)

// Files lists CURRENT, the MANIFEST, the needed logs and all existing tables and blob files.
func (db *database) Files() []store.File {
	var out []store.File
	if !db.version.Rebuilt {
		out = []store.File{
			{Path: manifest.CurrentName, Kind: "current", Size: int64(len(db.version.Name) + 1), Entries: -1, Deletes: -1},
			{Path: db.version.Name, Kind: "manifest", Size: db.version.Size, Entries: -1, Deletes: -1},
		}
	}
	for _, l := range db.logs {
		out = append(out, store.File{Path: l.name, Kind: "log", Size: l.file.Size, Entries: l.entries, Deletes: -1})
	}
	for _, ks := range db.spaces {
		for _, t := range ks.Tables {
			if !t.Missing() {
				out = append(out, describe(t))
			}
		}
		for _, b := range ks.blobs.order {
			if b.file != nil {
				out = append(out, b.describe())
			}
		}
	}
	return out
}

// describe returns a table as listed by Files. Unreadable fields stay unknown: reading the rows returns the error.
func describe(t *lsm.Table) store.File {
	f := store.File{Path: t.Name, Kind: "table", Keyspace: t.Keyspace, Level: t.Level, Size: t.Size, Lacks: t.Lacks,
		Entries: -1, Deletes: -1, Smallest: slices.Clone(t.First), Largest: slices.Clone(t.Last),
		MinSeq: t.MinSeq, MaxSeq: t.MaxSeq}
	if r, ok := t.Source.(*tableSource); ok {
		if info, err := r.Reader.Open(); err == nil {
			f.Entries, f.Deletes = info.Entries, info.Deletes
			f.Codec = r.Codec()
		}
	}
	return f
}
