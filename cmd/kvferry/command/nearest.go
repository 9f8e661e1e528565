package command

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kvferry/internal/text/suggest"
)

// unknownCommand is the error of a command that does not exist.
func unknownCommand(root *cobra.Command, name string) error {
	return usagef("unknown command %q%s", name, suggest.DidYouMean(name, commandNames(root)))
}

// flagError is the error of a flag that does not exist or whose value is none.
func flagError(cmd *cobra.Command, err error) error {
	name, ok := strings.CutPrefix(err.Error(), "unknown flag: --")
	if !ok {
		return usagef("%w", plainFlag(err))
	}
	return usagef("%w%s", err, strings.ReplaceAll(suggest.DidYouMean(name, flagNames(cmd)), ` "`, ` "--`))
}

// plainFlag says in plain words what a flag wants that is on or off.
func plainFlag(err error) error {
	if before, _, ok := strings.Cut(err.Error(), "strconv.ParseBool"); ok {
		return errors.New(before + "want true or false")
	}
	return err
}

// flagNames lists the flags of a command that its help shows.
func flagNames(cmd *cobra.Command) []string {
	var out []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			out = append(out, f.Name)
		}
	})
	return out
}
