package command

import (
	"errors"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"kvferry/cmd/kvferry/cli"
	"kvferry/cmd/kvferry/report"
	"kvferry/convert"
	"kvferry/format"
	"kvferry/inspect/verify"
	"kvferry/internal/text/page"
	"kvferry/record"
)

const planHelp = `Read a dataset and print the runbook of its move: changes made by the conversion, complete commands, size, time
and space, how to start the server on the result, how to check it and how to go back. plan writes only the
runbook.

plan combines kvferry convert --dry-run and kvferry verify in one pass over the records. After findings, or
with --estimate, which reads only a sample for losses, size and time, it also runs kvferry verify on the
source. If the target holds each name under one type only, the runbook has --on-conflict rename, which
keeps all keys. Flags of convert are passed on to the commands of the runbook. The directory of
the target need not exist yet.

Exit codes: 0 the commands of the runbook are lossless; 4 they allow losses, which the runbook lists; 1 failed.`

const planExample = `  kvferry plan /data/pika/dump pika3.5:/data/pika35/db
  kvferry plan --format markdown -o move.md /data/pika/dump kvrocks:/data/kv
  kvferry plan --estimate --type hash /data/ardb rdb:/data/redis/dump.rdb`

// planFlags are the flags of plan.
type planFlags struct {
	convert convertFlags
	format  string
	output  string
}

// plan prints the runbook of a conversion.
func (a *App) plan() *cobra.Command {
	var f planFlags
	cmd := &cobra.Command{
		Use:     "plan SRC FORMAT:DST",
		Short:   "Print the runbook of a move: losses, commands, sizes, times",
		Long:    planHelp,
		Example: planExample,
		RunE:    func(cmd *cobra.Command, args []string) error { return a.runPlan(cmd, &f, args[0], args[1]) },
	}
	f.convert.register(a, cmd)
	cli.Choose(cmd.Flags(), &f.format, "format", cli.Plain("text", "markdown"), "form of the runbook")
	cmd.Flags().StringVarP(&f.output, "output", "o", "", cli.OutputUsage)
	return cmd
}

func (a *App) runPlan(cmd *cobra.Command, f *planFlags, src, dst string) error {
	if fromStandard(src) {
		return cli.Usagef("plan reads the source more than once: standard input cannot be planned")
	}
	if err := tryOutputs(cmd); err != nil {
		return err
	}
	f.convert.dryRun = !f.convert.estimate
	b := &report.Runbook{Source: src, Goal: dst, Words: planned(runOf(cmd.Context()).words), Verify: verifyLine(cmd, src)}
	b.Rename = f.convert.conflict.rename || !cmd.Flags().Changed("on-conflict")
	f.convert.conflict.rename = b.Rename
	if err := a.try(cmd, &f.convert, b); err != nil {
		return err
	}
	if b.Renamed() {
		b.Words = replacing(b.Words, "--on-conflict", "rename")
	}
	if b.Loss != nil {
		b.Words = allowing(b.Words, b.Loss.Kinds())
	}
	if err := a.check(cmd, &f.convert, b); err != nil {
		return err
	}
	text := b.Markdown()
	err := cli.ToOutput(cmd, f.output, func(w io.Writer) error {
		if f.format == "text" {
			text = page.Render(text, cli.HelpWidth(w))
		}
		_, err := io.WriteString(page.Painted(w), text)
		return err
	})
	if err == nil && b.Loss != nil {
		return &cli.ExitError{Code: cli.ExitLossy}
	}
	return err
}

// try does a dry run of the conversion. A refusal is not an error, but a part of the plan.
func (a *App) try(cmd *cobra.Command, f *convertFlags, b *report.Runbook) (err error) {
	o, err := a.convertOptions(cmd, f, b.Source, b.Goal)
	if err != nil {
		return err
	}
	o.Plan = true
	show := a.converting(cmd, &f.progress, o)
	defer func() { show.End(err) }()
	b.Report, err = convert.DryRun(cmd.Context(), o)
	if err != nil && !errors.As(err, &b.Loss) {
		return explainConvert(cmd, b.Source, err, false)
	}
	b.Target = o.Target.Format
	b.Compare = comparison(cmd.Flags(), chosen(o.Selection, f.choice.keyFile, b.Report.Now), b.Report, b.Source, b.Goal)
	if f.source.now.IsZero() { // the conversion will have another time
		b.Compare = replacing(b.Compare, "--now", "")
	}
	return nil
}

// check verifies what the dry run did not read, or everything if that found something or read only a sample.
func (a *App) check(cmd *cobra.Command, f *convertFlags, b *report.Runbook) (err error) {
	read := ReadFlags{source: f.source, choice: f.choice, workers: f.workers, progress: f.progress}
	show := cli.NewProgress(cmd, &f.progress, a.Terminal)
	defer func() { show.End(err) }()
	d, err := a.unopened(cmd, b.Source, &read)
	if err != nil {
		return err
	}
	b.From, b.Checked = d.Found, new(verify.Outcome)
	v := d.verification()
	if !f.estimate && checkedAll(b.Report) {
		v.Read = b.Report.Rows
		if b.From.Format.Limits().Place != format.InDirectory {
			return nil // there is nothing else
		}
	}
	preparing(show, verifySteps, d)
	watch(show, d.Scan, verifySteps)
	b.Checked, err = verify.Run(cmd.Context(), v)
	return err
}

// checkedAll reports whether a dry run has checked all rows and found nothing. Of records that are left out it counts the
// rows, and need not decode them.
func checkedAll(rep *convert.Report) bool {
	if rep.Sampled || len(rep.Findings) > 0 {
		return false
	}
	for _, t := range rep.Rows.Snapshot() {
		for _, left := range []record.Class{record.Expired, record.Filtered, record.Lost, record.Skipped} {
			if t.Rows[left] > 0 {
				return false
			}
		}
	}
	return true
}

// planned turns the words of plan into those of the conversion.
func planned(words []string) []string {
	words = slices.Clone(words)
	words[slices.Index(words, "plan")] = "convert"
	for _, name := range []string{"--format", "--output", "-o"} {
		words = replacing(words, name, "")
	}
	return slices.DeleteFunc(words, func(w string) bool { return w == "--estimate" || w == "-q" || w == "--quiet" })
}
