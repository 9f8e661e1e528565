package command

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"kvferry/cmd/kvferry/cli"
	"kvferry/inspect"
	"kvferry/inspect/compare"
	"kvferry/inspect/render"
	"kvferry/internal/pass/progress"
	"kvferry/internal/sys/object"
	"kvferry/internal/text/patch"
	"kvferry/record"
	"kvferry/redis/live"
)

// diffFlags are the flags of diff.
type diffFlags struct {
	read   ReadFlags
	sides  sideFlags
	format string
	max    int
	limit  string // the flag that set max
	direct bool
	output string

	converted string // path of the report of the conversion, plainDiff, or ""
}

const diffHelp = `Compare two datasets of any formats. diff merges them in key order and lists every record that is
missing in B, extra in B or different, down to the field, member or index. Expiry is compared in seconds
if one of the formats stores seconds. If the fingerprints are equal, records are not compared one by one.
Inserting or removing list items does not make the items after them differ. The last line has the
totals; for a patch, it is printed to standard error.

If kvferry converted A into B, --as-converted REPORT compares B with the expected result of that conversion. The
report explains renamed keys, allowed losses, expired and filtered keys, so they do not count as differences. This is
the default if the report is next to B (B.kvferry-report.json; in the working directory if B is a server) and diff
has no filters. If the datasets differ, diff converts A again, to temporary files, to list the records; for a server it
always does. Keys that the server had before, and keys that --skip-existing kept, do not count as differences either, up
to the numbers in the report. --as-converted none compares the datasets as they are.

Databases are matched by name, or because each side has only one. If a conversion renamed a database,
--map-db bar=2 compares bar in A with 2 in B; the conversion prints the flags. --db selects by the names
in A. --wal-dir is for the logs of A, --wal-dir-b for those of B.

--format patch writes JSON lines that turn A into B (see kvferry help diff). If B is a server, the lines turn
the server into A instead, for kvferry patch.

Exit codes: 0 equal; 3 different; 1 failed.`

const diffExample = `  kvferry diff /data/old blackwidow:/data/new
  kvferry diff --type hash --map-db bar=2 --map-db foo=3 /data/ardb /data/moved
  kvferry diff --as-converted none /data/old blackwidow:/data/new
  kvferry diff --format patch --type hash /data/old /data/new > old-to-new.jsonl
  kvferry diff --format patch -o patch.jsonl /data/new redis://127.0.0.1:6379`

// diff compares two datasets.
func (a *App) diff() *cobra.Command {
	f := diffFlags{limit: "--max"}
	cmd := &cobra.Command{
		Use:     "diff A B",
		Short:   "Compare two datasets of any formats",
		Long:    diffHelp,
		Example: diffExample,
		RunE:    func(cmd *cobra.Command, args []string) error { return a.runDiff(cmd, &f, args[0], args[1]) },
	}
	f.read.Register(cmd)
	fs := cmd.Flags()
	f.sides.Register(fs)
	cli.Choose(fs, &f.format, "format", cli.Plain("text", "patch", "json"), "output format, also as -f NAME; json has only the counts")
	fs.Var(cli.Number(&f.max, 0, 0), "max", "list at most `n` differences, but count all; a patch stops there; 0 lists all")
	fs.BoolVar(&f.direct, "direct", false, "compare record by record, without comparing fingerprints first")
	fs.StringVar(&f.converted, "as-converted", "", "explain differences by the conversion report `file`; none ignores reports (default: the report next to B)")
	fs.StringVarP(&f.output, "output", "o", "", cli.OutputUsage)
	return cmd
}

func (a *App) runDiff(cmd *cobra.Command, f *diffFlags, locA, locB string) error {
	rep, err := f.report(cmd, a, locA, locB)
	if err != nil {
		return err
	}
	if rep != nil {
		return a.diffConverted(cmd, f, rep, locA, locB)
	}
	return a.diffPlain(cmd, f, locA, locB)
}

