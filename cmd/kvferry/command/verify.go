package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"kvferry/cmd/kvferry/cli"
	"kvferry/convert"
	"kvferry/format"
	"kvferry/inspect"
	"kvferry/inspect/render"
	"kvferry/inspect/verify"
	"kvferry/internal/pass/progress"
	"kvferry/internal/sys/object"
	"kvferry/record"
)

const verifyHelp = `Read every row of a dataset and list all problems: inconsistent records, rows that belong to no record,
damaged blocks, tables that do not match the MANIFEST or their own properties. verify continues after a
finding and skips unreadable tables and blocks; missing rows may cause further findings. kvferry help
findings describes every kind of finding and what to do about damage.

Expired records are also checked and counted. --sample checks the records of one key in n, but all rows
are read: it saves no time. --against compares the dataset with another one instead, like kvferry diff;
then --expired applies, and --max-findings is the --max of diff.

--part K/N reads one of N parts of the source and prints a report; kvferry merge combines all reports
into the output of one run. See kvferry help parts.

Exit codes: 0 sound; 3 findings (see --fail-on); 1 failed.`

const verifyExample = `  kvferry verify /data/pika/dump
  kvferry verify --format sarif -o findings.sarif /data/pika/dump
  kvferry verify --fail-on warning --type zset /data/pika/dump
  kvferry verify /data/old --against blackwidow:/data/new`

// verifyFlags are the flags of verify.
type verifyFlags struct {
	read        ReadFlags
	report      reporter
	failOn      record.Severity
	maxFindings int
	files       verify.Look
	against     string
	sides       sideFlags
	output      string
	part        partFlag
}

// verify checks a dataset.
func (a *App) verify() *cobra.Command {
	var f verifyFlags
	cmd := &cobra.Command{
		Use:     "verify SRC",
		Short:   "Check everything in a dataset and list all problems",
		Long:    verifyHelp,
		Example: verifyExample,
		RunE:    func(cmd *cobra.Command, args []string) error { return a.runVerify(cmd, &f, args[0]) },
	}
	f.read.Register(cmd)
	fs := cmd.Flags()
	cli.Choose(fs, &f.report, "format", reports, "output format, also as -f NAME")
	cli.Choose(fs, &f.failOn, "fail-on", severities(), "exit with 3 on findings of this severity or higher")
	f.maxFindings = 1000
	fs.Var(cli.Number(&f.maxFindings, 0, maxListed), "max-findings",
		fmt.Sprintf("list at most `n` findings, 0 to %d; all are counted", maxListed))
	cli.Choose(fs, &f.files, "files", looks, "check the table files again, block by block, against their properties and bounds; auto: only if reading the records "+
		"finds a problem; never also skips the filter blocks of tables")
	fs.StringVar(&f.against, "against", "", "compare with the dataset at this `location` instead")
	f.sides.Register(fs)
	fs.Var(&f.part, "part", partUsage)
	fs.StringVarP(&f.output, "output", "o", "", cli.OutputUsage)
	return cmd
}

// verifySteps are the steps of verify. Most datasets need no second check of their files.
var verifySteps = []progress.Step{{Name: "read", Weight: 1}, {Name: "files", Weight: 0.1}}

// reporter prints the result of verify.
type reporter = func(io.Writer, *render.Result) error

var reports = []cli.Option[reporter]{{Name: "text", Means: render.Findings}, {Name: "json", Means: render.JSON},
	{Name: "junit", Means: render.JUnit}, {Name: "sarif", Means: render.SARIF}}

var looks = []cli.Option[verify.Look]{{Name: "auto", Means: verify.Automatic}, {Name: "always", Means: verify.Always},
	{Name: "never", Means: verify.Never}}

// maxListed bounds --max-findings: the listed findings are held in memory.
const maxListed = 1000000

// severities lists the severities, the gravest first.
func severities() (out []cli.Option[record.Severity]) {
	for _, s := range []record.Severity{record.Error, record.Warning, record.Note} {
		out = append(out, cli.Option[record.Severity]{Name: s.String(), Means: s})
	}
	return out
}

