package command

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/spf13/cobra"

	"kvferry/cmd/kvferry/cli"
	"kvferry/convert"
	"kvferry/inspect"
	"kvferry/inspect/render"
	"kvferry/inspect/stats"
	"kvferry/inspect/verify"
	"kvferry/internal/pass"
	"kvferry/internal/text/suggest"
)

const mergeHelp = `Add up the reports that fingerprint, verify or inspect --part wrote for all parts of a source. The output
and the exit code are the same as for one run over the whole source.

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
		RunE:    func(cmd *cobra.Command, args []string) error { return a.runMerge(cmd, &f, args) },
	}
	fs := cmd.Flags()
	cli.Choose(fs, &f.format, "format", cli.Plain("auto", "text", "json", "html", "junit", "sarif"), "output format, also as -f NAME; auto is the default format of the command")
	fs.StringVarP(&f.output, "output", "o", "", cli.OutputUsage)
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
		return cli.Usagef("%w", err)
	}
	first := parts[0]
	if missing != nil {
		return &missingReports{&convert.MissingError{Target: first.Source, Missing: missing, Parts: first.Parts}, first.Command}
	}
	var print func(io.Writer) error
	var res *render.Result
	failed := slices.ContainsFunc(parts, func(p *inspect.PartFile) bool { return p.Errors })
	switch first.Command[0] {
	case "fingerprint":
		print, err = f.fingerprints(parts, a.Build.String())
	case "verify":
		if print, res, err = f.verifications(parts, a.Build.String()); err == nil {
			failed = res.Failed()
		}
	case "inspect":
		print, err = f.counts(parts, a.Build.String())
	default:
		err = cli.Usagef("%s: it is of %s, which this program does not merge", first.Path, first.Command[0])
	}
	if err == nil {
		err = cli.ToOutput(cmd, f.output, print)
	}
	if err == nil && res != nil {
		tellVerdict(cmd, f.output, res)
	}
	return cmp.Or(err, verdict(failed))
}

// mergeFormat returns what prints a format; the first one is the default.
func mergeFormat[T any](f *mergeFlags, of string, all []cli.Option[T]) (T, error) {
	var names []string
	for _, o := range all {
		if o.Name == f.format || f.format == "auto" {
			return o.Means, nil
		}
		names = append(names, o.Name)
	}
	var none T
	return none, cli.Usagef("--format %s: the reports are of %s: want %s", f.format, of, suggest.Or(names))
}

// results decodes the results of parts.
func results[T any](parts []*inspect.PartFile) (out []*T, err error) {
	for _, p := range parts {
		one := new(T)
		if err := json.Unmarshal(p.Result, one); err != nil {
			return nil, cli.Usagef("%s: not the report of a part: %w", p.Path, err)
		}
		out = append(out, one)
	}
	return out, nil
}

// fingerprints returns what prints the sum of fingerprints.
func (f *mergeFlags) fingerprints(parts []*inspect.PartFile, tool string) (func(io.Writer) error, error) {
	print, err := mergeFormat(f, "fingerprint", fingerprintFormats)
	if err != nil {
		return nil, err
	}
	sum, err := inspect.MergeFingerprints(parts)
	if err != nil {
		return nil, cli.Usagef("%w", err)
	}
	return func(w io.Writer) error { return print(w, tool, sum) }, nil
}

// counts returns what prints the counts of all parts.
func (f *mergeFlags) counts(parts []*inspect.PartFile, tool string) (func(io.Writer) error, error) {
	print, err := mergeFormat(f, "inspect", inspectFormats)
	if err != nil {
		return nil, err
	}
	all, err := results[stats.Partial](parts)
	if err != nil {
		return nil, err
	}
	sum, err := stats.Merge(all)
	if err != nil {
		return nil, cli.Usagef("%s: %w", parts[0].Path, err)
	}
	return func(w io.Writer) error { return print(w, tool, sum) }, nil
}

// verifications returns the result of all parts, and what prints it.
func (f *mergeFlags) verifications(parts []*inspect.PartFile,
	tool string) (_ func(io.Writer) error, res *render.Result, err error) {
	print, err := mergeFormat(f, "verify", reports)
	if err != nil {
		return nil, nil, err
	}
	each, err := results[verified](parts)
	if err != nil {
		return nil, nil, err
	}
	about := *each[len(each)-1]
	var all []*verify.Partial
	for i, one := range each {
		if one.Part == nil {
			return nil, nil, cli.Usagef("%s: not the report of a part of verify", parts[i].Path)
		}
		about.Seconds = max(about.Seconds, one.Seconds)
		all = append(all, one.Part)
	}
	v, err := verify.Merge(all)
	if _, look := errors.AsType[*verify.LookError](err); look {
		first := parts[0]
		every := pass.Missing(first.Parts, func(pass.Part) bool { return false })
		return nil, nil, fmt.Errorf("%w: %w", err,
			&missingReports{&convert.MissingError{Target: first.Source, Missing: every, Parts: first.Parts},
				slices.Insert(slices.DeleteFunc(first.Command, func(word string) bool { return word == "--files=auto" }), 1, "--files=always")})
	}
	if err != nil {
		return nil, nil, err
	}
	res = about.result(v, tool)
	return func(w io.Writer) error { return print(w, res) }, res, nil
}

// maxReport bounds the size of the report of a part: verify may list a million findings.
const maxReport = 1 << 30

// readPart reads the report of a part.
func readPart(name string) (*inspect.PartFile, error) {
	in, err := cli.OpenFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &cli.ExitError{Code: cli.ExitMissing, Err: fmt.Errorf("%w: run the command of this part first", err)}
	}
	if err != nil {
		return nil, cli.Usagef("%w", err)
	}
	defer in.Close()
	out, err := inspect.ReadPart(io.LimitReader(in, maxReport))
	if err != nil {
		return nil, cli.Usagef("%s: %w", name, err)
	}
	out.Path = name
	return out, nil
}

const mergeExample = `  kvferry fingerprint --part 1/2 --now 2027-01-01 -o 1.json /data/old
  kvferry fingerprint --part 2/2 --now 2027-01-01 -o 2.json /data/old
  kvferry merge 1.json 2.json`
