package stats

import (
	"maps"
	"slices"

	"kvferry/record"
)

// Garbage counts the rows of a keyspace that are not live.
type Garbage struct {
	Keyspace string
	record.Tally
	Bytes int64 // on disk
	// Freed estimates the bytes that a conversion frees: the share of entries that are not live, at
	// the average size of the keyspace.
	Freed int64
}

// Live returns the number of rows that a conversion keeps.
func (g *Garbage) Live() int64 {
	return g.Rows[record.Copied] + g.Rows[record.Index] + g.Rows[record.Filtered] + g.Rows[record.Lost] +
		g.Rows[record.Housekeeping]
}

// Garbage builds the lines from the ledger of a pass.
func (f *Facts) Garbage(l *record.Ledger) []Garbage {
	sizes := make(map[string]int64)
	for _, k := range f.Keyspaces {
		db, name := string(k.DB), string(k.Name)
		sizes[name] += k.Bytes
		sizes["db"+db+"/"+name] = k.Bytes
		sizes[db+"/"+name] = k.Bytes
	}
	var out []Garbage
	tallies := l.Snapshot()
	for _, name := range slices.SortedFunc(maps.Keys(tallies), record.CompareNames) {
		g := Garbage{Keyspace: name, Tally: tallies[name], Bytes: sizes[name]}
		g.Freed = g.share(g.Bytes)
		out = append(out, g)
	}
	freeBlobs(out, f.Files.Blobs)
	return out
}

// share returns the share of bytes taken by entries that are not live.
func (g *Garbage) share(bytes int64) int64 {
	if g.Entries == 0 {
		return 0
	}
	return int64(float64(bytes) * float64(max(0, g.Entries-g.Live())) / float64(g.Entries))
}

// freeBlobs corrects Freed for keyspaces with blob files: their garbage is known exactly, so only the rest is
// estimated.
func freeBlobs(lines []Garbage, blobs []Level) {
	for _, b := range blobs {
		for i := range lines {
			if g := &lines[i]; g.Keyspace == string(b.Keyspace) {
				g.Freed = b.Garbage + g.share(max(0, g.Bytes-b.Garbage))
			}
		}
	}
}
