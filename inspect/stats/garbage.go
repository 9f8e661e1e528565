package stats

import (
	"cmp"
	"maps"
	"slices"

	"kvferry/format"
	"kvferry/inspect"
	"kvferry/record"
	"kvferry/store"
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
	return g.Rows[record.Copied] + g.Rows[record.Index] + g.Rows[record.Filtered] + g.Rows[record.Lost] + g.Rows[record.Housekeeping]
}

// garbage builds the lines from the ledger of a pass.
func garbage(src format.Source, l *record.Ledger) []Garbage {
	sizes := make(map[string]int64)
	for _, k := range src.Keyspaces() {
		sizes[k.Name] += k.Size()
		sizes["db"+k.DB+"/"+k.Name] = k.Size()
		sizes[k.DB+"/"+k.Name] = k.Size()
	}
	var out []Garbage
	tallies := l.Snapshot()
	for _, name := range slices.SortedFunc(maps.Keys(tallies), record.CompareNames) {
		g := Garbage{Keyspace: name, Tally: tallies[name], Bytes: sizes[name]}
		g.Freed = g.share(g.Bytes)
		out = append(out, g)
	}
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
			if g := &lines[i]; g.Keyspace == b.Keyspace {
				g.Freed = b.Garbage + g.share(max(0, g.Bytes-b.Garbage))
			}
		}
	}
}

// Files sums up the files of a dataset.
type Files struct {
	Levels []Level
	Blobs  []Level // blob files, by keyspace
	Logs   Level   // write-ahead logs
	Other  Level   // MANIFEST and the like
	Whole  Level   // all files of a source without stores
}

// Sum counts all files and their bytes.
func (f *Files) Sum() (files int, bytes int64) {
	files, bytes = f.Logs.Files+f.Other.Files+f.Whole.Files, f.Logs.Bytes+f.Other.Bytes+f.Whole.Bytes
	for _, l := range slices.Concat(f.Levels, f.Blobs) {
		files, bytes = files+l.Files, bytes+l.Bytes
	}
	return files, bytes
}

// Level sums up the tables of one level of one keyspace, or its blob files.
type Level struct {
	Keyspace string
	Level    int
	Files    int
	Bytes    int64
	Entries  int64
	Deletes  int64 // tombstones
	Garbage  int64 // unused bytes of blob files
	// Unknown counts files without a number of entries.
	Unknown int
	Codecs  []string
	MaxSeq  uint64
}

// fileStats sums up the files of all stores.
func fileStats(src format.Source, stores *inspect.Stores) Files {
	var out Files
	if f, ok := format.As[format.Filed](src); ok {
		out.Whole.Files, out.Whole.Bytes = f.Files()
	}
	levels, blobs := make(map[string]map[int]*Level), make(map[string]*Level)
	for _, st := range stores.All() {
		names := make(map[string]string)
		for _, ks := range st.Keyspaces() {
			names[ks.Name()] = inspect.Placed(st.Dir, ks.Name())
		}
		for _, f := range st.Files() {
			switch f.Kind {
			case "table", "data":
				name := names[f.Keyspace]
				if name == "" {
					name = st.Dir
				}
				if levels[name] == nil {
					levels[name] = make(map[int]*Level)
				}
				if levels[name][f.Level] == nil {
					levels[name][f.Level] = &Level{Keyspace: name, Level: f.Level}
				}
				levels[name][f.Level].add(&f)
			case "blobs":
				name := names[f.Keyspace]
				if blobs[name] == nil {
					blobs[name] = &Level{Keyspace: name, Level: f.Level}
				}
				blobs[name].add(&f)
			case "log":
				out.Logs.add(&f)
			default:
				out.Other.add(&f)
			}
		}
	}
	for _, byLevel := range levels {
		for _, l := range byLevel {
			out.Levels = append(out.Levels, *l)
		}
	}
	for _, name := range slices.SortedFunc(maps.Keys(blobs), record.CompareNames) {
		out.Blobs = append(out.Blobs, *blobs[name])
	}
	slices.SortFunc(out.Levels, func(a, b Level) int {
		return cmp.Or(record.CompareNames(a.Keyspace, b.Keyspace), cmp.Compare(a.Level, b.Level))
	})
	return out
}

func (l *Level) add(f *store.File) {
	l.Files++
	l.Bytes += f.Size
	l.MaxSeq = max(l.MaxSeq, f.MaxSeq)
	if f.Entries < 0 {
		l.Unknown++
	} else {
		l.Entries += f.Entries
	}
	l.Deletes += max(0, f.Deletes)
	l.Garbage += f.Garbage
	if f.Codec != "" && !slices.Contains(l.Codecs, f.Codec) {
		l.Codecs = append(l.Codecs, f.Codec)
		slices.Sort(l.Codecs)
	}
}
