package command

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"kvferry/internal/catalog"
	"kvferry/record"
	"kvferry/store"
)

// hint makes every command that fails on a damaged dataset point to the one that says what is wrong with it.
func hint(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		run := cmd.RunE
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			err := run(cmd, args)
			if location, found := damaged(err, sources(cmd, args)); found {
				return fmt.Errorf("%w; %s lists all that is wrong with it%s", err, verifyLine(location), rest(cmd, err))
			}
			return err
		}
	}
}

// rest says how the rest of a damaged dataset can be had, when no flag of the command goes past the damage.
func rest(cmd *cobra.Command, err error) string {
	var block *store.BlockError
	var missing *store.MissingError
	var corrupt *record.CorruptError
	switch {
	case errors.As(err, &block):
		if cmd.Flag("salvage") == nil {
			return "; to compare what is left, convert it with --allow-loss damaged and take the copy"
		}
	case errors.As(err, &corrupt), errors.As(err, &missing), errors.Is(err, store.ErrNotStore):
		return ", and docs/findings.md says how to get at the rest"
	}
	return ""
}

// sources are the locations that a command line reads. verify is asked for what another command says of them.
func sources(cmd *cobra.Command, args []string) (out []string) {
	for i, name := range argNames(cmd) {
		if isSource(name) && i < len(args) && cmd.Name() != "verify" {
			out = append(out, args[i])
		}
	}
	if f := cmd.Flag("against"); f != nil && f.Changed {
		out = append(out, args[0], f.Value.String())
	}
	return out
}

// damaged finds out which of the datasets an error says is damaged. What was written and is read back is none.
func damaged(err error, locations []string) (string, bool) {
	var store *catalog.UnreadableError
	if errors.As(err, &store) {
		return store.Location, len(locations) > 0
	}
	var corrupt *record.CorruptError
	if !errors.As(err, &corrupt) || corrupt.File == "" {
		return "", false
	}
	for _, location := range locations {
		loc, err := catalog.ParseLocation(location)
		if err != nil {
			continue
		}
		rel, err := filepath.Rel(loc.Path, corrupt.File)
		if err == nil && rel != ".." && !strings.HasPrefix(rel, "../") {
			return location, true
		}
	}
	return "", false
}

// verifyLine is the command line that verifies a dataset.
func verifyLine(location string) string { return commandLine([]string{"verify", location}) }
