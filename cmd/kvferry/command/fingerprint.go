package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/spf13/cobra"

	"kvferry/cmd/kvferry/cli"
	"kvferry/inspect"
	"kvferry/inspect/compare"
	"kvferry/inspect/render"
	"kvferry/internal/pass/filter"
	"kvferry/internal/sys/object"
	"kvferry/internal/text/page"
)

const fingerprintHelp = `Print the fingerprint of a dataset as JSON: counts and digests by database and type. Two datasets
with equal fingerprints hold the same records, even in different formats; see kvferry help fingerprint.
fingerprint reads records only; kvferry verify also checks the indexes of sorted sets.

--check compares with an earlier fingerprint and exits with 3 if they differ. SRC is read with the
filters, --expired and --now of the file, so that a key that has expired since counts on both sides.
Give a --key-file again. Flags that contradict the file are wrong usage (64). --map-db bar=2 compares bar
of the file with 2 of SRC; --db selects by the names in the file.

--part K/N reads one of N parts of the source and prints a report; kvferry merge adds the reports of all
parts up. All parts have the same --now.

Exit codes: 0 done; 3 --check found differences; 1 failed.`

const fingerprintExample = `  kvferry fingerprint /data/pika/dump > before.json
  kvferry fingerprint --check before.json blackwidow:/data/new
  kvferry fingerprint --type hash /data/ardb > hashes.json
  kvferry fingerprint --check hashes.json --map-db bar=2 /data/moved`

// fingerprintFlags are the flags of fingerprint.
type fingerprintFlags struct {
	read   ReadFlags
	dbs    mapFlag
	check  string
	print  fingerprintPrinter
	output string
	part   partFlag
}

// fingerprint prints or checks the fingerprint of a dataset.
func (a *App) fingerprint() *cobra.Command {
	var f fingerprintFlags
	cmd := &cobra.Command{
		Use:     "fingerprint SRC",
		Short:   "Print or check digests that are comparable across formats",
		Long:    fingerprintHelp,
		Example: fingerprintExample,
		RunE:    func(cmd *cobra.Command, args []string) error { return a.runFingerprint(cmd, &f, args[0]) },
	}
	f.read.Register(cmd)
	fs := cmd.Flags()
	cli.Choose(fs, &f.print, "format", fingerprintFormats, "output format, also as -f NAME; --check reads json")
	fs.StringVar(&f.check, "check", "", "compare with a `file` written by this command, compressed or not; -: standard input")
	f.dbs.Register(fs)
	fs.Var(&f.part, "part", partUsage)
	fs.StringVarP(&f.output, "output", "o", "", cli.OutputUsage)
	return cmd
}

func (a *App) runFingerprint(cmd *cobra.Command, f *fingerprintFlags, location string) error {
	if err := f.part.check(cmd.Flags(), location, "check"); err != nil {
		return err
	}
	if f.check != "" {
		return a.checkFingerprint(cmd, f, location)
	}
	if len(f.dbs.dbs) > 0 {
		return cli.Usagef("--map-db goes with --check")
	}
	var rep *inspect.PartFile
	var got *inspect.FingerprintFile
	r, err := a.read(cmd, location, &f.read, func(r *reading) (err error) {
		if rep, err = f.part.begin(a, cmd, r.Dataset, &f.read, location); err == nil {
			got, err = r.fingerprint(cmd.Context(), rep)
		}
		return err
	})
	if err != nil {
		return err
	}
	print := func(w io.Writer) error { return f.print(w, a.Build.String(), got) }
	if rep != nil {
		print = r.part(rep)
	}
	return r.printed(cli.ToOutput(cmd, f.output, print), got.Records())
}

// fingerprintFormats are the output formats of fingerprint.
var fingerprintFormats = []cli.Option[fingerprintPrinter]{{Name: "json", Means: render.Fingerprint},
	{Name: "text", Means: render.FingerprintText}}

// fingerprintPrinter prints a fingerprint with the version of kvferry.
type fingerprintPrinter = func(w io.Writer, tool string, f *inspect.FingerprintFile) error

