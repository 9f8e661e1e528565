package command

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kvferry/internal/text/suggest"
)

// unknownCommand returns the error for an unknown command.
func unknownCommand(root *cobra.Command, name string) error {
	return usagef("unknown command %q%s", name, suggest.DidYouMean(name, commandNames(root)))
}

// flagError returns the error for an unknown flag or an invalid value.
func flagError(cmd *cobra.Command, err error) error {
	name, ok := strings.CutPrefix(err.Error(), "unknown flag: --")
	if !ok {
		return usagef("%w", plainFlag(err))
	}
	return usagef("%w%s", err, strings.ReplaceAll(suggest.DidYouMean(name, flagNames(cmd)), ` "`, ` "--`))
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
