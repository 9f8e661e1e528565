package command

import (
	"path/filepath"
	"slices"
	"strings"
)

// endings maps the extensions of the formats that dump writes.
var endings = map[string]string{".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json", ".csv": "csv", ".sql": "sql", ".resp": "resp", ".hex": "hex", ".parquet": formatParquet, ".arrows": formatArrow}

// otherEndings lists extensions of formats that users may expect but dump does not write.
var otherEndings = []string{".avro", ".arrow", ".orc", ".xml", ".yaml", ".yml", ".tsv", ".xlsx", ".db",
	".sqlite", ".sqlite3", ".html", ".pdf", ".rdb", ".aof", ".proto", ".msgpack", ".bson"}

// endingOf returns the extension of a file name, without a compression suffix.
func endingOf(path string) string {
	path = strings.ToLower(path)
	for _, packed := range []string{".gz", ".zst"} {
		path = strings.TrimSuffix(path, packed)
	}
	return filepath.Ext(path)
}

// chooseFormat takes the format of a dump from its file name, unless --format was given. It refuses a name that
// contradicts the format.
func (f *dumpFlags) chooseFormat(given bool) error {
	ending := endingOf(f.output)
	if slices.Contains(otherEndings, ending) {
		hint := ""
		switch ending {
		case ".rdb", ".aof":
			hint = "; kvferry convert writes such files"
		case ".db", ".sqlite", ".sqlite3":
			hint = "; sqlite3 makes a database of kvferry dump --format sql SRC | sqlite3 " + filepath.Base(f.output)
		}
		return usagef("-o %s: dump does not write %s; it writes jsonl, json, csv, sql, resp, hex, parquet and arrow%s", f.output, ending[1:], hint)
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