// restLosses lists the kinds of losses that findings mean: damage, data that this version does not know, or data that no
// record holds.
func restLosses(counts []verify.KindCount) string {
	var kinds []string
	for _, c := range counts {
		if kind := convert.LossOf(c.Kind, c.Severity.String()); kind != "" && !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	slices.Sort(kinds)
	return cmp.Or(strings.Join(kinds, ","), record.LossDamaged)
}

// restLine is the command line that saves what can be read of a damaged dataset, or "" if there is none.
func restLine(cmd *cobra.Command, d *Dataset, location string, counts []verify.KindCount) string {
	limits, path := d.Found.Format.Limits(), d.Found.Location.Path
	if limits.Place == format.OnServer || strings.Trim(path, "/") == "" || path == "-" {
		return ""
	}
	shape := format.ShapeOf(d.Source)
	flags, target := d.Found.Like(shape, shape.Layout, ".rest")
	opening := openingWords(cmd.Flags())
	if limits.NoTarget != "" {
		_, output, _ := strings.Cut(target, ":")
		return cli.CommandLine(slices.Concat([]string{"dump", "--salvage", "-o", output + ".jsonl"}, opening, []string{location}))
	}
	return cli.CommandLine(slices.Concat([]string{"convert", "--allow-loss", restLosses(counts)}, opening, flags,
		[]string{location, target}))
}

// verification returns the options to verify a dataset. Verification opens the source, which stays known.
func (d *Dataset) verification() *verify.Options {
	open := func(ctx context.Context, how inspect.Opening) (src format.Source, err error) {
		src, err = d.reopen(ctx, how)
		d.Opened.Source = src
		return src, err
	}
	return &verify.Options{Scan: *d.Scan, Root: d.Found.Location.Path, Open: open, Keyspaces: d.Found.KeyspacesOf}
}

func (a *App) runVerify(cmd *cobra.Command, f *verifyFlags, location string) (err error) {
	for _, name := range []string{"map-db", secondWAL} {
		if f.against == "" && cmd.Flags().Changed(name) {
			return cli.Usagef("--%s goes with --against", name)
		}
	}
	if err := f.part.check(cmd.Flags(), location, "against"); err != nil {
		return err
	}
	if f.against != "" {
		if form := cmd.Flag("format").Value.String(); form != "text" {
			return cli.Usagef("--against and --format %s do not go together; see kvferry diff --format", form)
		}
		for _, name := range []string{"fail-on", "files"} {
			if cmd.Flags().Changed(name) {
				return cli.Usagef("--against and --%s do not go together: differences are not findings", name)
			}
		}
		if f.maxFindings == 0 {
			return cli.Usagef("--against and --max-findings 0 do not go together; see kvferry diff --format json")
		}
		d := diffFlags{read: f.read, sides: f.sides, format: "text", max: f.maxFindings, limit: "--max-findings",
			output: f.output}
		return a.runDiff(cmd, &d, location, f.against)
	}
	began := a.Now()
	show := cli.NewProgress(cmd, &f.read.progress, a.Terminal)
	defer func() { show.End(err) }()
	d, err := a.unopened(cmd, location, &f.read)
	if err == nil {
		err = tryOutputs(cmd)
	}
	if err != nil {
		return err
	}
	preparing(show, verifySteps, d)
	watch(show, d.Scan, verifySteps)
	rep, err := f.part.begin(a, cmd, d, &f.read, location)
	if err != nil {
		return err
	}
	o := d.verification()
	o.MaxFindings, o.Files = f.maxFindings, f.files
	about := verified{Source: object.Shown(location), Selected: d.Scan.Chosen(), Format: d.Found.Location.Format,
		NowMS: d.Scan.Now.UnixMilli(), FailOn: f.failOn}
	about.Selected.Expired = "" // it checks and counts them
	var tasks []inspect.Part
	var v *verify.Outcome
	if rep != nil {
		about.Part, tasks, err = verify.RunPart(cmd.Context(), o)
	} else {
		v, err = verify.Run(cmd.Context(), o)
	}
	show.End(err)
	if err != nil {
		return err
	}
	about.Seconds = a.Now().Sub(began).Seconds()
	var counts []verify.KindCount
	if v != nil {
		counts = v.Counts
	}
	about.Rest = restLine(cmd, d, location, counts)
	if rep != nil {
		if err = rep.Fill(d.Scan, tasks, &about); err == nil {
			err = cli.ToOutput(cmd, f.output, func(w io.Writer) error { return cli.PrintJSON(w, rep) })
		}
		return errors.Join(err, verdict(about.Part.Failed(f.failOn)))
	}
	res := about.result(v, a.Build.String())
	if err := cli.ToOutput(cmd, f.output, func(w io.Writer) error { return f.report(w, res) }); err != nil {
		return err
	}
	tellVerdict(cmd, f.output, res)
	d.tellNone(cmd.ErrOrStderr(), v.Records)
	return verdict(res.Failed())
}

// tellVerdict prints the verdict on a dataset that fails on standard error if the report is in a file.
func tellVerdict(cmd *cobra.Command, output string, r *render.Result) {
	if r.Failed() && !cli.ToStandard(output) {
		fmt.Fprintf(cmd.ErrOrStderr(), "kvferry: %s\n", r.Line())
	}
}

// verified is what a report says beside the outcome. Part is that of a part.
type verified struct {
	Source, Format, Rest string
	Selected             inspect.Selected
	NowMS                int64
	Seconds              float64
	FailOn               record.Severity
	Part                 *verify.Partial
}

// result returns what is printed.
func (r *verified) result(v *verify.Outcome, tool string) *render.Result {
	res := &render.Result{Outcome: v, Tool: tool, Source: r.Source, Selected: r.Selected, NowMS: r.NowMS, Seconds: r.Seconds,
		FailOn: r.FailOn, Rest: r.Rest}
	if res.Format == "" {
		res.Format = r.Format
	}
	return res
}
