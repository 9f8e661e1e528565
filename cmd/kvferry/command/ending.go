package command

import (
	"path/filepath"
	"slices"
	"strings"
)

// endings are those of files in a format that dump writes.
var endings = map[string]string{".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json", ".csv": "csv", ".resp": "resp", ".hex": "hex"}

// otherEndings are those of formats that somebody may expect of dump, and that it does not write.
var otherEndings = []string{".parquet", ".avro", ".arrow", ".orc", ".xml", ".yaml", ".yml", ".tsv", ".xlsx", ".sql", ".db",
	".sqlite", ".html", ".pdf", ".rdb", ".aof", ".proto", ".msgpack", ".bson"}

// endingOf is what a file's name ends in, before the ending of a compressor.
func endingOf(path string) string {
	path = strings.ToLower(path)
	for _, packed := range []string{".gz", ".zst"} {
		path = strings.TrimSuffix(path, packed)
	}
	return filepath.Ext(path)
}

// chooseFormat takes the format of a dump from the name of its file, unless a format was asked for, and refuses a name that
// says something else.
func (f *dumpFlags) chooseFormat(given bool) error {
	ending := endingOf(f.output)
	if slices.Contains(otherEndings, ending) {
		hint := ""
		if ending == ".rdb" || ending == ".aof" {
			hint = "; kvferry convert writes such files"
		}
		return usagef("-o %s: dump does not write %s; it writes jsonl, json, csv, resp and hex%s", f.output, ending[1:], hint)
	}
	named := endings[ending]
	switch {
	case named == "" || named == f.format:
	case given:
		return usagef("-o %s and --format %s do not go together: the name says %s", f.output, f.format, named)
	default:
		f.format = named
	}
	return nil
}
