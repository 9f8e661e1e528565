package command

import (
	"path/filepath"
	"slices"
	"strings"

	"kvferry/cmd/kvferry/cli"
	"kvferry/convert/work"
	"kvferry/internal/pass/progress"
	"kvferry/internal/sys/disk"
	"kvferry/internal/sys/object"
	"kvferry/parquet"
	"kvferry/parquet/columns"
	"kvferry/record"
)

// endings maps the extensions of the formats that dump writes.
var endings = map[string]string{".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json", ".csv": "csv", ".sql": "sql",
	".resp": "resp", ".hex": "hex", ".parquet": formatParquet, ".arrows": formatArrow}

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
			hint = "; to make an SQLite database: kvferry dump --format sql SRC | sqlite3 " + filepath.Base(f.output)
		}
		return cli.Usagef("-o %s: dump does not write %s; it writes jsonl, json, csv, sql, resp, hex, parquet and arrow%s",
			f.output, ending[1:], hint)
	}
	named := endings[ending]
	switch {
	case named == "" || named == f.format:
	case given:
		return cli.Usagef("-o %s and --format %s do not go together: the file name selects %s", f.output, f.format, named)
	default:
		f.format = named
	}
	return nil
}

// dumpFlags are the flags of dump.
type dumpFlags struct {
	read       ReadFlags
	format     string
	encode     string
	output     string
	onConflict string
	keyspaces  []string
	keysOnly   bool
	raw        bool
	dead       bool
	limit      int64
	csvSafe    bool
	text       string
	compress   string
	wide       bool
	columns    []string
	jsonStyle  string
	part       partFlag
	finish     bool
	rate       cli.SizeFlag
	upload     *object.Target       // of --format parquet; nil: output is on the disk
	each       func(*record.Header) // called for each record; nil: no call
}

// rows reports whether to dump physical rows.
func (f *dumpFlags) rows() bool { return f.raw || f.format == "hex" }

func (f *dumpFlags) validate() error {
	switch {
	case f.encode == "base64" && f.format == "resp":
		return cli.Usagef("--encode base64 and --format resp do not go together: Redis accepts any bytes")
	case f.text != "" && f.format != formatParquet && f.format != formatArrow:
		return cli.Usagef("--text goes with --format parquet and arrow")
	case f.compress != columns.Compressions[0] && f.format != formatParquet:
		return cli.Usagef("--compression goes with --format parquet; -o FILE.zst and FILE.gz compress other forms")
	case f.format == formatArrow && (f.encode == "base64" || f.keysOnly):
		return cli.Usagef("--encode base64 and --keys-only do not go together with --format arrow")
	case f.encode == "base64" && f.format == "sql":
		return cli.Usagef("--encode base64 and --format sql do not go together: SQLite holds any bytes")
	case (f.csvSafe || f.wide) && f.format != "csv":
		return cli.Usagef("--csv-safe and --wide go with --format csv")
	case len(f.columns) > 0 && !f.wide:
		return cli.Usagef("--columns goes with --wide")
	case f.wide && f.keysOnly:
		return cli.Usagef("--wide and --keys-only do not go together")
	case f.wide && f.read.choice.places.types != 0 && record.TypeSet(f.read.choice.places.types) != record.Of(record.Hash):
		return cli.Usagef("--wide shows hashes: leave out --type")
	case f.jsonStyle == "object" && (f.format != "json" && f.format != "jsonl" || f.raw):
		return cli.Usagef("--json-style goes with --format jsonl and json")
	case f.format == formatParquet:
		return f.validateParquet()
	case f.inParts():
		return cli.Usagef("--part and --finish go with --format parquet")
	case f.raw && f.format != "jsonl" && f.format != "hex":
		return cli.Usagef("--raw and --format %s do not go together: rows are shown as jsonl or hex", f.format)
	case f.rows() && (f.keysOnly || f.dead || f.encode == "base64"):
		return cli.Usagef("--keys-only, --dead and --encode apply to records, not to physical rows")
	case len(f.keyspaces) > 0 && !f.rows():
		return cli.Usagef("--keyspace goes with --raw or --format hex")
	case f.keysOnly && (f.format == "resp" || f.format == "sql"):
		return cli.Usagef("--keys-only and --format %s do not go together", f.format)
	}
	return nil
}

// inParts reports whether a directory is written in parts.
func (f *dumpFlags) inParts() bool { return f.part.N > 0 || f.finish }

// formatParquet is the --format that writes a directory.
const formatParquet = parquet.Name

// formatArrow is the --format that writes a stream.
const formatArrow = "arrow"

// validateParquet checks the flags of --format parquet.
func (f *dumpFlags) validateParquet() error {
	switch {
	case cli.ToStandard(f.output):
		return cli.Usagef("--format parquet writes a directory: name a new one with -o")
	case f.raw || f.dead || f.limit > 0 || f.encode == "base64" || len(f.keyspaces) > 0:
		return cli.Usagef("--raw, --dead, --limit, --keyspace and --encode base64 do not go together with --format parquet")
	}
	if object.IsAddress(f.output) {
		return f.validateUpload()
	}
	f.output = filepath.Clean(f.output)
	switch {
	case f.part.N > 0 && f.finish:
		return cli.Usagef("--part and --finish do not go together: run --finish after all parts")
	case f.inParts() && f.read.salvage:
		return cli.Usagef("--salvage and --part do not go together: one part may read data that another part skips")
	case f.inParts():
		return nil // what exists may be the result of another process
	case work.FindParts(f.output).Exist():
		return cli.Usagef("%s contains parts of this directory; use --part or --finish, or remove it", work.Path(f.output))
	}
	if _, err := disk.Lstat(f.output); err == nil {
		return cli.Usagef("-o %s exists; --format parquet needs a new directory", f.output)
	}
	return nil
}

// validateUpload checks the address of a directory in an object store.
func (f *dumpFlags) validateUpload() (err error) {
	if f.inParts() {
		return cli.Usagef("-o %s: all parts write to one directory; name one on a shared file system", f.output)
	}
	if f.upload, err = object.NewTarget(f.output, true, f.read.source.objects.options); err != nil {
		return cli.Usagef("-o %w", err)
	}
	f.read.steps = uploadSteps
	return nil
}

// uploadSteps are the steps of a dump into an object store.
var uploadSteps = []progress.Step{{Name: "read", Weight: 1}, {Name: "upload", Weight: 0.5}}
