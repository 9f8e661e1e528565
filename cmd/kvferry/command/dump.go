package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"kvferry/cmd/kvferry/cli"
	"kvferry/inspect/dump"
	"kvferry/inspect/render"
	"kvferry/internal/pass/progress"
	"kvferry/internal/text/jsonl"
	"kvferry/internal/text/resp"
	"kvferry/parquet"
	"kvferry/parquet/columns"
	"kvferry/record"
)

const dumpHelp = `Print a dataset as text, one record per line, ordered by database, key and type:

  {"db":"0","type":"zset","key":"board","expire_at_ms":0,"value":[["al","1.5"]]}

expire_at_ms is Unix milliseconds; 0 means never. Valid UTF-8 is a JSON string; other bytes are
{"base64":"…"}. --encode base64 writes every key, field, member and value as base64. --json-style object
writes a hash as {field:value}, a sorted set as {member:score}, and the expiry as "expire_at", a time in ISO
8601 or null; a field that expires has {"value":…,"expire_at":…}, and a name that is not UTF-8 is base64:…. Function libraries
and module data outside of keys have "keyless":"function" or "module-aux" after their name in "key".
Expired records are left out; --expired keep includes them.

Other formats:

  json  one document
  csv   one line per element, with the columns below; with --wide one line per hash
  sql   statements for sqlite3: a table per type, in one transaction
  resp  commands for redis-cli --pipe; use --db if databases have names, and --on-conflict if a key
        exists under several types, of which Redis holds one. Values of modules have no commands: they
        are left out, and the exit code is 4
  hex   physical rows as annotated bytes
  parquet  a directory of Parquet files for DuckDB, Spark and other engines, named with -o: one row per
           element, partitioned by type, in key order. It appears when it is complete, and kvferry reads
           it as parquet:DIR. Keys and values are bytes; --text declares them as UTF-8. The columns are
           in docs/formats/parquet.md
  arrow  a stream in the IPC format of Apache Arrow, with the same columns and the type, for DuckDB,
         Polars and pandas

CSV follows RFC 4180. A cell is empty if its column does not apply to the line:

  db, type, key       of the record
  expire_at_ms        when the key expires, in Unix milliseconds; empty: never
  index               position of an element in a list, from 0
  id                  of a stream entry, which has one line per field
  field               of a hash or stream entry; of type other, the server's name for the type
  value               of a string, field or list element; of type other, its bytes
  member, score       of a set or sorted set
  field_expire_at_ms  when the field of a hash expires; empty: never

Bytes that are not UTF-8, or text that begins with base64:, are written as base64: and their encoding.
--wide reads hashes only, and writes a column for each field of any of them. It reads the dataset twice, the
first time for the columns, unless --columns names them. It refuses more than 1000 fields. A field that is
missing is an empty cell, an empty value is "". Times are in ISO 8601; expiries of fields are left out. A
field with the name of another column, db, key or expire_at, has the column field:db.

  kvferry dump --format sql SRC | sqlite3 out.db

makes the tables string, hash, list, "set", zset, stream and other, with indexes on their keys, and a view
of all keys. Bytes are TEXT, or BLOB if they are not UTF-8 or contain the byte 0. If the dump fails, out.db
has no tables. kvferry help analysts has examples.

CSV and SQL leave out consumer groups of streams. --csv-safe is for spreadsheets, which read text that begins with
= + - or @ as a formula.

--keys-only prints elements and bytes instead of values: the number of elements (1 for a string) and the
bytes of the key, fields, members and values. CSV has the columns db,type,key,expire_at_ms,elements,bytes.
Parquet also has an estimate of the memory in Redis, the slot of a cluster and three levels of prefixes.

--raw prints physical rows with their decoded fields, as JSON lines.

--dead prints deleted records that are still on disk, so that a deletion can be undone:

  kvferry dump --dead --format resp --match user:1 /data/dump | redis-cli --pipe

Anything unknown about such a record is printed to standard error. A compaction removes deleted records
permanently. LMDB files do not keep deleted records, and a FLUSHDB of Ardb on RocksDB removes them all.

--part 3/16 writes one part of 16 of a Parquet directory DIR into DIR.kvferry, which all processes share;
--finish assembles DIR from the parts, byte for byte as in a single run. See kvferry help parts.

--format parquet writes a directory, also in an object store, -o s3://bucket/export: it is written below
--temp-dir and then uploaded. See kvferry help object-stores.

--salvage skips unreadable tables, blocks, pages and records of logs and lists them. Their rows are
missing: records may lose elements, and old values of changed or deleted records may show. Where
CURRENT or the MANIFEST is lost, it reads all tables and logs of the directory.

Exit codes: 0 done; 3 --salvage skipped something; 4 records left out of resp; 5 --finish lacks parts;
1 failed.`

