package command

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"kvferry/cmd/kvferry/cli"
	"kvferry/cmd/kvferry/fleet"
	"kvferry/internal/sys/object"
)

const fleetHelp = `Print commands or manifests that convert, export or check many datasets, or the state of that work. kvferry
itself does not run the work. FILE.yaml lists the datasets:

  target: blackwidow:/data/new/{name}
  part: 64GiB
  options: {allow-loss: expiry-ms}
  datasets:
    - source: /data/pika/*/dump
    - source: s3://backups/shop-*/dump.rdb
      target: kvrocks:s3://new/{name}

command, target, part and options at the top apply to all datasets; those of a dataset take precedence.
source and name belong to a dataset; image, claim and mount, for Kubernetes and Argo, to the top. {name} is what the
elements of the path with wildcards match, joined by -, or else the last element. command is convert, or dump (to
Parquet, unless options have another format), verify, inspect or fingerprint, whose target is the path of the output.
options are flags of the command. A dataset larger than part is read in parts of about that size, unless the target
is in an object store. Paths are absolute: machines have different working directories.

--as shell prints commands, kubernetes and argo print manifests, and slurm prints a script that submits jobs.
kvferry help parts explains the steps.

--reports reads the reports that commands wrote next to their targets, and prints one page: which datasets are done,
failed or open, their losses, sizes and times, and the next command for each.

Exit codes: 0 done, and with --reports all datasets are; 5 some are not; 1 failed; 64 wrong usage.`

const fleetExample = `  kvferry fleet fleet.yaml
  kvferry fleet --as kubernetes fleet.yaml
  kvferry fleet --reports '/data/**' --format html -o fleet.html fleet.yaml`

// fleetFlags are the flags of fleet.
type fleetFlags struct {
	as, format, output string
	reports            []string
}

// fleet prints the commands for many datasets, or their state.
func (a *App) fleet() *cobra.Command {
	var f fleetFlags
	cmd := &cobra.Command{
		Use:     "fleet FILE.yaml",
		Short:   "Print the commands for many datasets, or their state",
		Long:    fleetHelp,
		Example: fleetExample,
		RunE:    func(cmd *cobra.Command, args []string) error { return a.runFleet(cmd, &f, args[0]) },
	}
	fs := cmd.Flags()
	cli.Choose(fs, &f.as, "as", cli.Plain("shell", "kubernetes", "slurm", "argo"), "form of the commands")
	fs.StringArrayVar(&f.reports, "reports", nil, "print the state of the datasets from the reports in a `directory`, or that match a pattern; ** matches any directories")
	cli.Choose(fs, &f.format, "format", cli.Plain("text", "json", "html"), "form of the state")
	fs.StringVarP(&f.output, "output", "o", "", cli.OutputUsage)
	return cmd
}

func (a *App) runFleet(cmd *cobra.Command, f *fleetFlags, file string) error {
	if len(f.reports) == 0 && cmd.Flags().Changed("format") {
		return cli.Usagef("--format is about the state of datasets, which --reports prints")
	}
	if len(f.reports) > 0 && cmd.Flags().Changed("as") {
		return cli.Usagef("--as --reports: print the commands or the state, not both")
	}
	program := &fleet.Program{Target: a.Target, Commands: map[string]func() *cobra.Command{"convert": a.convert, "dump": a.dump,
		"verify": a.verify, "inspect": a.inspect, "fingerprint": a.fingerprint}}
	program.Mount = func(o object.Options, memory int64) func(string) (string, error) {
		return (&objectFlags{o}).mounter(cmd.Context(), memory)
	}
	t, err := program.Read(file)
	if err != nil {
		return err
	}
	if err := cli.Local("output", f.output); err != nil {
		return err
	}
	if len(f.reports) > 0 {
		s, err := t.State(f.reports)
		if err == nil {
			for _, unread := range s.Unread {
				fmt.Fprintf(cmd.ErrOrStderr(), "kvferry: %s\n", fleet.NotRead(unread))
			}
			err = cli.ToOutput(cmd, f.output, func(w io.Writer) error { return s.Print(w, f.format) })
		}
		if err == nil && !s.Done() {
			err = &cli.ExitError{Code: cli.ExitMissing}
		}
		return err
	}
	text, err := t.Print(f.as)
	if err != nil {
		return err
	}
	return cli.ToOutput(cmd, f.output, func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	})
}
