// Package command implements the kvferry command line, one file per subcommand. Every command works the same way:
// fill a struct of flags, validate it, call one library function, print the result.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kvferry/catalog"
	"kvferry/convert"
	"kvferry/format"
	"kvferry/internal/sys/disk"
	"kvferry/internal/text/escape"
	"kvferry/internal/text/paint"
	"kvferry/internal/text/suggest"
	"kvferry/record"
)

// App holds the dependencies of the commands. Default builds the real App; tests build their own.
type App struct {
	catalog.Catalog
	Build Build
	// Now is the clock. A command reads it once.
	Now func() time.Time
	// LimitMemory applies --memory to the Go runtime; nil leaves the runtime alone.
	LimitMemory func(bytes int64)
	// Stdin is the input that - names; nil means the process's standard input.
	Stdin io.Reader
	// Terminal is true if standard error is a terminal where a progress bar can be drawn.
	Terminal bool
	// Screen is true if standard output is a terminal, which a bar would share with the results.
	Screen bool
	// Colors is true if these terminals have colours.
	Colors bool
}

// Run executes one command line and returns the exit code. It prints an error to stderr in one line.
func (a *App) Run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := a.Root()
	if asksForCompletion(args) {
		a.complete(root)
	}
	out := &standardOutput{Writer: stdout, colored: colored(root, a.Screen && a.Colors)}
	said := newStandardError(stderr, colored(root, a.Terminal && a.Colors))
	root.SetArgs(append([]string{}, args...)) // cobra takes nil for the arguments of the process
	root.SetIn(a.Stdin)
	root.SetOut(out)
	root.SetErr(said)
	current := &run{words: args}
	defer current.unmount()
	err := out.failed(root.ExecuteContext(context.WithValue(ctx, runKey{}, current)))
	code, name := ExitCode(err), "kvferry:"
	if said.colored() {
		name = paint.Error(name)
	}
	var exit *ExitError
	switch {
	case err == nil, errors.As(err, &exit) && exit.Err == nil:
	case exit == nil && out.broken():
		return ExitPipe // the reader closed the pipe: exit as if SIGPIPE had killed the process
	case code == ExitCancelled:
		fmt.Fprintf(said, name+" %s\n", cancelledText(err, args))
	case code == ExitUsage:
		fmt.Fprintf(said, name+" %s (see --help)\n", oneLine(advised(err)))
	default:
		fmt.Fprintf(said, name+" %s%s%s\n", oneLine(advised(err)), keptText(err, args), refusalText(err, args)+pastText(err, args)+missingText(err, args))
	}
	return code
}

// run is a run of a command.
type run struct {
	words []string // the command line, without the name of the program
	mounts
}

// runKey is the key of the run in a command's context.
type runKey struct{}

func runOf(ctx context.Context) *run { return ctx.Value(runKey{}).(*run) }

// oneLine joins errors into one line and drops repeats, such as the same error from a write and the flush after it.
// Names in the text are escaped: they can contain any bytes.
func oneLine(err error) string {
	return strings.Join(slices.Compact(errorTexts(err)), "; ")
}

// advised adds advice to an error about access, or about a file that does not exist.
func advised(err error) error {
	if advice := disk.Advice(err); advice != "" {
		return fmt.Errorf("%w; %s", err, advice)
	}
	var path *fs.PathError
	if errors.As(err, &path) && errors.Is(path, fs.ErrNotExist) && strings.HasSuffix(err.Error(), path.Error()) {
		return fmt.Errorf("%w%s", err, suggest.Path(path.Path))
	}
	return err
}

// errorTexts lists the texts of joined errors. Joined errors inside a longer text are put on one line.
func errorTexts(err error) []string {
	text := err.Error()
	if joined, ok := err.(interface{ Unwrap() []error }); ok && text == joinedText(joined.Unwrap()) {
		var out []string
		for _, e := range joined.Unwrap() {
			out = append(out, errorTexts(e)...)
		}
		return out
	}
	for e := errors.Unwrap(err); e != nil; e = errors.Unwrap(e) {
		if joined, ok := e.(interface{ Unwrap() []error }); ok && len(joined.Unwrap()) > 0 {
			if before, after, ok := strings.Cut(text, e.Error()); ok {
				return []string{escape.Text(before) + oneLine(e) + escape.Text(after)}
			}
		}
	}
	return []string{escape.Text(text)}
}

