package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kvferry/docs"
	"kvferry/internal/text/page"
	"kvferry/internal/text/suggest"
)

const exitCodes = `Exit codes of kvferry. They are part of its interface.

    0  done
    1  failed: nothing was published, unless the error says that the target is complete
       (a server keeps what it was sent)
    3  findings or differences; explain: no such key
    4  refused: the target cannot hold everything (--allow-loss)
    5  parts of a conversion are missing: run them, then the same command again
   64  wrong usage: flags, arguments, and what flags name that does not exist
  130  cancelled by Ctrl-C, SIGTERM or SIGHUP
  141  the reader of standard output went away, as head does
`

// topics are the help topics besides commands and the pages of docs.
var topics = map[string]string{"exit-codes": exitCodes}

// pageOf maps a command to the page that its help recommends. A page named like a command follows its help directly.
var pageOf = map[string]string{"verify": "findings"}

// Help shows the help of a command, or a page of the documentation.
func Help() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND|TOPIC]",
		Short: "Show the help of a command, or a page of the documentation",
		Long: "Show the help of a command, of kvferry itself, or a page of the documentation:\n\n" + topicList(UsualHelp) + `
On a terminal, a long text is shown in the pager that KVFERRY_PAGER or PAGER names, or in less.`,
		Example: `  kvferry help convert
  kvferry help exit-codes
  kvferry help findings
  kvferry help formats/nemo`,
		ValidArgsFunction: completeTopic,
		RunE:              showHelp,
	}
}

// showHelp prints the help of a command, a page, or both if they share the name.
func showHelp(cmd *cobra.Command, args []string) error {
	out := cmd.OutOrStdout()
	width := HelpWidth(out)
	text := topicText(args, width)
	target, rest, err := cmd.Root().Find(args)
	if err == nil && len(rest) == 0 {
		target.InitDefaultHelpFlag()
		if text != "" {
			text = "\n" + text
		}
		return paged(out, fullHelp(target, width)+text)
	}
	if text == "" {
		known := append(topicNames(), commandNames(cmd.Root())...)
		slices.Sort(known)
		name := strings.Join(args, " ")
		return Usagef("no command or page %q%s", name, meantPage(name, slices.Compact(known)))
	}
	return paged(out, text)
}

// meantPage suggests pages with names like this one, or those whose first word is like it, such as the five of "moving".
func meantPage(name string, known []string) string {
	if meant := suggest.DidYouMean(name, known); meant != "" {
		return meant
	}
	words := map[string][]string{}
	for _, k := range known {
		if word, _, ok := strings.Cut(k, "-"); ok {
			words[word] = append(words[word], k)
		}
	}
	var meant []string
	for _, word := range suggest.Nearest(name, slices.Sorted(maps.Keys(words))) {
		meant = append(meant, words[word]...)
	}
	if len(meant) == 0 {
		return ""
	}
	return "; want " + suggest.Or(meant)
}