// diffPlain compares two datasets as they are.
func (a *App) diffPlain(cmd *cobra.Command, f *diffFlags, locA, locB string) (err error) {
	ctx := cmd.Context()
	show := cli.NewProgress(cmd, &f.read.progress, a.Terminal)
	defer func() { show.End(err) }()
	notes := &noted{w: show, cmd: cmd, of: []string{locA, locB}}
	defer notes.sum()
	f.read.mapped = len(f.sides.dbs.dbs) > 0
	da, err := a.unopened(cmd, locA, &f.read)
	if err != nil {
		return err
	}
	db, err := a.unopened(cmd, locB, f.sides.second(f.read))
	if err == nil {
		err = tryOutputs(cmd)
	}
	if err != nil {
		return err
	}
	preparing(show, f.steps(), da, db)
	if err := da.open(ctx, notes.report); err != nil {
		return err
	}
	if err := db.open(ctx, notes.second); err != nil {
		return errors.Join(err, da.Opened.Source.Close())
	}
	// Two sources share the memory of one.
	da.Scan.Memory /= 2
	db.Scan.Memory /= 2
	f.watch(show, da.Scan, db.Scan)
	var res *compare.Result
	differ := f.compare
	if f.format == "patch" && live.IsAddress(locB) {
		differ = func(ctx context.Context, a, b *Dataset, w io.Writer) (*compare.Result, error) {
			return f.patch(ctx, a, b, w, patch.Head{From: object.Shown(locA), To: locB, NowMS: da.Scan.Now.UnixMilli()})
		}
	}
	err = cli.ToOutput(cmd, f.output, func(w io.Writer) error {
		res, err = differ(ctx, da, db, show.Over(w))
		return db.checkUnchanged(da.checkUnchanged(err))
	})
	if err = errors.Join(err, da.Opened.Source.Close(), db.Opened.Source.Close()); err != nil {
		return mapUsage(err)
	}
	if f.format == "patch" {
		fmt.Fprintln(cmd.ErrOrStderr(), "kvferry: "+render.DiffSummary(res, f.max, f.limit))
	}
	if res.Stopped {
		fmt.Fprintf(cmd.ErrOrStderr(), "kvferry: the patch stops after --max %s and does not turn A into B\n",
			record.Number(int64(f.max)))
	}
	if !res.Equal {
		tellUnmatched(cmd.ErrOrStderr(), res.Pairs)
		return &cli.ExitError{Code: cli.ExitFindings}
	}
	da.tellNone(cmd.ErrOrStderr(), res.Compared())
	return notes.verdict()
}

// patch writes the patch that turns server b into dataset a.
func (f *diffFlags) patch(ctx context.Context, a, b *Dataset, w io.Writer, head patch.Head) (*compare.Result, error) {
	if f.max > 0 {
		return nil, cli.Usagef("--max %d: a patch for a server must be complete", f.max)
	}
	if err := a.checkOrder(ctx); err != nil {
		return nil, fmt.Errorf("%w; run it again with --resort", err)
	}
	out, err := patch.NewWriter(w, head)
	if err != nil {
		return nil, err
	}
	res, err := compare.Patch(ctx, &compare.Options{A: a.Scan, B: b.Scan, Map: f.sides.dbs.dbs, Direct: f.direct}, out)
	if err == nil {
		_, err = out.Close()
	}
	return res, err
}

// steps lists the steps of a diff: fingerprint each side, then compare.
func (f *diffFlags) steps() []progress.Step {
	steps := []progress.Step{{Name: "read A", Weight: 1}, {Name: "read B", Weight: 1}, {Name: "compare", Weight: 1}}
	if f.direct {
		steps = steps[2:]
	}
	return steps
}

// watch shows the progress of both scans.
func (f *diffFlags) watch(show *cli.ProgressView, a, b *inspect.Scan) {
	watch(show, a, f.steps())
	b.Meter, b.Step = a.Meter, "read B"
}

// compare runs the comparison and starts over if the tables of a side are out of order.
func (f *diffFlags) compare(ctx context.Context, a, b *Dataset, w io.Writer) (*compare.Result, error) {
	var res *compare.Result
	var printer *render.DiffPrinter
	run := func() (err error) {
		printer = render.NewDiffPrinter(w, f.format, f.max, f.limit)
		res, err = compare.Diff(ctx, &compare.Options{A: a.Scan, B: b.Scan, Map: f.sides.dbs.dbs, Direct: f.direct,
			Whole: f.format == "patch", Tell: printer.Difference})
		return err
	}
	written := func() bool { return printer != nil && printer.Written() }
	err := a.orderedOnce(ctx, func() error { return b.orderedOnce(ctx, run, written) }, written)
	if err != nil {
		return nil, err
	}
	return res, printer.Finish(res)
}
