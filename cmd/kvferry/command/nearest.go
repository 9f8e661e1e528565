package command

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kvferry/internal/sys/object"
	"kvferry/internal/text/suggest"
)

// foreign maps the verbs of other tools to the command lines of this one.
var foreign = map[string]string{
	"analyze": "inspect SRC", "backup": "dump SRC", "bigkeys": "inspect SRC", "cat": "dump SRC", "check": "verify SRC",
	"compare": "diff A B", "count": "inspect SRC", "du": "inspect SRC", "export": "dump SRC", "find": "keys SRC PREFIX",
	"fsck": "verify SRC", "hgetall": "get SRC KEY", "import": "convert SRC DST", "info": "inspect SRC", "list": "keys SRC",
	"load": "convert SRC DST", "ls": "keys SRC", "man": "help", "memory": "inspect SRC", "migrate": "convert SRC DST",
	"repair": "convert --allow-loss damaged SRC DST", "restore": "convert SRC DST", "scan": "keys SRC PREFIX",
	"show": "get SRC KEY", "stat": "inspect SRC", "stats": "inspect SRC", "ttl": "explain SRC KEY", "type": "explain SRC KEY",
}

// unknownCommand returns the error for an unknown command.
func unknownCommand(root *cobra.Command, name string) error {
	if ours, ok := foreign[name]; ok {
		return usagef("no command %q; use kvferry %s", name, ours)
	}
	return usagef("unknown command %q%s", object.Shown(name), suggest.DidYouMean(name, commandNames(root)))
}

// flagError returns the error for an unknown flag or an invalid value.
func flagError(cmd *cobra.Command, err error) error {
	name, ok := strings.CutPrefix(err.Error(), "unknown flag: --")
	if !ok {
		return usagef("%w", plainFlag(err))
	}
	return usagef("%w%s", err, meantFlag(cmd, name))
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
