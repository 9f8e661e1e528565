package command

import (
	"github.com/spf13/cobra"

	"kvferry/cmd/kvferry/cli"
	"kvferry/format"
	"kvferry/internal/pass/filter"
)

const keysHelp = `List keys with their type, number of elements, bytes and expiry, ordered by database, key and type. PREFIX
is text, hex:… or base64:…; without it, kvferry lists all keys.

kvferry seeks the keys of a prefix, of --match, --range and --key-file in databases of Pika, Ardb, Kvrocks and
SSDB, and reads no others.

  text        a table
  jsonl, csv  like dump --keys-only
  names       only the keys, one per line, in the form of --key-file
` + cli.ExitHelp

const keysExample = `  kvferry keys /data/pika/dump user:
  kvferry keys --type zset --min-elements 10000 /data/pika/dump
  kvferry keys --format names --ttl-to 1h /data/pika/dump > soon.txt`

// keys lists keys.
func (a *App) keys() *cobra.Command {
	f := dumpFlags{keysOnly: true}
	cmd := &cobra.Command{
		Use:     "keys SRC [PREFIX]",
		Short:   "List keys with type, size and expiry",
		Long:    keysHelp,
		Example: keysExample,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				prefix, err := filter.ParseKey(args[1])
				if err != nil {
					return cli.Usagef("%w", err)
				}
				if f.read.choice.keyRange.span != nil {
					return cli.Usagef("a prefix and --range do not go together")
				}
				span := format.PrefixSpan(prefix)
				f.read.choice.keyRange.span = &span
			}
			return a.dumped(cmd, &f, args[0])
		},
	}
	f.read.Register(cmd)
	f.read.RegisterSalvage(cmd)
	cli.Choose(cmd.Flags(), &f.format, "format", cli.Plain("text", "jsonl", "csv", "names"), "output format, also as -f NAME")
	cmd.Flags().StringVarP(&f.output, "output", "o", "", cli.OutputUsage)
	cmd.Flags().Var(cli.Number(&f.limit, 0, 0), "limit", "stop after `n` keys; 0 for no limit")
	return cmd
}