const dumpExample = `  kvferry dump /data/pika/dump > all.jsonl
  kvferry dump --type hash --match 'user:*' /data/pika/dump
  kvferry dump --keys-only -o keys.jsonl.zst blackwidow:/data/new
  kvferry dump --format resp --type hash /data/pika/dump | redis-cli --pipe
  kvferry dump --format parquet -o /data/export /data/pika/dump
  kvferry dump --part 1/1 --now 2027-01-01 -o /data/p.parquet /data/pika/dump
  kvferry dump --finish --now 2027-01-01 -o /data/p.parquet /data/pika/dump
  kvferry dump --format arrow -o pika.arrows /data/pika/dump
  kvferry dump --raw --keyspace zsets/score_cf --limit 10 blackwidow:/data/new`

// dump prints a dataset.
func (a *App) dump() *cobra.Command {
	var f dumpFlags
	cmd := &cobra.Command{
		Use:     "dump SRC",
		Short:   "Print a dataset: JSON, CSV, SQL, Parquet, Redis commands, bytes",
		Long:    dumpHelp,
		Example: dumpExample,
		RunE:    func(cmd *cobra.Command, args []string) error { return a.runDump(cmd, &f, args[0]) },
	}
	f.read.Register(cmd)
	f.read.RegisterSalvage(cmd)
	fs := cmd.Flags()
	cli.Choose(fs, &f.format, "format", cli.Plain("jsonl", "json", "csv", "sql", "resp", "hex", formatParquet, formatArrow), "output format, also as -f NAME")
	cli.Choose(fs, &f.jsonStyle, "json-style", cli.Plain("pairs", "object"), "with --format jsonl or json, write hashes and sorted sets as lists of pairs, or as objects, with ISO times")
	fs.BoolVar(&f.wide, "wide", false, "with --format csv, write a line per hash and a column per field")
	fs.StringSliceVar(&f.columns, "columns", nil, "with --wide, only these fields, by `name`, in this order, separated by commas or repeated")
	cli.Choose(fs, &f.encode, "encode", cli.Plain("text", "base64"), "encoding of keys and values")
	fs.StringVarP(&f.output, "output", "o", "", cli.OutputUsage)
	fs.BoolVar(&f.keysOnly, "keys-only", false, "print the number of elements and bytes of each key instead of values (json, jsonl, csv, parquet)")
	fs.BoolVar(&f.csvSafe, "csv-safe", false, "with --format csv, put a ' before text that a spreadsheet would read as a formula")
	cli.Choose(fs, &f.text, "text", append([]cli.Option[string]{{Name: "bytes", Means: ""}},
		cli.Plain(parquet.TextStrict, parquet.TextLossy)...), "with --format parquet or arrow, declare keys and values as UTF-8: strict refuses other bytes, lossy replaces them")
	fs.Lookup("text").NoOptDefVal = parquet.TextStrict
	cli.Choose(fs, &f.compress, "compression", cli.Plain(columns.Compressions...), "with --format parquet, compression: snappy is faster, zstd is smaller")
	fs.BoolVar(&f.raw, "raw", false, "show physical rows")
	fs.StringSliceVar(&f.keyspaces, "keyspace", nil, "only rows of these keyspaces, by `name` as --raw prints it, separated by commas or repeated; with --raw or --format hex")
	fs.BoolVar(&f.dead, "dead", false, "show deleted records that are still on disk")
	cli.Choose(fs, &f.onConflict, "on-conflict", cli.Plain("error", "first"), "with --format resp, if a key exists under several types: fail, or write only the first")
	fs.Var(&f.part, "part", "with --format parquet, write only part `K/N`, such as 3/16, into a work directory that processes share")
	fs.BoolVar(&f.finish, "finish", false, "with --format parquet, publish the directory when all parts are complete")
	fs.Var(&f.rate, "rate", rateUsage)
	fs.Var(cli.Number(&f.limit, 0, 0), "limit", "stop after `n` records or rows; 0 for no limit")
	return cmd
}

