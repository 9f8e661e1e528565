package command

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"kvferry/cmd/kvferry/cli"
	"kvferry/inspect"
	"kvferry/inspect/render"
	"kvferry/inspect/stats"
	"kvferry/internal/sys/object"
)

const inspectHelp = `Summarize a dataset in one pass: records, elements and bytes by database and type, expiry, size
distributions, the largest keys of all and of each type, prefixes, data that you may be able to delete, garbage
rows and the bytes that a conversion would free, and the shape of the files. The largest keys are exact;
quantiles are within 1.6 %.

Prefixes are a tree of the parts of keys, largest first. Parts end with : / or |, or with . in keys without
those. In their names, # replaces a number, a hexadecimal number of 8 digits or more, a UUID or a date, and
* replaces names that are too many to list. All sums are exact; the bytes of files on disk are divided
among types by their logical bytes. The text has the 30 largest, JSON and HTML 16 for
each key of --top.

You may be able to delete: records that expired, rows of deleted and changed records, records that
never expire among ten times as many of the same pattern that do, and strings with the same value of 4 KiB
or more (of the 1,024 largest values). Each comes with a command that shows it.

--sample counts one key in n, but all rows are read: it saves no time.

--redis adds the memory that a Redis server would take: by type, for each listed key, prefix and bucket
of expiry, and in all. It is an estimate of MEMORY USAGE (Redis 7.0 on 64 bits, its default limits),
within 15 % on a mix.

--salvage skips unreadable tables, blocks, pages and records of logs and lists them. Their rows are not
counted. Where CURRENT or the MANIFEST is lost, it reads all tables and logs of the directory.

--part K/N reads one of N parts of the source and prints a report; kvferry merge combines all reports
into the output of one run. All parts have the same --now. See kvferry help parts.

Exit codes: 0 done; 3 --salvage skipped something; 1 failed.`

const inspectExample = `  kvferry inspect /data/pika/dump
  kvferry inspect --top 50 --format json /data/pika/dump
  kvferry inspect --html report.html /data/pika/dump
  kvferry inspect --redis --top 5 /data/pika/dump
  kvferry inspect --part 1/2 --now 2027-01-01 -o 1.json /data/pika/dump`

// maxTop bounds --top: the listed keys are held in memory.
const maxTop = 100000

// topMemory is the memory of one listed key: each worker may hold it in several lists.
const topMemory = 1 << 10

// withoutLists is the part of --memory needed for everything else.
const withoutLists = 24 << 20

// fitsTop refuses a --top whose lists would take more than half of the remaining memory.
func (f *inspectFlags) fitsTop() error {
	memory := f.read.source.Memory()
	most := (memory - withoutLists) / 2 / topMemory
	if int64(f.top) <= most {
		return nil
	}
	need := cli.SizeFlag((withoutLists + 2*int64(f.top)*topMemory + 1<<20 - 1) >> 20 << 20)
	return cli.Usagef("--top %d: the lists do not fit into --memory %s; use --memory %s, or --top %d", f.top,
		cli.SizeFlag(memory), need, most)
}

// inspectFlags are the flags of inspect.
type inspectFlags struct {
	read      ReadFlags
	top       int
	print     inspectPrinter
	html      string
	delimiter delimiterFlag
	depth     int
	redis     bool
	output    string
	part      partFlag
}

