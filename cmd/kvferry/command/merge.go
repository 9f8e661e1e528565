package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kvferry/convert"
	convertpaths "kvferry/convert/paths"
	"kvferry/inspect"
	"kvferry/inspect/stats"
	"kvferry/inspect/verify"
	"kvferry/internal/pass"
	"kvferry/internal/sys/object"
	"kvferry/internal/text/suggest"
	"kvferry/redis/live"
)

const mergeHelp = `Add up the reports that fingerprint, verify or inspect --part wrote for all parts of a source: the output
and the exit code are those of one run over the whole source.

  kvferry verify --part 1/2 --now 2026-01-01T00:00:00Z /data/dump > 1.json
  kvferry verify --part 2/2 --now 2026-01-01T00:00:00Z /data/dump > 2.json
  kvferry merge 1.json 2.json

Reports of different sources, options or numbers of parts are refused, as are two different reports of
one part. The same report twice counts once. --format is one of the command that wrote the reports.

Exit codes: 0 done; 3 a part met errors, or verify has findings (its --fail-on); 5 reports are missing;
1 failed. kvferry lists the commands of missing parts.`

// mergeFlags are the flags of merge.
type mergeFlags struct {
	format string
	output string
}

// merge adds up the reports of parts.
func (a *App) merge() *cobra.Command {
	var f mergeFlags
	cmd := &cobra.Command{
		Use:     "merge REPORT...",
		Short:   "Add up the reports of parts",
		Long:    mergeHelp,
		Example: mergeExample,
		Args:    atLeast(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.runMerge(cmd, &f, args) },
	}
	fs := cmd.Flags()
	choose(fs, &f.format, "format", plain("auto", "text", "json", "html", "junit", "sarif"), "output format, also as -f NAME; auto: that of the command without --format")
	fs.StringVarP(&f.output, "output", "o", "", outputUsage)
	return cmd
}

func (a *App) runMerge(cmd *cobra.Command, f *mergeFlags, names []string) error {
	var files []*inspect.PartFile
	for _, name := range names {
		file, err := readPart(name)
		if err != nil {
			return err
		}
		files = append(files, file)
	}
	parts, missing, err := inspect.Together(files)
	if err != nil {
		return usagef("%w", err)
	}
	first := parts[0]
	if missing != nil {
		return &missingReports{&convert.MissingError{Target: first.Source, Missing: missing, Parts: first.Parts}, first.Command}
	}
	switch first.Command[0] {
	case "fingerprint":
		return f.fingerprints(cmd, parts)
	case "verify":
		return f.verifications(cmd, parts, a.Build.String())
	case "inspect":
		return f.counts(cmd, parts, a.Build.String())
	}
	return usagef("%s: it is of %s, which this program does not merge", first.Path, first.Command[0])
}

// mergeFormat returns what prints a format; the first one is the default.
func mergeFormat[T any](f *mergeFlags, of string, all []option[T]) (T, error) {
	var names []string
	for _, o := range all {
		if o.name == f.format || f.format == "auto" {
			return o.means, nil
		}
		names = append(names, o.name)
	}
	var none T
	return none, usagef("--format %s: the reports are of %s: want %s", f.format, of, suggest.Or(names))
}

// fingerprints prints the sum of fingerprints.
func (f *mergeFlags) fingerprints(cmd *cobra.Command, parts []*inspect.PartFile) error {
	print, err := mergeFormat(f, "fingerprint", fingerprintFormats)
	if err != nil {
		return err
	}
	sum, err := inspect.MergeFingerprints(parts)
	if err != nil {
		return usagef("%w", err)
	}
	if err := toOutput(cmd, f.output, func(w io.Writer) error { return print(w, sum) }); err != nil {
		return err
	}
	return errorsOf(parts)
}

// errorsOf is the verdict on parts that tell whether they met errors.
func errorsOf(parts []*inspect.PartFile) error {
	return verdict(slices.ContainsFunc(parts, func(p *inspect.PartFile) bool { return p.Errors }))
}

// counts prints what all parts have counted.
func (f *mergeFlags) counts(cmd *cobra.Command, parts []*inspect.PartFile, tool string) error {
	print, err := mergeFormat(f, "inspect", inspectFormats)
	if err != nil {
		return err
	}
	var all []*stats.Partial
	for _, p := range parts {
		one := new(stats.Partial)
		if err := json.Unmarshal(p.Result, one); err != nil {
			return usagef("%s: not the report of a part: %w", p.Path, err)
		}
		all = append(all, one)
	}
	sum, err := stats.Merge(all)
	if err != nil {
		return usagef("%s: %w", parts[0].Path, err)
	}
	if err := toOutput(cmd, f.output, func(w io.Writer) error { return print(w, string(all[0].Location), tool, sum) }); err != nil {
		return err
	}
	return errorsOf(parts)
}