func (a *App) runDump(cmd *cobra.Command, f *dumpFlags, location string) error {
	if err := f.chooseFormat(cmd.Flags().Changed("format")); err != nil {
		return err
	}
	f.read.source.objects.options = f.read.source.objects.counted(cmd.Context())
	if err := f.validate(); err != nil {
		return err
	}
	if f.upload == nil && cmd.Flags().Changed("rate") {
		return cli.Usagef("--rate goes with --format parquet -o s3://…")
	}
	if f.inParts() {
		return a.dumpInParts(cmd, f, location)
	}
	if f.wide {
		f.read.choice.places.types = typesFlag(record.Of(record.Hash))
		if len(f.columns) == 0 {
			f.read.steps = wideSteps
		}
	}
	return a.dumped(cmd, f, location)
}

// wideSteps are the steps of a dump that reads the columns of its table first.
var wideSteps = []progress.Step{{Name: "columns", Weight: 1}, {Name: "read", Weight: 1}}

// dumped reads a dataset and writes what the flags describe.
func (a *App) dumped(cmd *cobra.Command, f *dumpFlags, location string) error {
	var n int64
	lossy := false
	r, err := a.read(cmd, location, &f.read, func(r *reading) (err error) {
		switch {
		case f.upload != nil:
			n, err = a.uploadParquet(cmd, f, r.Dataset, r.notes)
			return err
		case f.format == formatParquet:
			n, err = a.dumpParquet(cmd, f, r.Dataset, r.notes)
			return err
		}
		return cli.ToOutput(cmd, f.output, func(w io.Writer) (err error) {
			w = r.show.Over(w)
			if f.rows() {
				n, err = f.dumpRows(cmd.Context(), r.Dataset, w)
			} else {
				n, lossy, err = f.dumpRecords(cmd, r.Dataset, w)
			}
			return r.checkUnchanged(err)
		})
	})
	if errors.Is(err, resp.ErrSameName) {
		return &cli.ExitError{Code: cli.ExitLossy, Err: fmt.Errorf("%w; see --on-conflict", err)}
	}
	if f.each != nil {
		n = max(n, 1) // the caller tells which keys are missing
	}
	if err = r.printed(err, n); err == nil && lossy {
		err = &cli.ExitError{Code: cli.ExitLossy}
	}
	return err
}

// dumpRecords writes records. lossy is true if some were left out because no command can write them.
func (f *dumpFlags) dumpRecords(cmd *cobra.Command, d *Dataset, w io.Writer) (n int64, lossy bool, err error) {
	stderr := cmd.ErrOrStderr()
	encoder, err := f.encoder(cmd.Context(), d)
	if err != nil {
		return 0, false, err
	}
	o := &dump.Options{Scan: d.Scan, Encoder: encoder, KeysOnly: f.keysOnly, Limit: f.limit, Dead: f.dead, Each: f.each,
		Tell: func(db string, key []byte, t record.Type, what string) {
			fmt.Fprintf(stderr, "kvferry: %s %s in database %s: %s\n", t, record.Quote(key), db, what)
		}}
	commands, isCommands := o.Encoder.(*resp.Encoder)
	if isCommands {
		if err := commands.Check(); err != nil {
			return 0, false, err
		}
	}
	dumper := dump.New(w, o)
	err = d.orderedOnce(cmd.Context(), func() error { return dumper.Run(cmd.Context()) }, dumper.Written)
	if isCommands && err == nil {
		lossy = tellLeftOut(stderr, commands)
	}
	if stream, ok := o.Encoder.(*parquet.Arrow); ok {
		tellReplaced(stderr, stream.Replaced())
	}
	return dumper.Records(), lossy, err
}