// fingerprint takes the fingerprint of a dataset, or of a part into its report.
func (d *Dataset) fingerprint(ctx context.Context, rep *inspect.PartFile) (out *inspect.FingerprintFile, err error) {
	err = d.ordered(ctx, func() error {
		if rep != nil {
			out, err = rep.Fingerprint(ctx, d.Scan)
			return err
		}
		sum, err := inspect.Fingerprint(ctx, d.Scan)
		if err == nil {
			out = d.Scan.File(sum)
		}
		return err
	})
	return out, d.checkUnchanged(err)
}

// checkFingerprint compares a dataset with a fingerprint file.
func (a *App) checkFingerprint(cmd *cobra.Command, f *fingerprintFlags, location string) error {
	want, err := readFingerprint(f.check, cmd.InOrStdin)
	if err != nil {
		return err
	}
	with, err := f.read.asTaken(cmd.Flags(), want, f.check)
	if err != nil {
		return err
	}
	f.read.mapped = len(f.dbs.dbs) > 0
	var pairs []compare.DBPair
	var got *inspect.FingerprintFile
	r, err := a.read(cmd, location, &f.read, func(r *reading) (err error) {
		if pairs, err = compare.Match(want, r.Scan, f.dbs.dbs); err != nil {
			return mapUsage(err)
		}
		got, err = r.fingerprint(cmd.Context(), nil)
		return f.dbs.dbs.Hint(err)
	})
	if err != nil {
		return err
	}
	diffs := compare.Fingerprints(want, got, pairs)
	for _, p := range diffs {
		fmt.Fprintln(cmd.OutOrStdout(), p)
	}
	verdict, both := "equal to", ""
	if len(diffs) > 0 {
		verdict = "differs from"
	}
	if text := takenText(with); text != "" {
		both = ", both with " + text
	}
	fmt.Fprintf(page.Painted(cmd.OutOrStdout()), "%s: %s %s%s\n", object.Shown(location), verdict, f.check, both)
	if len(diffs) == 0 {
		return r.printed(nil, got.Records())
	}
	tellUnmatched(cmd.ErrOrStderr(), pairs)
	if with == nil {
		f.doubt(cmd.ErrOrStderr(), want, got)
	}
	return &cli.ExitError{Code: cli.ExitFindings}
}

// doubt lists possible causes of a difference if the fingerprint file does not record its filters.
func (f *fingerprintFlags) doubt(w io.Writer, want, got *inspect.FingerprintFile) {
	fmt.Fprintf(w, "kvferry: %s is from an earlier version and does not list its filters: pass the same filters again\n", f.check)
	if want.Now != got.Now && got.Expired == "drop" {
		fmt.Fprintf(w, "kvferry: %s was taken at another time, and keys may have expired since then; --now %s compares as of that time\n",
			f.check, filter.MomentText(time.UnixMilli(want.Now)))
	}
}

// maxFingerprint bounds the size of a fingerprint file, which has some hundred bytes for each database and type.
const maxFingerprint = 16 << 20

func readFingerprint(path string, stdin func() io.Reader) (*inspect.FingerprintFile, error) {
	f, err := cli.OpenInput(path, stdin)
	if err != nil {
		return nil, cli.Usagef("--check: %w", err)
	}
	defer f.Close()
	out, err := decodeFingerprint(f)
	var unread *fs.PathError
	switch {
	case err == nil:
		return out, nil
	case errors.Is(err, inspect.ErrNotFingerprint) && !errors.As(err, &unread):
		return nil, cli.Usagef("--check: %s: %w", path, err)
	}
	return nil, fmt.Errorf("%s: %w", path, err)
}

// decodeFingerprint reads a fingerprint, compressed or not.
func decodeFingerprint(f io.Reader) (*inspect.FingerprintFile, error) {
	r, err := cli.Decompressed(f)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	bounded := &io.LimitedReader{R: r, N: maxFingerprint}
	out, err := inspect.ReadFingerprint(bounded)
	if bounded.N == 0 {
		return nil, fmt.Errorf("%w: it has %s or more", inspect.ErrNotFingerprint, cli.SizeFlag(maxFingerprint))
	}
	return out, err
}
