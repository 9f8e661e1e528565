package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"kvferry/inspect"
	"kvferry/inspect/render"
	"kvferry/record"
)

const fingerprintHelp = `Print the fingerprint of a dataset as JSON: counts and digests by database and type. Two datasets
whose fingerprints are equal hold the same records, whatever their formats; see
docs/fingerprint.md. Records alone are read: the indexes of zsets are for verify to check.

--check compares with a fingerprint taken before, and exits with 3 when it differs: what the file
has stands first, then what SRC has. Filters must be the same both times, and --now where keys expire.
` + exitHelp

const fingerprintExample = `  kvferry fingerprint /data/pika/dump > before.json
  kvferry fingerprint --check before.json blackwidow:/data/new`

// fingerprint prints or checks the fingerprint of a dataset.
func (a *App) fingerprint() *cobra.Command {
	var f ReadFlags
	var check, output string
	cmd := &cobra.Command{
		Use:     "fingerprint SRC",
		Short:   "Print or check counts and digests that are comparable across formats",
		Long:    fingerprintHelp,
		Example: fingerprintExample,
		Args:    exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.runFingerprint(cmd, &f, args[0], check, output)
		},
	}
	f.Register(cmd)
	cmd.Flags().StringVar(&check, "check", "", "compare with a `file` that this command wrote, compressed or not")
	cmd.Flags().StringVarP(&output, "output", "o", "", outputUsage)
	return cmd
}

func (a *App) runFingerprint(cmd *cobra.Command, f *ReadFlags, location, check, output string) error {
	var want *inspect.FingerprintFile
	if check != "" {
		var err error
		if want, err = readFingerprint(check); err != nil {
			return err
		}
	}
	notes := &noted{w: cmd.ErrOrStderr(), of: []string{location}}
	d, err := a.dataset(cmd.Context(), cmd, location, f, notes.report)
	if err != nil {
		return err
	}
	var sum *record.Fingerprint
	err = d.ordered(cmd.Context(), func() (err error) {
		sum, err = inspect.Fingerprint(cmd.Context(), d.Scan)
		return err
	}, never)
	notes.sum()
	if err = errors.Join(err, d.Opened.Source.Close()); err != nil {
		return err
	}
	got := d.Scan.File(sum)
	if want == nil {
		return toOutput(cmd, output, func(w io.Writer) error { return render.Fingerprint(w, got) })
	}
	diffs := want.Compare(got)
	for _, p := range diffs {
		fmt.Fprintln(cmd.OutOrStdout(), p)
	}
	if len(diffs) > 0 {
		if want.Now != got.Now && f.choice.expired == "drop" {
			fmt.Fprintf(cmd.ErrOrStderr(), "kvferry: %s was taken at another moment, and keys may have expired since: --now %s compares at that one\n",
				check, time.UnixMilli(want.Now).UTC().Format(time.RFC3339Nano))
		}
		return &ExitError{Code: ExitFindings}
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s: equal to %s\n", location, check)
	return nil
}

func readFingerprint(path string) (*inspect.FingerprintFile, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := decompressed(f, path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	defer r.Close()
	out, err := inspect.ReadFingerprint(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return out, nil
}