// tellLeftOut prints counts of records left out and reports whether any has no command.
func tellLeftOut(w io.Writer, e *resp.Encoder) (lossy bool) {
	if e.Opaque > 0 {
		fmt.Fprintf(w, "kvferry: %s left out: no Redis command can recreate values of modules\n", record.Count(e.Opaque, "record"))
	}
	if e.Orphans > 0 {
		fmt.Fprintf(w, "kvferry: pending entries of streams left out: %s: their messages were deleted, and no Redis command can recreate them\n",
			record.Number(e.Orphans))
	}
	if e.Skipped > 0 { // as --on-conflict requested
		fmt.Fprintf(w, "kvferry: %s left out: the same name exists under an earlier type\n", record.Count(e.Skipped, "record"))
	}
	return e.Opaque > 0 || e.Orphans > 0
}

// table makes an encoder of hashes as a table. It reads them for their columns unless these are given.
func (f *dumpFlags) table(ctx context.Context, d *Dataset, cells render.CSV) (dump.Encoder, error) {
	e := &render.Wide{Cells: cells, Columns: f.columns, Chosen: len(f.columns) > 0, Limit: f.read.source.Memory() / 8}
	if e.Chosen {
		return e, nil
	}
	names, report := new(render.Columns), d.Scan.Report
	d.Scan.Report = nil // the second pass reports
	dumper := dump.New(io.Discard, &dump.Options{Scan: d.Scan, Encoder: names, Limit: f.limit, Dead: f.dead})
	err := d.orderedOnce(ctx, func() error { return dumper.Run(ctx) }, func() bool { return false })
	d.Scan.Report, d.Scan.Step = report, wideSteps[1].Name
	e.Columns = names.Names()
	return e, err
}

// encoder makes the encoder of the requested format.
func (f *dumpFlags) encoder(ctx context.Context, d *Dataset) (dump.Encoder, error) {
	lines := render.Lines{Encoder: jsonl.Encoder{Base64: f.encode == "base64", KeysOnly: f.keysOnly, Objects: f.jsonStyle == "object"}}
	switch f.format {
	case "json":
		return &render.Document{Lines: lines}, nil
	case formatArrow:
		binary := slices.ContainsFunc(d.Opened.Source.Databases(), func(db string) bool { return !utf8.ValidString(db) })
		return parquet.NewArrow(f.text, binary, d.Scan.Memory), nil
	case "raw":
		return new(render.Raw), nil
	case "names":
		return &render.Keys{Names: true}, nil
	case "text":
		if f.keysOnly {
			return new(render.Keys), nil
		}
		return &render.Values{Lines: lines}, nil
	case "csv":
		cells := render.CSV{Base64: f.encode == "base64", KeysOnly: f.keysOnly, Safe: f.csvSafe}
		if f.wide {
			return f.table(ctx, d, cells)
		}
		return &cells, nil
	case "sql":
		return new(render.SQL), nil
	case "resp":
		dbs := d.Databases()
		if f.dead {
			var err error
			if dbs, err = dump.DeadDatabases(d.Opened.Source); err != nil {
				return nil, err
			}
		}
		if len(d.Scan.Selection.DBs) > 0 {
			dbs = d.Scan.Selection.DBs
		}
		d.Scan.RedisStrings = true
		return &resp.Encoder{DBs: dbs, FirstType: f.onConflict == "first"}, nil
	}
	return &lines, nil
}

// dumpRows writes physical rows.
func (f *dumpFlags) dumpRows(ctx context.Context, d *Dataset, w io.Writer) (int64, error) {
	if err := d.hasRows(); err != nil {
		return 0, err
	}
	if !d.Scan.Selection.RowsOnly() {
		return 0, cli.Usagef("physical rows can be selected by --db, --keyspace, --type and key only: filters by expiry and size apply to records")
	}
	var p interface {
		Row(*dump.Row) error
		Finish() error
	} = render.NewRawRows(w)
	if f.format == "hex" {
		p = render.NewHexRows(w)
	}
	var n int64
	err := d.orderedOnce(ctx, func() (err error) {
		n, err = dump.Rows(ctx, &dump.RowsOptions{Source: d.Opened.Source, Stores: d.Stores, Selection: d.Scan.Selection,
			Keyspaces: f.keyspaces, Limit: f.limit, Tell: p.Row, Meter: d.Scan.Meter, Step: d.Scan.Step})
		return err
	}, func() bool { return true })
	return n, errors.Join(err, p.Finish())
}
