package command

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"kvferry/cmd/kvferry/cli"
	"kvferry/cmd/kvferry/report"
	"kvferry/convert"
	"kvferry/internal/pass"
	"kvferry/internal/text/page"
	"kvferry/record"
)

// checkParts refuses flags that make no sense for a step of a conversion in parts.
func (f *convertFlags) checkParts() error {
	var steps []string
	for _, step := range []struct {
		flag string
		set  bool
	}{{"--part", f.part.N > 0}, {"--assemble", f.assemble}, {"--prove", f.prove.N > 0}, {"--finish", f.finish}} {
		if step.set {
			steps = append(steps, step.flag)
		}
	}
	switch {
	case f.proofs > 0 && !f.finish:
		return cli.Usagef("--proofs %d needs --finish", f.proofs)
	case len(steps) == 0:
		return nil
	case len(steps) > 1:
		return cli.Usagef("%s: run the steps of a conversion in parts one after the other", strings.Join(steps, " "))
	case f.dryRun || f.estimate:
		return cli.Usagef("%s and a dry run do not go together", steps[0])
	case f.resume:
		return cli.Usagef("%s keeps finished work anyway; leave out --resume", steps[0])
	case f.noProve && f.prove.N > 0:
		return cli.Usagef("--prove and --no-prove do not go together")
	}
	return nil
}

// runProof proves one part of the target and prints its report.
func (f *convertFlags) runProof(cmd *cobra.Command, o *convert.Options, show *cli.ProgressView) error {
	rep, err := convert.ProvePart(cmd.Context(), o, f.prove.Part)
	show.End(err)
	if err != nil {
		return err
	}
	text := page.TextFor(cmd.OutOrStdout())
	if f.format == "json" {
		err = cli.PrintJSON(text, rep)
	} else if rep.Already {
		_, err = fmt.Fprintf(text, "proof %s: done already\n", f.prove.Part)
	} else {
		_, err = fmt.Fprintf(text, "proof %s: %s read back\n", f.prove.Part, contentText(rep.Fingerprint))
	}
	if err == nil {
		_, err = text.WriteTo(page.Painted(cmd.OutOrStdout()))
	}
	return err
}

// contentText counts records and elements.
func contentText(parts []convert.PartDigest) string {
	var records, elements int64
	for _, p := range parts {
		records, elements = records+p.Records, elements+p.Elements
	}
	return record.Count(records, "record") + ", " + record.Count(elements, "element")
}

// runPart converts one part and prints its report.
func (f *convertFlags) runPart(cmd *cobra.Command, o *convert.Options, show *cli.ProgressView, src string) error {
	rep, err := convert.RunPart(cmd.Context(), o, f.part.Part)
	show.End(err)
	if err != nil {
		return explainConvert(cmd, src, err, true)
	}
	text := page.TextFor(cmd.OutOrStdout())
	if f.format == "json" {
		err = cli.PrintJSON(text, rep)
	} else {
		err = printPart(text, rep)
	}
	if err == nil {
		_, err = text.WriteTo(page.Painted(cmd.OutOrStdout()))
	}
	return err
}

// printPart prints the report of a part.
func printPart(w io.Writer, r *convert.PartReport) error {
	s := partState{part: pass.Part{K: r.Part, N: r.Parts}, already: r.Already, finished: r.Already && r.AllTasks == 0,
		tasks: r.Tasks, all: r.AllTasks, missing: len(r.Missing), content: contentText(r.Fingerprint)}
	return s.print(w, func() {
		for i := range r.Losses {
			report.LossKind(w, &r.Losses[i])
		}
	})
}
