package command

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"kvferry/catalog"
	"kvferry/internal/sys/disk"
	"kvferry/record"
	"kvferry/redis/aof"
	"kvferry/store"
)

// hint adds to the errors of all commands what to do: verify a damaged dataset, name another directory for temporary
// files.
func hint(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		run := cmd.RunE
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			err := run(cmd, args)
			if location, found := damaged(err, sources(cmd, args)); found {
				return fmt.Errorf("%w; %s lists everything that is wrong with it%s", err, verifyLine(location), rest(cmd, err))
			}
			var unknown *aof.CommandError
			if errors.As(err, &unknown) {
				return fmt.Errorf("%w; %s", err, withoutCommand(cmd))
			}
			if noTempDir(err) {
				return fmt.Errorf("%w; name a directory for temporary files with --temp-dir", err)
			}
			if dir := fullTempDir(cmd, err); dir != "" {
				return fmt.Errorf("%w; free some space in %s, or name another directory for temporary files with --temp-dir", err, dir)
			}
			return err
		}
	}
}

// noTempDir reports whether the directory for temporary files does not exist, as in a container of the binary alone.
func noTempDir(err error) bool {
	var path *fs.PathError
	return errors.As(err, &path) && errors.Is(err, fs.ErrNotExist) && filepath.Clean(path.Path) == filepath.Clean(os.TempDir())
}

// tempPrefix is what the names of temporary files begin with.
const tempPrefix = "kvferry-"

// fullTempDir returns the directory for temporary files if an error is that it has no room, and does not say yet what to do.
func fullTempDir(cmd *cobra.Command, err error) string {
	var path *fs.PathError
	full := disk.IsFull(err)
	flag := cmd.Flag("temp-dir")
	if flag == nil || !full || !errors.As(err, &path) || strings.Contains(err.Error(), "--temp-dir") {
		return ""
	}
	dir := cmp.Or(flag.Value.String(), os.TempDir())
	rel, relErr := filepath.Rel(dir, path.Path)
	if relErr != nil || !strings.HasPrefix(rel, tempPrefix) {
		return ""
	}
	return dir
}

// withoutCommand says how to go on without a command of an append-only file whose effect is not known.
func withoutCommand(cmd *cobra.Command) string {
	if cmd.Flag("salvage") != nil {
		return "--salvage skips such commands and lists them"
	}
	return "to go on without such commands, convert it with --allow-loss " + record.LossCommand + " and use the copy"
}

// rest says how the rest of a damaged dataset can be had, when no flag of the command goes past the damage.
func rest(cmd *cobra.Command, err error) string {
	var block *store.BlockError
	var missing *store.MissingError
	var corrupt *record.CorruptError
	switch {
	case errors.As(err, &block):
		if cmd.Flag("salvage") == nil {
			return "; to compare the rest, convert it with --allow-loss damaged and compare the copy"
		}
	case errors.As(err, &corrupt), errors.As(err, &missing), errors.Is(err, store.ErrNotStore):
		return "; kvferry help findings says how to save the rest"
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
