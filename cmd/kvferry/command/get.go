package command

import (
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"kvferry/cmd/kvferry/cli"
	"kvferry/internal/pass/filter"
	"kvferry/record"
)

const getHelp = `Print the values of keys. Each KEY is text, hex:… or base64:….

In databases of Pika, Ardb, Kvrocks and SSDB, kvferry seeks the rows of the keys and reads no others. It
opens every table file of their column families first: a third of a second for 6,000 of them. RDB files have
no order of keys: kvferry reads them as a whole, and append-only files are replayed. Of Parquet files of
kvferry it reads the pages with the keys, and verifies the checksums of these pages.

  text         a line about the record, then a line for each element
  jsonl, json  like dump
  raw          the bytes of a string as they are; of other types, each field, member, score and value on a line
  resp         commands for redis-cli --pipe

The exit code is 3 if a key does not exist.
` + cli.ExitHelp

const getExample = `  kvferry get /data/pika/dump user:1
  kvferry get --format raw /data/pika/dump user:1 > user.txt
  kvferry get --type hash --format jsonl /data/pika/dump user:1 hex:00ff`

// get prints the values of keys.
func (a *App) get() *cobra.Command {
	var f dumpFlags
	cmd := &cobra.Command{
		Use:     "get SRC KEY...",
		Short:   "Print the values of keys",
		Long:    getHelp,
		Example: getExample,
		RunE:    func(cmd *cobra.Command, args []string) error { return a.runGet(cmd, &f, args[0], args[1:]) },
	}
	f.read.source.Register(cmd, readMemory, systemTemp)
	f.read.RegisterSalvage(cmd)
	f.read.progress.Register(cmd)
	f.read.choice.places.Register(cmd.Flags())
	cli.Choose(cmd.Flags(), &f.read.choice.expired, "expired", cli.Plain("drop", "keep"), "what to do with expired keys")
	cli.Choose(cmd.Flags(), &f.format, "format", cli.Plain("text", "jsonl", "json", "raw", "resp"), "output format, also as -f NAME")
	cmd.Flags().StringVarP(&f.output, "output", "o", "", cli.OutputUsage)
	f.read.workers, f.onConflict = 1, "first"
	return cmd
}

func (a *App) runGet(cmd *cobra.Command, f *dumpFlags, location string, names []string) error {
	missing := map[string]struct{}{}
	for _, name := range names {
		key, err := filter.ParseKey(name)
		if err != nil {
			return cli.Usagef("%w", err)
		}
		missing[string(key)] = struct{}{}
	}
	f.read.choice.keys = maps.Clone(missing)
	f.each = func(h *record.Header) { delete(missing, string(h.Key)) }
	if err := a.dumped(cmd, f, location); err != nil || len(missing) == 0 {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(missing)) {
		fmt.Fprintf(cmd.ErrOrStderr(), "kvferry: no key %s\n", record.Quote([]byte(key)))
	}
	return &cli.ExitError{Code: cli.ExitFindings}
}
