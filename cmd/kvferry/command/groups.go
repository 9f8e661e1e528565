package command

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flagGroup is a section of flags in a help text.
type flagGroup struct {
	title string
	flags []string // nil: all flags of no other group
}

// flagGroups lists the groups in the order of help.
var flagGroups = []flagGroup{
	{"Which records", []string{"type", "db", "keyspace", "match", "regex", "key-file", "range", "sample", "expired", "ttl-from", "ttl-to",
		"min-bytes", "min-elements", "keys-only", "dead", "raw", "map-db"}},
	{"Where", []string{"wal-dir", "wal-dir-b", "temp-dir", "output", "html", "check", "against", "layout", "namespace", "store", "allow-live"}},
	{"How much", []string{"memory", "workers", "max-bitmap", "max-block", "limit", "max", "max-findings", "top", "estimate", "estimate-size", "force-space"}},
	{"How", nil},
}

// groupOf returns the index of a flag's group.
func groupOf(name string) int {
	for i, g := range flagGroups {
		for _, f := range g.flags {
			if f == name {
				return i
			}
		}
	}
	return len(flagGroups) - 1
}

// The width of flags in a help text is the terminal's, within these bounds.
const (
	leastHelp = 60
	mostHelp  = 100
)

// helpWidth returns the width of help printed to w.
func helpWidth(w io.Writer) int {
	width := widthOf(w)
	if width == 0 {
		return mostHelp
	}
	return min(max(width, leastHelp), mostHelp)
}

// usage prints the usage of a command, with its flags in groups.
func usage(cmd *cobra.Command) error {
	w := cmd.OutOrStderr()
	if cmd.HasAvailableSubCommands() {
		return rootUsage(w, cmd)
	}
	fmt.Fprintf(w, "Usage:\n  %s\n", cmd.UseLine())
	if cmd.HasExample() {
		fmt.Fprintf(w, "\nExamples:\n%s\n", cmd.Example)
	}
	sets := make([]*pflag.FlagSet, len(flagGroups))
	for i := range sets {
		sets[i] = pflag.NewFlagSet("", pflag.ContinueOnError)
	}
	for _, fs := range []*pflag.FlagSet{cmd.LocalFlags(), cmd.InheritedFlags()} {
		fs.VisitAll(func(f *pflag.Flag) { sets[groupOf(f.Name)].AddFlag(f) })
	}
	for i, fs := range sets {
		if fs.HasAvailableFlags() {
			fmt.Fprintf(w, "\n%s:\n%s", flagGroups[i].title, fs.FlagUsagesWrapped(helpWidth(w)))
		}
	}
	return nil
}

// rootUsage prints the usage of kvferry with the list of commands.
func rootUsage(w io.Writer, cmd *cobra.Command) error {
	fmt.Fprintf(w, "Usage:\n  %s COMMAND\n\nExamples:\n%s\n\nCommands:\n", cmd.CommandPath(), cmd.Example)
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() || c.Name() == "help" {
			fmt.Fprintf(w, "  %-*s %s\n", cmd.NamePadding(), c.Name(), c.Short)
		}
	}
	fmt.Fprintf(w, "\nFlags:\n%s", cmd.LocalFlags().FlagUsagesWrapped(helpWidth(w)))
	_, err := fmt.Fprintf(w, "\nkvferry help COMMAND says more about a command, kvferry help TOPIC about\n  %s\n",
		strings.Join(wrapped(strings.Join(topicNames(), " "), formatWidth), "\n  "))
	return err
}