// topicNames lists the topics of help.
func topicNames() []string {
	out := docs.Topics()
	for name := range topics {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// topicText returns the text of a topic, or "" if the topic does not exist.
func topicText(args []string, width int) string {
	if len(args) != 1 {
		return ""
	}
	text := topics[args[0]]
	if text == "" {
		text, _ = docs.Page(args[0])
	}
	return page.Render(text, width)
}

func commandNames(root *cobra.Command) []string {
	var out []string
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() || c.Name() == "help" {
			out = append(out, c.Name())
		}
	}
	return out
}

// completeTopic completes the names of commands and topics.
func completeTopic(cmd *cobra.Command, args []string, soFar string) ([]string, cobra.ShellCompDirective) {
	at, rest, err := cmd.Root().Find(args)
	if err != nil || len(rest) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var out []string
	for _, sub := range at.Commands() {
		if sub.IsAvailableCommand() && strings.HasPrefix(sub.Name(), soFar) {
			out = append(out, cobra.CompletionWithDesc(sub.Name(), sub.Short))
		}
	}
	if len(args) == 0 {
		for _, name := range topicNames() {
			if strings.HasPrefix(name, soFar) && !slices.Contains(commandNames(at), name) {
				out = append(out, cobra.CompletionWithDesc(name, "a page of the documentation"))
			}
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// flagGroup is a section of flags in a help text.
type flagGroup struct {
	title string
	flags []string // nil: all flags of no other group
}

// flagGroups lists the groups in the order of help. Flags of no other group are in the first.
var flagGroups = []flagGroup{
	{"Flags", nil},
	{"Filters", []string{"type", "db", "keyspace", "match", "exclude", "regex", "key-file", "range", "sample", "expired", "no-expiry", "ttl-from",
		"ttl-to", "min-bytes", "max-bytes", "min-elements"}},
	{"Servers", []string{"replace", "skip-existing", "fail-existing", "rate", "password-file", "verify", "listen-tls-cert",
		"listen-tls-key", "listen-tls-ca", "requirepass-file", "max-clients", "unix-socket", "cluster-node"}},
	{"Object stores", []string{"s3-endpoint", "s3-region", "s3-path-style", "s3-anonymous"}},
	{"Rarely needed", []string{"allow-live", "assemble", "cluster", "color", "column", "columns", "csv-safe", "direct", "encode", "estimate-size", "failure-report", "file", "files", "force-space",
		"json-style", "layout", "max-bitmap", "max-block", "namespace", "no-prove", "now", "prefix-depth", "prove", "rename-db", "resort", "scan", "slots", "sst", "store",
		"temp-dir", "tls-ca", "tls-cert", "tls-insecure", "tls-key", "verbose", "version-epoch", "wal-dir", "wal-dir-b"}},
}

// commonFlags are the flags that the short help of a command shows, the most used first.
var commonFlags = []string{"dry-run", "estimate", "allow-loss", "on-conflict", "resume", "part", "finish", "instances", "rdb-version",
	"listen", "port", "format", "output", "check", "against", "fail-on", "max-findings", "max", "html", "top", "keys-only", "dead", "raw", "limit",
	"salvage", "type", "db", "match", "sample", "map-db", "expired", "progress", "memory", "workers", "quiet", "version"}

// The short help fits on the smallest of usual screens, with the prompt below it.
const (
	commonShown   = 12
	examplesShown = 3
)

// groupOf returns the index of a flag's group.
func groupOf(name string) int {
	return max(0, slices.IndexFunc(flagGroups, func(g flagGroup) bool { return slices.Contains(g.flags, name) }))
}

// ShowHelpOf prints the help of a command: what is needed most after -h, everything otherwise.
func ShowHelpOf(cmd *cobra.Command, args []string) {
	long := func(arg string) bool { return strings.HasPrefix(arg, "--help") }
	w := cmd.OutOrStdout()
	if len(args) > 0 && !slices.ContainsFunc(args, long) {
		fmt.Fprint(w, ShortHelp(cmd, HelpWidth(w)))
		return
	}
	paged(w, fullHelp(cmd, HelpWidth(w)))
}

// ShortHelp is the help of a command that fits on a screen of 80 by 24 characters.
func ShortHelp(cmd *cobra.Command, width int) string {
	var b strings.Builder
	for _, line := range page.Wrap(cmd.Short, width) {
		fmt.Fprintln(&b, line)
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "Usage:  %s COMMAND\nCommands:\n%s\n", cmd.CommandPath(), commandList(cmd))
		fmt.Fprint(&b, "kvferry COMMAND -h shows examples and common flags; kvferry help shows more.\n")
		return b.String()
	}
	fmt.Fprintf(&b, "Usage:  %s\n", cmd.UseLine())
	examples := strings.Split(cmd.Example, "\n")
	if cmd.HasExample() {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", strings.Join(examples[:min(len(examples), examplesShown)], "\n"))
	}
	var shown []*pflag.Flag
	for _, name := range commonFlags {
		if f := cmd.Flags().Lookup(name); f != nil && !f.Hidden && len(shown) < commonShown {
			shown = append(shown, f)
		}
	}
	if len(shown) > 0 {
		fmt.Fprintf(&b, "\nCommon flags:\n%s", flagLines(shown, width))
	}
	fmt.Fprintf(&b, "\nkvferry help %s explains the command and all its flags.\n", cmd.Name())
	return b.String()
}

// flagLines lists flags, one line each.
func flagLines(flags []*pflag.Flag, width int) string {
	const widest = 24
	var b strings.Builder
	for _, f := range flags {
		name := "    --" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", --" + f.Name
		}
		what, usage := pflag.UnquoteUsage(f)
		usage = clipped(usage, width-widest-4)
		if named := name + " " + what; what != "" && len(named) <= widest {
			name = named
		} else if values := usage + ": " + what; what != "" && page.Width(values) <= width-widest-4 {
			usage = values
		}
		fmt.Fprintf(&b, "  %-*s  %s\n", widest, name, usage)
	}
	return b.String()
}

// clipped shortens a text to its first clauses that fit in width characters.
func clipped(text string, width int) string {
	text, _, _ = strings.Cut(text, "; ")
	if page.Width(text) <= width {
		return text
	}
	for _, end := range []string{" (", ": ", ", "} {
		if head, _, ok := strings.Cut(text, end); ok && page.Width(head) <= width {
			return head
		}
	}
	return page.Wrap(text, width-2)[0] + " …"
}

// fullHelp is everything that is known of a command.
func fullHelp(cmd *cobra.Command, width int) string {
	var b strings.Builder
	use := cmd.UseLine()
	if cmd.HasAvailableSubCommands() {
		use = cmd.CommandPath() + " COMMAND"
	}
	fmt.Fprintf(&b, "Usage:\n  %s\n", use)
	if cmd.HasExample() {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", cmd.Example)
	}
	fmt.Fprintf(&b, "\n%s", page.Render(cmd.Long, width))
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\nCommands:\n%s", commandList(cmd))
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
			fmt.Fprintf(&b, "\n%s:\n", flagGroups[i].title)
			fs.VisitAll(func(f *pflag.Flag) { describeFlag(&b, f, width) })
		}
	}
	switch more := pageOf[cmd.Name()]; {
	case cmd.HasAvailableSubCommands():
		fmt.Fprintf(&b, "\nkvferry help COMMAND describes a command, and kvferry help TOPIC describes\n%s", topicList(width))
	case more != "":
		fmt.Fprintf(&b, "\nSee also kvferry help %s.\n", more)
	}
	return b.String()
}