// inspect counts the contents of a dataset.
func (a *App) inspect() *cobra.Command {
	var f inspectFlags
	cmd := &cobra.Command{
		Use:     "inspect SRC",
		Short:   "Summarize a dataset: sizes, expiry, big keys, garbage",
		Long:    inspectHelp,
		Example: inspectExample,
		RunE:    func(cmd *cobra.Command, args []string) error { return a.runInspect(cmd, &f, args[0]) },
	}
	f.read.Register(cmd)
	f.read.RegisterSalvage(cmd)
	fs := cmd.Flags()
	f.top = 20
	fs.Var(cli.Number(&f.top, 0, maxTop), "top", fmt.Sprintf("how many of the largest keys and prefixes to list, 0 to %d; the limit drops below --memory 220MiB",
		maxTop))
	cli.Choose(fs, &f.print, "format", inspectFormats, "output format, also as -f NAME")
	fs.StringVar(&f.html, "html", "", "also write an HTML page with charts to a `file`")
	f.delimiter, f.depth = stats.Auto, stats.MaxDepth
	fs.Var(&f.delimiter, "delimiter", "separator of the parts of a key, such as - in user-1-name; auto: : / or |, or . in a key without those; empty: no prefixes")
	fs.Var(cli.Number(&f.depth, 1, stats.MaxDepth), "prefix-depth",
		fmt.Sprintf("maximum number of key parts in a prefix, 1 to %d", stats.MaxDepth))
	fs.BoolVar(&f.redis, "redis", false, "estimate the memory that the records would take in Redis; always on for Redis files and servers")
	fs.Var(&f.part, "part", partUsage)
	fs.StringVarP(&f.output, "output", "o", "", cli.OutputUsage)
	return cmd
}

// inspectPrinter prints a result with the version of kvferry.
type inspectPrinter = func(w io.Writer, tool string, s *stats.Result) error

var inspectFormats = []cli.Option[inspectPrinter]{
	{Name: "text", Means: render.Stats}, {Name: "json", Means: render.StatsJSON}, {Name: "html", Means: render.HTML},
}

func (a *App) runInspect(cmd *cobra.Command, f *inspectFlags, location string) error {
	if f.html == cli.Standard && cli.ToStandard(f.output) {
		return cli.Usagef("--html -: standard output has the text; use --format html to print the page instead, or -o to write the text to a file")
	}
	if err := f.part.check(cmd.Flags(), location, "html"); err != nil {
		return err
	}
	if err := f.fitsTop(); err != nil {
		return err
	}
	var rep *inspect.PartFile
	var counted *stats.Result
	r, err := a.read(cmd, location, &f.read, func(r *reading) (err error) {
		if rep, err = f.part.begin(a, cmd, r.Dataset, &f.read, location); err == nil {
			counted, err = f.collect(cmd.Context(), r.Dataset, rep, object.Shown(location))
		}
		return err
	})
	if err != nil {
		return err
	}
	if rep != nil {
		return cmp.Or(cli.ToOutput(cmd, f.output, r.part(rep)), r.notes.verdict())
	}
	printed := func(print inspectPrinter) func(io.Writer) error {
		return func(w io.Writer) error { return print(w, a.Build.String(), counted) }
	}
	if f.html != "" {
		err = cli.ToOutput(cmd, f.html, printed(render.HTML))
	}
	if err == nil {
		err = cli.ToOutput(cmd, f.output, printed(f.print))
	}
	return r.printed(err, counted.Records())
}

// collect counts a dataset, or a part into its report. Of a part there is no result.
func (f *inspectFlags) collect(ctx context.Context, d *Dataset, rep *inspect.PartFile,
	location string) (out *stats.Result, err error) {
	err = d.ordered(ctx, func() error {
		o := &stats.Options{Scan: *d.Scan, Location: location, Stores: d.Stores, Top: f.top, Delimiter: string(f.delimiter),
			Depth: f.depth, Redis: f.redis || d.Opened.Source.Format().Limits().Place.IsRedis()}
		if rep == nil {
			out, err = stats.Collect(ctx, o)
			return err
		}
		part, tasks, err := stats.CollectPart(ctx, o)
		if err != nil {
			return err
		}
		return rep.Fill(d.Scan, tasks, part)
	})
	return out, d.checkUnchanged(err)
}

// delimiterFlag is any text; completion offers the usual ones.
type delimiterFlag string

// Set accepts any text.
func (f *delimiterFlag) Set(s string) error {
	*f = delimiterFlag(s)
	return nil
}

// String returns the text.
func (f *delimiterFlag) String() string { return string(*f) }

// Type names the flag's values in help texts.
func (f *delimiterFlag) Type() string { return "text" }

func (f *delimiterFlag) Suggest(string) ([]string, bool) {
	return []string{":", "/", ".", "-", "_", "|", "#"}, false
}
