package command

import (
	"errors"
	"fmt"
	"io"
	"slices"
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

// checkParts refuses flags that make no sense for a part or for the finish.
func (f *convertFlags) checkParts() error {
	name := "--finish"
	switch {
	case f.part.N > 0 && f.finish:
		return usagef("--part --finish: the target is finished once all parts are there")
	case f.part.N > 0:
		name = "--part"
	case !f.finish:
		return nil
	}
	switch {
	case f.dryRun || f.estimate:
		return usagef("%s: a dry run has no parts", name)
	case f.resume:
		return usagef("%s --resume: what is done stays without --resume, too", name)
	}
	return nil
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
		printPart(text, rep)
	}
	if err == nil {
		_, err = text.WriteTo(paint.Report(cmd.OutOrStdout()))
	}
	return err
}

// printPart prints the report of a part.
func printPart(w io.Writer, r *convert.PartReport) {
	part := pass.Part{K: r.Part, N: r.Parts}
	switch {
	case r.Already && r.AllTasks == 0:
		fmt.Fprintf(w, "part %s: the target is finished already\n", part)
		return
	case r.Already:
		fmt.Fprintf(w, "part %s: done already\n", part)
	default:
		var records, elements int64
		for _, p := range r.Fingerprint {
			records, elements = records+p.Records, elements+p.Elements
		}
		fmt.Fprintf(w, "part %s: %s of %s, %s, %s\n", part, record.Number(int64(r.Tasks)), record.Count(int64(r.AllTasks), "task"),
			record.Count(records, "record"), record.Count(elements, "element"))
	}
	for i := range r.Losses {
		printLossKind(w, &r.Losses[i])
	}
	if len(r.Missing) == 0 {
		fmt.Fprintln(w, "all parts are done: run --finish")
		return
	}
	fmt.Fprintf(w, "%d of %d parts are done\n", r.Parts-len(r.Missing), r.Parts)
}

// maxMissing is the number of missing parts whose commands are listed.
const maxMissing = 20

// missingText lists the commands that make the missing parts.
func missingText(err error, args []string) string {
	var missing *convert.MissingError
	if !errors.As(err, &missing) {
		return ""
	}
	args = slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return arg == "--finish" })
	var reports *missingReports
	if errors.As(err, &reports) {
		args = reports.words
	}
	if missing.Parts == 0 {
		return "; run each part first, as with\n  " + commandLine(afterName(args, "--part", "1/8"))
	}
	var b strings.Builder
	b.WriteString("; run")
	for _, k := range missing.Missing[:min(maxMissing, len(missing.Missing))] {
		b.WriteString("\n  " + commandLine(afterName(args, "--part", strconv.Itoa(k)+"/"+strconv.Itoa(missing.Parts))))
	}
	if more := len(missing.Missing) - maxMissing; more > 0 {
		fmt.Fprintf(&b, "\n  and %d more", more)
	}
	return b.String()
}
