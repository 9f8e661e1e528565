package command

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"kvferry/convert"
	"kvferry/internal/pass"
	"kvferry/internal/text/page"
	"kvferry/internal/text/paint"
	"kvferry/record"
)

// partFlag is --part: K/N.
type partFlag struct{ pass.Part }

// Set parses the flag.
func (p *partFlag) Set(s string) (err error) {
	p.Part, err = pass.ParsePart(s)
	return err
}

// Type names the value in the help.
func (p *partFlag) Type() string { return "part" }

// String returns what Set reads; "" if the flag is not set.
func (p *partFlag) String() string {
	if p.N == 0 {
		return ""
	}
	return p.Part.String()
}

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
		return usagef("--proofs %d: --finish asks for them", f.proofs)
	case len(steps) == 0:
		return nil
	case len(steps) > 1:
		return usagef("%s: the steps of a conversion in parts run one after the other", strings.Join(steps, " "))
	case f.dryRun || f.estimate:
		return usagef("%s: a dry run has no parts", steps[0])
	case f.resume:
		return usagef("%s --resume: what is done stays without --resume, too", steps[0])
	case f.noProve && f.prove.N > 0:
		return usagef("--prove --no-prove: one of them")
	}
	return nil
}

// runProof proves one part of the target and prints its report.
func (f *convertFlags) runProof(cmd *cobra.Command, o *convert.Options, show *progressView) error {
	rep, err := convert.ProvePart(cmd.Context(), o, f.prove.Part)
	show.end(err)
	if err != nil {
		return err
	}
	text := page.TextFor(cmd.OutOrStdout())
	if f.format == "json" {
		err = printJSON(text, rep)
	} else if rep.Already {
		_, err = fmt.Fprintf(text, "proof %s: done already\n", f.prove.Part)
	} else {
		_, err = fmt.Fprintf(text, "proof %s: %s read back\n", f.prove.Part, contentText(rep.Fingerprint))
	}
	if err == nil {
		_, err = text.WriteTo(paint.Report(cmd.OutOrStdout()))
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
func (f *convertFlags) runPart(cmd *cobra.Command, o *convert.Options, show *progressView, src string) error {
	rep, err := convert.RunPart(cmd.Context(), o, f.part.Part)
	show.end(err)
	if err != nil {
		return explainConvert(cmd.ErrOrStderr(), src, err, true)
	}
	text := page.TextFor(cmd.OutOrStdout())
	if f.format == "json" {
		err = printJSON(text, rep)
	} else {
		err = printPart(text, rep)
	}
	if err == nil {
		_, err = text.WriteTo(paint.Report(cmd.OutOrStdout()))
	}
	return err
}

// partState is what is printed of a part.
type partState struct {
	part                pass.Part
	already, finished   bool // by another process: the part, or all
	tasks, all, missing int
	content             string // counts
}

// print prints the state. lines prints more of it; it may be nil.
func (s *partState) print(w io.Writer, lines func()) (err error) {
	switch {
	case s.finished:
		_, err = fmt.Fprintf(w, "part %s: the target is finished already\n", s.part)
		return err
	case s.already:
		_, err = fmt.Fprintf(w, "part %s: done already\n", s.part)
	default:
		_, err = fmt.Fprintf(w, "part %s: %s of %s, %s\n", s.part, record.Number(int64(s.tasks)), record.Count(int64(s.all), "task"), s.content)
	}
	if lines != nil {
		lines()
	}
	next := "all parts are done: run --finish\n"
	if s.missing > 0 {
		next = fmt.Sprintf("%d of %d parts are done\n", s.part.N-s.missing, s.part.N)
	}
	_, end := io.WriteString(w, next)
	return errors.Join(err, end)
}

// printPart prints the report of a part.
func printPart(w io.Writer, r *convert.PartReport) error {
	s := partState{part: pass.Part{K: r.Part, N: r.Parts}, already: r.Already, finished: r.Already && r.AllTasks == 0, tasks: r.Tasks,
		all: r.AllTasks, missing: len(r.Missing), content: contentText(r.Fingerprint)}
	return s.print(w, func() {
		for i := range r.Losses {
			printLossKind(w, &r.Losses[i])
		}
	})
}

// maxMissing is the number of missing parts whose commands are listed.
const maxMissing = 20

// withoutSteps leaves out the flags that say which step of a conversion in parts to run.
func withoutSteps(args []string) (out []string) {
	for i := 0; i < len(args); i++ {
		switch name, _, given := strings.Cut(args[i], "="); name {
		case "--prove", "--proofs":
			if !given {
				i++
			}
		case "--finish", "--assemble":
		default:
			out = append(out, args[i])
		}
	}
	return out
}

// missingText lists the commands that make the missing parts.
func missingText(err error, args []string) string {
	var missing *convert.MissingError
	if !errors.As(err, &missing) {
		return ""
	}
	args = withoutSteps(args)
	var reports *missingReports
	if errors.As(err, &reports) {
		args = reports.words
	}
	if missing.Assemble {
		return "; run this first:\n  " + commandLine(afterName(args, "--assemble"))
	}
	if missing.Parts == 0 {
		return "; run each part first, as with\n  " + commandLine(afterName(args, "--part", "1/8"))
	}
	flag := "--part"
	if missing.Proofs {
		flag = "--prove"
	}
	var b strings.Builder
	b.WriteString("; run")
	for _, k := range missing.Missing[:min(maxMissing, len(missing.Missing))] {
		b.WriteString("\n  " + commandLine(afterName(args, flag, strconv.Itoa(k)+"/"+strconv.Itoa(missing.Parts))))
	}
	if more := len(missing.Missing) - maxMissing; more > 0 {
		fmt.Fprintf(&b, "\n  and %d more", more)
	}
	return b.String()
}
