package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"kvferry/catalog"
	"kvferry/cmd/kvferry/cli"
	"kvferry/convert"
	"kvferry/format"
	"kvferry/inspect/dump"
	"kvferry/internal/pass/filter"
	"kvferry/internal/sys/disk"
	"kvferry/record"
	"kvferry/redis/aof"
	"kvferry/store"
)

// ExitCode returns the exit code for an error.
func ExitCode(err error) int {
	var exit *cli.ExitError
	var usage *format.UsageError
	var missing *convert.MissingError
	var other *convert.ResumeError
	switch {
	case err == nil:
		return cli.ExitOK
	case errors.Is(err, context.Canceled):
		return cli.ExitCancelled
	case errors.As(err, &exit):
		return exit.Code
	case errors.As(err, &missing):
		return cli.ExitMissing
	case errors.As(err, &other) && other.Parts:
		return cli.ExitUsage
	case misnamed(err), errors.As(err, &usage):
		return cli.ExitUsage
	}
	return cli.ExitFailed
}

// misnamed reports whether flags name a database or keyspace that the dataset does not have.
func misnamed(err error) bool {
	var db *filter.NoDatabaseError
	var keyspace *dump.NoKeyspaceError
	return errors.As(err, &db) || errors.As(err, &keyspace)
}

// hint adds advice to the error of a command, such as to verify a damaged dataset or to name another --temp-dir.
func hint(cmd *cobra.Command, args []string, err error) error {
	if location, found := damaged(err, sources(cmd, args)); found {
		return fmt.Errorf("%w; %s lists everything that is wrong with it%s", err, verifyLine(cmd, location), rest(cmd, err))
	}
	if _, unknown := errors.AsType[*aof.CommandError](err); unknown {
		return fmt.Errorf("%w; %s", err, pastIt(cmd, "skips such commands and lists them", "go on without such commands",
			record.LossCommand))
	}
	if _, guessed := errors.AsType[*aof.ManifestError](err); guessed {
		const reads = "the base and then the increments by their numbers"
		return fmt.Errorf("%w; %s", err, pastIt(cmd, "reads "+reads, "read "+reads, record.LossDamaged))
	}
	if noTempDir(err) {
		way := "set TMPDIR to a directory for temporary files"
		if cmd.Flag("temp-dir") != nil {
			way = "name a directory for temporary files with --temp-dir"
		}
		return fmt.Errorf("%w; %s", err, way)
	}
	if dir := fullTempDir(cmd, err); dir != "" {
		return fmt.Errorf("%w; free some space in %s, or name another directory for temporary files with --temp-dir", err, dir)
	}
	return err
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

// pastIt advises how to read past what is wrong with an append-only file: what --salvage does, if the command has it, or
// the aim of a conversion that allows a loss.
func pastIt(cmd *cobra.Command, salvages, aim, loss string) string {
	if cmd.Flag("salvage") != nil {
		return "--salvage " + salvages
	}
	return "to " + aim + ", convert it with --allow-loss " + loss + " and use the copy"
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
		return "; to save the rest, see kvferry help findings"
	}
	return ""
}

// sources lists the locations that a command line reads. verify is excluded: the advice is to run it.
func sources(cmd *cobra.Command, args []string) (out []string) {
	for i, name := range cli.ArgNames(cmd) {
		if cli.IsSource(name) && i < len(args) && cmd.Name() != "verify" {
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
	if store, ok := errors.AsType[*catalog.UnreadableError](err); ok {
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

// verifyLine returns the command line that verifies a dataset of a command.
func verifyLine(cmd *cobra.Command, location string) string {
	words := openingWords(cmd.Flags())
	if second := cmd.Flag(secondWAL); second != nil && cmd.Flags().Arg(0) != location {
		words = replacing(words, "--wal-dir", "")
		if second.Changed {
			words = append(words, "--wal-dir="+second.Value.String())
		}
	}
	return cli.CommandLine(slices.Concat([]string{"verify"}, words, []string{location}))
}

// pastError is an error that a command with --salvage reads past.
type pastError struct{ error }

func (e *pastError) Error() string { return e.error.Error() + "; --salvage reads past it" }

func (e *pastError) Unwrap() error { return e.error }
