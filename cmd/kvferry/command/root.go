package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"kvferry/cmd/kvferry/cli"
	"kvferry/internal/text/page"
)

// commands lists the subcommands.
func (a *App) commands() []*cobra.Command {
	return []*cobra.Command{
		a.convert(),
		a.plan(),
		a.get(),
		a.keys(),
		a.serve(),
		a.dump(),
		a.verify(),
		a.diff(),
		a.patch(),
		a.fingerprint(),
		a.merge(),
		a.fleet(),
		a.inspect(),
		a.explain(),
		a.formats(),
		a.version(),
		cli.Completion(),
	}
}

// Run executes one command line and returns the exit code. It prints an error to stderr in one line.
func (a *App) Run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := a.Root()
	if cli.AsksForCompletion(args) {
		a.complete(root)
	}
	out := &cli.StandardOutput{Writer: stdout, Screen: a.Screen, Painted: cli.Colored(root, a.Screen && a.Colors)}
	said := cli.NewStandardError(stderr, cli.Colored(root, a.Terminal && a.Colors))
	root.SetArgs(append([]string{}, args...)) // cobra takes nil for the arguments of the process
	root.SetIn(a.Stdin)
	root.SetOut(out)
	root.SetErr(said)
	current := &run{words: args}
	defer current.unmount()
	err := out.Failed(root.ExecuteContext(context.WithValue(ctx, runKey{}, current)))
	if counts := current.traffic.Counts(); counts != nil {
		fmt.Fprintf(said, "kvferry: object store: %s\n", counts)
	}
	code, name := ExitCode(err), "kvferry:"
	if said.Colored() {
		name = page.PaintedError(name)
	}
	var exit *cli.ExitError
	switch {
	case err == nil, errors.As(err, &exit) && exit.Err == nil:
	case exit == nil && out.Broken():
		return cli.ExitPipe // the reader closed the pipe: exit as if SIGPIPE had killed the process
	case code == cli.ExitCancelled:
		fmt.Fprintf(said, name+" %s\n", cancelledText(err, args))
	case code == cli.ExitUsage:
		fmt.Fprintf(said, name+" %s (see --help)\n", cli.OneLine(cli.Advised(err)))
	default:
		fmt.Fprintf(said, name+" %s%s%s\n", cli.OneLine(cli.Advised(err)), keptText(err, args),
			refusalText(err, args)+pastText(err, args)+missingText(err, args)+leftText(err, args))
	}
	return code
}

// Root returns the command tree.
func (a *App) Root() *cobra.Command {
	var job string
	root := &cobra.Command{
		Use:   "kvferry",
		Short: "Convert, verify and inspect Redis data on disk: Pika, Ardb, Kvrocks, RDB, AOF",
		Long: `kvferry converts, verifies and inspects Redis data on disk: databases of Pika, Ardb and Kvrocks, RDB
files and append-only files. It works offline, on the files alone. It can also read and write running
Redis and Valkey servers by their address, redis://host:port.

A location is [format[+store]:]path, such as /data/dump, nemo:/data/dump or ardb+leveldb:/data/ardb. The
format of a source is detected (-v shows why); a target must name its format. A server name in place of
the format (pika3.5:/data/new) lays out the target for that server. kvferry formats lists both. Write
./path if a path looks like a format.

A YAML file given with -f can hold any flag, one per line. The command line takes precedence:

  source: /data/pika/dump
  target: blackwidow:/data/new
  type: [hash, zset]
  workers: 4
  dry-run: true

` + cli.ExitHelp,
		Example: `  kvferry inspect /data/pika/dump
  kvferry verify /data/pika/dump
  kvferry convert /data/pika/dump blackwidow:/data/new
  kvferry diff /data/pika/dump /data/new`,
		Version:       a.Build.String(),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return cli.UnknownCommand(cmd, args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := io.WriteString(cmd.OutOrStdout(), cli.ShortHelp(cmd, cli.HelpWidth(cmd.OutOrStdout())))
			return err
		},
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return cli.AllFlags(cmd, job) },
	}
	root.Flags().Bool("version", false, "print the version") // -v means verbose, everywhere
	root.SetVersionTemplate(a.versionLine())
	root.PersistentFlags().StringVarP(&job, "file", "f", "", "YAML `file` of flags, by name")
	cli.ColorFlag(root.PersistentFlags())
	root.SetFlagErrorFunc(cli.FlagError)
	root.AddCommand(a.commands()...)
	root.SetHelpFunc(cli.ShowHelpOf)
	root.SetHelpCommand(cli.Help())
	for _, cmd := range root.Commands() {
		run := cmd.RunE
		cmd.Args = cli.CheckArgs
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			args, err := cli.JobArgs(cmd, args)
			if err == nil {
				err = oneInput(cmd, args)
			}
			if err == nil {
				err = hint(cmd, args, run(cmd, args))
			}
			return err
		}
	}
	root.CompletionOptions.DisableDefaultCmd = true // commands adds its own
	return root
}

// inputFlags are the flags that accept standard input.
var inputFlags = []string{"key-file", "check", "against"}

// inputName is the argument name of a file to read.
const inputName = "FILE"

// oneInput refuses to read standard input twice: the second reader would find no data.
func oneInput(cmd *cobra.Command, args []string) error {
	var readers []string
	for i, name := range cli.ArgNames(cmd) {
		if i < len(args) && (cli.IsSource(name) || name == inputName) && fromStandard(args[i]) {
			readers = append(readers, args[i])
		}
	}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if slices.Contains(inputFlags, f.Name) && fromStandard(f.Value.String()) {
			readers = append(readers, "--"+f.Name+" "+f.Value.String())
		}
	})
	if len(readers) > 1 {
		return cli.Usagef("%s: standard input can be read only once: write one of them to a file", strings.Join(readers, " and "))
	}
	return nil
}

// cancelling lists the signals that cancel a command. Under nohup, SIGHUP does not.
func cancelling() []os.Signal {
	out := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		out = append(out, syscall.SIGHUP)
	}
	return out
}

// Main runs the process's command line until it ends or a signal cancels it, and returns the exit code.
func Main(b Build) int {
	signal.Ignore(syscall.SIGPIPE) // a closed pipe becomes an error of the write to it
	ctx, stop := signal.NotifyContext(context.Background(), cancelling()...)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C kills the process at once
	app := Default(b)
	app.Terminal = term.IsTerminal(int(os.Stderr.Fd())) && os.Getenv("TERM") != "dumb"
	app.Screen = term.IsTerminal(int(os.Stdout.Fd()))
	app.Colors = (!app.Terminal || cli.CanColor(os.Stderr)) && (!app.Screen || cli.CanColor(os.Stdout))
	return app.Run(ctx, os.Args[1:], os.Stdout, os.Stderr)
}
