package command

import (
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kvferry/convert"
	convertpaths "kvferry/convert/paths"
	"kvferry/inspect"
	"kvferry/internal/sys/object"
	"kvferry/redis/live"
)

const mergeHelp = `Add up the reports of all parts of a fingerprint: the output is that of one run over the whole source.

  kvferry fingerprint --part 1/2 --now 2026-01-01T00:00:00Z /data/dump > 1.json
  kvferry fingerprint --part 2/2 --now 2026-01-01T00:00:00Z /data/dump > 2.json
  kvferry merge 1.json 2.json

Reports of different sources, options or numbers of parts are refused, as are two different reports of
one part. The same report twice counts once.

Exit codes: 0 done; 3 a part met errors; 5 parts are missing, and their commands are listed; 1 failed.`

// merge adds up the reports of parts.
func (a *App) merge() *cobra.Command {
	var f fingerprintFlags
	cmd := &cobra.Command{
		Use:     "merge REPORT...",
		Short:   "Add up the reports of parts",
		Long:    mergeHelp,
		Example: mergeExample,
		Args:    atLeast(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return f.merge(cmd, args) },
	}
	fs := cmd.Flags()
	choose(fs, &f.format, "format", plain("json", "text"), "output format")
	fs.StringVarP(&f.output, "output", "o", "", outputUsage)
	return cmd
}

func (f *fingerprintFlags) merge(cmd *cobra.Command, names []string) error {
	var files []*inspect.PartFile
	failed := false
	for _, name := range names {
		file, err := readPart(name)
		if err != nil {
			return err
		}
		failed = failed || file.Errors
		files = append(files, file)
	}
	sum, missing, err := inspect.MergeParts(files)
	if err != nil {
		return usagef("%w", err)
	}
	if first := files[0]; missing != nil {
		return &missingReports{&convert.MissingError{Target: first.Source, Missing: missing, Parts: first.Parts}, first.Command}
	}
	if err := f.print(cmd, sum); err != nil {
		return err
	}
	return verdict(failed)
}

// readPart reads the report of a part.
func readPart(name string) (*inspect.PartFile, error) {
	in, err := openFile(name)
	if err != nil {
		return nil, usagef("%w", err)
	}
	defer in.Close()
	out, err := inspect.ReadPart(io.LimitReader(in, maxFingerprint))
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

// checkPart refuses what cannot be read in parts, or not be added up.
func (f *fingerprintFlags) checkPart(fs *pflag.FlagSet, location string) error {
	switch {
	case f.part.N == 0:
		return nil
	case f.check != "":
		return usagef("--part --check: merge the parts, and compare the result")
	case fs.Changed("format"):
		return usagef("--part --format: a report is JSON; kvferry merge has --format")
	case live.IsAddress(location) || fromStandard(location):
		return usagef("%s: processes that read it at different times would not see the same data: it has no parts", object.Shown(location))
	case !fs.Changed("now"):
		return usagef("--part needs --now, so that the same keys count as expired in all parts")
	}
	return nil
}

// newPart begins the report of a part, and limits the scan to the part.
func (a *App) newPart(cmd *cobra.Command, f *fingerprintFlags, d *Dataset, location string) (*inspect.PartFile, error) {
	rep := &inspect.PartFile{Command: f.words(cmd.Flags(), location), Tool: a.Build.Version}
	d.Scan.Share = f.part.Part
	path, files, err := convertpaths.Source(d.Found.Location.Path, f.read.source.walDir)
	if err != nil {
		return nil, err
	}
	rep.Source = path
	rep.Files, err = inspect.HashJSON(files)
	return rep, err
}

// words are the command line of the other parts, without --part. They lack what may differ, and secrets of a location.
func (f *fingerprintFlags) words(fs *pflag.FlagSet, location string) []string {
	words := flagWords(fs, "part", "output", "workers", "memory", "temp-dir", "progress", "quiet", "color", "file")
	return append(append([]string{"fingerprint"}, words...), object.Shown(location))
}

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