// verifications prints the outcome of all parts.
func (f *mergeFlags) verifications(cmd *cobra.Command, parts []*inspect.PartFile, tool string) error {
	print, err := mergeFormat(f, "verify", reports)
	if err != nil {
		return err
	}
	var about verified
	var all []*verify.Partial
	for _, p := range parts {
		var one verified
		if err := json.Unmarshal(p.Result, &one); err != nil || one.Part == nil {
			return usagef("%s: not the report of a part: %v", p.Path, err)
		}
		one.Seconds = max(one.Seconds, about.Seconds)
		about, all = one, append(all, one.Part)
	}
	v, err := verify.Merge(all)
	var look *verify.LookError
	if first := parts[0]; errors.As(err, &look) {
		every := pass.Missing(first.Parts, func(pass.Part) bool { return false })
		return fmt.Errorf("%w: %w", err, &missingReports{&convert.MissingError{Target: first.Source, Missing: every, Parts: first.Parts},
			slices.Insert(slices.DeleteFunc(first.Command, func(word string) bool { return word == "--files=auto" }), 1, "--files=always")})
	}
	if err != nil {
		return err
	}
	res := about.result(v, tool)
	if err := toOutput(cmd, f.output, func(w io.Writer) error { return print(w, res) }); err != nil {
		return err
	}
	return verdict(res.Failed())
}

// maxReport bounds the size of the report of a part: verify may list a million findings.
const maxReport = 1 << 30

// readPart reads the report of a part.
func readPart(name string) (*inspect.PartFile, error) {
	in, err := openFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &ExitError{Code: ExitMissing, Err: fmt.Errorf("%w: run the command of this part first", err)}
	}
	if err != nil {
		return nil, usagef("%w", err)
	}
	defer in.Close()
	out, err := inspect.ReadPart(io.LimitReader(in, maxReport))
	if err != nil {
		return nil, usagef("%s: %w", name, err)
	}
	out.Path = name
	return out, nil
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
			return usagef("--part --%s: merge the parts, and compare the result", name)
		}
	}
	if fs.Changed("format") {
		return usagef("--part --format: a report is JSON; kvferry merge has --format")
	}
	return divisible(fs, location, "--part")
}

// divisible refuses what processes cannot read in parts. flag makes a process one of them.
func divisible(fs *pflag.FlagSet, location, flag string) error {
	switch {
	case live.IsAddress(location) || fromStandard(location):
		return usagef("%s: processes that read it at different times would not see the same data: it has no parts", object.Shown(location))
	case !fs.Changed("now"):
		return usagef("%s needs --now, so that the same keys count as expired in all parts", flag)
	}
	return nil
}

// begin begins the report of the part, and limits the scan to it; nil without --part.
func (p *partFlag) begin(a *App, cmd *cobra.Command, d *Dataset, read *ReadFlags, location string) (*inspect.PartFile, error) {
	if p.N == 0 {
		return nil, nil
	}
	d.Scan.Share = p.Part
	path, files, err := convertpaths.Source(d.Found.Location.Path, read.source.walDir)
	if err != nil {
		return nil, err
	}
	rep := &inspect.PartFile{Command: partWords(cmd, location), Tool: a.Build.Version, Source: path}
	rep.Files, err = inspect.HashJSON(files)
	return rep, err
}

// partUsage describes --part of a command that reads a source.
const partUsage = "read only part `K/N` of the source, such as 3/16, and print a report for kvferry merge"

// partWords are the command line of the other parts, without --part. They lack what may differ, and secrets of a location.
func partWords(cmd *cobra.Command, location string) []string {
	words := flagWords(cmd.Flags(), append(processFlags, "memory")...)
	return append(append([]string{cmd.Name()}, words...), object.Shown(location))
}

// processFlags may differ between the parts of a run.
var processFlags = []string{"part", "finish", "output", "workers", "temp-dir", "progress", "quiet", "color", "file"}

// flagWords returns the flags that are set as words of a command line, without some of them.
func flagWords(fs *pflag.FlagSet, without ...string) (words []string) {
	fs.Visit(func(flag *pflag.Flag) {
		if slices.Contains(without, flag.Name) {
			return
		}
		values := []string{flag.Value.String()}
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, v := range values {
			words = append(words, fmt.Sprintf("--%s=%s", flag.Name, v))
		}
	})
	return words
}

const mergeExample = `  kvferry fingerprint --part 1/2 --now 2027-01-01 -o 1.json /data/old
  kvferry fingerprint --part 2/2 --now 2027-01-01 -o 2.json /data/old
  kvferry merge 1.json 2.json`