// describeFlag prints a flag with its whole usage. A long name has a line of its own.
func describeFlag(b *strings.Builder, f *pflag.Flag, width int) {
	const indent = 28
	one := pflag.NewFlagSet("", pflag.ContinueOnError)
	one.AddFlag(f)
	const column = 6 // of names without a shorthand
	text := strings.TrimRight(one.FlagUsages(), "\n")
	if text == "" {
		return // hidden
	}
	name, usage, _ := strings.Cut(text[column:], "   ")
	name = text[:column] + name
	for i, line := range page.Wrap(usage, width-indent) {
		switch {
		case i > 0:
			name = ""
		case page.Width(name) > indent-2:
			fmt.Fprintln(b, name)
			name = ""
		}
		fmt.Fprintf(b, "%-*s%s\n", indent, name, line)
	}
}

// commandList lists the commands with what they do.
func commandList(root *cobra.Command) string {
	var b strings.Builder
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() || c.Name() == "help" {
			fmt.Fprintf(&b, "  %-*s %s\n", root.NamePadding(), c.Name(), c.Short)
		}
	}
	return b.String()
}

// topicList lists the pages of documentation.
func topicList(width int) string {
	return "  " + strings.Join(page.Wrap(strings.Join(topicNames(), " "), width-2), "\n  ") + "\n"
}
