package stats

import (
	"cmp"
	"maps"
	"slices"

	"kvferry/format"
	"kvferry/inspect"
	"kvferry/internal/text/jsonl"
	"kvferry/record"
	"kvferry/store"
)

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
	Keyspace jsonl.Text
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

// filesOf sums up the files of all stores.
func filesOf(src format.Source, stores *inspect.Stores) Files {
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
					levels[name][f.Level] = &Level{Keyspace: jsonl.Text(name), Level: f.Level}
				}
				levels[name][f.Level].add(&f)
			case "blobs":
				name := names[f.Keyspace]
				if blobs[name] == nil {
					blobs[name] = &Level{Keyspace: jsonl.Text(name), Level: f.Level}
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
		return cmp.Or(record.CompareNames(string(a.Keyspace), string(b.Keyspace)), cmp.Compare(a.Level, b.Level))
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
