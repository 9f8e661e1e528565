// Package cli reads command lines and writes to the screen: flags, job files, help, completion, errors and exit codes,
// input and output files, progress. It knows cobra and the terminal, and no dataset.
package cli

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kvferry/internal/sys/object"
	"kvferry/internal/text/escape"
	"kvferry/internal/text/suggest"
	"kvferry/record"
)

// CheckArgs refuses other numbers of arguments than the usage line has. A job file may supply some of them.
func CheckArgs(cmd *cobra.Command, args []string) error {
	if err := formatOfJob(cmd); err != nil || jobFile(cmd) != "" && len(args) < len(ArgNames(cmd)) {
		return err
	}
	return countArgs(cmd, args)
}

func countArgs(cmd *cobra.Command, args []string) error {
	least, most, want := len(ArgNames(cmd)), len(strings.Fields(cmd.Use))-1, ""
	if strings.HasSuffix(cmd.Use, "...") {
		most, want = math.MaxInt, " or more"
	} else if most > least {
		want = fmt.Sprintf(" or %d", most)
	}
	if len(args) < least || len(args) > most {
		return Usagef("%s: %s, want %d%s: %s", cmd.Name(), record.Count(int64(len(args)), "argument"), least, want, cmd.UseLine())
	}
	return nil
}

// ArgNames returns the names of the required arguments in a command's usage line.
func ArgNames(cmd *cobra.Command) []string {
	return slices.DeleteFunc(strings.Fields(cmd.Use)[1:], func(name string) bool { return name[0] == '[' })
}

// flagNames lists the visible flags of a command.
func flagNames(cmd *cobra.Command) []string {
	var out []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			out = append(out, f.Name)
		}
	})
	return out
}

// IsSource reports whether an argument name denotes a dataset to read.
func IsSource(name string) bool { return name == "SRC" || name == "A" || name == "B" }

// FlagWords returns the flags that are set as words of a command line, without some of them.
func FlagWords(fs *pflag.FlagSet, without ...string) (words []string) {
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

// foreign maps the verbs of other tools to the command lines of this one.
var foreign = map[string]string{
	"analyze": "inspect SRC", "backup": "dump SRC", "bigkeys": "inspect SRC", "cat": "dump SRC", "check": "verify SRC",
	"compare": "diff A B", "count": "inspect SRC", "du": "inspect SRC", "export": "dump SRC", "find": "keys SRC PREFIX",
	"fsck": "verify SRC", "hgetall": "get SRC KEY", "import": "convert SRC DST", "info": "inspect SRC", "list": "keys SRC",
	"load": "convert SRC DST", "ls": "keys SRC", "man": "help", "memory": "inspect SRC", "migrate": "convert SRC DST",
	"repair": "convert --allow-loss damaged SRC DST", "restore": "convert SRC DST", "scan": "keys SRC PREFIX",
	"show": "get SRC KEY", "stat": "inspect SRC", "stats": "inspect SRC", "ttl": "explain SRC KEY", "type": "explain SRC KEY",
}

// UnknownCommand returns the error for an unknown command.
func UnknownCommand(root *cobra.Command, name string) error {
	if ours, ok := foreign[name]; ok {
		return Usagef("no command %q; use kvferry %s", name, ours)
	}
	return Usagef("unknown command %q%s", object.Shown(name), suggest.DidYouMean(name, commandNames(root)))
}

// FlagError returns the error for an unknown flag or an invalid value.
func FlagError(cmd *cobra.Command, err error) error {
	name, ok := strings.CutPrefix(err.Error(), "unknown flag: --")
	if !ok {
		return Usagef("%w", plainFlag(err))
	}
	return Usagef("%w%s", err, meantFlag(cmd, name))
}

// meantFlag suggests flags like an unknown one. --json of other tools is --format json.
func meantFlag(cmd *cobra.Command, name string) string {
	formats := formatsOf(cmd)
	meant := strings.ReplaceAll(suggest.DidYouMean(name, flagNames(cmd)), ` "`, ` "--`)
	if meant == "" || slices.Contains(formats, name) {
		for _, format := range suggest.Nearest(name, formats) {
			return "; did you mean --format " + format + "?"
		}
	}
	return meant
}

// plainFlag rewords the error of strconv.ParseBool.
func plainFlag(err error) error {
	if before, _, ok := strings.Cut(err.Error(), "strconv.ParseBool"); ok {
		return errors.New(before + "want true or false")
	}
	return err
}

// patterns are the flags whose values may be keys that are URLs.
var patterns = []string{"--match", "--exclude", "--regex", "--range"}

// CommandLine formats a kvferry command line for a shell, as ShownWords.
func CommandLine(args []string) string { return "kvferry " + escape.Shell(ShownWords(args)) }

// ShownWords returns the words of a command line without the secrets of URLs, and with … in their place. Patterns stay
// as they are.
func ShownWords(args []string) []string {
	args = slices.Clone(args)
	for i, arg := range args {
		flag, _, _ := strings.Cut(arg, "=")
		if slices.Contains(patterns, flag) || i > 0 && slices.Contains(patterns, args[i-1]) {
			continue
		}
		args[i] = object.Shown(arg)
	}
	return args
}
