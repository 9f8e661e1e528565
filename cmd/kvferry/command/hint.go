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

// hint adds advice to the errors of all commands, such as to verify a damaged dataset or to name another --temp-dir.
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

// noTempDir reports whether the directory for temporary files does not exist, as in a container with only the binary.
func noTempDir(err error) bool {
	var path *fs.PathError
	return errors.As(err, &path) && errors.Is(err, fs.ErrNotExist) && filepath.Clean(path.Path) == filepath.Clean(os.TempDir())
}

// tempPrefix begins the names of temporary files.
const tempPrefix = "kvferry-"

// fullTempDir returns the directory for temporary files if err reports that it is full and gives no advice yet.
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

// withoutCommand advises how to skip an unknown command of an append-only file.
func withoutCommand(cmd *cobra.Command) string {
	if cmd.Flag("salvage") != nil {
		return "--salvage skips such commands and lists them"
	}
	return "to go on without such commands, convert it with --allow-loss " + record.LossCommand + " and use the copy"
}

// rest advises how to read the rest of a damaged dataset, if the command has no flag to skip the damage.
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

// sources lists the locations that a command line reads. verify is excluded: the advice is to run it.
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

// damaged returns the dataset that an error calls damaged. Damage in the output, which is read back, does not count.
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

// verifyLine returns the command line that verifies a dataset.
func verifyLine(location string) string { return commandLine([]string{"verify", location}) }
