package command

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kvferry/cmd/kvferry/cli"
	"kvferry/convert/work"
	"kvferry/inspect"
	"kvferry/internal/pass"
	"kvferry/internal/sys/object"
	"kvferry/record"
	"kvferry/redis/live"
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
		_, err = fmt.Fprintf(w, "part %s: %s of %s, %s\n", s.part, record.Number(int64(s.tasks)),
			record.Count(int64(s.all), "task"), s.content)
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

// missingReports means that parts have no report. words are the command line of a part, without --part.
type missingReports struct {
	error
	words []string
}

func (e *missingReports) Unwrap() error { return e.error }

// check refuses what cannot be read in parts, or not be added up. others are flags that do not go with --part.
func (p *partFlag) check(fs *pflag.FlagSet, location string, others ...string) error {
	if p.N == 0 {
		return nil
	}
	for _, name := range others {
		if fs.Changed(name) {
			return cli.Usagef("--part --%s: merge the parts, and compare the result", name)
		}
	}
	if fs.Changed("format") {
		return cli.Usagef("--part --format: a report is JSON; kvferry merge has --format")
	}
	return divisible(fs, location, "--part")
}

// divisible refuses what processes cannot read in parts. flag makes a process one of them.
func divisible(fs *pflag.FlagSet, location, flag string) error {
	switch {
	case live.IsAddress(location) || fromStandard(location):
		return cli.Usagef("%s: processes that read it at different times would not see the same data: it has no parts",
			object.Shown(location))
	case !fs.Changed("now"):
		return cli.Usagef("%s needs --now, so that the same keys count as expired in all parts", flag)
	}
	return nil
}

// begin begins the report of the part, and limits the scan to it; nil without --part.
func (p *partFlag) begin(a *App, cmd *cobra.Command, d *Dataset, read *ReadFlags, location string) (*inspect.PartFile, error) {
	if p.N == 0 {
		return nil, nil
	}
	d.Scan.Share = p.Part
	path, files, err := work.Source(d.Found.Location.Path, read.source.walDir)
	if err != nil {
		return nil, err
	}
	rep := &inspect.PartFile{Command: partWords(cmd, location), Tool: a.Build.Version, Source: path}
	rep.Files, err = inspect.HashJSON(files)
	return rep, err
}

// part returns what prints the report of a part.
func (r *reading) part(rep *inspect.PartFile) func(io.Writer) error {
	rep.Errors = r.notes.errs > 0
	return func(w io.Writer) error { return cli.PrintJSON(w, rep) }
}

// partUsage describes --part of a command that reads a source.
const partUsage = "read only part `K/N` of the source, such as 3/16, and print a report for kvferry merge"

// partWords are the command line of the other parts, without --part. They lack what may differ, and secrets of a location.
func partWords(cmd *cobra.Command, location string) []string {
	words := cli.FlagWords(cmd.Flags(), append(processFlags, "memory")...)
	return append(append([]string{cmd.Name()}, words...), object.Shown(location))
}

// processFlags may differ between the parts of a run.
var processFlags = []string{"part", "finish", "output", "workers", "temp-dir", "progress", "quiet", "color", "file"}
