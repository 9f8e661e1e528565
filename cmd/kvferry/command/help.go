package command

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

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

// help shows the help of a command, or a page of the documentation.
func help() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND|TOPIC]",
		Short: "Show the help of a command, or a page of the documentation",
		Long: "Show the help of a command, of kvferry itself, or a page of the documentation:\n\n" + topicList(usualHelp) + `
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
	width := helpWidth(out)
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
		return usagef("no command or page %q%s", name, meantPage(name, slices.Compact(known)))
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