// joinedText joins errors as errors.Join does.
func joinedText(errs []error) string {
	var lines []string
	for _, e := range errs {
		lines = append(lines, e.Error())
	}
	return strings.Join(lines, "\n")
}

// cancelledText describes the work a cancelled command left behind and how to continue.
func cancelledText(err error, args []string) string {
	var unfinished *convert.UnfinishedError
	if !errors.As(err, &unfinished) {
		return "cancelled"
	}
	dir := escape.Text(unfinished.Dir)
	switch {
	case unfinished.Kept:
		return fmt.Sprintf("cancelled; the work so far is kept in %s%s", dir, goOn(args))
	case unfinished.Resume:
		return fmt.Sprintf("cancelled before any work was done; %s was removed; start again with\n  %s", dir, commandLine(args))
	}
	return fmt.Sprintf("cancelled; %s was removed", dir)
}

// goOn ends a message about kept work with the command line that continues the conversion.
func goOn(args []string) string {
	args = slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return arg == "--discard" })
	if !slices.Contains(args, "--resume") && !slices.Contains(args, "--finish") && !slices.Contains(args, "--assemble") {
		args = afterName(args, "--resume")
	}
	return "; continue with\n  " + commandLine(args)
}

// afterName inserts flags after the name of a command that has parts.
func afterName(args []string, flags ...string) []string {
	name := func(arg string) bool {
		return slices.Contains([]string{"convert", "fingerprint", "verify", "inspect", "dump"}, arg)
	}
	return slices.Insert(slices.Clone(args), slices.IndexFunc(args, name)+1, flags...)
}

// replacing replaces a flag of a conversion.
func replacing(args []string, name, value string) []string {
	var out []string
	for i := 0; i < len(args); i++ {
		switch {
		case args[i] == name:
			i++ // its value
		case !strings.HasPrefix(args[i], name+"="):
			out = append(out, args[i])
		}
	}
	if value == "" {
		return out
	}
	return afterName(out, name, value)
}

// allowing replaces --allow-loss by one that allows the losses of these kinds.
func allowing(args, kinds []string) []string {
	return replacing(args, "--allow-loss", strings.Join(kinds, ","))
}

// keptText explains how to continue a failed conversion whose work is kept.
func keptText(err error, args []string) string {
	var unfinished *convert.UnfinishedError
	if !errors.As(err, &unfinished) || !unfinished.CanGoOn() {
		return ""
	}
	var existing *format.ExistingError
	if errors.As(err, &existing) {
		return "" // the same command line would fail again; the error names the flag to add
	}
	var loss *convert.LossError
	if errors.As(err, &loss) {
		args = allowing(args, loss.Kinds())
	}
	return goOn(args)
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

` + exitHelp,
		Example: `  kvferry inspect /data/pika/dump
  kvferry verify /data/pika/dump
  kvferry convert /data/pika/dump blackwidow:/data/new
  kvferry diff /data/pika/dump /data/new`,
		Version:       a.Build.String(),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := io.WriteString(cmd.OutOrStdout(), shortHelp(cmd, helpWidth(cmd.OutOrStdout())))
			return err
		},
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return allFlags(cmd, job) },
	}
	root.Flags().Bool("version", false, "print the version") // -v means verbose, everywhere
	root.SetVersionTemplate(a.versionLine())
	root.PersistentFlags().StringVarP(&job, "file", "f", "", "YAML `file` of flags, by name")
	colorFlag(root.PersistentFlags())
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(a.commands()...)
	root.SetHelpFunc(showHelpOf)
	root.SetHelpCommand(help())
	hint(root)
	oneInput(root)
	withJob(root)
	root.CompletionOptions.DisableDefaultCmd = true // commands adds its own
	return root
}

// exactArgs requires the n arguments that the usage line names. A job file may supply some of them.
func exactArgs(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if jobFile(cmd) != "" && len(args) < n {
			return nil
		}
		return exactly(cmd, args, n)
	}
}

// atLeast requires n arguments or more.
func atLeast(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if jobFile(cmd) != "" || len(args) >= n {
			return nil
		}
		return usagef("%s: %s, want %d or more: %s", cmd.Name(), record.Count(int64(len(args)), "argument"), n, cmd.UseLine())
	}
}

func exactly(cmd *cobra.Command, args []string, n int) error {
	if len(args) != n {
		return usagef("%s: %s, want %d: %s", cmd.Name(), record.Count(int64(len(args)), "argument"), n, cmd.UseLine())
	}
	return nil
}
